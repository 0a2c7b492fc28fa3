"""How many seconds are left: by how fast trials end, with all that lies between them."""

import time

import pytest

from ktrial.experiment.observer import Pace


def seen(trials: int, seconds: float, ago: float | None) -> Pace:
    pace = Pace(begun=None if ago is None else time.monotonic() - ago)
    for _ in range(trials):
        pace.saw(seconds)
    return pace


@pytest.mark.parametrize(
    ("trials", "seconds", "ago", "remaining", "at_once", "left"),
    [
        (0, 0.0, 5.0, 10, 1, None),
        (3, 1.0, None, 10, 1, None),
        (1, 2.0, 2.0, 10, 1, 20.0),
        (10, 0.1, 5.0, 20, 1, 10.0),  # trials take a second of the five: the rest lies between them
        (1, 4.0, 4.5, 10, 2, 20.0),  # the second is under way, too
        (10, 1.0, 5.0, 20, 2, 10.0),
    ],
)
def test_what_lies_between_trials_counts(
    trials: int, seconds: float, ago: float | None, remaining: int, at_once: int, left: float | None
) -> None:
    assert seen(trials, seconds, ago).left(remaining, at_once) == (left and pytest.approx(left, rel=0.1))


def test_only_the_first_block_begins_it() -> None:
    pace = seen(1, 1.0, 100.0)
    before = pace.begun
    pace.begin()
    assert pace.begun == before
