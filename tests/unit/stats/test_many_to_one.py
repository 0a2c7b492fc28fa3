"""Dunnett's edges, beside the published tables, scipy's own Dunnett test and Student's t."""

import numpy as np
import pytest
from scipy import stats

from ktrial.stats.typical_groups import edge


@pytest.mark.parametrize(
    ("treatments", "freedom", "published"), [(2, 12, 2.50), (3, 15, 2.61), (3, 20, 2.54)]
)
def test_edges_are_those_of_the_published_tables(treatments: int, freedom: int, published: float) -> None:
    """Dunnett, Biometrics 20, 1964, table II: two-sided, 5 %."""
    assert edge(treatments, freedom) == pytest.approx(published, abs=0.006)


def test_with_one_treatment_it_is_student_s_t() -> None:
    assert edge(1, 9) == pytest.approx(float(stats.t.isf(0.025, 9)))


def test_a_baseline_with_more_runs_than_its_treatments_moves_the_edge_as_scipy_has_it() -> None:
    """15 runs of the baseline, 5 of each treatment: the differences have less in common."""
    rng = np.random.default_rng(1)
    baseline, *treatments = (rng.normal(size=count) for count in (15, 5, 5))
    result = stats.dunnett(*treatments, control=baseline, rng=np.random.default_rng(2))
    interval = result.confidence_interval(0.95)
    pooled = np.concatenate([treatment - treatment.mean() for treatment in (baseline, *treatments)])
    error = np.sqrt((pooled**2).sum() / 22 * (1 / 15 + 1 / 5))
    far = (interval.high[0] - interval.low[0]) / 2 / error
    assert edge(2, 22, correlation=0.25) == pytest.approx(far, abs=0.02)
    assert edge(2, 22, correlation=0.25) > edge(2, 22) > edge(1, 22)
