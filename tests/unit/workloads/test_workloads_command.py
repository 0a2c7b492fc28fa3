"""Commands of the user's own: what is run, and what numbers are found in what they print."""

import shlex
from typing import Any

import pytest

from ktrial.model.design import Perturbation
from ktrial.model.workload import Command, MetricRule, Mode, Sample, WorkloadUse
from ktrial.studyfile.search import by_name
from ktrial.target import Run, StepResult
from ktrial.workloads import find
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.host_files import program_path


def use(*argv: str, repeats: int = 3) -> WorkloadUse:
    return WorkloadUse(name="mine", command=Command(argv=argv or ("true",), repeats=repeats))


def measured(**rule: str) -> WorkloadUse:
    metric = MetricRule.model_validate({"name": "rate", "unit": "MB/s"} | rule)
    return WorkloadUse(name="mine", command=Command(argv=("true",), metrics=(metric,)))


def printed(*outputs: str, **facts: Any) -> tuple[StepResult, ...]:
    return tuple(
        StepResult.model_validate({"step": number, "do": "run", "exit": 0, "stdout": output} | facts)
        for number, output in enumerate(outputs)
    )


def sample(given: WorkloadUse, results: tuple[StepResult, ...], mode: Mode = Mode.EXACT_CLOCK) -> Sample:
    (number,) = find(given).samples(given, mode, results)
    return number


def test_a_command_runs_once_more_than_it_counts() -> None:
    given = use("true", "--now", repeats=5)
    steps = find(given).steps(given, Mode.EXACT_CLOCK, Perturbation(number=1, environment_bytes=10))
    runs = [step for step in steps if isinstance(step, Run)]
    assert len(runs) == len(steps) == 6
    assert len(set(map(repr, runs))) == 1
    assert runs[0].argv[1:] == ("--now",)
    assert runs[0].argv[0].startswith("/")
    assert runs[0].argv[0].endswith("/bin/true")
    assert runs[0].environment["PATH"]
    assert runs[0].environment["KTRIAL_PADDING"] == "x" * 10


@pytest.mark.parametrize("words", ["git log | wc -l", "~/bin/x"])
def test_what_only_a_shell_reads_is_told_with_how_a_shell_reads_it(words: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        program_path("mine", words)
    assert refused.value.advice.endswith(f"sh -c {shlex.quote(words)}")


def test_a_program_that_the_host_lacks_is_named() -> None:
    given = use("no-such-program-here")
    with pytest.raises(WorkloadError, match="mine: there is no program no-such-program-here on this host"):
        find(given).steps(given, Mode.EXACT_CLOCK, Perturbation(number=0))


@pytest.mark.parametrize(("mode", "unit"), [(Mode.EXACT_CLOCK, "instructions"), (Mode.TIMED, "ns")])
def test_without_metrics_the_wall_clock_counts_and_the_first_run_is_discarded(mode: Mode, unit: str) -> None:
    times = (9_000_000, 100, 300, 200)
    results = tuple(
        StepResult(step=number, do="run", exit=0, wall_ns=time) for number, time in enumerate(times)
    )
    seconds = sample(use(), results, mode)
    assert (seconds.metric, seconds.unit, seconds.mode) == ("wall time", unit, mode)
    assert (seconds.value, seconds.minimum, seconds.median, seconds.mean) == (200, 100, 200, 200)
    assert seconds.operations == 3


@pytest.mark.parametrize(
    ("rule", "outputs", "value", "operations"),
    [
        ({"regex": r"rate=([\d.]+)"}, ("rate=1", "rate=5", "rate=7", "rate=6"), 6, 3),
        ({"regex": r"^(\S+) MB/s$"}, ("1 MB/s", "1.5e3 MB/s", "2 MB/s\n3 MB/s", "4 MB/s"), 3.5, 4),
        ({"json": "results.0.rps"}, ('{"results": [{"rps": 0}]}',) * 4, 0, 3),
        ({"json": "all"}, ('{"all": []}', '{"all": [1, 2]}', '{"all": [3]}', '{"all": ["4", 5]}'), 3, 5),
    ],
)  # fmt: skip
def test_numbers_are_found(
    rule: dict[str, str], outputs: tuple[str, ...], value: float, operations: int
) -> None:
    number = sample(measured(**rule), printed(*outputs))
    assert (number.value, number.operations, number.unit) == (value, operations, "MB/s")


def test_standard_error_is_searched_too() -> None:
    results = printed("", "", "", "", stderr="copied, 12.5 MB/s")
    assert sample(measured(regex=r"([\d.]+) MB/s"), results).value == 12.5


@pytest.mark.parametrize(
    ("rule", "output", "message"),
    [
        ({"regex": r"rate=(\d+)"}, "speed=3", "the metric rate is not in what it printed: nothing matches"),
        ({"json": "a.b"}, "rate: 3", "its output is not JSON"),
        ({"json": "a.b.c"}, '{"a": {"b": 3}}', "there is no 'a.b.c' in the JSON"),
        ({"json": "a.1"}, '{"a": [3]}', "there is no 'a.1' in the JSON"),
    ],
)
def test_a_metric_that_is_not_there_is_an_error_with_the_output(
    rule: dict[str, str], output: str, message: str
) -> None:
    with pytest.raises(WorkloadError) as caught:
        sample(measured(**rule), printed("", output, output, output))
    assert message in str(caught.value)
    assert output in caught.value.advice


@pytest.mark.parametrize(
    ("rule", "output", "value", "where"),
    [
        ({"regex": r"rate=(\S+)"}, "rate=fast", '"fast"', "'rate=fast' in its output"),
        ({"regex": r"rate=(\S+)"}, "rate=nan", '"nan"', "'rate=nan' in its output"),
        ({"regex": by_name("rate")}, "rate: -inf", '"-inf"', "'rate: -inf' in its output"),
        ({"regex": by_name("rate")}, "rate = NaN", '"NaN"', "'rate = NaN' in its output"),
        ({"json": "a.0"}, '{"a": [NaN]}', "NaN", "a.0 in the JSON that it printed"),
        ({"json": "a"}, '{"a": null}', "null", "a in the JSON that it printed"),
        ({"json": "a"}, '{"a": true}', "true", "a in the JSON that it printed"),
        ({"json": "a"}, '{"a": []}', "[]", "a in the JSON that it printed"),
    ],
)
def test_what_is_no_number_is_told_with_where_it_was_read_and_what_is_wanted(
    rule: dict[str, str], output: str, value: str, where: str
) -> None:
    with pytest.raises(WorkloadError) as caught:
        sample(measured(**rule), printed("", output, output, output))
    said = " ".join(str(caught.value).split())
    assert f"its rate is {value}, read from {where}; expected: a finite number." in said
    assert output in caught.value.advice


def test_any_run_that_fails_fails_the_workload() -> None:
    results = (*printed("rate=1", "rate=1", "rate=1"), StepResult(step=3, do="run", exit=3, stderr="broken"))
    with pytest.raises(WorkloadError, match="mine exited with status 3: broken"):
        sample(measured(regex=r"rate=(\d)"), results)


def test_runs_that_were_not_reached_are_an_error() -> None:
    with pytest.raises(WorkloadError, match="only 2 of its 4 runs"):
        sample(use(), printed("", ""))
