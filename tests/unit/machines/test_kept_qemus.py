"""QEMUs that serve many trials: which ones, and after which code none does."""

import pytest

from ktrial.machines.qemu.kept import can_be_kept, code_that_frees_modules
from ktrial.machines.qemu.program import Version

SYMBOLS = """ffffffff81000000 T _text
ffffffff81000100 t free_module_elf
ffffffff81000200 t free_module
ffffffff81000200 t __pfx_other
ffffffff81000280 t next
ffffffff81000300 t free_module.part.0
"""


@pytest.mark.parametrize(
    ("version", "cpus", "plan", "expected"),
    [
        ((7, 2, 22), 1, 1000, True),
        ((7, 2, 0), 1, 1000, True),
        ((7, 2, 22), 2, 1000, False),
        ((7, 2, 22), 1, 1 << 20, False),
        ((8, 0, 0), 1, 1000, False),
        ((10, 0, 13), 1, 1000, False),
    ],
)
def test_which_qemu_serves_many_trials(version: Version, cpus: int, plan: int, *, expected: bool) -> None:
    assert can_be_kept(version, cpus, bytes(plan)) is expected


def test_the_code_that_frees_modules_is_found_with_what_a_compiler_made_of_it() -> None:
    assert code_that_frees_modules(SYMBOLS) == (
        (0xFFFFFFFF81000200, 0xFFFFFFFF81000280),
        (0xFFFFFFFF81000300, 0xFFFFFFFF81000301),
    )
    assert code_that_frees_modules("") == ()
