"""What perf and bpftrace print becomes counters; what this system lacks for them is named."""

import gzip
import os
import shutil
from pathlib import Path

import pytest
from tests.support.places import PROGRAM_OUTPUTS as OUTPUTS

from ktrial import monitors
from ktrial.monitors.tracers import bpftrace, perf_stat
from ktrial.monitors.tracers.bpftrace import SCRIPTS, BpftraceMonitor, missing
from ktrial.package_names import INSTALL
from ktrial.program_outputs.formats.perf_stat import NOT_SUPPORTED, csv_counts
from ktrial.target.errors import MonitorUnusable

ATTACHED = '{"type": "attached_probes", "data": {"probes": 5}}\n'
WATCHING = f'{ATTACHED}{{"type": "printf", "data": "watching\\n"}}\n'
SHIPPED = [each for each in monitors.installed_tracers().values() if isinstance(each, BpftraceMonitor)]


def said(name: str) -> str:
    """What a program printed, as it is read: without the NUL that ends perf's answer."""
    return (OUTPUTS / name).read_text().replace("\0", "")


def test_perf_without_counters_of_the_cpu_tells_what_it_cannot_count() -> None:
    counts = {count.event: count for count in csv_counts(said("perf-stat-6.1.187-without-pmu.csv"))}
    assert list(counts) == list(perf_stat.EVENTS)
    unsupported = [event for event, count in counts.items() if count.value == NOT_SUPPORTED]
    assert unsupported == list(perf_stat.EVENTS[:15])
    assert (counts["task-clock"].unit, counts["task-clock"].takes_turns) == ("msec", False)
    assert counts["page-faults"].value == "49"


def test_perf_that_was_attached_gives_counters() -> None:
    counters = perf_stat.MONITOR.counted(said("perf-stat-6.1.187-attached.csv"))
    assert set(counters) == {
        f"perf-stat.{name}" for name in ("task-clock_ms", "page-faults", "context-switches")
    }
    assert all(value > 0 for value in counters.values())


def test_what_perf_scales_or_may_count_in_user_space_only_is_read_too() -> None:
    lines = (
        "1234,,cycles:u,500000,62.50,,",
        "<not counted>,,LLC-loads,0,0.00,,",
        "7,,page-faults,1,100.00,,",
    )
    printed = "\n".join(lines)
    assert [count.takes_turns for count in csv_counts(printed)] == [True, True, False]
    assert perf_stat.MONITOR.counted(printed) == {"perf-stat.cycles": 1234, "perf-stat.page-faults": 7}


HOSTILE = (
    *("", "\n\n", "ack\n", ",,,,,,", "x,,cycles,1,100", "nan,,cycles,0,100.00", "1e999,,a,0,1"),
    *("{", "[]", "٣,,a,0,1", "1,,", "\0"),
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_perf_that_prints_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="perf printed no count"):
        perf_stat.MONITOR.counted(text)


def monitor(name: str) -> monitors.Tracer:
    return monitors.installed_tracers()[name]


def test_bpftrace_s_maps_become_counters_and_hits() -> None:
    assert monitor("page-cache").counted(said("bpftrace-0.17-page-cache.json")) == {
        "page-cache.added": 256,
        "page-cache.asked": 512,
        "page-cache.reads": 128,
        "page-cache.hits": 256,
    }


def test_bpftrace_s_histograms_become_one_counter_a_bar_and_notes_of_the_script_none() -> None:
    counters = monitor("read-ahead").counted(said("bpftrace-0.17-read-ahead-tracepoints.json"))
    assert counters == {
        "read-ahead.async": 3,
        "read-ahead.sync": 1,
        "read-ahead.pages": 1856,
        "read-ahead.window[64..127]": 1,
        "read-ahead.window[256..511]": 1,
        "read-ahead.window[512..1023]": 1,
        "read-ahead.window[1024..2047]": 1,
    }


def test_time_off_the_cpu_is_told_by_its_reason() -> None:
    counters = monitor("off-cpu").counted(said("bpftrace-0.17-off-cpu.json"))
    assert {f"off-cpu.{why}_ns" for why in ("blocked", "slept", "waited")} <= set(counters)
    bars = [value for name, value in counters.items() if name.startswith("off-cpu.blocked_us[")]
    assert sum(bars) == 5


def test_the_first_and_the_last_bar_have_one_end_only() -> None:
    bars = '[{"max":-1,"count":2},{"min":0,"max":0,"count":1},{"min":1024,"count":3}]'
    text = f'{{"type":"hist","data":{{"@w":{bars}}}}}'
    buckets = bpftrace.parsed(text).histograms["w"]
    assert [(bar.name, bar.values) for bar in buckets] == [("[..-1]", 2), ("[0..0]", 1), ("[1024..]", 3)]


@pytest.mark.parametrize(
    "line",
    [
        *("", "{", "[]", "null", "1", '"x"', "[" * 100_000, '{"type": "map"}', '{"type": "map", "data": 3}'),
        *('{"type": "map", "data": {"@x": "many"}}', '{"type": "map", "data": {"@x": true}}'),
        *('{"type": "map", "data": {"@x": null}}', '{"type": "hist", "data": {"@x": [1, {"count": "2"}]}}'),
        *('{"type": "printf", "data": "@x: 3"}', '{"type": "map", "data": {"@x": {"17": 3}}}'),
    ],
)
def test_lines_that_are_something_else_are_passed_over(line: str) -> None:
    assert monitor("off-cpu").counted(f"{WATCHING}{line}\n") == {}


def test_a_bpftrace_that_attached_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="attached nothing"):
        monitor("off-cpu").counted(f'{ATTACHED}{{"type": "map", "data": {{"@x": 1}}}}')


def test_every_script_is_a_monitor_s_and_says_how_it_is_run_and_where_it_looks() -> None:
    scripts = [script for each in SHIPPED for script in each.scripts]
    assert sorted(scripts) == sorted(SCRIPTS.glob("*.bt"))
    for script in scripts:
        head = script.read_text().partition("\n\n")[0]
        assert f"bpftrace -f json {script.name} PID" in head
        assert all(line.startswith("//") for line in head.splitlines())


def test_a_system_without_perf_or_bpftrace_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, path=None: None)
    for name, package in (("perf-stat", "linux-perf"), ("off-cpu", "bpftrace")):
        with pytest.raises(MonitorUnusable, match="is not installed") as caught:
            monitor(name).prepare()
        assert f"{INSTALL} {package}" in caught.value.advice


# What bpftrace lacks on a system, from its files.

CONFIG = "".join(f"CONFIG_{option}=y\n" for option in bpftrace.OPTIONS)


def a_system(root: Path, config: str = CONFIG, *, btf: bool = True, tracefs: bool = True) -> Path:
    (root / "proc/self/ns").mkdir(parents=True)
    (root / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    (root / "proc/config.gz").write_bytes(gzip.compress(config.encode()))
    if btf:
        (root / "sys/kernel/btf").mkdir(parents=True)
        (root / "sys/kernel/btf/vmlinux").write_bytes(b"\x9f\xeb")
    if tracefs:
        (root / "sys/kernel/tracing/events").mkdir(parents=True)
        (root / "sys/kernel/tracing/available_filter_functions").write_text("schedule\n")
    return root


def test_a_system_that_has_everything_lacks_nothing(tmp_path: Path) -> None:
    assert missing(a_system(tmp_path), user=0) == ()


def test_each_thing_that_bpftrace_lacks_is_named_with_what_brings_it(tmp_path: Path) -> None:
    without = CONFIG.replace("CONFIG_BPF_EVENTS=y\n", "# CONFIG_BPF_EVENTS is not set\n")
    root = a_system(tmp_path, without, btf=False, tracefs=False)
    (root / "proc/self/ns/pid").unlink()
    (root / "proc/self/ns/pid").symlink_to("pid:[4026532200]")
    problems = "; ".join(each.problem for each in missing(root, user=0))
    for word in ("tracefs is not mounted", "has no BTF", "without CONFIG_BPF_EVENTS", "a container"):
        assert word in problems
    assert all(each.remedy for each in missing(root, user=0))


def test_only_root_traces(tmp_path: Path) -> None:
    (lack,) = missing(a_system(tmp_path), user=1000)
    assert "root only" in lack.problem


def test_a_kernel_whose_functions_may_not_be_traced_is_named(tmp_path: Path) -> None:
    functions = a_system(tmp_path) / "sys/kernel/tracing/available_filter_functions"
    functions.unlink()
    functions.mkdir()  # reading it fails, for root too
    (lack,) = missing(tmp_path, user=0)
    assert "may not be traced" in lack.problem
    assert "available_filter_functions" in lack.problem


def fake_bpftrace(directory: Path, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    fake = directory / "bpftrace"
    fake.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo bpftrace v0 && exit\n{does}")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def test_a_kernel_that_takes_no_script_says_what_it_lacks_and_what_bpftrace_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bpftrace(tmp_path, monkeypatch, "echo tracepoint not found >&2\nexit 1\n")
    no_btf = bpftrace.Lack("no BTF", "another kernel")
    for lacks, said_so in (((), "tracepoint not found"), ((no_btf,), "no BTF")):
        monkeypatch.setattr(bpftrace, "missing", lambda lacks=lacks: lacks)
        with pytest.raises(MonitorUnusable, match=said_so):
            monitor("off-cpu").prepare()


def test_the_first_script_that_the_kernel_takes_is_the_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bpftrace(
        tmp_path,
        monkeypatch,
        f"case $3 in */page-cache.bt) exit 1;; esac\ncat <<'END'\n{WATCHING}END\n"
        "trap 'exit 0' INT; while :; do sleep 0.05; done\n",
    )
    assert monitor("page-cache").prepare().program == "bpftrace v0: page-cache-tracepoints.bt"
