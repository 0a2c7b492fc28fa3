"""Metrics of commands that print what known programs print."""

from pathlib import Path
from typing import Any

import pytest
from docs.measured.declaration import declared
from docs.measured.measuring import Measuring
from docs.measured.pages import blocks_of
from tests.support.places import PROGRAM_OUTPUTS, ROOT

from ktrial.cli.studies import registry
from ktrial.model.study import Study
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Command, Direction, MetricRule, Mode, Sample, WorkloadUse
from ktrial.studyfile.errors import StudyMistake
from ktrial.studyfile.reader import load
from ktrial.studyfile.search import guard_of
from ktrial.studyfile.writer import study_toml
from ktrial.target import StepResult
from ktrial.workloads import WarnsOfRuns, check, find
from ktrial.workloads.command import guest_time_warnings
from ktrial.workloads.errors import BadOutput, BadWorkload, WorkloadError

FIO = (PROGRAM_OUTPUTS / "fio-3.33.json").read_text()
JOBS = (PROGRAM_OUTPUTS / "fio-3.33-jobs.json").read_text()
HYPERFINE = (PROGRAM_OUTPUTS / "hyperfine-1.15.json").read_text()
PERF = (PROGRAM_OUTPUTS / "perf-stat-6.1.187.txt").read_text()


def measured(*rules: MetricRule) -> WorkloadUse:
    return WorkloadUse(name="mine", command=Command(argv=("true",), metrics=rules, repeats=2))


def printed(*outputs: str, **facts: Any) -> tuple[StepResult, ...]:
    return tuple(
        StepResult.model_validate({"step": number, "do": "run", "exit": 0, "stdout": output} | facts)
        for number, output in enumerate(outputs)
    )


def samples(use: WorkloadUse, results: tuple[StepResult, ...], mode: Mode = Mode.TIMED) -> dict[str, Sample]:
    return {each.metric: each for each in find(use).samples(use, mode, results)}


def warned(use: WorkloadUse, results: tuple[StepResult, ...]) -> list[str]:
    workload = find(use)
    assert isinstance(workload, WarnsOfRuns)
    return [each.text for each in workload.warnings(use, results)]


def test_all_metrics_of_a_format_are_samples_of_all_runs_that_count() -> None:
    faster = FIO.replace("14844.155844", "20000.0")
    read = samples(measured(MetricRule(format="fio-json")), printed("", FIO, faster))
    assert list(read) == ["read rate", "read throughput", "read latency", "read latency p99"]
    rate = read["read rate"]
    assert (rate.unit, rate.direction, rate.mode) == ("IOPS", Direction.HIGHER, Mode.TIMED)
    assert rate.value == pytest.approx((14844.155844 + 20000) / 2)
    assert rate.operations == 2
    assert (rate.minimum, read["read latency"].direction) == (14844.155844, Direction.LOWER)


def test_repetitions_inside_an_output_count_each() -> None:
    read = samples(measured(MetricRule(format="hyperfine")), printed("", HYPERFINE, HYPERFINE))
    assert {name: each.operations for name, each in read.items()} == {
        "sleep 0.01: time": 10,
        "true: time": 10,
    }
    assert read["sleep 0.01: time"].value == 0.01558816


def test_one_metric_of_a_format_stands_beside_others_under_its_own_name() -> None:
    rule = MetricRule(name="rps", format="fio-json", metric="a: write rate")
    use = measured(rule, MetricRule(name="elapsed"))
    read = samples(use, printed("", JOBS, JOBS, wall_ns=7))
    assert {name: (each.value, each.unit) for name, each in read.items()} == {
        "rps": (9600.0, "IOPS"),
        "elapsed": (7.0, "ns"),
    }


def test_what_stands_on_standard_error_is_read_where_the_output_is_something_else() -> None:
    read = samples(measured(MetricRule(format="perf-stat")), printed("", "42\n", "42\n", stderr=PERF))
    assert read["page-faults"].value == 48


def test_notes_of_an_output_are_warnings_with_the_result() -> None:
    use = measured(MetricRule(format="perf-stat"))
    told = warned(use, printed("", PERF, PERF))
    assert told == ["mine: perf did not count cycles, instructions, branches, branch-misses"]


def test_a_metric_that_one_run_lacks_is_left_out_and_told() -> None:
    cut = FIO.replace('"99.000000"', '"99.100000"')
    use, results = measured(MetricRule(format="fio-json")), printed("", FIO, cut)
    assert "read latency p99" not in samples(use, results)
    assert "mine: read latency p99 is not in every run's output: it is left out" in warned(use, results)


ERRORS = [
    ("fio-json", "", "hello", WorkloadError, "nothing in it looks like what is printed by: fio --output"),
    ("fio-json", "", "hello", WorkloadError, "it ends with 'hello'"),
    ("fio-json", "", FIO[:3000], BadOutput, "this is not JSON"),
    ("fio-json", "", JOBS.replace('"error" : 0', '"error" : 5', 1), BadOutput, "job a reports error 5"),
    ("fio-json", "read rates", FIO, WorkloadError, "no read rates (did you mean read rate"),
    (
        "hyperfine",
        "",
        HYPERFINE.replace('"true"', '"\\u001b[31m"'),
        BadOutput,
        "a name that no metric can have",
    ),
    ("hyperfine", "", HYPERFINE.replace("0,\n", "1,\n", 1), BadOutput, "1 runs ended with an error"),
]


@pytest.mark.parametrize(("format", "metric", "output", "error", "text"), ERRORS)
def test_what_cannot_be_read_fails_the_trial(
    format: str, metric: str, output: str, error: type[Exception], text: str
) -> None:
    use = measured(MetricRule(name=metric, format=format, metric=metric))
    with pytest.raises(error) as told:
        samples(use, printed("", output, output))
    assert text in str(told.value)


def test_more_metrics_than_anybody_reads_are_refused_with_how_to_choose() -> None:
    commands = ",".join(f'{{"command": "c{at}", "times": [1]}}' for at in range(300))
    output = f'{{"results": [{commands}]}}'
    with pytest.raises(BadOutput, match="it tells of 300 metrics, where 200 are the most"):
        samples(measured(MetricRule(format="hyperfine")), printed("", output, output))


@pytest.mark.parametrize(
    ("mode", "clock", "waits"),
    [
        (Mode.EXACT_CLOCK, "the guest's clock", True),
        (Mode.EXACT_PARALLEL, "simulated time", False),
    ],
)
def test_times_by_the_guest_s_clock_are_told_in_exact_mode(mode: Mode, clock: str, waits: bool) -> None:
    """On several CPUs waiting takes time, too."""
    use = measured(MetricRule(format="fio-json"))
    read = tuple(samples(use, printed("", FIO, FIO), mode).values())
    (warning,) = guest_time_warnings(use.command, read, mode)
    assert warning.kind is WarningKind.GUEST_TIME
    assert not warning.is_note
    assert warning.text.startswith(f"mine: read rate and others are by {clock}")
    assert ("waiting costs nothing" in warning.text) == waits
    assert ("instructions of a whole run" in warning.advice) == waits
    assert guest_time_warnings(use.command, read, Mode.TIMED) == ()


def test_what_is_no_time_and_what_ktrial_measures_are_not_told_of() -> None:
    rules = (MetricRule(name="faults", format="perf-stat", metric="page-faults"), MetricRule(name="elapsed"))
    use = measured(*rules)
    read = tuple(samples(use, printed("", PERF, PERF, wall_ns=5), Mode.EXACT_CLOCK).values())
    assert guest_time_warnings(use.command, read, Mode.EXACT_CLOCK) == ()


def test_a_format_that_there_is_not_is_refused_before_anything_runs() -> None:
    with pytest.raises(BadWorkload, match=r"no format of metrics fio-josn \(did you mean fio-json"):
        check(measured(MetricRule(format="fio-josn")))
    with pytest.raises(BadWorkload, match="a metric has no name"):
        check(measured(MetricRule(regex="(1)")))


STUDY = """
workloads = [{{ name = "mine", command = "/bin/true", metrics = {metrics} }}]
[factors.kernel]
levels = ["debian:6.1", "debian:6.12"]
"""


def study(directory: Path, metrics: str) -> Study:
    place = directory / "study.toml"
    place.write_text(STUDY.format(metrics=metrics))
    return load(place, registry())


@pytest.mark.parametrize(
    ("metrics", "rules"),
    [
        ('"fio-json"', [MetricRule(format="fio-json")]),
        ('[{ format = "wrk" }, { name = "t" }]', [MetricRule(format="wrk"), MetricRule(name="t")]),
        (
            '[{ name = "rps", format = "wrk", metric = "requests" }]',
            [MetricRule(name="rps", format="wrk", metric="requests")],
        ),
        (
            '[{ format = "wrk", metric = "latency p99" }]',
            [MetricRule(name="latency p99", format="wrk", metric="latency p99")],
        ),
    ],
)
def test_a_study_names_a_format_and_is_written_with_it(
    tmp_path: Path, metrics: str, rules: list[MetricRule]
) -> None:
    one = study(tmp_path, metrics)
    command = one.workloads[0].command
    assert command is not None
    assert list(command.metrics) == rules
    (tmp_path / "again.toml").write_text(study_toml(one))
    assert load(tmp_path / "again.toml", registry()).workloads == one.workloads


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ('"fio-josn"', 'metrics: there is no format of metrics "fio-josn"; did you mean "fio-json"?'),
        ('[{ format = "wrkk" }, { name = "a" }]', 'no format of metrics "wrkk"; did you mean "wrk"?'),
        ('[{ format = "wrk", unit = "s" }]', '"unit" is given by the format: leave it out'),
        ('[{ format = "wrk", json = "a" }]', '"json" is given by the format: leave it out'),
        ('[{ format = "wrk", name = "a" }]', 'which metric of wrk is "a"?'),
        ('[{ name = "a", metric = "b" }]', 'it is for a metric of a "format"'),
        ('[{ regex = "(1)" }]', 'the key "name" is missing: a name of letters'),
        ('["fio-json"]', "found"),
        ("3", "found 3"),
        ('[{ format = "wrk" }, { format = "wrk" }]', 'the metric "wrk" is here twice'),
    ],
)
def test_mistakes_of_a_format_are_told_with_their_line(tmp_path: Path, metrics: str, text: str) -> None:
    with pytest.raises(StudyMistake) as told:
        study(tmp_path, metrics)
    assert text in str(told.value)
    assert "2: workloads[0]" in str(told.value)


def test_a_study_that_has_no_format_keeps_its_digest() -> None:
    rule = MetricRule(name="rate", regex="(1)")
    assert rule.model_dump(by_alias=False).keys() == {"name", "unit", "direction", "regex", "json_path"}


def test_a_limit_may_name_a_metric_of_several_words() -> None:
    guard = guard_of("read latency p99 <= 20ms")
    assert (guard.metric, guard.bound, guard.unit) == ("read latency p99", 20, "ms")


def test_the_documentation_s_table_is_what_the_formats_say(tmp_path: Path) -> None:
    block = declared()["output-formats"]
    page = (ROOT / block.page).read_text()
    assert blocks_of(page)[block.name].strip() == block.text(Measuring(tmp_path)).strip()
