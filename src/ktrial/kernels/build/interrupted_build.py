"""What a build leaves that was killed: half-written files, which the next make would trust, or fail on.

kbuild writes beside each product (`open.o`) what made it and what that read (`.open.o.cmd`), last of all and
not by a rename. A signal may fall between the two, or into one of them. Without its `.cmd` file a product is
made anew.
"""

import os
import re
from pathlib import Path

_COMPILED = re.compile(rb"-Wp,-MM?D,")
"""What was made so has read other files, and says which."""
_BEGINS = re.compile(rb"^deps_(\S+) :=", re.MULTILINE)


def mend(build: Path) -> tuple[Path, ...]:
    """Delete products that may be half-written, with what is noted of them; return those products.

    They are those whose `.cmd` file is cut off, and those that were written after theirs.
    """
    mended = []
    for noted in sorted(build.rglob(".*.cmd")):
        product = noted.with_name(noted.name.removeprefix(".").removesuffix(".cmd"))
        if noted.is_symlink() or not noted.is_file():
            continue
        if is_cut_off(noted.read_bytes()) or _is_older(noted, product):
            noted.unlink()
            product.unlink(missing_ok=True)
            mended.append(product)
    return tuple(mended)


def is_cut_off(content: bytes) -> bool:
    """Whether a `.cmd` file does not reach its end, as fixdep and `printf` write it."""
    if not content.endswith(b"\n") or content.endswith(b"\\\n"):
        return True
    begins = _BEGINS.search(content)
    if begins is None:
        return _COMPILED.search(content) is not None
    return b"\n$(deps_" + begins[1] + b"):\n" not in content


def _is_older(noted: Path, product: Path) -> bool:
    try:
        return os.lstat(noted).st_mtime_ns < os.lstat(product).st_mtime_ns
    except FileNotFoundError:
        return False
