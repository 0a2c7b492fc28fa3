"""Every key of real JSON is removed, renamed, emptied: that is noticed, or numbers, units and directions stay
right.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS

from ktrial import program_outputs
from ktrial.program_outputs import OutputError, OutputFormat, Report

WHOLE = {"pyperf", "google-benchmark", "hyperfine"}
"""Every key is there as a rule; elsewhere a missing one may be of a run without that metric."""
MOST_KEYS = 60
"""Of a file; of longer ones every second or third is changed."""
CHANGES: dict[str, Callable[[dict[str, Any], str], None]] = {
    "removed": lambda holder, key: holder.pop(key),
    "renamed": lambda holder, key: holder.update({key[::-1]: holder.pop(key)}),
    "emptied": lambda holder, key: holder.update({key: None}),
}


def is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


FILES = [
    (format, file)
    for file in sorted([*PROGRAM_OUTPUTS.glob("*.json"), *FOREIGN.glob("*.json")])
    for format in program_outputs.installed()[0].values()
    if is_json(file.read_text()) and format.recognises(file.read_text())
]


def holders(document: Any, key: str = "") -> Iterator[tuple[list[str | int], str]]:
    """Where each key stands: the way to its object, and the key. Of a list the first two and the last."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield [], key
            yield from (([key, *way], below) for way, below in holders(value))
    elif isinstance(document, list):
        for at in sorted({0, 1, len(document) - 1} & set(range(len(document)))):
            yield from (([at, *way], below) for way, below in holders(document[at]))


def changed(text: str, way: list[str | int], key: str, change: str) -> str:
    document = json.loads(text)
    holder = document
    for step in way:
        holder = holder[step]
    CHANGES[change](holder, key)
    return json.dumps(document, indent=1)


def read(format: OutputFormat, text: str) -> Report | None:
    """What is in it; None where it is refused."""
    if not format.recognises(text):
        return None
    try:
        return format.read(text)
    except OutputError:
        return None


def is_noticed(before: Report, after: Report | None, whole: bool) -> bool:
    """Whether it is refused or told, or the numbers that are left are right; `whole`: none is lost."""
    if after is None or (after.notes, after.failures) != (before.notes, before.failures):
        return True
    numbers, left = (
        [(each.unit, each.direction, each.values) for each in it.measured] for it in (before, after)
    )
    is_part = all(
        any(each[:2] == row[:2] and each[2] == pytest.approx(row[2], rel=1e-3) for row in numbers)
        for each in left
    )
    return is_part and (not whole or len(left) == len(numbers))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("format", "file"), FILES, ids=lambda each: getattr(each, "name", ""))
def test_a_changed_key_is_noticed(format: OutputFormat, file: Path, change: str) -> None:
    text = file.read_text()
    before = read(format, json.dumps(json.loads(text), indent=1))
    if before is None:
        return
    places = list(holders(json.loads(text)))
    unnoticed = [
        (*way, key)
        for way, key in places[:: 1 + len(places) // MOST_KEYS]
        if not is_noticed(before, read(format, changed(text, way, key, change)), format.name in WHOLE)
    ]
    assert unnoticed == []


INNER = {
    "benchmarkdotnet": ("Benchmarks", 0, "Statistics"),
    "criterion": ("mean",),
    "cyclictest-json": ("thread", "0"),
    "fio-json": ("jobs", 0),
    "google-benchmark": ("benchmarks", 0),
    "hyperfine": ("results", 0),
    "iperf3-json": ("end",),
    "jmh-json": (0, "primaryMetric"),
    "oha-json": ("summary",),
    "pyperf": ("benchmarks", 0, "runs", 0),
    "pytest-benchmark": ("benchmarks", 0, "stats"),
    "rt-tests-json": ("thread", "0"),
    "sysstat": ("sysstat", "hosts", 0, "statistics", 0),
    "vegeta": ("latencies",),
}
"""Where numbers stand, below the outermost object."""
NAMES_OF_THE_USER = {"lkp"}
"""Formats whose outermost keys are measurements, whatever they are called."""


@pytest.mark.parametrize(("format", "file"), FILES, ids=lambda each: getattr(each, "name", ""))
def test_a_key_that_no_program_writes_is_told(format: OutputFormat, file: Path) -> None:
    if read(format, file.read_text()) is None:
        return
    for way in ((), INNER.get(format.name, ())):
        document = json.loads(file.read_text())
        holder: Any = document[0] if isinstance(document, list) and not way else document
        for step in way:
            present = isinstance(holder, list) or step in holder
            holder = holder[step] if present else holder
        if format.name in NAMES_OF_THE_USER or not isinstance(holder, dict):
            continue
        holder["unheard_of"] = 17
        report = read(format, json.dumps(document, indent=1))
        assert report is not None
        assert any("unheard_of" in note.text for note in report.notes)


def test_each_format_of_json_is_asked_for_its_keys() -> None:
    assert {format.name for format, _ in FILES} <= {*INNER, *NAMES_OF_THE_USER, "asv", "perf-stat"}


ANYTHING = {
    "asv": {"durations", "env_vars", "params", "requirements"},
    "benchmarkdotnet": {
        *("Benchmarks/Measurements", "Benchmarks/Memory", "Benchmarks/Properties"),
        *("Benchmarks/Statistics/ConfidenceInterval", "Benchmarks/Statistics/Percentiles"),
        *("HostEnvironmentInfo", "HostEnvironmentInfo/ChronometerFrequency"),
        "HostEnvironmentInfo/ProcessorName",
    },
    "criterion": {
        f"{name}/confidence_interval" for name in ("mean", "median", "median_abs_dev", "slope", "std_dev")
    },
    "fio-json": {"jobs/job options", "jobs/read/clat_ns/percentile"},
    "google-benchmark": {"context", "context/caches"},
    "jmh-json": {"params", "primaryMetric/scorePercentiles"},
    "oha-json": {"details", "details/DNSLookup", "latencyPercentiles"},
    "pyperf": {"benchmarks/metadata", "benchmarks/runs/metadata", "metadata"},
    "pytest-benchmark": {
        *("benchmarks/extra_info", "benchmarks/options"),
        *("commit_info", "machine_info", "machine_info/cpu"),
    },
    "rt-tests-json": {"sysinfo", "thread/0/histogram", "thread/1/histogram"},
    "sysstat": {
        "sysstat/hosts/statistics/timestamp",
        *(
            f"sysstat/hosts/statistics/{table}"
            for table in ("cpu-load", "process-and-context-switch", "queue", "swap-pages")
        ),
    },
    "vegeta": {"status_codes"},
}
"""Format → objects with keys that somebody chose: conditions, percentiles, tables of a size of their own."""


def objects(document: Any, way: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Each object, of a list the first one, and the keys on the way to it."""
    if isinstance(document, dict):
        yield way, document
        for key, value in document.items():
            yield from objects(value, (*way, key))
    elif isinstance(document, list) and document:
        yield from objects(document[0], way)


@pytest.mark.parametrize(("format", "file"), FILES, ids=lambda each: getattr(each, "name", ""))
def test_a_number_that_no_version_wrote_is_told(format: OutputFormat, file: Path) -> None:
    text = file.read_text()
    before = read(format, text)
    silent = set()
    for way in dict.fromkeys(way for way, _ in objects(json.loads(text))):
        document = json.loads(text)
        next(holder for place, holder in objects(document) if place == way)["made up"] = 5.25
        after = read(format, json.dumps(document, indent=1))
        if before is not None and after is not None and after.notes == before.notes:
            silent.add("/".join(way))
    assert silent <= ANYTHING.get(format.name, set())


def test_what_hyperfine_measures_of_a_run_besides_is_named() -> None:
    report = program_outputs.find("hyperfine").read((PROGRAM_OUTPUTS / "hyperfine-1.15.json").read_text())
    assert report.unread == ("user", "system")
