"""Series in the report: rates of counters, levels as they are, escaped; nothing where nothing was read."""

from pathlib import Path

import pytest
from tests.support.drawn_charts import assert_charts_are_true
from tests.support.making import a_study, a_trial, planned

from ktrial.analysis.result import load_record
from ktrial.model.study import MachineSettings, StudyRecord
from ktrial.model.trial import SampleSeries, Series, SeriesKind, TrialSampled
from ktrial.report import sparkline, study_html
from ktrial.store.store import open_store

TIMES = (0.0, 1.0, 2.0, 2.0, 4.0)


def sampled(workload: str = "fork", times: tuple[float, ...] = TIMES) -> SampleSeries:
    count = len(times)
    return SampleSeries(
        workload=workload,
        interval=1.0,
        readings=3,
        cost_seconds=0.004,
        wall_seconds=4.0,
        times=times,
        series=(
            Series(
                name="meminfo.Dirty",
                unit="KiB",
                kind=SeriesKind.GAUGE,
                values=(8.0, 4.0, 2.0, 2.0, 6.0)[:count],
            ),
            Series(
                name="stat.ctxt",
                unit="",
                kind=SeriesKind.COUNTER,
                values=(0.0, 10.0, 40.0, 41.0, 101.0)[:count],
            ),
            Series(
                name="zz.unknown", unit="", kind=SeriesKind.COUNTER, values=(0.0, 1.0, 2.0, 3.0, 4.0)[:count]
            ),
        ),
    )


def a_record(tmp_path: Path, *courses: SampleSeries, **machine: object) -> StudyRecord:
    settings = MachineSettings.model_validate({"kind": "host", "sample_ns": 10**9, **machine})
    study = a_study(machine=settings, perturbations=1)
    with open_store(tmp_path / "s.db") as store:
        number = store.study(study)
        for order, kernel in enumerate(("debian:6.1", "debian:6.12")):
            trial = a_trial(planned(kernel, order=order), values={"fork": 1.0, "pipe": 2.0}, sampled=courses)
            store.add_trial(number, trial)
        return load_record(store, number)


def test_a_counter_is_drawn_as_its_rate_a_second() -> None:
    assert sparkline.rate(TIMES, (0.0, 10.0, 40.0, 41.0, 101.0)) == [(1.0, 10.0), (2.0, 30.0), (4.0, 30.0)]


def test_every_treatment_has_its_line_and_what_nobody_asked_for_is_not_drawn(tmp_path: Path) -> None:
    (chart,) = sparkline.by_workload(a_record(tmp_path, sampled()))
    assert [picture.name for picture in chart.pictures] == ["stat.ctxt", "meminfo.Dirty"]
    switches, dirty = chart.pictures
    assert (switches.unit, switches.bottom, switches.top) == ("a second", "0", "30")
    assert (dirty.unit, dirty.bottom, dirty.top) == ("KiB", "2", "8")
    assert [picture.dash for picture in dirty.courses] == ["", "6 3"]
    assert dirty.courses[0].path.startswith("M0.0,4.0L75.0,")
    assert "3\xa0readings, one every 1\xa0s, took 0.1\xa0% of one CPU" in chart.costs[0]


@pytest.mark.parametrize("courses", [(), (sampled(times=TIMES[:2]),)])
def test_without_a_course_of_events_there_is_no_section(
    tmp_path: Path, courses: tuple[SampleSeries, ...]
) -> None:
    record = a_record(tmp_path, *courses)
    assert sparkline.by_workload(record) == ()
    assert 'id="series"' not in study_html(record)


def test_the_page_has_the_pictures_and_names_are_escaped(tmp_path: Path) -> None:
    record = a_record(tmp_path, sampled())
    evil = TrialSampled(trial="x", treatment="<script>alert(1)</script>", sampled=sampled("a<b>"))
    assert_charts_are_true(study_html(record), record)
    page = study_html(record.model_copy(update={"sampled": (*record.sampled, evil)}))
    assert 'id="series"' in page
    assert "stat.ctxt" in page
    assert "<script>alert" not in page
    assert "a<b>" not in page
