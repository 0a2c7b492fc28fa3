"""docs/exact-mode.md: causes planted by boot parameters, and the first row of `explain` for each."""

from functools import partial

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import decimal, signed, table
from tests.support.guests import PLANTED, Planted

from ktrial.analysis.attribution.decomposition import explain
from ktrial.kernels import kernel_registry
from ktrial.kernels.symbols import function_files
from ktrial.model.attribution import Explanation
from ktrial.model.profile import Profile
from ktrial.model.workload import WorkloadUse

_KERNEL = "debian:6.1"
_HEADS = ("planted", "workload", "the first row", "its part", "of all")
_MODULE = (
    "a module that hooks `kernel_clone`, 1000 rounds of a loop of two instructions",
    "fork",
    "`planted_cost [ktrial_planted]`",
    "2000 and at most 20",
    "",
)
"""tests/guest/kernels/test_planted_causes.py builds it, and holds it to these limits."""
_MEGABYTE = 1_000_000


def _text(measuring: Measuring) -> str:
    return table(_HEADS, [_MODULE, *(_row(measuring, planted) for planted in PLANTED)])


def _row(measuring: Measuring, planted: Planted) -> tuple[str, ...]:
    before, after = planted.profiles(partial(_profile, measuring))
    files = function_files(kernel_registry.add(_KERNEL))
    explanation = explain(before, after, files, files)
    first = explanation.rows[0]
    measuring.claim(first.function in planted.functions, f"{planted}: the first row is the planted cause")
    return (
        f"`{planted.parameter}`",
        planted.workload,
        f"`{first.name}`",
        signed(float(explanation.difference(first))) + _bytes(explanation),
        signed(float(explanation.total)),
    )


def _bytes(explanation: Explanation) -> str:
    """What string instructions moved more, where that is megabytes."""
    moved = float(explanation.byte_difference(explanation.rows[0])) / _MEGABYTE
    return f", and {decimal(moved, 1)} MB" if moved > 1 else ""


def _profile(measuring: Measuring, use: WorkloadUse, *boot: str) -> Profile:
    return measuring.profile(_KERNEL, use.name, use.parameters, boot)


BLOCKS = (Block("planted-causes", "docs/exact-mode.md", _text),)
