"""Dunnett's test in shared blocks, beside scipy's for one-way layouts, the paired t test, and simulation."""

import numpy as np
import pytest
from scipy import stats

from ktrial.stats.many_to_one import edge, shared_blocks
from ktrial.stats.resolution import Rounding


def test_with_one_treatment_it_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    logs = rng.normal(size=(8, 2))
    said = shared_blocks(logs)
    paired = stats.ttest_rel(logs[:, 1], logs[:, 0]).confidence_interval(0.95)
    assert (said.low[0], said.high[0]) == pytest.approx((paired.low, paired.high))


@pytest.mark.parametrize(
    ("treatments", "freedom", "published"), [(2, 12, 2.50), (3, 15, 2.61), (3, 20, 2.54)]
)
def test_edges_are_those_of_the_published_tables(treatments: int, freedom: int, published: float) -> None:
    """Dunnett, Biometrics 20, 1964, table II: two-sided, 5 %."""
    assert edge(treatments, freedom) == pytest.approx(published, abs=0.006)


def test_all_intervals_hold_together_whatever_a_block_has_in_common() -> None:
    rng = np.random.default_rng(2)
    truth = np.array([0.0, 0.1, -0.05])
    held = 0
    for _ in range(2000):
        logs = truth + rng.normal(0, 0.05, (7, 3)) + rng.normal(0, 1.0, (7, 1))
        said = shared_blocks(logs)
        held += bool(((said.low <= truth[1:]) & (truth[1:] <= said.high)).all())
    assert 0.937 < held / 2000 < 0.963


def test_one_that_could_not_be_judged_counts_among_the_family() -> None:
    logs = np.random.default_rng(3).normal(size=(8, 2))
    assert shared_blocks(logs, among=3).half > shared_blocks(logs).half


def test_numbers_that_are_all_alike_are_as_wide_as_their_resolution() -> None:
    logs = np.zeros((6, 3))
    assert shared_blocks(logs).half == 0
    assert shared_blocks(logs, hidden=Rounding(variance=1e-4, bias=1e-3)).half > 1e-3


def test_less_than_two_blocks_or_no_treatment_is_refused() -> None:
    with pytest.raises(ValueError, match="two blocks"):
        shared_blocks(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="one treatment"):
        shared_blocks(np.zeros((3, 1)))
