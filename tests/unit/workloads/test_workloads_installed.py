"""Programs of others as workloads: what they printed, and what is read from it.

The files in program_outputs are what the programs of Debian 12 printed, but for two: schbench's is from its
README, and the log of UnixBench was written by hand in the form of its script Run.
"""

import math
import re
import shutil
from typing import cast

import pytest
from tests.support.places import PROGRAM_OUTPUTS as OUTPUTS

from ktrial import workloads
from ktrial.model.design import Perturbation
from ktrial.model.imported import BASELINES
from ktrial.model.workload import Direction, Mode, WorkloadUse
from ktrial.package_names import INSTALL
from ktrial.program_outputs import find
from ktrial.program_outputs.unixbench_log import Section, index
from ktrial.target import Run, StepResult
from ktrial.workloads.adapter import GROUP, InstalledProgram, Reported
from ktrial.workloads.adapters import nginx_wrk
from ktrial.workloads.errors import BadOutput, WorkloadError

PLAIN = Perturbation(number=0)


def installed(name: str) -> InstalledProgram:
    one = workloads.find(WorkloadUse(name=name))
    assert isinstance(one, InstalledProgram)
    return one


def read(name: str, file: str, **parameters: int | float | str) -> dict[str, float]:
    """Metric → value, from a file of real output."""
    return read_text(name, (OUTPUTS / file).read_text(), **parameters)


def read_text(name: str, text: str, **parameters: int | float | str) -> dict[str, float]:
    workload, use = installed(name), WorkloadUse(name=name, parameters=parameters)
    results = tuple(
        StepResult(step=number, do="run", exit=0, stdout=text if number == 1 + len(workload.before) else "")
        for number in range(2 + len(workload.before) + len(workload.after))
    )
    samples = workload.samples(use, Mode.TIMED, results)
    assert {sample.mode for sample in samples} == {Mode.TIMED}
    return {sample.metric: sample.value for sample in samples}


@pytest.mark.parametrize(
    ("name", "file", "parameters", "metrics"),
    [
        (
            "sysbench-cpu",
            "sysbench-cpu-1.0.20.txt",
            {},
            {"events": 3372.79, "latency": 999.22 / 3377, "latency p95": 0.32},
        ),
        ("sysbench-memory", "sysbench-memory-1.0.20.txt", {}, {"throughput": 8012.54}),
        (
            "sysbench-fileio",
            "sysbench-fileio-1.0.20.txt",
            {},
            {"read rate": 56392.63, "write rate": 37595.08, "fsync rate": 3761.5, "latency": 981.99 / 97966},
        ),
        ("rt-hackbench", "hackbench-2.40.txt", {}, {"time": 0.09}),
        ("cyclictest", "cyclictest-2.40.json", {"threads": 2}, {"worst latency": 35_685_000}),
        ("stress-ng", "stress-ng-0.15.06.yaml", {}, {"operations": 2369.80998}),
        ("perf-bench", "perf-bench-sched-messaging-6.1.txt", {}, {"time": 0.043}),
        ("perf-bench", "perf-bench-sched-pipe-6.1.txt", {"benchmark": "sched pipe"}, {"operation": 2.809}),
        ("perf-bench", "perf-bench-futex-hash-6.1.txt", {"benchmark": "futex hash"}, {"rate": 5039616}),
        (
            "perf-bench",
            "perf-bench-mem-memcpy-6.1.txt",
            {"benchmark": "mem memcpy"},
            {"throughput": 27.126736},
        ),
        (
            "schbench",
            "schbench.txt",
            {},
            {"requests": 3024.6, "wake-up latency p99": 175, "request latency p50": 16864},
        ),
        (
            "unixbench-run",
            "unixbench-5.1.3.log",
            {},
            {"fstime": 400000, "syscall": math.sqrt(149995.47 * 160000)},
        ),
        ("unixbench-run", "unixbench-5.1.3.log", {"copies": 2}, {"syscall": 260000}),
    ],
    ids=str,
)
def test_what_a_program_reports_is_read(
    name: str, file: str, parameters: dict[str, int | float | str], metrics: dict[str, float]
) -> None:
    values = read(name, file, **parameters)
    assert {metric: values[metric] for metric in metrics} == pytest.approx(metrics)


@pytest.mark.parametrize(
    ("name", "file", "metrics"),
    [
        ("fio", "fio-3.33.json", {"read rate", "read throughput", "read latency", "read latency p99"}),
        ("pgbench", "pgbench-15.txt", {"transactions", "latency"}),
        ("sysbench-oltp", "sysbench-oltp-1.0.20.txt", {"transactions", "latency", "latency p95"}),
        ("nginx-wrk", "nginx-wrk-4.1.0.txt", {"requests", "latency p50", "latency p99"}),
    ],
)
def test_each_metric_is_found_and_positive(name: str, file: str, metrics: set[str]) -> None:
    values = read(name, file)
    assert set(values) == metrics
    assert min(values.values()) > 0


@pytest.mark.parametrize(
    "name", [name for name, each in workloads.descriptions().items() if each.group == GROUP]
)
@pytest.mark.parametrize("text", ["", "{", "no such report\n", "{}", '{"jobs": []}'], ids=repr)
def test_a_report_that_is_not_understood_is_an_error(name: str, text: str) -> None:
    with pytest.raises(BadOutput, match=name):
        read_text(name, text)


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
@pytest.mark.parametrize(
    ("name", "file"),
    [("fio", "fio-3.33.json"), ("stress-ng", "stress-ng-0.15.06.yaml"), ("schbench", "schbench.txt")],
)
def test_a_report_that_was_cut_short_gives_no_wrong_number(name: str, file: str, cut: float) -> None:
    text = (OUTPUTS / file).read_text()
    whole = read_text(name, text)
    try:
        values = read_text(name, text[: int(len(text) * cut)])
    except BadOutput:
        return
    assert values.items() <= whole.items()


def test_requests_that_failed_are_no_result() -> None:
    text = (OUTPUTS / "nginx-wrk-4.1.0.txt").read_text()
    with pytest.raises(BadOutput, match="not all requests were answered"):
        read_text("nginx-wrk", f"{text}  Non-2xx or 3xx responses: 17\n")


READ_BY_A_FORMAT = {
    name: each.read
    for name in workloads.descriptions()
    if isinstance(each := workloads.find(WorkloadUse(name=name)), InstalledProgram)
    and isinstance(each.read, Reported)
}


def test_what_has_a_format_is_read_by_it() -> None:
    programs = {"fio", "cyclictest", "nginx-wrk", "pgbench", "stress-ng"}
    tests = {"sysbench-cpu", "sysbench-memory", "sysbench-fileio", "sysbench-oltp"}
    assert set(READ_BY_A_FORMAT) == programs | tests


@pytest.mark.parametrize("name", READ_BY_A_FORMAT)
def test_a_metric_is_in_the_unit_of_its_format_and_better_the_same_way(name: str) -> None:
    reading = READ_BY_A_FORMAT[name]
    known = {each.metric: (each.unit, each.direction) for each in find(reading.format).columns}
    promised = {each.name: (each.unit, each.direction) for each in installed(name).description.metrics}
    assert set(promised) == {*reading.required, *reading.optional}
    assert promised.items() <= known.items()


def test_the_numbers_of_another_stressor_are_no_result() -> None:
    with pytest.raises(BadOutput, match=r"it tells of .*, where vm is meant"):
        read("stress-ng", "stress-ng-0.15.06.yaml", stressor="vm")


def test_two_jobs_in_a_report_are_not_taken_for_one() -> None:
    with pytest.raises(BadOutput, match="it tells of "):
        read("fio", "fio-3.33-jobs.json")


def test_a_report_without_what_was_promised_is_an_error() -> None:
    text = (OUTPUTS / "nginx-wrk-4.1.0.txt").read_text()
    without = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("99%"))
    with pytest.raises(BadOutput, match="there is no latency p99 in it; it tells: requests"):
        read_text("nginx-wrk", without)


def test_transactions_that_failed_are_told_with_the_result() -> None:
    text = (OUTPUTS / "pgbench-15.txt").read_text()
    failed = re.sub(r"(?m)^number of failed transactions: .*", "number of failed transactions: 7 (1%)", text)
    results = (StepResult(step=0, do="run", exit=0), StepResult(step=1, do="run", exit=0, stdout=failed))
    (warning,) = installed("pgbench").warnings(WorkloadUse(name="pgbench"), results)
    assert warning.text.startswith("pgbench: 7 transactions failed")


def test_a_program_that_fails_is_an_error_with_its_last_words() -> None:
    workload, use = installed("fio"), WorkloadUse(name="fio")
    version = StepResult(step=0, do="run", exit=0, stdout="fio-3.33\n")
    failed = StepResult(step=1, do="run", exit=1, stderr="fio: file size too small\n")
    with pytest.raises(WorkloadError, match="file size too small"):
        workload.samples(use, Mode.TIMED, (version, failed))


def test_a_program_that_is_not_there_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_words, **_more: None)
    workload = installed("cyclictest")
    with pytest.raises(WorkloadError, match="needs the program cyclictest") as caught:
        workload.steps(WorkloadUse(name="cyclictest"), Mode.TIMED, PLAIN)
    assert caught.value.advice == f"{INSTALL} rt-tests"


def test_a_value_is_one_argument_and_never_a_part_of_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, **_more: f"/usr/bin/{name}")
    hostile = "; rm -rf /"
    workload = installed("pgbench")
    use = WorkloadUse(name="pgbench", parameters={"shared-buffers": hostile})
    _, run = (cast(Run, step) for step in workload.steps(use, Mode.TIMED, PLAIN))
    assert run.argv.count(hostile) == 1
    assert all(hostile not in word for word in run.argv if word != hostile)


def test_the_version_and_the_arguments_are_kept() -> None:
    use = WorkloadUse(name="fio", parameters={"rw": "randwrite"})
    version = StepResult(step=0, do="run", exit=0, stdout="fio-3.33\n")
    programs = installed("fio").programs(use, (version,))
    assert programs["fio"].startswith("fio-3.33: --name=ktrial")
    assert "--rw=randwrite" in programs["fio"]


def test_a_servers_script_tells_the_versions_of_what_it_runs() -> None:
    text = (OUTPUTS / "nginx-wrk-4.1.0.txt").read_text()
    results = (StepResult(step=0, do="run", exit=0), StepResult(step=1, do="run", exit=0, stdout=text))
    programs = installed("nginx-wrk").programs(WorkloadUse(name="nginx-wrk"), results)
    assert programs["nginx"].startswith("nginx/1.22")
    assert "4.1.0" in programs["wrk"]


def test_the_lowest_third_of_the_passes_is_dropped() -> None:
    def result(*counts: float) -> float:
        return Section("execl", 1, [[{"COUNT0": count}] for count in counts]).result

    assert result(10.0, 1000.0, 1000.0) == pytest.approx(1000)
    assert result(10.0, 1000.0) == pytest.approx(100)
    assert result(0.0, 1000.0) == 0


def test_the_index_of_the_baseline_machine_is_ten() -> None:
    assert index(BASELINES) == pytest.approx(10)
    assert index({name: 3 * value for name, value in BASELINES.items()}) == pytest.approx(30)


def test_directions_are_what_they_should_be() -> None:
    slower = {
        metric.name
        for name, each in workloads.descriptions().items()
        if each.group == GROUP
        for metric in each.metrics
        if metric.direction is Direction.LOWER
    }
    assert all(any(word in name for word in ("latency", "time", "operation")) for name in slower)


def test_nginx_brings_into_a_guest_what_its_script_calls() -> None:
    """Each word of the script that is a program of every system is carried."""
    builtins = {"cd", "echo", "exit", "kill", "set", "trap", "test", "file", "id", "time"}
    workload = nginx_wrk.WORKLOAD
    _, script, *_ = workload.arguments(workload.settings(WorkloadUse(name="nginx-wrk")))
    words = set(re.findall(r"(?<![\w/$.-])[a-z]+(?![\w/.:=-])", script)) - builtins
    called = {word for word in words if shutil.which(word, path="/usr/bin:/bin")} - {"nginx", "wrk"}
    assert {"mktemp", "rm", "cat"} <= called <= set(workload.tools)


def test_no_program_is_told_to_write_to_what_guests_do_not_have() -> None:
    """A guest's /dev is devtmpfs alone: without /dev/stdout and /dev/fd, which udev makes."""
    for name, each in workloads.descriptions().items():
        if each.group == GROUP:
            workload = installed(name)
            words = workload.arguments(workload.settings(WorkloadUse(name=name)))
            assert not any("/dev/std" in word or "/dev/fd" in word for word in words), name
