"""Must hold: the median of all slopes, without making them, is what scipy finds, which makes them all."""

import numpy as np
import pytest
from scipy import stats

from ktrial.stats.sequential.data_warnings import median_slope


@pytest.mark.parametrize("points", [2, 3, 10, 101, 2001, 2500], ids="{} points".format)
@pytest.mark.parametrize("digits", [12, 1, 0, -1], ids=["all different", "few equal", "many", "nearly all"])
def test_the_slope_is_scipys(points: int, digits: int) -> None:
    rng = np.random.default_rng(points)
    x = rng.permutation(3 * points)[:points].astype(np.float64)
    y = np.round(0.001 * x + rng.normal(0, 1, points), digits)
    assert median_slope(x, y) == pytest.approx(stats.theilslopes(y, x).slope, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("slope", [0.0, 2.5, -1e-6])
def test_of_points_on_a_line_it_is_the_lines(slope: float) -> None:
    x = np.arange(3000.0)
    assert median_slope(x, slope * x) == pytest.approx(slope, rel=1e-9, abs=1e-15)


def test_of_twenty_thousand_points_it_takes_no_gigabytes() -> None:
    rng = np.random.default_rng(7)
    x = np.arange(20_000.0)
    y = 1e-5 * x + rng.normal(0, 0.01, len(x))
    assert median_slope(x, y) == pytest.approx(1e-5, rel=0.01)


def test_one_point_has_no_slope() -> None:
    with pytest.raises(ValueError, match="two points"):
        median_slope(np.zeros(1), np.zeros(1))
