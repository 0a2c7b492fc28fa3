"""Huber's estimate in shared blocks: its intervals by simulation, and what a disturbed run does to them."""

import numpy as np
import pytest

from ktrial.stats.many_to_one import SharedBlocks, shared_blocks
from ktrial.stats.resolution import Rounding
from ktrial.stats.typical_blocks import typical_blocks

NOISE, GAIN, SLOW = 0.03, 0.06, 0.25
COUNT = 600


def holds(said: SharedBlocks, truth: float) -> bool:
    return bool((np.abs(said.means - truth) <= said.half).all())


@pytest.mark.parametrize(("blocks", "arms"), [(6, 2), (6, 3), (8, 3), (12, 2), (20, 3)])
def test_intervals_hold_together_with_normal_noise(blocks: int, arms: int) -> None:
    rng = np.random.default_rng(blocks)
    held = sum(
        holds(typical_blocks(NOISE * rng.standard_normal((blocks, arms)) + rng.normal(0, 1, (blocks, 1))), 0)
        for _ in range(COUNT)
    )
    assert 0.925 < held / COUNT < 0.98


@pytest.mark.parametrize("arm", [0, 1])
def test_runs_that_are_disturbed_in_one_arm_make_no_difference(arm: int) -> None:
    rng, held = np.random.default_rng(4), 0
    for _ in range(COUNT):
        logs = NOISE * rng.standard_normal((8, 3))
        logs[:, arm] -= SLOW * (rng.random(8) < 0.05)
        held += holds(typical_blocks(logs), 0)
    assert held / COUNT > 0.925


def test_a_gain_is_found_beside_disturbed_runs_where_means_miss_it() -> None:
    rng, typical, mean = np.random.default_rng(5), 0, 0
    for _ in range(COUNT):
        logs = NOISE * rng.standard_normal((8, 3)) - SLOW * (rng.random((8, 3)) < 0.03)
        logs[:, 1:] += GAIN
        typical += bool((typical_blocks(logs).low > 0).any())
        mean += bool((shared_blocks(logs).low > 0).any())
    assert typical > 0.8 * COUNT
    assert typical > mean + 0.1 * COUNT


def test_one_disturbed_run_moves_the_estimate_by_less_than_the_noise() -> None:
    logs = NOISE * np.random.default_rng(6).standard_normal((8, 3))
    before = typical_blocks(logs)
    for far in (0.5, 10.0):
        disturbed = logs.copy()
        disturbed[3, 1] -= far
        after = typical_blocks(disturbed)
        assert np.abs(after.means - before.means).max() < NOISE
        assert after.half < 2 * before.half


def test_values_on_a_coarse_grid_are_not_taken_for_certain() -> None:
    logs = np.zeros((8, 3))
    logs[0, 1] = logs[4, 2] = 0.01
    said = typical_blocks(logs)
    assert said.half == shared_blocks(logs).half > 0.003
    assert typical_blocks(np.zeros((6, 3)), hidden=Rounding(variance=1e-4, bias=1e-3)).half > 1e-3


def test_less_than_two_blocks_or_no_treatment_is_refused() -> None:
    with pytest.raises(ValueError, match="two blocks"):
        typical_blocks(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="one treatment"):
        typical_blocks(np.zeros((3, 1)))
