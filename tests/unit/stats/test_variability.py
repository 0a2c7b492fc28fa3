"""Treatments that scatter otherwise than the baseline: cases, false alarms, power, and where it is shown."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies
from numpy.typing import NDArray
from tests.support.making import a_study, a_trial, planned
from tests.support.noise_models import MODELS
from tests.support.report_records import a_record
from tests.support.runs_of_tests import at_night, by_night

from ktrial import report
from ktrial.analysis.answer import variability_answer
from ktrial.analysis.result import result
from ktrial.model.comparison import Scatter, Variability, Verdict
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Direction, Metric, Mode
from ktrial.report import csv_and_json as as_csv
from ktrial.report.csv_and_json import record_as_json
from ktrial.report.matrix import for_programs, matrix, matrix_page
from ktrial.stats.dispersion import spread_p, variability
from ktrial.stats.paired_arms import PairedArms

RATE = Metric(name="rate", unit="requests/s", direction=Direction.HIGHER)
MARGIN = 0.01
Array = NDArray[np.float64]


def pair(below: object, above: object, mode: Mode = Mode.TIMED, workload: str = "server") -> PairedArms:
    values = [dict(enumerate(np.asarray(arm, dtype=float).tolist())) for arm in (below, above)]
    return PairedArms(workload, RATE, mode, "old", "new", *values)


def findings(below: object, above: object, mode: Mode = Mode.TIMED) -> list[Variability]:
    return list(variability([pair(below, above, mode)], MARGIN))


@pytest.mark.parametrize(
    ("below", "above", "scatter"),
    [
        # 'Erratic evictions' (sendfile, 2.6.36): the patched kernel repeats itself, the other one does not.
        ((5000, 4995, 5004), (5000, 3100, 4700), Scatter.WIDER),
        ((5000, 3100, 4700), (5000, 4995, 5004), Scatter.NARROWER),
        ((100, 100, 100), (100, 100, 140), Scatter.WIDER),
        ((100, 100, 100), (100, 100, 100.9), None),  # within the margin: no matter
        ((100, 102, 104), (100, 105, 110), None),  # three numbers say no more
        ((100.0, 100.01, 100.02), (100.0, 100.2, 100.4), None),
        ((100, 100), (100, 200), None),
        ((0, 0, 0), (0, 5, 9), None),
        ((100, 100, 100), (130, 130, 130), None),  # another mean, as steady
    ],
)
def test_three_exact_repeats_of_which_one_differs(
    below: tuple[float, ...], above: tuple[float, ...], scatter: Scatter | None
) -> None:
    assert [finding.scatter for finding in findings(below, above, Mode.EXACT_PLUGIN)] == (
        [scatter] if scatter else []
    )


NUMBERS = strategies.floats(90, 110) | strategies.sampled_from([100.0, 100.05, 0.0, 5000.0])


@given(strategies.lists(strategies.tuples(NUMBERS, NUMBERS), min_size=1, max_size=9))
def test_of_what_is_plainly_alike_nothing_is_found(both: list[tuple[float, float]]) -> None:
    arms = pair([below for below, _ in both], [above for _, above in both], Mode.EXACT_PLUGIN)
    if arms.plainly_alike(MARGIN):
        assert variability([arms], MARGIN) == ()


def test_two_modes_with_the_same_mean_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    one_mode = 1000 * np.exp(0.02 * rng.standard_normal(20))
    two = 1000 * np.exp(np.where(np.arange(20) % 2, 0.02, -0.02) + 0.001 * rng.standard_normal(20))
    assert abs(np.log(one_mode).mean() - np.log(two).mean()) < 0.01
    (modes,) = [finding for finding in findings(one_mode, two) if finding.modes]
    assert modes.scatter is Scatter.TWO_MODES
    assert [mode.trials for mode in modes.modes] == [10, 10]
    assert [mode.value for mode in modes.modes] == pytest.approx([980, 1020], rel=0.002)
    assert [finding.scatter for finding in findings(two, one_mode) if finding.modes] == [Scatter.ONE_MODE]
    assert "has two modes with new" in variability_answer([modes])


def test_a_machine_that_switches_does_it_to_both() -> None:
    rng = np.random.default_rng(4)
    switch = np.where(np.arange(24) % 2, 0.05, -0.05)
    below, above = (1000 * np.exp(switch + 0.002 * rng.standard_normal(24)) for _ in range(2))
    assert findings(below, above) == []


def test_a_coarse_clock_has_no_modes() -> None:
    coarse = [10, 10, 10, 11, 11, 11, 12, 12, 12, 10, 11, 12]
    assert not [finding for finding in findings([10 + 0.3 * n for n in range(12)], coarse) if finding.modes]


Draw = Callable[[np.random.Generator, int], Array]
SKEWED: dict[str, Draw] = {
    "lognormal": lambda rng, size: 0.02 * np.exp(0.8 * rng.standard_normal(size)),
    "exponential": lambda rng, size: 0.02 * rng.exponential(size=size),
    "uniform": lambda rng, size: 0.03 * rng.random(size),
}


def arms_of(name: str, rng: np.random.Generator, blocks: int) -> tuple[Array, Array]:
    """Two arms that scatter alike, in randomised blocks."""
    if name in SKEWED:
        return SKEWED[name](rng, blocks), SKEWED[name](rng, blocks)
    noise = MODELS[name](rng, 1, 2 * blocks)
    slots = 3 * (noise.runs + noise.boots)[0].reshape(blocks, 2)
    slots = rng.permuted(slots, axis=1)
    return slots[:, 0], slots[:, 1]


@pytest.mark.parametrize("blocks", [8, at_night(20), at_night(60)])
@pytest.mark.parametrize("name", [*MODELS, *SKEWED])
def test_kernels_that_scatter_alike_are_seldom_told_apart(name: str, blocks: int) -> None:
    rng = np.random.default_rng(len(name) + blocks)
    studies = by_night(200, 60)
    alarms = 0
    for _ in range(studies):
        arms = [arms_of(name, rng, blocks) for _ in range(4)]
        pairs = [pair(1000 * np.exp(below), 1000 * np.exp(above)) for below, above in arms]
        alarms += bool(variability(pairs, MARGIN))
    assert alarms / studies <= 0.05 + by_night(0.025, 0.05)


@pytest.mark.parametrize("perturbations", [3, 5, 8])
def test_perturbations_that_move_both_alike_are_no_finding(perturbations: int) -> None:
    rng = np.random.default_rng(perturbations)
    alarms = 0
    studies = by_night(1000, 300)
    for _ in range(studies):
        arms = np.exp(0.03 * rng.standard_normal((4, 2, perturbations)))
        alarms += bool(variability([pair(arm[0], arm[1], Mode.EXACT_PLUGIN) for arm in arms], MARGIN))
    assert alarms / studies <= 0.05 + by_night(0.014, 0.025)


def test_a_kernel_that_scatters_four_times_as_much_is_found() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    studies = by_night(100, 40)
    for _ in range(studies):
        below, above = (np.exp(wide * rng.standard_normal(20)) for wide in (0.01, 0.04))
        hits += [finding.scatter for finding in findings(below, above) if not finding.modes] == [
            Scatter.WIDER
        ]
    assert hits / studies >= 0.9


def test_two_modes_six_deviations_apart_are_found() -> None:
    rng = np.random.default_rng(8)
    hits = 0
    studies = by_night(100, 40)
    for _ in range(studies):
        below = np.exp(0.01 * rng.standard_normal(40))
        above = np.exp(0.06 * (rng.random(40) < 0.5) + 0.01 * rng.standard_normal(40))
        hits += any(finding.scatter is Scatter.TWO_MODES for finding in findings(below, above))
    assert hits / studies >= 0.8


def test_the_test_of_the_spread_does_not_depend_on_which_arm_is_the_baseline() -> None:
    rng = np.random.default_rng(9)
    for count in (3, 9):
        below, above = rng.standard_normal((2, count))
        assert spread_p(below, above) == pytest.approx(spread_p(above, below))
    assert spread_p(np.zeros(3), np.zeros(3)) == 1.0
    assert spread_p(np.zeros(9), np.zeros(9)) == 1.0


def unsteady() -> StudyRecord:
    """The same mean, another spread: the verdict cannot tell, the finding does."""
    study = a_study(workloads=("fork",)).model_copy(update={"margin": MARGIN})
    values = {"debian:6.1": (1000.0, 1000.1, 999.9), "debian:6.12": (1000.0, 1200.0, 830.0)}
    trials = tuple(
        a_trial(planned(kernel, number, 2 * number + place), {"fork": numbers[number]})
        for place, (kernel, numbers) in enumerate(values.items())
        for number in range(3)
    )
    record = a_record(workloads=("fork",))
    judged = result(study, trials, lambda _use: ())
    return record.model_copy(update={"study": study, "trials": trials, "result": judged})


def test_the_finding_stands_beside_the_verdict_wherever_it_is_shown() -> None:
    record = unsteady()
    (finding,) = record.result.variability
    assert (finding.scatter, finding.trials) == (Scatter.WIDER, 3)
    assert record.result.comparisons[0].verdict is Verdict.INCONCLUSIVE
    assert "scatters more with debian:6.12" in record.result.answer
    assert "±" in report.study_markdown(record)
    assert "scatters more: 45" in report.study_html(record)
    assert report.comparisons_csv(record).splitlines()[1].endswith(",wider")
    (stored,) = record_as_json(record, "store")["variability"]
    assert (stored["scatter"], stored["treatment"]) == ("wider", "debian:6.12")
    table = matrix(record)
    assert table.rows[0].cells[0].scatter == (Scatter.WIDER,)
    assert "±" in matrix_page(table)
    assert as_csv.csv_text(for_programs(table)).splitlines()[1].endswith(",wider")


def test_a_steady_study_says_nothing_of_it() -> None:
    record = a_record()
    assert record.result.variability == ()
    assert "±" not in report.study_markdown(record)
    assert "scatters" not in report.study_html(record)
