"""Files with several reports: a loop appended to them, or they have a JSON object on each line."""

import json
import re
from pathlib import Path

import pytest
from tests.support.places import PROGRAM_OUTPUTS

from ktrial import program_outputs
from ktrial.program_outputs import OutputEmpty, OutputError, OutputFormat, Report
from ktrial.program_outputs.logs import read_log

FILES = [
    (format, file)
    for file in sorted(PROGRAM_OUTPUTS.iterdir())
    for format in program_outputs.installed()[0].values()
    if file.is_file() and format.recognises(file.read_text())
]
SYSBENCH = (PROGRAM_OUTPUTS / "sysbench-cpu-1.0.20.txt").read_text()
WRK = (PROGRAM_OUTPUTS / "nginx-wrk-4.1.0.txt").read_text()
NETPERF = (PROGRAM_OUTPUTS / "netperf-tcp-stream.txt").read_text()
PERF_STAT = (PROGRAM_OUTPUTS / "perf-stat-6.1.187-runs.txt").read_text()


def report(format: str, *parts: str) -> Report:
    return read_log("\n".join(parts), program_outputs.find(format))


def values(read: Report) -> dict[str, tuple[float, ...]]:
    return {name: metric.values for name, metric in read.named().items()}


def slower_netperf(by: float = 0.9) -> str:
    row = NETPERF.rstrip().split("\n")[-1]
    return NETPERF.replace(row, f"{row.rsplit(' ', 1)[0]} {float(row.split()[-1]) * by:.2f}")


def test_reports_of_one_command_are_repetitions() -> None:
    read = report("netperf", NETPERF, slower_netperf(), slower_netperf(0.95))
    ((name, numbers),) = values(read).items()
    assert (name, len(numbers)) == ("throughput", 3)
    assert numbers[1] == pytest.approx(0.9 * numbers[0], rel=1e-3)
    assert [note.text for note in read.notes] == [
        "3 reports are in it: taken for repetitions, for nothing tells them apart"
    ]


def test_commands_before_them_name_what_was_measured() -> None:
    read = report(
        "netperf", "ann@host:~$ netperf -H a", NETPERF, "ann@host:~$ netperf -H b", slower_netperf()
    )
    assert list(values(read)) == ["netperf -H a: throughput", "netperf -H b: throughput"]
    assert "2 reports are in it, of 2 things" in read.notes[0].text


def test_a_heading_of_markdown_above_the_command_names_it_too() -> None:
    read = report(
        "netperf",
        *("## old kernel", "root@host:~# netperf -H a", NETPERF),
        *("## new kernel", "root@host:~# netperf -H a", slower_netperf()),
    )
    names = ["old kernel, netperf -H a: throughput", "new kernel, netperf -H a: throughput"]
    assert list(values(read)) == names


def test_counted_runs_are_repetitions() -> None:
    titled = [f"== run {at} ==\n{slower_netperf(1 - at / 100)}" for at in range(1, 5)]
    assert {name: len(numbers) for name, numbers in values(report("netperf", *titled)).items()} == {
        "throughput": 4
    }


def test_a_condition_that_differs_names_them() -> None:
    threads = [SYSBENCH.replace("Number of threads: 1", f"Number of threads: {count}") for count in (1, 4)]
    read = report("sysbench", *threads)
    assert {name.split(":")[0] for name in values(read)} == {"threads 1", "threads 4"}
    assert "threads" not in read.conditions


def test_a_run_that_failed_is_told_with_its_line() -> None:
    begins = WRK[: WRK.index("wrk ")].count("\n")
    lines = WRK.count("\n") + 1 + begins
    failed = re.sub(
        r"^Requests/sec:", "  Non-2xx or 3xx responses: 7\nRequests/sec:", WRK, flags=re.MULTILINE
    )
    read = report("wrk", WRK, failed)
    assert values(read) == values(report("wrk", WRK))
    assert read.failures[0].text.startswith(f"line {lines + 1}: this report is left out: not all requests")


def test_nothing_is_read_where_every_run_failed() -> None:
    failed = WRK.replace("Requests/sec:", "  Non-2xx or 3xx responses: 7\nRequests/sec:")
    with pytest.raises(OutputEmpty, match="not all requests were answered"):
        report("wrk", failed, failed.replace(": 7", ": 8"))


def test_means_of_several_runs_are_not_put_together() -> None:
    again = PERF_STAT.replace("task-clock", "cpu-clock", 1)
    names = list(values(report("perf-stat", PERF_STAT, again)))
    assert {name.split(":")[0] for name in names} == {"report 1", "report 2"}
    assert {"report 1: task-clock", "report 2: cpu-clock"} <= set(names)


def test_json_may_have_an_object_a_line() -> None:
    objects = [json.loads((PROGRAM_OUTPUTS / "vegeta-12.json").read_text()) for _ in range(3)]
    for at, document in enumerate(objects):
        document["latencies"]["mean"] *= 1 + at / 1000
    read = report("vegeta", *(json.dumps(document) for document in objects))
    assert {len(numbers) for numbers in values(read).values()} == {3}


@pytest.mark.parametrize(("format", "file"), FILES, ids=lambda each: getattr(each, "name", ""))
def test_a_report_that_is_there_twice_is_noticed(format: OutputFormat, file: Path) -> None:
    """Refused, told, or read as more repetitions: never are there other numbers without a word."""
    text = file.read_text()
    try:
        once, twice = format.read(text), read_log(f"{text}\n{text}", format)
    except OutputError:
        return
    numbers, doubled = values(once), values(twice)
    told = [note.text for note in (*twice.notes, *twice.failures)]
    assert (
        doubled == numbers
        or told != [note.text for note in (*once.notes, *once.failures)]
        or all(numbers.get(name, ())[:1] == several[:1] for name, several in doubled.items())
    )
