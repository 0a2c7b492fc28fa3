"""The boundaries of the sequential test, and the interval that holds at every block, against brute force."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from ktrial.stats.sequential.boundaries import LOOKS, boundaries, critical_t, spent

Array = NDArray[np.float64]
STUDIES = 400_000


def first_crossings(looks: tuple[int, ...], edges: tuple[float, ...], seed: int = 1) -> Array:
    """Share of studies without any effect that stop at each look for the first time."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(len(looks))
    for _ in range(8):
        values = rng.standard_normal((STUDIES // 8, looks[-1]))
        going = np.ones(len(values), dtype=bool)
        for at, (blocks, edge) in enumerate(zip(looks, edges, strict=True)):
            part = values[:, :blocks]
            t = np.abs(part.mean(axis=1)) / (part.std(axis=1, ddof=1) / math.sqrt(blocks))
            stops = going & (t > edge)
            counts[at] += stops.sum()
            going &= ~stops
    return counts / STUDIES


@pytest.mark.parametrize(
    ("looks", "alpha"),
    [(LOOKS, 0.05), ((3, 4, 5, 6, 7, 8), 0.05), ((6, 7, 12, 13), 0.01), ((10, 20), 0.2)],
)
def test_each_look_spends_what_it_should(looks: tuple[int, ...], alpha: float) -> None:
    expected = np.diff([0.0, *(spent(blocks / looks[-1], alpha) for blocks in looks)])
    crossings = first_crossings(looks, boundaries(looks, alpha))
    assert crossings == pytest.approx(expected, abs=4 * math.sqrt(alpha / len(looks) / STUDIES))
    assert crossings.sum() == pytest.approx(alpha, abs=4 * math.sqrt(alpha / STUDIES))


@pytest.mark.parametrize("blocks", [3, 6, 10, 60])
@pytest.mark.parametrize("alpha", [0.9, 0.05, 0.01])
def test_one_look_is_student_s_t_test(blocks: int, alpha: float) -> None:
    assert boundaries((blocks,), alpha) == pytest.approx([stats.t.isf(alpha / 2, blocks - 1)], rel=1e-6)


def test_the_default_boundaries() -> None:
    """A change here changes verdicts."""
    expected = (4.27139, 3.57331, 3.13508, 2.95719, 2.66870, 2.58690, 2.40654)
    assert boundaries() == pytest.approx(expected, abs=1e-5)


MANY = 10_000_000
"""Blocks at full information: so many that Student's t is normal to six digits."""
PUBLISHED = {
    "Lan and DeMets' spending of Pocock's type, 2 looks": ((1 / 2, 1), (2.157, 2.201)),
    "3 looks": ((1 / 3, 2 / 3, 1), (2.279, 2.295, 2.296)),
    "4 looks": ((1 / 4, 1 / 2, 3 / 4, 1), (2.368, 2.368, 2.358, 2.350)),
    "5 looks": ((0.2, 0.4, 0.6, 0.8, 1), (2.438, 2.427, 2.410, 2.397, 2.386)),
    "gsDesign, reference of sfLDPocock: gsDesign(k = 6, sfu = sfLDPocock, test.type = 2)": (
        (1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6, 1),
        (2.495115, 2.476907, 2.454964, 2.437262, 2.423276, 2.412059),
    ),
    "rpact, test-f_design_group_sequential.R: asP, information rates 0.4 and 0.7, 0.025 one-sided": (
        (0.4, 0.7),
        (2.223875, 2.3050796),
    ),
}
"""Source → the shares of the information at the looks, and the boundaries of |z|, two-sided at 5 %."""


@pytest.mark.parametrize("source", PUBLISHED)
def test_the_boundaries_of_many_blocks_are_the_published_ones_of_a_normal_mean(source: str) -> None:
    shares, published = PUBLISHED[source]
    digits = max(len(str(edge).partition(".")[2]) for edge in published)
    looks = tuple(round(share * MANY) for share in shares)
    half_a_step = 0.5 * 10.0 ** -min(digits, 5)
    assert boundaries(looks, 0.05, MANY) == pytest.approx(published, abs=1.1 * half_a_step)


def test_published_one_sided_boundaries_are_nearly_the_two_sided_ones_at_twice_the_level() -> None:
    """rpact, the same file: asP, 0.13 one-sided, information rates 0.35, 0.7 and 1. Of the studies that this
    lets go on, some few stopped at the other side."""
    looks = (MANY * 35 // 100, MANY * 7 // 10, MANY)
    assert boundaries(looks, 0.26) == pytest.approx((1.5446617, 1.4828682, 1.4620058), abs=6e-4)


def test_the_spending_ends_at_alpha_and_an_early_horizon_keeps_some_back() -> None:
    assert spent(0, 0.05) == 0
    assert spent(1, 0.05) == pytest.approx(0.05)
    assert spent(2, 0.05) == pytest.approx(0.05)
    assert boundaries((6, 10), 0.05, 60) == pytest.approx(boundaries(LOOKS, 0.05)[:2], rel=1e-9)


@pytest.mark.parametrize("looks", [(2, 6), (6, 6), (10, 6)])
def test_looks_that_make_no_sense_are_refused(looks: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="looks rise"):
        boundaries(looks)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_an_alpha_outside_0_and_1_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        boundaries(LOOKS, alpha)


@pytest.mark.parametrize(("blocks", "precision"), [(8, 1.0), (20, 2.0), (100, 6.0)])
def test_the_critical_t_is_where_the_bayes_factor_reaches_one_over_alpha(
    blocks: int, precision: float
) -> None:
    """The factor: the likelihood of the values up to scale, mixed over effects of normal prior, against 0.

    With the right Haar prior on the standard deviation, the likelihood of effect d is proportional to the
    density of the noncentral t statistic.
    """
    t, scale = critical_t(blocks, 0.05, precision), 1 / math.sqrt(precision)

    def mixed(effect: float) -> float:
        density = stats.nct.pdf(t, blocks - 1, effect * math.sqrt(blocks))
        return float(density * stats.norm.pdf(effect, scale=scale))

    above, _ = integrate.quad(mixed, -8 * scale, 8 * scale, limit=200)
    assert math.log(above / stats.t.pdf(t, blocks - 1)) == pytest.approx(math.log(20), abs=1e-6)
    assert math.isinf(critical_t(3, 0.05)), "nothing that three blocks say is enough"


def test_the_confidence_sequence_misses_the_truth_anywhere_in_at_most_one_study_in_twenty() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((4000, 500)) + 7.0
    counts = np.arange(3, 501)
    sums, squares = np.cumsum(values - 7.0, axis=1)[:, 2:], np.cumsum((values - 7.0) ** 2, axis=1)[:, 2:]
    mean = sums / counts
    t = np.abs(mean) / np.sqrt((squares - counts * mean**2) / (counts - 1) / counts)
    edges = np.array([critical_t(int(blocks), 0.05) for blocks in counts])
    missed = (t > edges).any(axis=1).mean()
    assert 0.01 < missed <= 0.05, "far less would mean that the interval is wider than it has to be"
