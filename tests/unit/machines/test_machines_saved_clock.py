"""The virtual clock in a saved state: whatever QEMU left it at, the guest's own reading decides."""

import struct

import pytest

from ktrial.machines.errors import CannotSaveState
from ktrial.machines.qemu.snapshot import AHEAD_NS, canonical

TIME_STAMP = 1_125_000_000
COUNT = 627_675_247
HEAD = b"\x04\x00\x00\x00\x00\x05timer\x00\x00\x00\x00\x00\x00\x00\x02"
NAME = b"\x05\x0ctimer/icount\x00\x00\x00\x01"


def state(clock: int, *, host: int = 7, name: bytes = NAME) -> bytes:
    """A saved state whose virtual clock stands at `clock`."""
    host_clocks = struct.pack(">qqq", host, 0, host * 3)
    return b"before" + HEAD + host_clocks + name + struct.pack(">qq", clock - COUNT, COUNT) + b"~after"


def test_the_clock_is_set_by_the_guests_reading() -> None:
    result = canonical(state(TIME_STAMP + 900_000), TIME_STAMP, "exact")
    assert result == state(TIME_STAMP + AHEAD_NS, host=0)


@pytest.mark.parametrize("jump", [0, 921_000, 4_423_254, AHEAD_NS])
def test_wherever_qemu_left_the_clock_the_state_is_the_same(jump: int) -> None:
    result = canonical(state(TIME_STAMP + jump, host=jump), TIME_STAMP, "exact")
    assert result == canonical(state(TIME_STAMP + 1), TIME_STAMP, "exact")


@pytest.mark.parametrize("clock", [TIME_STAMP - 1, TIME_STAMP + AHEAD_NS + 1])
def test_a_clock_that_does_not_fit_the_guests_reading(clock: int) -> None:
    with pytest.raises(CannotSaveState, match=f"its clock stands at {clock} ns"):
        canonical(state(clock), TIME_STAMP, "exact")


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        state(TIME_STAMP, name=b"\x05\x0ctimer/icount\x00\x00\x00\x02"),
        state(TIME_STAMP) * 2,
        state(TIME_STAMP).replace(HEAD, b""),
        state(TIME_STAMP)[:-16],
    ],
)
def test_a_state_laid_out_otherwise_is_not_touched(damaged: bytes) -> None:
    with pytest.raises(CannotSaveState, match="not where QEMU keeps it"):
        canonical(damaged, TIME_STAMP, "exact")
