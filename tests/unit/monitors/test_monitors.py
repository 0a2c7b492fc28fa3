"""Counters get the kernel's own names; gauges and unknown lines are left out."""

from importlib.metadata import EntryPoint

import pytest

from ktrial import monitors
from ktrial.model.warnings import WarningKind

WATCHED: dict[str, dict[str, tuple[float, ...]]] = {
    "/proc/vmstat": {
        "pgfault": (61234.0,),
        "pgalloc_normal": (40.0,),
        "nr_free_pages": (-812.0,),
        "nr_dirtied": (7.0,),
        "workingset_refault_file": (3.0,),
    },
    "/proc/stat": {
        "cpu": (3.0, 0.0, 41.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        "cpu0": (3.0, 0.0, 41.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        "intr": (210.0, 0.0, 9.0),
        "ctxt": (2004.0,),
        "processes": (1001.0,),
        "procs_running": (-1.0,),
        "softirq": (35.0, 0.0, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0, 5.0),
    },
    "/proc/schedstat": {
        "timestamp": (400.0,),
        "cpu0": (1.0, 0.0, 2000.0, 10.0, 1005.0, 1005.0, 9e8, 1e6, 1990.0),
        "cpu1": (0.0, 0.0, 100.0, 10.0, 5.0, 5.0, 1e8, 1e5, 90.0),
        "domain0": (5.0,),
    },
}
RUSAGE = {"utime_ns": 4e6, "stime_ns": 8e7, "minflt": 52.0, "nvcsw": 1000.0, "maxrss_kib": 812.0}


SAMPLED = ["diskstats", "meminfo", "pressure", "slabinfo", "softirqs"]
BESIDE = ["off-cpu", "page-cache", "perf-stat", "read-ahead"]
"""What is only sampled on the host."""


def test_every_monitor_is_found_by_its_name() -> None:
    known, warnings = monitors.installed()
    files = [*SAMPLED[:3], "rusage", "schedstat", *SAMPLED[3:], "stat", "vmstat"]
    assert list(known) == sorted((*files, *BESIDE))
    assert list(monitors.installed_tracers()) == BESIDE
    assert all(monitor.summary for monitor in known.values())
    assert warnings == ()


def test_the_files_of_all_monitors_are_watched() -> None:
    assert monitors.watched_files() == ("/proc/schedstat", "/proc/stat", "/proc/vmstat")


def test_counters_are_named_as_the_kernel_documents_them() -> None:
    assert monitors.counters(WATCHED, RUSAGE) == {
        "rusage.minflt": 52.0,
        "rusage.nvcsw": 1000.0,
        "rusage.stime_ns": 8e7,
        "rusage.utime_ns": 4e6,
        "schedstat.pcount": 2080.0,
        "schedstat.rq_cpu_time": 1e9,
        "schedstat.run_delay": 1.1e6,
        "schedstat.sched_count": 2100.0,
        "schedstat.sched_goidle": 20.0,
        "schedstat.ttwu_count": 1010.0,
        "schedstat.ttwu_local": 1010.0,
        "schedstat.yld_count": 1.0,
        "stat.cpu.idle": 2.0,
        "stat.cpu.softirq": 1.0,
        "stat.cpu.system": 41.0,
        "stat.cpu.user": 3.0,
        "stat.ctxt": 2004.0,
        "stat.intr": 210.0,
        "stat.processes": 1001.0,
        "stat.softirq": 35.0,
        "stat.softirq.rcu": 5.0,
        "stat.softirq.sched": 10.0,
        "stat.softirq.timer": 20.0,
        "vmstat.nr_dirtied": 7.0,
        "vmstat.pgalloc_normal": 40.0,
        "vmstat.pgfault": 61234.0,
        "vmstat.workingset_refault_file": 3.0,
    }


def test_a_file_that_is_not_there_gives_no_counters() -> None:
    assert monitors.counters({}, {}) == {}


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """What is installed in the group ktrial.monitors."""
    installed: list[EntryPoint] = []
    monkeypatch.setattr("ktrial.plugin_discovery.entry_points", lambda group: installed)
    monitors.installed.cache_clear()
    return installed


def test_a_plugin_adds_a_monitor(plugins: list[EntryPoint]) -> None:
    plugins.append(EntryPoint("extra", "tests.unit.monitors.test_monitors:extra", "ktrial.monitors"))
    try:
        assert "extra.answer" in monitors.counters(WATCHED, RUSAGE)
    finally:
        monitors.installed.cache_clear()


@pytest.mark.parametrize("value", ["no.such.module:monitor", "tests.unit.monitors.test_monitors:WATCHED"])
def test_a_broken_plugin_warns_and_stops_nothing(plugins: list[EntryPoint], value: str) -> None:
    plugins.append(EntryPoint("broken", value, "ktrial.monitors"))
    try:
        known, (warning,) = monitors.installed()
        assert len(known) == 4 + len(SAMPLED) + len(BESIDE)
        assert warning.kind is WarningKind.PLUGIN_BROKEN
        assert "the monitor broken (" in warning.text
    finally:
        monitors.installed.cache_clear()


class _Extra:
    name = "extra"
    summary = "a plugin's counter"
    files = ("/proc/extra",)

    def counters(self, watched: monitors.Watched, rusage: object) -> dict[str, float]:
        return {"extra.answer": float(len(watched))}


extra = _Extra()
