"""Change points: false alarms, power, places, speed; and the rule for series without noise."""

import time

import numpy as np
import pytest
from tests.support.noise_models import MEMORY, NEAR, noise, with_steps
from tests.support.noisy_series import KINDS, share_placed
from tests.support.runs_of_tests import at_night, by_night

from ktrial.analysis.history.change_points import steps
from ktrial.model.history import ChangeKind
from ktrial.stats.change_points import largest, p_of_any, p_value, shifts, shifts_of_all, wanders
from ktrial.stats.sequential.familywise import holm

SERIES, POINTS = by_night(200, 80), 100


@pytest.mark.parametrize("phi", [*MEMORY.values(), 0.9])
@pytest.mark.parametrize("points", [at_night(50), POINTS, at_night(400)])
def test_noise_shows_no_change(phi: float, points: int) -> None:
    series = noise(np.random.default_rng(1), SERIES, points, phi)
    assert sum(bool(shifts(row)) for row in series) <= 0.05 * SERIES


@pytest.mark.parametrize(
    "kind", [at_night("cauchy"), at_night("lognormal"), "three values", at_night("two modes")]
)
def test_noise_of_any_shape_shows_no_change(kind: str) -> None:
    rng, shape = np.random.default_rng(2), (SERIES, POINTS)
    series = {
        "cauchy": rng.standard_cauchy(shape),
        "lognormal": np.exp(2 * rng.standard_normal(shape)),
        "three values": rng.integers(0, 3, shape).astype(float),
        "two modes": rng.choice([1.0, 1.3], shape) + 0.01 * rng.standard_normal(shape),
    }[kind]
    assert sum(bool(shifts(row)) for row in series) <= 0.05 * SERIES


def test_steps_of_two_sd_are_found_where_they_are() -> None:
    rng = np.random.default_rng(3)
    series, places = with_steps(rng, noise(rng, SERIES, POINTS, 0.0))
    steps_seen = [[shift.place for shift in shifts(row)] for row in series]
    near = [
        any(abs(seen_place - place) <= NEAR for seen_place in ones)
        for ones, place in zip(steps_seen, places, strict=True)
    ]
    assert np.mean(near) >= 0.9
    assert np.mean([len(ones) > 1 for ones in steps_seen]) <= 0.05


def test_a_hundred_thousand_points_take_seconds() -> None:
    rng = np.random.default_rng(4)
    series = rng.standard_normal(100_000)
    series[50_000:] += 2
    series[70_000:70_200] += 2
    before = time.process_time()
    places = [shift.place for shift in shifts(series)]
    assert time.process_time() - before < 4
    assert np.allclose(places, [50_000, 70_000, 70_200], atol=NEAR)


def test_every_one_of_several_steps_is_found() -> None:
    series = np.random.default_rng(5).standard_normal(200)
    for place, size in ((50, 10), (90, -13), (120, 3), (160, -8)):
        series[place:] += size
    assert np.allclose([shift.place for shift in shifts(series)], [50, 90, 120, 160], atol=NEAR)


def test_a_step_without_noise_is_one_change() -> None:
    (shift,) = shifts([1.0] * 50 + [2.0] * 50)
    assert (shift.place, shift.before, shift.after) == (50, 1.0, 2.0)


@pytest.mark.nightly  # some 6 seconds of CPU time
def test_steps_in_noise_that_remembers_are_found() -> None:
    """Less often than in independent noise: in 100 points with φ = 0.6 some 25 are worth as much."""
    rng = np.random.default_rng(10)
    series, _ = with_steps(rng, noise(rng, SERIES, 400, 0.6))
    places = [[shift.place for shift in shifts(row)] for row in series]
    assert np.mean([bool(place) for place in places]) >= 0.95


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        ("up 4 SD for 10 points", 0.9),
        at_night("up 6 SD for 5 points", 0.9),
        at_night("three steps of 2 SD, 30 points apart", 0.6),
    ],
)
def test_a_level_that_comes_back_and_steps_in_a_row_are_placed(kind: str, least: float) -> None:
    series, places = KINDS[kind](np.random.default_rng(11), SERIES)
    changes = [[shift.place for shift in shifts(row)] for row in series]
    assert share_placed(places, changes, NEAR) >= least


def test_a_random_walk_has_no_level_that_changes() -> None:
    series, _ = KINDS["random walk"](np.random.default_rng(12), SERIES)
    assert np.mean([wanders(row) for row in series]) >= 0.9
    assert sum(bool(shifts(row)) for row in series) <= 0.09 * SERIES
    assert not any(wanders(row) for row in noise(np.random.default_rng(13), SERIES, 120, 0.3))


@pytest.mark.nightly  # some 9 seconds of CPU time
def test_the_p_value_of_an_excursion_holds() -> None:
    """Of series without a change; a fifth of alpha is the excursions'."""
    p = [p_of_any(row, autocorrelated=False) for row in np.random.default_rng(14).standard_normal((600, 60))]
    for level in (0.2, 0.1, 0.05):
        assert np.mean(np.array(p) <= level) <= level


def test_one_wild_value_is_no_change() -> None:
    series = np.random.default_rng(6).standard_normal(100)
    series[40] = 1e9
    assert shifts(series) == ()


@pytest.mark.parametrize("series", [[], [1.0] * 15, [1.0] * 100, [1.0, 2.0] * 50])
def test_where_nothing_changes_nothing_is_found(series: list[float]) -> None:
    assert shifts(series) == ()


@pytest.mark.parametrize("series", [[1.0, float("nan")], np.ones((2, 2)), [float("inf")]])
def test_what_is_no_series_is_refused(series: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        shifts(series)


def test_the_same_series_has_the_same_changes() -> None:
    series = noise(np.random.default_rng(7), 1, 300, 0.5)[0]
    series[100:] += 3
    assert shifts(series) == shifts(series.copy())
    assert [shift.place for shift in shifts(series * 7 + 3)] == [shift.place for shift in shifts(series)]


def test_p_values_of_single_stretches_hold() -> None:
    """Against random orders: the formula is never much below what is seen."""
    z, _ = largest(np.random.default_rng(8).standard_normal((4000, 60)))
    p = p_value(z, 60)
    for level in (0.05, 0.01):
        assert np.mean(p <= level) <= 1.3 * level


@pytest.mark.nightly  # some 17 seconds of CPU time
def test_many_series_share_one_rate_of_false_alarms() -> None:
    rng = np.random.default_rng(9)
    families = [dict(enumerate(noise(rng, 20, 60, 0.0))) for _ in range(40)]
    named = [{str(name): row for name, row in family.items()} for family in families]
    assert sum(any(shifts_of_all(family).values()) for family in named) <= 4
    stepped = named[0] | {"step": named[0]["0"] + 4.0 * (np.arange(60) >= 30)}
    by_series = shifts_of_all(stepped)
    assert [name for name, changes in by_series.items() if changes] == ["step"]
    p = holm([p_of_any(values) for values in stepped.values()])
    assert [name for name, p_value in zip(stepped, p, strict=True) if p_value <= 0.05] == ["step"]


def by_perturbation(*points: tuple[float, ...]) -> list[dict[int, float]]:
    return [dict(enumerate(point)) for point in points]


def test_an_exact_step_is_beyond_margin_and_spread() -> None:
    points = by_perturbation((100.0, 100.0), (100.5, 100.2), (103.0, 103.1), (103.0, 103.0))
    (step,) = steps(points, 0.01)
    assert (step.place, step.kind) == (2, ChangeKind.STEP)
    assert step.ratio == pytest.approx(1.027, abs=0.001)
    assert step.low == pytest.approx(103.0 / 100.5)
    assert step.high == pytest.approx(103.1 / 100.2)


def test_a_ratio_outside_the_margin_but_inside_the_spread_is_none() -> None:
    assert steps(by_perturbation((100.0, 104.0), (106.0, 103.0)), 0.01) == ()
    assert steps(by_perturbation((100.0,), (100.9,)), 0.01) == ()


def test_a_spread_that_versions_share_hides_no_step() -> None:
    (step,) = steps(by_perturbation((100.0, 104.0), (100.2, 104.2), (103.0, 107.1)), 0.01)
    assert (step.place, step.kind) == (2, ChangeKind.STEP)
    assert step.low == pytest.approx(107.1 / 104.2)
    assert step.high == pytest.approx(103 / 100.2)


def test_small_steps_add_up_to_creep() -> None:
    (step,) = steps(by_perturbation((100.0,), (100.6,), (101.2,), (101.4,)), 0.01)
    assert (step.place, step.kind, step.before) == (2, ChangeKind.CREEP, 100.0)


def test_one_version_that_differs_is_two_changes() -> None:
    two = steps(by_perturbation((100.0,), (120.0,), (100.0,)), 0.01)
    assert [(change.place, change.ratio) for change in two] == [(1, 1.2), (2, pytest.approx(1 / 1.2))]


def test_versions_without_numbers_are_stepped_over() -> None:
    assert [step.place for step in steps(by_perturbation((), (100.0,), (), (110.0,)), 0.01)] == [3]
    assert steps(by_perturbation((), ()), 0.01) == ()


def test_from_nothing_to_something_is_a_change_without_a_ratio() -> None:
    (step,) = steps(by_perturbation((0.0, 0.0), (5.0, 6.0)), 0.01)
    assert (step.ratio, step.before) == (None, 0.0)
