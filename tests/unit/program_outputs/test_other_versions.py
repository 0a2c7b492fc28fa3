"""Parts of what other versions of programs print, and every number that is read of it."""

import json
import re

import pytest
from tests.support.program_texts import changed, read, text_of

from ktrial import program_outputs
from ktrial.program_outputs import OutputDamaged


@pytest.mark.parametrize(
    ("printed", "microseconds"),
    [("850.00us", 850), ("1.20ms", 1200), ("1.35s", 1.35e6), ("1.50m", 9e7)],
)
def test_wrk_s_times_become_microseconds(printed: str, microseconds: float) -> None:
    report = program_outputs.find("wrk").read(changed("nginx-wrk-4.1.0.txt", ("   2.39ms", f"   {printed}")))
    assert report.named()["latency p50"].values == (microseconds,)


@pytest.mark.parametrize(("printed", "kib"), [("512.00B", 0.5), ("3.00KB", 3), ("2.00GB", 2 * 1024**2)])
def test_wrk_s_sizes_are_powers_of_1024(printed: str, kib: float) -> None:
    report = program_outputs.find("wrk").read(changed("nginx-wrk-4.1.0.txt", ("89.86MB", printed)))
    assert report.named()["throughput"].values == (kib,)


def test_wrk2_s_percentiles_are_read_too() -> None:
    text = changed("nginx-wrk-4.1.0.txt", ("     50%    2.39ms", " 50.000%    2.39ms"))
    assert program_outputs.find("wrk").read(text).named()["latency p50"].values == (2390,)


def test_sysbench_1_1_tells_rates_of_files_in_another_way() -> None:
    text = changed(
        "sysbench-fileio-1.0.20.txt",
        (
            "    reads/s:                      56392.63",
            "         read:  IOPS=1857.00 29.02 MiB/s (30.43 MB/s)",
        ),
        (
            "    writes/s:                     37595.08",
            "         write: IOPS=1238.00 19.34 MiB/s (20.28 MB/s)",
        ),
        ("    fsyncs/s:                     3761.50", "         fsync: IOPS=3968.59"),
        ("    read, MiB/s:                  881.13\n    written, MiB/s:               587.42\n", ""),
    )
    rates = {
        name: each.values[0] for name, each in program_outputs.find("sysbench").read(text).named().items()
    }
    assert (rates["read rate"], rates["write rate"], rates["fsync rate"]) == (1857, 1238, 3968.59)
    assert (rates["read throughput"], rates["write throughput"]) == (29.02, 19.34)


def test_aggregates_of_a_google_benchmark_before_1_5_are_no_repetitions() -> None:
    rows = [
        {"name": name, "real_time": 100.0 + at, "time_unit": "us"}
        for at, name in enumerate(["BM_x", "BM_x", "BM_x_mean", "BM_x_median", "BM_x_stddev", "BM_of_mean"])
    ]
    text = json.dumps({"benchmarks": rows})
    read = program_outputs.find("google-benchmark").read(text).named()
    assert {name: each.values for name, each in read.items()} == {
        "BM_x: real time": (100_000, 101_000),
        "BM_of_mean: real time": (105_000,),
    }


def test_repetitions_that_are_missing_are_told() -> None:
    rows = [
        {"name": "BM_x", "run_type": "iteration", "repetitions": 3, "real_time": 1, "time_unit": "ns"}
    ] * 2
    report = program_outputs.find("google-benchmark").read(json.dumps({"benchmarks": rows}))
    assert report.notes[0].text == "BM_x: 2 values, where it ran 3 repetitions"


def test_perf_s_groups_of_digits_are_read_and_another_language_s_refused() -> None:
    grouped = changed(
        "perf-stat-6.1.187.txt", ("         48      page-faults", "  1,234,048      page-faults")
    )
    assert program_outputs.find("perf-stat").read(grouped).named()["page-faults"].values == (1_234_048,)
    for foreign in ("  1.234.048", "  1,23     ", "  12,3456  "):
        text = changed("perf-stat-6.1.187.txt", ("         48 ", f"{foreign:>11} "))
        with pytest.raises(OutputDamaged):
            program_outputs.find("perf-stat").read(text)


def test_events_that_took_turns_are_told() -> None:
    text = changed(
        "perf-stat-6.1.187-without-pmu.csv", ("49,,page-faults,904680,100.00", "49,,page-faults,904680,42.00")
    )
    notes = program_outputs.find("perf-stat").read(text).notes
    assert "took turns, and are scaled up: page-faults" in notes[-1].text


def test_pgbench_before_14_and_with_reconnecting() -> None:
    old = changed(
        "pgbench-15.txt",
        (
            "tps = 168.841548 (without initial connection time)",
            "tps = 90.1 (including connections establishing)\n"
            "tps = 99.5 (excluding connections establishing)",
        ),
    )
    assert program_outputs.find("pgbench").read(old).named()["transactions"].values == (99.5,)
    reconnecting = changed(
        "pgbench-15.txt", ("without initial connection time", "including reconnection times")
    )
    assert program_outputs.find("pgbench").read(reconnecting).named()["transactions"].values == (168.841548,)


def test_failed_transactions_are_told() -> None:
    text = changed("pgbench-15.txt", ("failed transactions: 0", "failed transactions: 7"))
    (note,) = program_outputs.find("pgbench").read(text).notes
    assert note.text.startswith("7 transactions failed")


def test_fio_2_told_microseconds_and_no_bytes() -> None:
    text = changed(
        "fio-3.33.json",
        (
            '"lat_ns": {\n     "min": 31419,\n     "max": 2776241,\n     "mean": 66692.100478',
            '"lat": {\n "mean": 66.5',
        ),
        ('"bw_bytes": 60801662,', ""),
    )
    read = program_outputs.find("fio-json").read(text).named()
    assert read["read latency"].values == (66500,)
    assert read["read throughput"].values == (59376,)


def test_pyperf_s_memory_is_in_bytes_and_two_benchmarks_keep_their_names() -> None:
    memory = read("pyperf", "pyperf-2-memory.json").named()
    assert (memory["memory"].unit, memory["memory"].values[0]) == ("B", 12730368)
    assert list(read("pyperf", "pyperf-2.json").named()) == ["timeit: time", "command: time"]


def test_what_a_clock_told_is_known_from_what_was_counted() -> None:
    by_clock = {
        name: each.by_clock for name, each in read("perf-stat", "perf-stat-6.1.187.txt").named().items()
    }
    assert by_clock["task-clock"]
    assert not by_clock["page-faults"]
    assert all(each.by_clock for each in read("fio-json", "fio-3.33.json").measured)


PERF_TABLE = """ Performance counter stats for 'sleep 1':

{rows}

       1.002086438 seconds time elapsed
"""


@pytest.mark.parametrize(
    ("row", "event", "value", "unit"),
    [
        (
            "       1249.500900      task-clock (msec)         #    0.999 CPUs utilized",
            "task-clock",
            1249.5009,
            "ms",
        ),
        (
            "      17200.968507 task-clock (msec)         #    0.999 CPUs utilized",
            "task-clock",
            17200.968507,
            "ms",
        ),
        ("         5,094,835 ns   duration_time", "duration_time", 5_094_835, "ns"),
        ("           912,000 ns   user_time                 #    0.1", "user_time", 912_000, "ns"),
        (
            "    37\u202f167\u202f666\u202f901      cycles   #    3.569 GHz  (25.98%)",
            "cycles",
            37_167_666_901,
            "",
        ),
        ("    37 167 666 901      cycles                    #    3.569 GHz", "cycles", 37_167_666_901, ""),
        ("        1,234.56      uncore/clockticks/", "uncore/clockticks/", 1234.56, ""),
        (
            "     2,788,555      cpu_core/cycles/          #   51.931 M/sec  (98.71%)",
            "cpu_core/cycles/",
            2_788_555,
            "",
        ),
        (
            "           191      page-faults:u             #    0.153 K/sec  [83.34%]",
            "page-faults:u",
            191,
            "",
        ),
        ("            12.34 Joules power/energy-pkg/", "power/energy-pkg/", 12.34, "Joules"),
    ],
)
def test_rows_of_perf_s_versions_languages_and_machines(
    row: str, event: str, value: float, unit: str
) -> None:
    report = program_outputs.find("perf-stat").read(PERF_TABLE.format(rows=row))
    assert list(report.named()[event].values) == pytest.approx([value])
    assert report.named()[event].unit == unit
    assert not [note for note in report.notes if "not understood" in note.text]


HYBRID = """\
         2,788,555      cpu_core/cycles/          #   51.931 M/sec
           851,129      cpu_atom/cycles/          #   15.851 M/sec
             TopdownL1 (cpu_core)                 #     28.6 %  tma_backend_bound
                                                  #     13.0 %  tma_retiring
             TopdownL1 (cpu_atom)                 #     30.0 %  tma_bad_speculation"""


def test_a_machine_with_two_kinds_of_cores_has_counts_of_each() -> None:
    report = program_outputs.find("perf-stat").read(PERF_TABLE.format(rows=HYBRID))
    assert {name: each.values for name, each in report.named().items()} == {
        "cpu_core/cycles/": (2_788_555,),
        "cpu_atom/cycles/": (851_129,),
        "time elapsed": (1.002086438,),
    }
    assert report.notes == ()


def test_what_perf_s_runs_scatter_is_kept() -> None:
    spread = read("perf-stat", "perf-stat-6.1.187-runs.txt").named()["task-clock"].spread
    assert spread is not None
    assert (spread.runs, spread.half_unit) == (3, 0.005)
    assert spread.standard_error == pytest.approx(0.58 * 0.1007)


def test_a_row_that_lost_its_name_is_told() -> None:
    rows = "           5506056                                #    2.543 GHz"
    report = program_outputs.find("perf-stat").read(PERF_TABLE.format(rows=rows))
    assert report.notes[0].text == "1 of 2 lines was not understood: '5506056 # 2.543 GHz'"


@pytest.mark.parametrize(
    "line",
    [
        "stress-ng: warn:  [12] metrics corrupted, data is compromised",
        "stress-ng: info:  [12] unsuccessful run completed in 1.02 secs",
    ],
)
def test_a_run_of_stress_ng_that_failed_its_checks_is_refused(line: str) -> None:
    text = changed("stress-ng-0.15.06.yaml", ("---\n", f"{line}\n---\n"))
    with pytest.raises(OutputDamaged, match="it says 'stress-ng: "):
        program_outputs.find("stress-ng-yaml").read(text)


def test_conditions_are_kept() -> None:
    assert read("pgbench", "pgbench-15.txt").conditions == {
        "version": "15.18",
        "transaction type": "<builtin: TPC-B (sort of)>",
        "scale": "1",
        "query mode": "simple",
        "clients": "4",
        "threads": "1",
        "tries": "1",
        "duration": "1 s",
    }
    assert read("sysbench", "sysbench-memory-1.0.20.txt").conditions["block size"] == "1KiB"
    assert read("wrk", "nginx-wrk-4.1.0.txt").conditions["connections"] == "64"


def test_a_google_benchmark_whose_time_is_no_number_leaves_the_others() -> None:
    rows = [
        {"name": name, "real_time": time, "time_unit": "ns"}
        for name, time in (("BM_a", 1.5), ("BM_b", float("nan")))
    ]
    report = program_outputs.find("google-benchmark").read(json.dumps({"benchmarks": rows}))
    assert {name: each.values for name, each in report.named().items()} == {"real time": (1.5,)}
    assert report.failures[0].text == "1 benchmarks report an error; they are left out"


def test_go_s_repeated_lines_are_values_and_a_missing_one_is_told() -> None:
    text = text_of("go-bench-without-counts.txt")
    report = program_outputs.find("go-bench").read(text + text.replace("271.5", "273.1"))
    assert report.named()["BenchmarkEncode-2: time"].values == (271.5, 273.1)
    assert report.conditions == {"system": "linux", "machine": "amd64", "CPU": "AMD EPYC"}
    fewer = program_outputs.find("go-bench").read(f"{text}BenchmarkEncode-2 10 73.1 ns/op\n")
    assert fewer.notes[-1].text == "benchmarks have from 1 to 2 values: some may be missing"


@pytest.mark.parametrize("line", ["--- FAIL: BenchmarkX", "FAIL", "panic: runtime error"])
def test_a_go_run_that_failed_is_refused(line: str) -> None:
    with pytest.raises(OutputDamaged, match="it failed"):
        program_outputs.find("go-bench").read(text_of("go-bench-without-counts.txt") + line + "\n")


def test_jmh_s_only_fork_is_told_and_its_iterations_are_values() -> None:
    report = read("jmh-json", "jmh-1.37.json")
    assert len(report.measured[0].values) == 25
    assert report.notes[0].text.startswith("1 of 1 benchmarks ran in one JVM only")
    assert report.conditions["JDK"] == "17.0.15"


@pytest.mark.parametrize(
    ("name", "file", "change", "problem"),
    [
        ("jmh-json", "jmh-1.37.json", ('"score": 157.1', '"score": 257.1'), "and the mean of its raw data"),
        ("jmh-json", "jmh-1.37.json", ('"mode": "thrpt"', '"mode": "all"'), "its mode is 'all'"),
        (
            "iperf3-json",
            "iperf3-3.6.json",
            ('"bytes": 985792512', '"bytes": 5792512'),
            "bits a second are not",
        ),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(
    name: str, file: str, change: tuple[str, str], problem: str
) -> None:
    with pytest.raises(OutputDamaged, match=problem):
        program_outputs.find(name).read(changed(file, change))


def hyperfine(**record: object) -> str:
    records = [{"command": "./a", "times": [1.0, 1.1]}, {"command": "./c", **record}]
    return json.dumps({"results": records}, indent=1)


@pytest.mark.parametrize(
    ("mean", "times"),
    [
        (1.01667, [1.01, 1.02, 1.02]),
        (1.0166983512349871, [1.01, 1.02, 1.02]),
        (1.02, [1.0123456789, 1.0223456789]),
    ],
)
def test_a_mean_may_be_rounded_in_the_last_digit_and_so_may_its_times(
    mean: float, times: list[float]
) -> None:
    report = program_outputs.find("hyperfine").read(hyperfine(mean=mean, times=times))
    assert report.named()["./c: time"].values == tuple(times)


@pytest.mark.parametrize(
    ("mean", "numbers"),
    [
        (1.25, "its mean is 1.25, and that of its times is 1.01667"),
        (1.0166721, "its mean is 1.016672, and that of its times is 1.016667"),
    ],
)
def test_two_numbers_that_differ_are_printed_so_that_they_do(mean: float, numbers: str) -> None:
    times = [1.0100001, 1.0199999, 1.0200001]
    with pytest.raises(OutputDamaged, match=re.escape(numbers)):
        program_outputs.find("hyperfine").read(hyperfine(mean=mean, times=times))


@pytest.mark.parametrize("group", ["\u202f", "\u00a0", ".", " "])
def test_decimal_commas_of_perf_are_read_with_its_time_elapsed(group: str) -> None:
    """French, Czech and German: perf never groups seconds."""
    table = (
        " Performance counter stats for 'true':\n\n"
        f"          1{group}234,56 msec task-clock      #    0,995 CPUs utilized\n"
        f"     2{group}788{group}555      cycles          #    1,931 GHz     (98,71%)\n\n"
        "       0,002599947 seconds time elapsed\n"
    )
    report = program_outputs.find("perf-stat").read(table)
    assert {name: each.values for name, each in report.named().items()} == {
        "task-clock": (1234.56,),
        "cycles": (2_788_555.0,),
        "time elapsed": (0.002599947,),
    }


ROWS_OF_PERF = {
    "two points group": (("237.701.924.279 cycles",), {"cycles": 237_701_924_279.0}),
    "a time elapsed with a comma": (
        ("701.924 cycles", "37,690 +- 0,302 seconds time elapsed"),
        {"cycles": 701_924.0, "time elapsed": 37.69},
    ),
    "two decimals": (
        ("701.924 cycles", "190,65 Joules energy-pkg"),
        {"cycles": 701_924.0, "energy-pkg": 190.65},
    ),
    "a per cent": (("701.924 cycles  ( +-  0,68% )",), {"cycles": 701_924.0}),
    "a share of the time": (("701.924 cycles  (98,71%)",), {"cycles": 701_924.0}),
}


@pytest.mark.parametrize("rows", ROWS_OF_PERF)
def test_points_of_perf_group_where_another_line_says_so(rows: str) -> None:
    lines, values = ROWS_OF_PERF[rows]
    table = "\n".join([" Performance counter stats for 'true':", "", *(f"   {line}" for line in lines), ""])
    report = program_outputs.find("perf-stat").read(table)
    assert {name: measured.values[0] for name, measured in report.named().items()} == values


@pytest.mark.parametrize(
    "rows",
    [("701.924 cycles",), ("237.701.924.279 cycles", "1.05 msec task-clock")],
    ids=["no line", "not so"],
)
def test_points_of_perf_that_may_be_decimal_are_refused(rows: tuple[str, ...]) -> None:
    table = "\n".join([" Performance counter stats for 'true':", "", *(f"   {line}" for line in rows), ""])
    with pytest.raises(OutputDamaged, match="groups digits by points: run perf with LC_ALL=C"):
        program_outputs.find("perf-stat").read(table)
