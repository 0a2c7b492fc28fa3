"""Profiles of real kernels (Debian's cloud kernels, QEMU 7.2) in tests/data, without each operation's count.

They are what `ktrial.experiment.profile.profile` returned, and `ktrial.kernels.symbols` of the
kernel, as far as that speaks of functions which ran in one of the two kernels.
"""

import json
import lzma

from tests.support.places import DATA as _DATA

from ktrial.model.profile import FunctionFiles, Profile


def real_profile(workload: str, kernel: str) -> tuple[Profile, FunctionFiles]:
    """`fork` or `pipe`, of `5.10` or `6.12`."""
    kept = json.loads(lzma.decompress((_DATA / f"{workload}-{kernel}.json.xz").read_bytes()))
    return Profile.model_validate(kept["profile"]), FunctionFiles.model_validate(kept["files"])
