"""Files that are read at several moments become series: the kernel's names, units, levels and counters."""

from pathlib import Path

import pytest
from tests.support.making import a_study, a_trial, planned

from ktrial import monitors
from ktrial.experiment.monitoring import rises, sampled_of
from ktrial.machines.host import HostMachine
from ktrial.model import notation
from ktrial.model.machine import Boot
from ktrial.model.trial import SampleSeries, Series, SeriesKind
from ktrial.store.store import open_store
from ktrial.target import Run, SampledFiles, Sampling, StepResult

MEMINFO = "MemTotal:  2000 kB\nDirty:  {dirty} kB\nHugePages_Total:  {huge}\nBroken line\n"
PRESSURE = (
    "some avg10=0.00 avg60=0.14 avg300=0.29 total={some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
)
SOFTIRQS = "                    CPU0       CPU1\n      NET_RX:  {first}  4\n       SCHED:  5 5\n"
DISKSTATS = (
    "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
    " 254       0 vda {reads} 0 80 9 1 0 8 2 {flight} 11 12 0 0 0 0 1 1\n"
    " 254       1 vda1 1 2 3 4\n"
    " 250       0 nullb0 3 0 24 0 {writes} 0 8 2 0 11 12\n"
)
SLABINFO = (
    "slabinfo - version: 2.1\n"
    "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit>\n"
    "dentry  {dentry} 250 192 21 1 : tunables 0 0 0 : slabdata 12 12 0\n"
)


def texts(n: int) -> dict[str, str]:
    return {
        "/proc/meminfo": MEMINFO.format(dirty=100 - n, huge=n),
        "/proc/pressure/io": PRESSURE.format(some=1000 + n),
        "/proc/softirqs": SOFTIRQS.format(first=10 * n),
        "/proc/diskstats": DISKSTATS.format(reads=5 + n, flight=n % 2, writes=n),
        "/proc/slabinfo": SLABINFO.format(dentry=200 + n),
        "/proc/vmstat": f"nr_free_pages {n}\npgfault {100 + 3 * n}\n",
        "/proc/stat": f"cpu  1 0 {4 + n} 9\nctxt {50 + n}\n",
    }


def by_name(series: tuple[Series, ...]) -> dict[str, tuple[str, str, tuple[float, ...]]]:
    return {item.name: (item.unit, item.kind.value, item.values) for item in series}


def test_counters_begin_at_zero_and_levels_stay_what_they_are() -> None:
    assert by_name(monitors.series([texts(0), texts(1), texts(3)])) == {
        "diskstats.nullb0.writes": ("requests", "counter", (0, 1, 3)),
        "diskstats.vda.in_flight": ("requests", "gauge", (0, 1, 1)),
        "diskstats.vda.reads": ("requests", "counter", (0, 1, 3)),
        "meminfo.Dirty": ("KiB", "gauge", (100, 99, 97)),
        "meminfo.HugePages_Total": ("pages", "gauge", (0, 1, 3)),
        "pressure.io.some": ("µs", "counter", (0, 1, 3)),
        "slabinfo.dentry": ("objects", "gauge", (200, 201, 203)),
        "softirqs.NET_RX": ("", "counter", (0, 10, 30)),
        "stat.cpu.system": ("", "counter", (0, 1, 3)),
        "stat.ctxt": ("", "counter", (0, 1, 3)),
        "vmstat.pgfault": ("", "counter", (0, 3, 9)),
    }


def test_a_kernel_without_the_files_has_no_series() -> None:
    assert monitors.series([{}, {}]) == ()
    assert monitors.series([]) == ()


@pytest.mark.parametrize(
    "text", ["", "\n\n", "nonsense", "a b c\n: : :\n", "some total=\nfull total=x=y\n", "x=1"]
)
def test_files_that_say_something_else_are_passed_over(text: str) -> None:
    everything = dict.fromkeys((*monitors.sampled_files(), *monitors.costly_files()), text)
    assert monitors.series([everything, everything]) == ()


def test_what_is_new_was_nothing_before_and_what_is_gone_stays() -> None:
    series = monitors.series([{}, texts(2), {}])
    assert by_name(series)["slabinfo.dentry"][2] == (0, 202, 202)


def test_this_system_is_understood() -> None:
    texts = {path: Path(path).read_text() for path in ("/proc/meminfo", "/proc/softirqs", "/proc/diskstats")}
    names = {item.name for item in monitors.series([{}, texts])}
    assert {"meminfo.MemFree", "softirqs.TIMER"} <= names


def files(*at_ns: int, first: int = 0, cost_ns: int = 0) -> SampledFiles:
    moments = [texts(first + place) for place in range(len(at_ns))]
    return SampledFiles(
        every_ns=100_000_000,
        cost_ns=cost_ns,
        readings=max(0, len(at_ns) - 2),
        at_ns=at_ns,
        texts={path: tuple(moment[path] for moment in moments) for path in moments[0]},
    )


def test_rows_of_a_workload_follow_each_other_and_the_cost_is_known() -> None:
    rows = (
        StepResult(step=0, do="run", wall_ns=10**9),
        StepResult(step=1, do="run", wall_ns=10**9, sampled=files(0, 10**9, cost_ns=10**6)),
        StepResult(
            step=2, do="run", wall_ns=2 * 10**9, sampled=files(0, 5, 2 * 10**9, first=1, cost_ns=10**6)
        ),
    )
    series = sampled_of("fork", rows)
    assert series is not None
    assert series.times == pytest.approx((0, 1, 1, 1 + 5e-9, 3))
    assert (series.interval, series.readings, series.wall_seconds) == (0.1, 1, 4.0)
    assert series.cost == pytest.approx(2e-3 / 4)
    assert rises(series)["softirqs.NET_RX"] == 30
    assert "meminfo.Dirty" not in rises(series)


def test_what_is_costly_to_read_has_its_level_before_and_after_only() -> None:
    assert "/proc/slabinfo" not in monitors.sampled_files()
    assert monitors.costly_files() == ("/proc/slabinfo",)
    cheap = StepResult(
        step=0,
        do="run",
        wall_ns=9,
        sampled=SampledFiles(
            every_ns=5,
            cost_ns=1,
            readings=1,
            at_ns=(0, 5, 9),
            texts={
                "/proc/stat": ("ctxt 1", "ctxt 2", "ctxt 3"),
                "/proc/slabinfo": (texts(0)["/proc/slabinfo"], "", texts(7)["/proc/slabinfo"]),
            },
        ),
    )
    series = sampled_of("fork", (cheap,))
    assert series is not None
    assert by_name(series.series) == {
        "slabinfo.dentry": ("objects", "gauge", (200, 200, 207)),
        "stat.ctxt": ("", "counter", (0, 1, 2)),
    }


def test_nothing_was_read_where_nobody_asked() -> None:
    assert sampled_of("fork", (StepResult(step=0, do="run", wall_ns=5),)) is None


def sampled_here(script: str, every: float, times: int = 1) -> SampleSeries:
    machine = HostMachine()
    sampling = Sampling(files=monitors.sampled_files(), every_ns=round(every * 1e9))
    run = Run(argv=("/bin/sh", "-c", script), sample=sampling)
    with machine.start(Boot(kernel=machine.kernel(), limit_seconds=60)) as target:
        results = target.perform((run,) * times)
    assert all(result.sampled is None for result in results[:-1])
    series = sampled_of("script", results)
    assert series is not None
    return series


def test_programs_shorter_than_the_interval_are_never_disturbed() -> None:
    series = sampled_here("sleep 0.05", every=300, times=3)
    assert (len(series.times), series.readings, series.cost_seconds) == (2, 0, 0.0)
    assert rises(series)["stat.ctxt"] > 0


def test_a_long_program_is_read_again_and_again_at_a_small_cost() -> None:
    series = sampled_here("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done", every=0.05)
    assert series.readings >= 3
    assert len(series.times) == series.readings + 2
    assert list(series.times) == sorted(series.times)
    assert 0 < series.cost < 0.25
    (switches,) = (item for item in series.series if item.name == "stat.ctxt")
    assert list(switches.values) == sorted(switches.values)


SAMPLED = SampleSeries(
    workload="fork",
    interval=0.1,
    readings=1,
    cost_seconds=0.001,
    wall_seconds=0.5,
    times=(0.0, 0.1, 0.5),
    series=(Series(name="stat.ctxt", unit="", kind=SeriesKind.COUNTER, values=(0.0, 5.0, 9.0)),),
)


def test_series_are_stored_with_their_trial_and_loaded_apart(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        study = store.study(a_study())
        store.add_trial(study, a_trial(sampled=(SAMPLED,)))
        assert store.trials(study) == (a_trial(),)
        assert store.sampled(study, planned().key) == (SAMPLED,)
        assert store.sampled(study, "another") == ()


@pytest.mark.parametrize(
    ("text", "seconds"), [("100 ms", 0.1), ("1 s", 1.0), ("0.5s", 0.5), ("2 min", 120.0)]
)
def test_an_interval_has_a_unit(text: str, seconds: float) -> None:
    assert notation.interval(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "100", "1 ms", "2 h", "90 min", "-1 s", "0 s", "nan s"])
def test_an_interval_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"interval|a time"):
        notation.interval(text)
