"""A change over machines that stand for others: intervals hold the truth, also where machines differ."""

import numpy as np
import pytest

from ktrial.stats.interactions import over_all


def drawn(rng: np.random.Generator, machines: int, between: float, noise: float = 0.02) -> list[list[float]]:
    """Machines whose mean change is 0.1, with eight blocks each."""
    of_machines = 0.1 + between * rng.standard_normal(machines)
    return [list(mean + noise * rng.standard_normal(8)) for mean in of_machines]


@pytest.mark.parametrize(("machines", "between"), [(3, 0.0), (3, 0.05), (8, 0.05)])
def test_nineteen_of_twenty_intervals_hold_the_truth(machines: int, between: float) -> None:
    rng = np.random.default_rng(machines)
    totals = [over_all(drawn(rng, machines, between)) for _ in range(300)]
    held = np.mean([total is not None and total.low <= 0.1 <= total.high for total in totals])
    assert held >= 0.93, "0.95, less what 300 draws may miss"


def test_machines_that_differ_are_told_by_how_much() -> None:
    rng = np.random.default_rng(7)
    totals = [over_all(drawn(rng, 20, 0.05)) for _ in range(40)]
    assert np.mean([total.between for total in totals if total]) == pytest.approx(0.05, rel=0.1)


def test_by_hand() -> None:
    """Three machines of one variance v = 0.01/3: t^2 = the variance of the means - v; m is their mean."""
    rows = [[mean - 0.1, mean, mean + 0.1] for mean in (0.0, 0.3, 0.6)]
    over = over_all(rows)
    assert over is not None
    assert over.mean == pytest.approx(0.3)
    assert over.between**2 == pytest.approx(0.09 - 0.01 / 3, rel=1e-6)
    assert over.high - over.mean == pytest.approx(4.302653 * np.sqrt(0.09 / 3), rel=1e-5)


def test_alike_machines_have_no_narrower_interval_than_their_noise_allows() -> None:
    rows = [[0.0, 0.1, 0.2]] * 3
    over = over_all(rows)
    assert over is not None
    assert over.between == 0
    assert over.high - over.mean == pytest.approx(4.302653 * np.sqrt(0.01 / 9), rel=1e-5)


@pytest.mark.parametrize(
    "rows", [[[0.1, 0.2, 0.3]], [[0.1, 0.2], [0.1, 0.2, 0.3]], [[0.1] * 3, [0.1, 0.2, 0.3]]]
)
def test_too_little_says_nothing(rows: list[list[float]]) -> None:
    assert over_all(rows) is None
