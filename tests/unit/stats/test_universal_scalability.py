"""The Universal Scalability Law: coefficients that were put in come out; what cannot be fitted is refused."""

import math

import pytest

from ktrial.analysis.scaling import Coefficients, fit, over_seeds


@pytest.mark.parametrize(
    ("contention", "coherence", "counts"),
    [
        (0.0, 0.0, (1, 2, 4, 8)),
        (0.05, 0.0, (1, 2, 4)),
        (0.02, 0.003, (1, 2, 4, 8, 16)),
        (0.5, 0.01, (2, 4, 8)),
        (0.0, 0.02, (1, 2, 4, 8)),
    ],
)
def test_what_the_law_says_is_found_again(
    contention: float, coherence: float, counts: tuple[int, ...]
) -> None:
    true = Coefficients(1000.0, contention, coherence)
    law = fit({cpus: true.throughput(cpus) for cpus in counts})
    assert law.rate == pytest.approx(1000, rel=1e-4)
    assert law.contention == pytest.approx(contention, abs=1e-4)
    assert law.coherence == pytest.approx(coherence, abs=1e-5)


def test_more_than_one_each_is_no_contention() -> None:
    law = fit({1: 100.0, 2: 210.0, 4: 430.0})
    assert law.contention == pytest.approx(0, abs=1e-6)
    assert law.coherence == pytest.approx(0, abs=1e-6)


def test_gunthers_example_of_a_benchmark() -> None:
    """SPEC SDM91, the data set specsdm91 of R's package usl (there, by X itself: σ 0.0277, κ 0.000104)."""
    scripts = {1: 64.9, 18: 995.9, 36: 1652.4, 72: 1853.2, 108: 1828.9, 144: 1775.0, 216: 1702.2}
    law = fit(scripts)
    assert 40 < law.peak < 140
    assert all(abs(law.throughput(n) / x - 1) < 0.25 for n, x in scripts.items())


def test_the_peak() -> None:
    assert Coefficients(1, 0.0, 0.01).peak == pytest.approx(10)
    assert Coefficients(1, 0.2, 0.0).peak == math.inf
    assert Coefficients(1, 1.5, 0.01).peak == 1


@pytest.mark.parametrize(
    ("throughput", "result"),
    [
        ({1: 1.0, 2: 2.0}, "at least 3"),
        ({1: 1.0, 2: 0.0, 4: 1.0}, "above zero"),
        ({0: 1.0, 2: 1.0, 4: 1.0}, "at 1"),
    ],
)
def test_what_cannot_be_fitted_is_refused(throughput: dict[int, float], result: str) -> None:
    with pytest.raises(ValueError, match=result):
        fit(throughput)


def test_the_interval_over_seeds_is_students() -> None:
    single = over_seeds([0.25])
    assert (single.value, single.low, single.high) == (0.25, None, None)
    # t of 0.975 with two degrees of freedom is 4.3027.
    three = over_seeds([0.1, 0.2, 0.3])
    assert three.low is not None
    assert three.high == pytest.approx(0.2 + 4.3027 * 0.1 / math.sqrt(3), rel=1e-4)
    assert over_seeds([0.0, 0.0, 0.01]).low == 0
    with pytest.raises(ValueError, match="no seed"):
        over_seeds([])
