"""Metrics over CPUs: from trials to curves, and what chart, page, Markdown, CSV and JSON say of them."""

import csv
import io
import math
import re
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from rich.console import Console
from tests.support.drawings import axis, drawing, drawings_in, figure
from tests.support.making import a_sample, a_study, a_trial

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.analysis.scaling import Coefficients, changes, curves
from ktrial.cli.render.study_result import print_answer
from ktrial.model.design import Factor, FactorKind, LevelValue, PlannedTrial, Treatment
from ktrial.model.parallel import ScalingCurve
from ktrial.model.study import MachineSettings, StudyRecord, perturbation
from ktrial.model.trial import Outcome
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Command, Direction, Sample, WorkloadUse
from ktrial.report.csv_and_json import record_as_json
from ktrial.report.scaling import scaling_table
from ktrial.store.store import open_store

CPUS = (1, 2, 4, 8)
LAWS = {"debian:6.1": Coefficients(1000, 0.3, 0.05), "debian:6.12": Coefficients(900, 0.02, 0.001)}


def samples(kernel: str, cpus: int, seed: int) -> tuple[Sample, ...]:
    """`open` tells its throughput, `hackbench` only a time; a seed moves both by some percent."""
    rate = LAWS[kernel].throughput(cpus) * (1 + 0.02 * seed)
    return (
        a_sample("open", cpus * 1e9 / rate, unit="ns"),
        a_sample("open", rate, metric="throughput", unit="ops/s", direction=Direction.HIGHER),
        a_sample("hackbench", 1e9 / rate, unit="ns"),
    )


def a_record(tmp_path: Path, counts: tuple[int, ...] = CPUS, seeds: int = 3) -> StudyRecord:
    factor = Factor(name="cpus", kind=FactorKind.CPUS, levels=counts, baseline=counts[0])
    study = a_study(workloads=("open", "hackbench"), factors=(factor,), perturbations=seeds)
    with open_store(tmp_path / "s.db") as store:
        number = store.study(study)
        order = 0
        for seed in range(seeds):
            for kernel in LAWS:
                for cpus in counts:
                    treatment = Treatment(levels={"kernel": kernel, "cpus": cpus})
                    plan = PlannedTrial(
                        order=order, block=seed, treatment=treatment, perturbation=perturbation(1, seed)
                    )
                    trial = a_trial(plan, samples=samples(kernel, cpus, seed))
                    if (kernel, cpus, seed) == ("debian:6.12", 8, 2):
                        trial = a_trial(plan, outcome=Outcome.PANICKED)
                    store.add_trial(number, trial)
                    order += 1
        return load_record(store, number)


@pytest.fixture
def made(tmp_path: Path) -> StudyRecord:
    return a_record(tmp_path)


def test_curves_are_by_workload_and_treatment_over_seeds_that_are_whole(made: StudyRecord) -> None:
    lines = curves(made)
    assert [(curve.workload, curve.treatment, curve.seeds) for curve in lines] == [
        ("open", "debian:6.1", 3),
        ("open", "debian:6.12", 2),
        ("hackbench", "debian:6.1", 3),
        ("hackbench", "debian:6.12", 2),
    ]
    assert {(curve.workload, curve.metric, curve.unit) for curve in lines} == {
        ("open", "throughput", "ops/s"),
        ("hackbench", "instructions", "ns"),
    }
    # A time stays one; it shrinks as a throughput grows.
    assert lines[2].points[2].value == pytest.approx(1e9 / lines[0].points[2].value)
    assert lines[2].points[2].speed_up == pytest.approx(lines[0].points[2].speed_up)


def test_speed_up_efficiency_and_the_law(made: StudyRecord) -> None:
    contended, scaling = curves(made)[:2]
    for curve, law in ((contended, LAWS["debian:6.1"]), (scaling, LAWS["debian:6.12"])):
        four = curve.at(4)
        assert four is not None
        assert four.speed_up == pytest.approx(law.throughput(4) / law.throughput(1))
        assert four.efficiency == pytest.approx(four.speed_up / 4)
        assert four.lowest < four.value < four.highest
        assert curve.contention is not None
        assert curve.coherence is not None
        assert curve.contention.value == pytest.approx(law.contention, abs=1e-4)
        assert curve.coherence.value == pytest.approx(law.coherence, abs=1e-4)
    assert contended.peak == pytest.approx(math.sqrt(0.7 / 0.05), rel=1e-3)


def test_two_numbers_of_cpus_are_no_law(tmp_path: Path) -> None:
    lines = curves(a_record(tmp_path, counts=(1, 4)))
    assert len(lines) == 4
    assert all(curve.contention is None for curve in lines)
    assert "| Contention σ" not in report.study_markdown(a_record(tmp_path, counts=(1, 4)))


def test_without_that_factor_there_are_none(tmp_path: Path) -> None:
    study = a_study()
    with open_store(tmp_path / "s.db") as store:
        number = store.study(study)
        assert curves(load_record(store, number)) == ()


def test_the_chart_says_what_the_curves_do(made: StudyRecord) -> None:
    page = report.study_html(made)
    drawn = drawings_in(page)["scaling"]
    lines = curves(made)
    assert len(drawn) == 2
    captions = re.findall(r"<figcaption><bdi>(\w+)</bdi></figcaption><div class=\"chart\"><svg", page)
    assert captions == [lines[0].workload, lines[2].workload]
    for element, of_workload in zip(drawn, (lines[:2], lines[2:]), strict=True):
        assert_chart(element, of_workload)


def assert_chart(element: Element, of_workload: tuple[ScalingCurve, ...]) -> None:
    chart = drawing(element)
    numbers = [text for text in chart.texts if text.text.replace(".", "").isdigit()]
    foot = max(text.y for text in numbers)
    cpus = axis({text.x: figure(text.text) for text in numbers if text.y == foot})
    speed_up = axis({text.y: figure(text.text) for text in numbers if text.y != foot})
    drawn = sorted((round(cpus(symbol.x)), speed_up(symbol.y)) for symbol in chart.symbols)
    expected = sorted((point.cpus, point.speed_up) for curve in of_workload for point in curve.points)
    assert [at for at, _ in drawn] == [at for at, _ in expected]
    # Numbers beside an axis stand some pixels below their marks.
    lower = drawn[0][1] - 1
    assert 0 < lower < 4 * abs(speed_up(1) - speed_up(0))
    for (_, height), (cpus_, meaning) in zip(drawn, expected, strict=True):
        assert height - lower == pytest.approx(meaning, abs=0.03), cpus_
    names = [text for text in chart.texts if text.text.startswith("debian:")]
    assert {text.text for text in names} == {curve.treatment for curve in of_workload}
    assert abs(names[0].y - names[1].y) >= 13


def test_all_outputs_have_the_table(made: StudyRecord) -> None:
    rows = list(csv.DictReader(io.StringIO(report.scaling_csv(made))))
    assert len(rows) == 16
    assert rows[2]["cpus"] == "4"
    assert float(rows[2]["speed_up"]) == pytest.approx(curves(made)[0].points[2].speed_up)
    markdown = report.study_markdown(made)
    assert "| open | throughput | debian:6.1 | 4 |" in markdown.replace("`", "")
    assert "| Contention σ |" in markdown
    data = record_as_json(made, "store")["scaling"]
    assert [point["cpus"] for point in data[0]["points"]] == list(CPUS)
    assert data[0]["contention"]["low"] <= data[0]["contention"]["value"] <= data[0]["contention"]["high"]


# Metrics of all sorts over CPUs: a program's own unit and direction count.


def a_record_of(tmp_path: Path, *metrics: tuple[str, str, Direction, dict[int, float]]) -> StudyRecord:
    """A workload with these metrics (name, unit, direction, value by CPUs), under one seed."""
    counts = tuple(metrics[0][3])
    factor = Factor(name="cpus", kind=FactorKind.CPUS, levels=counts, baseline=counts[0])
    study = a_study(workloads=("hackbench",), factors=(factor,), perturbations=1)
    with open_store(tmp_path / "s.db") as store:
        number = store.study(study)
        for order, (kernel, cpus) in enumerate((kernel, cpus) for kernel in LAWS for cpus in counts):
            treatment = Treatment(levels={"kernel": kernel, "cpus": cpus})
            plan = PlannedTrial(order=order, block=0, treatment=treatment, perturbation=perturbation(1, 0))
            measured = tuple(
                a_sample("hackbench", values[cpus], metric=metric, unit=unit, direction=direction)
                for metric, unit, direction, values in metrics
            )
            store.add_trial(number, a_trial(plan, samples=measured))
        return load_record(store, number)


LOWER, HIGHER = Direction.LOWER, Direction.HIGHER


@pytest.mark.parametrize(
    ("metric", "unit", "direction", "values", "shown", "speed_ups"),
    [
        ("time", "s", LOWER, {1: 0.05, 2: 0.03, 4: 0.02}, ["50.0 ms", "30.0 ms", "20.0 ms"], [1, 5 / 3, 2.5]),
        ("wall time", "ns", LOWER, {1: 31_020_920, 4: 15_510_460}, ["31.0 ms", "15.5 ms"], [1, 2]),
        ("operation", "µs", LOWER, {1: 4.0, 2: 8.0}, ["4.00 µs", "8.00 µs"], [1, 0.5]),
        ("requests", "1/s", HIGHER, {1: 10_000_123, 4: 2e7}, ["10,000,000 1/s", "20,000,000 1/s"], [1, 2]),
        ("throughput", "MiB/s", HIGHER, {1: 512.25, 2: 768.0}, ["512 MiB/s", "768 MiB/s"], [1, 1.499]),
    ],
)
def test_a_metric_keeps_its_unit_and_its_direction_ranks_it(
    metric: str,
    unit: str,
    direction: Direction,
    values: dict[int, float],
    shown: list[str],
    speed_ups: list[float],
    tmp_path: Path,
) -> None:
    record = a_record_of(tmp_path, (metric, unit, direction, values))
    first = curves(record)[0]
    assert [point.value for point in first.points] == pytest.approx(list(values.values()))
    assert [point.speed_up for point in first.points] == pytest.approx(speed_ups, rel=1e-3)
    column = [row.cells[4].text for row in scaling_table(curves(record)).rows[: len(values)]]
    assert [text.replace("\u00a0", " ") for text in column] == shown
    assert not changes(record)


def test_a_latency_is_no_throughput(tmp_path: Path) -> None:
    record = a_record_of(tmp_path, ("worst latency", "ns", LOWER, {1: 4000.0, 2: 6000.0, 4: 12_500.0}))
    assert curves(record) == ()
    first = changes(record)[0]
    assert [point.value for point in first.points] == pytest.approx([4000, 6000, 12_500])
    markdown = report.study_markdown(record).replace("`", "").replace("\u00a0", " ")
    assert "| hackbench | worst latency | debian:6.1 | 4 | 12.5 µs | +212.50 % |" in markdown
    assert "Speed-up |" not in markdown
    page = report.study_html(record)
    assert "Latencies and counts over CPUs" in page
    assert "How much gets done over CPUs" not in page
    assert "speed-up over CPUs" not in page, "there is no chart of one"
    assert record_as_json(record, "store")["scaling"] == []
    assert record_as_json(record, "store")["over_cpus"][0]["metric"] == "worst latency"
    rows = list(csv.DictReader(io.StringIO(report.scaling_csv(record))))
    assert [row["value"] for row in rows[:3]] == ["4000.0", "6000.0", "12500.0"]
    assert {row["speed_up"] for row in rows} == {""}


def test_a_benchmark_of_fixed_duration_is_ranked_by_what_it_prints(tmp_path: Path) -> None:
    """schbench and cyclictest run for some seconds, whatever the kernel: their rates and latencies count."""
    record = a_record_of(
        tmp_path,
        ("requests", "1/s", HIGHER, {1: 100.0, 4: 300.0}),
        ("wake-up latency p99", "µs", LOWER, {1: 10.0, 4: 0.0}),
        ("instructions", "instructions", LOWER, {1: 5.0, 4: 6.0}),
    )
    assert {curve.metric for curve in curves(record)} == {"requests"}
    assert curves(record)[0].points[-1].speed_up == pytest.approx(3)
    assert {change.metric for change in changes(record)} == {"wake-up latency p99"}


def test_a_count_is_neither(tmp_path: Path) -> None:
    record = a_record_of(tmp_path, ("misses", "", LOWER, {1: 0.0, 2: 7.0}))
    assert curves(record) == ()
    assert [point.value for point in changes(record)[0].points] == [0, 7]
    markdown = report.study_markdown(record).replace("`", "")
    assert "| hackbench | misses | debian:6.1 | 2 | 7 | – |" in markdown, "nothing is divided by zero"


def test_the_answer_says_how_much_more_gets_done(made: StudyRecord) -> None:
    gain = {kernel: law.throughput(8) / law.throughput(1) for kernel, law in LAWS.items()}
    old, new = gain.values()
    assert made.result.answer == (
        f"8 CPUs against 1 CPU: debian:6.1: hackbench {old:.2f} times as much, "
        f"open {old:.2f} times; debian:6.12: hackbench {new:.2f} times as much, open {new:.2f} times."
    )


def test_the_answer_of_a_latency_is_its_change(tmp_path: Path) -> None:
    record = a_record_of(tmp_path, ("worst latency", "ns", LOWER, {2: 4000.0, 4: 12_500.0}))
    assert record.result.answer.startswith(
        "4 CPUs against 2 CPUs: debian:6.1: worst latency of hackbench +212 %;"
    )


# What a reader would else conclude: that seeds find every race, that a fixed time is a want of scaling.


def a_parallel_record(tmp_path: Path, machine: MachineSettings, times: tuple[float, ...]) -> StudyRecord:
    """A command of the user's on the machine, on as many numbers of CPUs as there are times."""
    counts = tuple(range(1, len(times) + 1))
    factors = (Factor(name="cpus", kind=FactorKind.CPUS, levels=counts, baseline=1),)
    study = a_study(factors=factors[: len(counts) > 1], perturbations=1).model_copy(
        update={
            "machine": machine,
            "workloads": (WorkloadUse(name="bench.sh", command=Command(argv=("bench.sh",))),),
        }
    )
    with open_store(tmp_path / "s.db") as store:
        number = store.study(study)
        for order, (cpus, time) in enumerate(zip(counts, times, strict=True)):
            levels: dict[str, LevelValue] = {"kernel": "debian:6.1", "cpus": cpus}
            plan = PlannedTrial(
                order=order,
                block=0,
                treatment=Treatment(levels=levels if len(counts) > 1 else {"kernel": "debian:6.1"}),
                perturbation=perturbation(1, 0),
            )
            sample = a_sample("bench.sh", time, metric="wall time", unit="ns")
            store.add_trial(number, a_trial(plan, samples=(sample,)))
        return load_record(store, number)


PARALLEL = MachineSettings(kind="exact-parallel", cpus=4)
LIMITS = "an unlocked increment never loses an update here"


def test_several_simulated_cpus_say_what_they_do_not_show(tmp_path: Path) -> None:
    record = a_parallel_record(tmp_path, PARALLEL, (2e9,))
    (note,) = (item for item in record.result.warnings if item.kind is WarningKind.SEVERAL_CPUS)
    assert note.is_note
    assert note.text.startswith("simulated CPUs do not show every race: a block of instructions is atomic")
    assert LIMITS in note.advice
    assert LIMITS in report.study_html(record)
    assert LIMITS in report.study_markdown(record)


def test_a_single_cpu_and_a_real_machine_do_not(tmp_path: Path) -> None:
    for kind, cpus in (("exact-parallel", 1), ("kvm", 4)):
        (tmp_path / kind).mkdir()
        record = a_parallel_record(tmp_path / kind, MachineSettings(kind=kind, cpus=cpus), (2e9,))
        assert all(item.kind is not WarningKind.SEVERAL_CPUS for item in record.result.warnings)


@pytest.mark.parametrize(
    ("times", "warned"), [((1e9, 1.001e9, 1.0005e9), True), ((1e9, 0.6e9, 0.4e9), False)]
)
def test_a_command_that_takes_as_long_on_any_number_of_cpus_is_told(
    times: tuple[float, ...], warned: bool, tmp_path: Path
) -> None:
    record = a_parallel_record(tmp_path, PARALLEL, times)
    texts = [item.text for item in record.result.warnings if item.kind is WarningKind.SAME_TIME]
    assert len(texts) == warned
    if warned:
        said = "bench.sh takes 1.00 s on any number of CPUs: it runs for a fixed time, or in one task"
        assert texts[0].replace("\u00a0", " ") == said


# On the terminal: a row a metric, the answer last, in 25 lines.


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_terminal_has_a_row_a_metric_and_no_number_is_cut(made: StudyRecord, width: int) -> None:
    told = on_terminal(made, width)
    lines = told.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= width
    contended = LAWS["debian:6.1"]
    gains = [f"{contended.throughput(cpus) / contended.throughput(1):.2f}×" for cpus in CPUS[1:]]
    assert any(all(text in line for text in ("1,020 ops/s", *gains)) for line in lines)
    assert lines[-1].endswith("times.")
    assert "got worse" not in told
    assert "ktrial show 1 -v" in " ".join(told.split())


def test_the_terminal_says_what_seeds_do_not_show(tmp_path: Path) -> None:
    told = on_terminal(a_parallel_record(tmp_path, PARALLEL, (1e9, 0.6e9)), 80)
    assert "note: simulated CPUs do not show every race: a block of instructions is atomic" in told
    assert "600 ms" not in told, "speed-ups stand beside the value with the fewest CPUs"
    assert "1.67×" in told
    answer = "By simulated time, 2 CPUs against 1 CPU: debian:6.1: bench.sh 1.67 times as much."
    assert " ".join(told.split()).endswith(answer)


def test_the_terminal_shows_a_latencys_change(tmp_path: Path) -> None:
    latency = ("wake-up latency p99", "µs", LOWER, {1: 10.0, 4: 31.0})
    told = on_terminal(a_record_of(tmp_path, ("requests", "1/s", HIGHER, {1: 1e7, 4: 2e7}), latency), 80)
    assert re.search(r"hackbench, requests, debian:6.1 +10,000,000 1/s +2.00×", told)
    assert re.search(r"hackbench, wake-up latency p99, debian:6.1 +10.0 µs +\+210 %", told)


def on_terminal(record: StudyRecord, width: int) -> str:
    """What a person reads at the end, without non-breaking spaces and trailing ones."""
    written = io.StringIO()
    print_answer(record, (), Console(file=written, width=width), more="ktrial show 1 -v")
    return "\n".join(line.rstrip() for line in written.getvalue().replace("\u00a0", " ").splitlines())
