"""Throughput over CPUs: from trials to curves, and what chart, page, Markdown, CSV and JSON say of them."""

import csv
import io
import math
import re
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from tests.support.drawings import axis, drawing, drawings_in, figure
from tests.support.making import a_sample, a_study, a_trial

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.analysis.scaling import Coefficients, curves
from ktrial.model.design import Factor, FactorKind, PlannedTrial, Treatment
from ktrial.model.parallel import ScalingCurve
from ktrial.model.study import StudyRecord, perturbation
from ktrial.model.trial import Outcome
from ktrial.model.workload import Direction, Sample
from ktrial.report.csv_and_json import record_as_json
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
    # A time's reciprocal is a throughput.
    assert lines[0].points[2].throughput == pytest.approx(lines[2].points[2].throughput)


def test_speed_up_efficiency_and_the_law(made: StudyRecord) -> None:
    contended, scaling = curves(made)[:2]
    for curve, law in ((contended, LAWS["debian:6.1"]), (scaling, LAWS["debian:6.12"])):
        four = curve.at(4)
        assert four is not None
        assert four.speed_up == pytest.approx(law.throughput(4) / law.throughput(1))
        assert four.efficiency == pytest.approx(four.speed_up / 4)
        assert four.lowest < four.throughput < four.highest
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
    assert "| open | debian:6.1 | 4 |" in markdown.replace("`", "")
    assert "| Contention σ |" in markdown
    data = record_as_json(made, "store")["scaling"]
    assert [point["cpus"] for point in data[0]["points"]] == list(CPUS)
    assert data[0]["contention"]["low"] <= data[0]["contention"]["value"] <= data[0]["contention"]["high"]
