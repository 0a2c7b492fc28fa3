"""What widens an interval beyond a t test's: neighbours that are alike, far blocks, few blocks."""

import math

import numpy as np
import pytest
from scipy import stats

from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Direction, Metric
from ktrial.stats.sequential.data_warnings import checks
from ktrial.stats.sequential.design import BlockedMetric
from ktrial.stats.sequential.repeated_intervals import (
    inflation,
    lag_one,
    presumed_correlation,
    signs_agree,
    typical,
    widened,
)

SECONDS = Metric(name="wall", unit="s", direction=Direction.LOWER)


def alike(phi: float, studies: int, blocks: int, seed: int = 1) -> np.ndarray:
    fresh = np.random.default_rng(seed).standard_normal((blocks, studies))
    for at in range(1, blocks):
        fresh[at] = phi * fresh[at - 1] + math.sqrt(1 - phi * phi) * fresh[at]
    return fresh.T


def in_blocks(differences: np.ndarray) -> BlockedMetric:
    rng = np.random.default_rng(5)
    baseline = 100 * np.exp(0.01 * rng.standard_normal(len(differences)))
    treatment = baseline * np.exp(differences)
    return BlockedMetric(
        "w", SECONDS, "A", {"A": tuple(map(float, baseline)), "B": tuple(map(float, treatment))}
    )


@pytest.mark.parametrize("blocks", [6, 20, 60])
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.8])
def test_the_standard_error_grows_as_the_covariances_say(blocks: int, phi: float) -> None:
    lags = np.abs(np.subtract.outer(np.arange(blocks), np.arange(blocks)))
    covariance = phi**lags
    of_mean = covariance.sum() / blocks**2
    of_values = (np.trace(covariance) - blocks * of_mean) / (blocks - 1)
    factors = inflation(np.array(phi), np.array(float(blocks)))
    assert float(factors) == pytest.approx(math.sqrt(of_mean / (of_values / blocks)))


@pytest.mark.parametrize("phi", [0.0, 0.4, 0.6])
def test_the_correlation_is_presumed_to_be_somewhat_larger_than_an_estimate_without_bias(phi: float) -> None:
    lag_ones = np.array([lag_one(values)[0] for values in alike(phi, 2000, 60)])
    presumed = presumed_correlation(lag_ones, np.array(60.0))
    unbiased = (60 * lag_ones + 1) / 57
    assert unbiased.mean() == pytest.approx(phi, abs=0.02)
    assert np.all(presumed >= np.clip(unbiased, 0, 0.8))
    assert presumed.max() <= 0.8


def test_independent_neighbours_are_called_alike_as_rarely_as_the_p_value_says() -> None:
    p = np.array([lag_one(values)[1] for values in alike(0.0, 2000, 40)])
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.02)
    assert np.median([lag_one(values)[1] for values in alike(0.8, 200, 40)]) < 1e-3
    assert lag_one(np.ones(9)) == (0.0, 1.0)


def test_edges_are_never_below_those_of_independent_blocks_and_infinite_where_they_are() -> None:
    edges, blocks = np.array([2.0, 4.3, math.inf]), np.array([60.0, 6.0, 4.0])
    for phi in (0.0, 0.5, 0.8):
        wider = widened(edges, blocks, np.array(phi))
        assert np.all(wider >= edges)
        assert math.isinf(wider[2])
    assert np.all(
        widened(edges[:2], blocks[:2], np.array(0.5)) > widened(edges[:2], blocks[:2], np.array(0.2))
    )


def test_the_typical_block_of_normal_values_is_nearly_their_mean() -> None:
    values = np.random.default_rng(2).standard_normal((4000, 40))
    middle, error = typical(values)
    assert middle.var() < 1.2 * values.mean(axis=1).var()
    assert np.median(error) == pytest.approx(1 / math.sqrt(40), rel=0.1)


def test_however_far_a_far_block_lies_it_does_not_move_the_typical_one() -> None:
    values = np.random.default_rng(3).standard_normal(30)
    near, far = (np.array(typical(np.append(values, far_value))) for far_value in (50.0, 1e6))
    assert near == pytest.approx(far)
    middle, error = typical(10 + 3 * values)
    assert float(middle) == pytest.approx(10 + 3 * float(typical(values)[0]))
    assert float(error) == pytest.approx(3 * float(typical(values)[1]))


@pytest.mark.parametrize("values", [(0.0, 1.0, 2.0, 3.0, 10.0, 40.0), (-3.0, 0.0, 0.5, 1.0, 1.2, 9.0)])
def test_the_typical_block_is_where_the_biweights_of_all_are_in_balance(values: tuple[float, ...]) -> None:
    """Tukey's: (1 - u²)² where a block is less than six median absolute deviations away; 0 beyond."""
    blocks = np.array(values)
    middle = float(typical(blocks)[0])
    away = (blocks - middle) / (6 * np.median(np.abs(blocks - np.median(blocks))))
    weights = np.where(np.abs(away) < 1, (1 - away**2) ** 2, 0.0)
    assert float((weights * away).sum()) == pytest.approx(0.0, abs=1e-3)


def test_a_sign_flip_test_counts_the_ways_to_give_signs() -> None:
    """Against scipy, which counts them all."""
    rng = np.random.default_rng(4)
    for blocks in (5, 6, 8, 9):
        for shift in (0.3, 1.0, 3.0):
            values = shift + rng.standard_normal(blocks)
            oracle = stats.permutation_test(
                (values,), np.mean, permutation_type="samples", vectorized=True, n_resamples=np.inf
            )
            assert bool(signs_agree(values)) is bool(oracle.pvalue <= 0.05)
    assert not signs_agree(np.zeros(6))
    assert signs_agree(np.zeros(10)), "of ten blocks it is not asked"


def test_far_blocks_are_told_with_both_means_and_good_ones_are_not() -> None:
    rng = np.random.default_rng(6)
    far = 0.01 * rng.standard_normal(40)
    far[[3, 20]] += 0.2
    (check,) = [check for check in checks(in_blocks(far)) if check.kind is WarningKind.FAR_BLOCKS]
    assert "B: 2 of 40 blocks lie far off" in check.text
    assert "the mean ratio is 1.0" in check.text
    quiet = [checks(in_blocks(0.01 * rng.standard_normal(40))) for _ in range(100)]
    assert sum(WarningKind.FAR_BLOCKS in {warning.kind for warning in of_study} for of_study in quiet) <= 5


@pytest.mark.parametrize(
    ("independent", "made_of_it"),
    [(False, "times as large for it"), (True, "the interval is too narrow")],
)
def test_what_is_made_of_neighbours_that_are_alike_is_told(independent: bool, made_of_it: str) -> None:
    measured = in_blocks(0.01 * alike(0.7, 1, 60)[0])
    reported = [
        check.text
        for check in checks(measured, independent=independent)
        if check.kind is WarningKind.AUTOCORRELATION
    ]
    assert len(reported) == 1
    assert made_of_it in reported[0]
