"""The typical block: Hodges and Lehmann's location, and its interval from signed ranks."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.support.runs_of_tests import examples

from ktrial.stats.sequential.typical_block import typical_ratio, walsh

PLAIN = np.asarray(1.0)

DEPRESSION = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
TREATED = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
"""Hamilton's depression scale of nine patients before and after tranquilizers: Hollander and Wolfe,
Nonparametric Statistical Methods, 1973, table 3.1."""


def edge(level: float, blocks: int) -> np.ndarray:
    return np.asarray(-stats.t.ppf(level / 2, blocks - 1))


def test_the_textbook_s_estimate_and_interval_come_out_to_the_printed_digit() -> None:
    """Hollander and Wolfe, examples 3.3 and 3.5: -0.46, and from -0.786 to -0.010 at 96.1 %."""
    seen = replace(walsh(np.array(TREATED) - np.array(DEPRESSION)), asymmetry=PLAIN)
    low, high = seen.interval(edge(0.0391, 9), PLAIN, 0.0)
    assert round(float(seen.location), 3) == -0.46
    assert (round(float(low), 3), round(float(high), 3)) == (-0.786, -0.010)


@given(st.integers(0, 10_000), st.integers(8, 30), st.sampled_from([0.01, 0.05, 0.2]))
@settings(max_examples=examples(40))
def test_zero_lies_outside_exactly_where_wilcoxon_s_test_says_so(
    seed: int, blocks: int, level: float
) -> None:
    values = np.random.default_rng(seed).normal(0.6, 1.0, blocks)
    seen = walsh(values)
    low, high = replace(seen, asymmetry=PLAIN).interval(edge(level, blocks), PLAIN, 0.0)
    p = stats.wilcoxon(values, method="exact").pvalue
    assert bool(low > 0 or high < 0) is bool(p <= level)


def test_thousands_of_studies_at_once_are_judged_as_one_is() -> None:
    values = np.random.default_rng(2).exponential(1.0, (50, 15))
    low, high = walsh(values).interval(edge(0.01, 15), PLAIN, 0.0)
    singly = [walsh(row).interval(edge(0.01, 15), PLAIN, 0.0) for row in values]
    assert low.tolist() == pytest.approx([float(ends[0]) for ends in singly])
    assert high.tolist() == pytest.approx([float(ends[1]) for ends in singly])


def test_some_pairs_of_many_blocks_do_as_well_as_all() -> None:
    values = np.random.default_rng(3).normal(0.0, 1.0, (200, 240))
    seen = walsh(values)
    of_all = [np.median(np.add.outer(row, row)[np.triu_indices(240)]) / 2 for row in values]
    assert seen.low.shape[-1] < 240 * 40
    assert float(np.std(seen.location - np.array(of_all))) < 0.2 * float(np.std(of_all))
    low, high = seen.interval(edge(0.05, 240), PLAIN, 0.0)
    assert 0.9 < float(((low < 0) & (high > 0)).mean()) <= 1
    assert float((high - low).mean()) == pytest.approx(2 * 1.97 * math.sqrt(math.pi / 3 / 240), rel=0.05)


def test_where_ranks_cannot_reach_the_level_the_interval_holds_every_block() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 5.0])
    low, high = walsh(values).interval(edge(0.008, 6), PLAIN, 0.0)
    assert low <= 0.1
    assert high >= 5.0


def test_no_boundary_no_end() -> None:
    low, high = walsh(np.arange(6.0)).interval(np.asarray(math.inf), PLAIN, 0.0)
    assert (float(low), float(high)) == (-math.inf, math.inf)


def test_a_few_failed_blocks_leave_the_location_and_an_end() -> None:
    values = np.append(np.linspace(-0.01, 0.01, 29), [math.inf])
    seen = walsh(values)
    low, high = seen.interval(edge(0.1, 30), PLAIN, 0.0)
    assert -0.01 < float(low) < float(seen.location) < float(high) < math.inf
    most = walsh(np.append(np.linspace(0.09, 0.11, 12), [math.inf] * 18))
    low, high = most.interval(edge(0.01, 30), PLAIN, 0.0)
    assert math.isinf(float(most.location))
    assert 0.09 < float(low) <= float(high) == math.inf


def test_values_beyond_a_limit_leave_the_high_end_open() -> None:
    low_ends = np.append(np.linspace(-0.01, 0.01, 20), [0.02] * 10)
    high_ends = np.append(np.linspace(-0.01, 0.01, 20), [math.inf] * 10)
    known, open_ = walsh(low_ends), walsh(low_ends, high_ends)
    for_known, for_open = (seen.interval(edge(0.01, 30), PLAIN, 0.0) for seen in (known, open_))
    assert float(for_open[1]) > float(for_known[1])
    assert float(for_open[0]) <= float(for_known[0]) + 0.005


def test_the_typical_ratio_is_none_where_there_is_none() -> None:
    assert typical_ratio([1.0, 2.0], [2.0, 4.0]) == pytest.approx(2.0)
    assert typical_ratio([], []) is None
    assert typical_ratio([0.0, 1.0], [1.0, 1.0]) is None


@pytest.mark.parametrize(
    "skewed",
    [
        lambda rng, shape: rng.exponential(1.0, shape) - 0.8388,
        lambda rng, shape: rng.lognormal(0.0, 1.0, shape) - 1.2217,
    ],
    ids=["exponential", "lognormal"],
)
@pytest.mark.parametrize("blocks", [10, 30, 60])
def test_the_interval_holds_the_pseudomedian_of_skewed_blocks(
    skewed: Callable[[np.random.Generator, tuple[int, int]], np.ndarray], blocks: int
) -> None:
    values = skewed(np.random.default_rng(4), (4000, blocks))
    low, high = walsh(values).interval(edge(0.05, blocks), PLAIN, 0.0)
    assert float(((low <= 0) & (high >= 0)).mean()) > 0.94
