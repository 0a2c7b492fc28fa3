"""How many blocks an effect needs, and what a calibration tells."""

import numpy as np
import pytest
from tests.support.making import DESIGN, SECONDS
from tests.support.runs_of_tests import at_night, by_night

from ktrial.stats.sequential.design import BlockedMetric
from ktrial.stats.sequential.power import blocks_needed, calibrate, power, ratio_spread, smallest_detectable


@pytest.mark.parametrize(
    ("sd", "blocks"), [(0.005, 30), at_night(0.01, 60), at_night(0.012, 90), at_night(0.02, 180)]
)
def test_how_many_blocks_one_percent_needs(sd: float, blocks: int) -> None:
    needed = blocks_needed(0.01, ratio_spread(sd), DESIGN)
    assert needed is not None
    assert needed.blocks == blocks
    assert needed.right >= 0.95
    fewer = DESIGN.up_to(max(look for look in DESIGN.up_to(1000).looks if look < blocks))
    assert power(0.01, ratio_spread(sd), fewer).right < 0.95


def test_the_smallest_detectable_effect_is_detected_and_half_of_it_is_not() -> None:
    spread, design = ratio_spread(0.02), DESIGN.up_to(by_night(60, 20))
    smallest = smallest_detectable(spread, design)
    assert power(1.02 * smallest, spread, design).right >= 0.95
    assert power(0.98 * smallest, spread, design).right < 0.95
    assert power(smallest / 2, spread, design).right < 0.8


def test_a_hopeless_spread_needs_more_blocks_than_make_sense() -> None:
    assert blocks_needed(0.01, 1.0, DESIGN) is None


@pytest.mark.nightly  # some 5 seconds of CPU time
def test_a_calibration_tells_spread_false_alarms_and_blocks() -> None:
    rng = np.random.default_rng(15)
    shared = rng.normal(0, 0.05, 100)
    arms = {label: tuple(100 * np.exp(shared + rng.normal(0, 0.01, 100))) for label in "AB"}
    (metric,) = calibrate([BlockedMetric("fork", SECONDS, "A", arms)], DESIGN, "host").metrics
    assert metric.ratio_spread == pytest.approx(ratio_spread(0.01), rel=0.15)
    assert metric.false_alarms <= 0.055
    assert metric.smallest_effect == pytest.approx(0.009, abs=0.002)
    assert metric.suggested_blocks in (30, 40, 60)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"A": (1.0,) * 20}, "two arms"),
        ({"A": (1.0,) * 5, "B": (1.0,) * 5}, "at least 10"),
        ({"A": (1.0,) * 20, "B": (0.0,) * 20}, "above zero"),
    ],
)
def test_a_calibration_needs_enough_numbers(values: dict[str, tuple[float, ...]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        calibrate([BlockedMetric("fork", SECONDS, "A", values)], DESIGN)
