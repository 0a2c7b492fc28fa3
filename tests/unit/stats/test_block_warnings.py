"""What is odd about the numbers of blocks: no spread, drift, two modes, a coarse clock."""

import numpy as np
import pytest
from tests.support.making import DESIGN, SECONDS

from ktrial.model.comparison import Verdict
from ktrial.model.warnings import WarningKind
from ktrial.stats.sequential.data_warnings import checks
from ktrial.stats.sequential.design import BlockedMetric
from ktrial.stats.sequential.interim_analysis import look


def alike(baseline: float, treatment: float, blocks: int) -> BlockedMetric:
    return BlockedMetric("w", SECONDS, "A", {"A": (baseline,) * blocks, "B": (treatment,) * blocks})


@pytest.mark.parametrize(
    ("baseline", "treatment", "blocks", "verdict"),
    [
        (2.0, 2.0, 60, Verdict.INCONCLUSIVE),  # whole seconds: either may be half a second off
        (2.0, 2.2, 3, Verdict.INCONCLUSIVE),
        (2.0, 2.2, 6, Verdict.INCONCLUSIVE),
        (2.0, 2.2, 60, Verdict.WORSE),  # steps of 0.1 s
        (12345.0, 12345.0, 10, Verdict.EQUIVALENT),
    ],
)
def test_values_without_any_spread_are_judged_by_their_resolution_and_told(
    baseline: float, treatment: float, blocks: int, verdict: Verdict
) -> None:
    seen = look([alike(baseline, treatment, blocks)], DESIGN, final=True)
    (comparison,) = seen.comparisons
    assert comparison.verdict is verdict
    assert comparison.low is not None
    assert comparison.high is not None
    half_a_step = 0.05 if treatment == 2.2 else 0.5
    assert comparison.low <= (treatment - half_a_step) / (baseline + half_a_step) * 1.001
    assert comparison.high >= (treatment + half_a_step) / (baseline - half_a_step) * 0.999
    assert [warning.kind for warning in seen.warnings if "steps of" in warning.text] == [
        WarningKind.SPREAD_UNKNOWN
    ]


def kinds(measured: BlockedMetric) -> set[WarningKind]:
    return {warning.kind for warning in checks(measured)}


def ordered(values: dict[str, np.ndarray]) -> BlockedMetric:
    arms = len(values)
    orders = {
        label: tuple(range(at, at + arms * len(numbers), arms))
        for at, (label, numbers) in enumerate(values.items())
    }
    plain = {label: tuple(float(number) for number in value) for label, value in values.items()}
    return BlockedMetric("w", SECONDS, "A", plain, orders=orders)


def test_good_numbers_bring_no_warning() -> None:
    rng = np.random.default_rng(11)
    quiet = sum(
        not kinds(ordered({label: 100 * np.exp(rng.normal(0, 0.01, 20)) for label in "AB"}))
        for _ in range(100)
    )
    assert quiet / 100 >= 0.87


@pytest.mark.parametrize(
    ("kind", "arms"),
    [
        (WarningKind.DRIFT, lambda rng, n: (np.linspace(0, 0.05, n), np.linspace(0, 0.05, n))),
        (WarningKind.BIMODAL, lambda rng, n: (0.03 * (rng.random(n) < 0.4), np.zeros(n))),
        (WarningKind.UNEQUAL_VARIANCES, lambda rng, n: (rng.normal(0, 0.04, n), np.zeros(n))),
        (WarningKind.AUTOCORRELATION, lambda rng, n: (np.zeros(n), 0.03 * np.sin(np.arange(n) / 4))),
    ],
)
def test_what_is_odd_about_the_numbers_is_told(kind: WarningKind, arms: object) -> None:
    rng = np.random.default_rng(12)
    assert callable(arms)
    first, second = arms(rng, 40)
    values = {
        label: 100 * np.exp(shift + rng.normal(0, 0.004, 40))
        for label, shift in (("A", first), ("B", second))
    }
    assert kind in kinds(ordered(values))


def test_values_that_a_coarse_clock_gave_are_told() -> None:
    rng = np.random.default_rng(13)
    coarse = {label: np.round(10 + rng.normal(0, 0.1, 30), 1) for label in "AB"}
    assert WarningKind.COARSE_VALUES in kinds(ordered(coarse))


def is_like_the_last(rng: np.random.Generator, blocks: int, *weights: float) -> np.ndarray:
    """Noise of 1 % of which each value has some of those before it."""
    values = list(rng.normal(0, 0.01, 50 + blocks))
    for at in range(len(weights), len(values)):
        values[at] += sum(weight * values[at - 1 - lag] for lag, weight in enumerate(weights))
    return np.asarray(values[50:])


@pytest.mark.parametrize(
    ("weights", "shared", "least", "most"),
    [
        ((), (), 0.0, 0.07),  # nothing odd: false alarms in 5 of 100, and chance
        ((0.3, 0.3), (), 0.85, 1.0),
        ((0.4,), (), 0.65, 1.0),
        ((), (0.9,), 0.0, 0.07),  # what blocks share divides out
        ((), (1.0,), 0.0, 0.07),
    ],
)
def test_trials_that_are_like_those_before_them_are_told(
    weights: tuple[float, ...], shared: tuple[float, ...], least: float, most: float
) -> None:
    """In how many of 60 blocks, as log ratios show."""
    rng, studies = np.random.default_rng(47), 150
    warned = 0
    for _ in range(studies):
        common = is_like_the_last(rng, 60, *shared) if shared else 0.0
        values = {label: 100 * np.exp(is_like_the_last(rng, 60, *weights) + common) for label in "AB"}
        warned += WarningKind.AUTOCORRELATION in kinds(ordered(values))
    assert least <= warned / studies <= most
