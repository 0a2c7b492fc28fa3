"""What more programs printed, of two versions each where there are, and every kind of number read of it."""

import json
import math
from functools import cache
from pathlib import Path

import pytest
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS
from tests.support.program_texts import HIGHER, LOWER, changed, numbers, read, text_of

from ktrial import program_outputs
from ktrial.model.workload import Command, Direction, MetricRule, Mode, WorkloadUse
from ktrial.program_outputs import OutputDamaged, OutputEmpty, OutputError
from ktrial.target import StepResult
from ktrial.workloads import find

CRITERION = tuple(
    nanoseconds / (166950 * (at + 1))
    for at, nanoseconds in enumerate(
        (6242910, 8815386, 16932240, 12787202, 23612336, 26697108, 32061208, 59973812, 61889745, 50203926)
    )
)
Number = tuple[tuple[float, ...], str, Direction]
READ: list[tuple[str, str, dict[str, Number]]] = [
    (
        "ab",
        "ab-2.3.txt",
        {
            "requests": ((558.1,), "1/s", HIGHER),
            "time per request": ((7.167,), "ms", LOWER),
            "throughput": ((1736.99,), "KiB/s", HIGHER),
            "latency p99": ((48,), "ms", LOWER),
            "worst latency": ((77,), "ms", LOWER),
        },
    ),
    (
        "dbench",
        "dbench-4.txt",
        {"throughput": ((90.5056,), "MB/s", HIGHER), "worst latency": ((49.431,), "ms", LOWER)},
    ),
    ("dbench", "dbench-3-tbench.txt", {"throughput": ((611.904,), "MB/s", HIGHER)}),
    ("gnu-time", "gnu-time-1.9.txt", {"time elapsed": ((0.36,), "s", LOWER), "user": ((0.07,), "s", LOWER)}),
    ("gnu-time", "gnu-time-1.9-verbose.txt", {"memory": ((1656,), "KiB", LOWER)}),
    ("will-it-scale", "will-it-scale-2023.txt", {"operations": ((806802,), "1/s", HIGHER)}),
    ("will-it-scale", "will-it-scale-mmtests.txt", {"operations": ((806802,), "1/s", HIGHER)}),
    ("ab", "ab-2.0.txt", {"requests": ((704.4,), "1/s", HIGHER), "latency p50": ((3,), "ms", LOWER)}),
    (
        "ab-requests",
        "ab-2.3-requests.tsv",
        {"latency": ((6.4,), "ms", LOWER), "latency p50": ((4,), "ms", LOWER)},
    ),
    ("ab-percentiles", "ab-2.3-percentiles.csv", {"latency p50": ((3.696,), "ms", LOWER)}),
    (
        "cyclictest",
        "cyclictest-0.83.txt",
        {"latency": ((1000 * (100 * 108 + 94 * 119) / 194,), "ns", LOWER)},
    ),
    (
        "cyclictest",
        "cyclictest-2.40.txt",
        {"latency": ((1000 * (952 * 133132 + 624 * 229065) / 1576,), "ns", LOWER)},
    ),
    (
        "cyclictest",
        "cyclictest-histogram.txt",
        {"latency": ((1000 * (60 * 2000 + 61 * 1000) / 3000,), "ns", LOWER)},
    ),
    ("hackbench", "hackbench-2.40.txt", {"time": ((0.09,), "s", LOWER)}),
    ("hackbench", "hackbench-2008.txt", {"time": ((5.1, 4.9, 5.3), "s", LOWER)}),
    (
        "hackbench",
        "hackbench-0.83-groups.txt",
        {
            f"process mode, {settings}, 100 messages, 100 bytes: time": (times, "s", LOWER)
            for settings, times in (
                ("1 groups, 40 file descriptors, 40 tasks", (0.203, 0.167, 0.145)),
                ("2 groups, 40 file descriptors, 80 tasks", (0.332, 0.243, 0.228)),
            )
        },
    ),
    (
        "ycsb",
        "ycsb-0.17.0.txt",
        {
            "throughput": ((2666.6666666666665,), "ops/s", HIGHER),
            "read latency": ((241.7699901283317,), "us", LOWER),
            "read worst latency": ((5231,), "us", LOWER),
            "update latency p99": ((1303,), "us", LOWER),
        },
    ),
    (
        "ycsb",
        "ycsb-0.1.4.txt",
        {"read latency": ((1031.527,), "us", LOWER), "read latency p95": ((2000,), "us", LOWER)},
    ),
    (
        "stream",
        "stream-5.10.txt",
        {
            "copy throughput": ((13842.6,), "MB/s", HIGHER),
            "scale throughput": ((12861.2,), "MB/s", HIGHER),
            "add throughput": ((13752.4,), "MB/s", HIGHER),
            "triad throughput": ((13629.8,), "MB/s", HIGHER),
        },
    ),
    ("stream", "stream-5.9.txt", {"triad throughput": ((8560.7,), "MB/s", HIGHER)}),
    ("hey", "hey-0.1.4.txt", {"requests": ((534.3679,), "1/s", HIGHER), "latency": ((0.0093,), "s", LOWER)}),
    ("hey", "hey-2020.txt", {"requests": ((10022.9023,), "1/s", HIGHER), "latency": ((0.0035,), "s", LOWER)}),
    ("hey", "hey-percent-signs.txt", {"latency p99": ((0.3,), "s", LOWER)}),
    (
        "oha",
        "oha-0.2.txt",
        {"requests": ((200 / 19.9057,), "1/s", HIGHER), "latency p50": ((6.6,), "s", LOWER)},
    ),
    ("oha", "oha-0.6.txt", {"latency": ((0.001,), "s", LOWER), "latency p99.9": ((0.0015,), "s", LOWER)}),
    ("oha-json", "oha-1.x-deadline.json", {"requests": ((18120 / 10.00241,), "1/s", HIGHER)}),
    ("oha-json", "oha-sorted-keys.json", {"latency p50": ((0.0289,), "s", LOWER)}),
    (
        "vegeta",
        "vegeta-12.json",
        {"throughput": ((50.30208204435645,), "1/s", HIGHER), "latency p99": ((5.03656,), "ms", LOWER)},
    ),
    (
        "vegeta",
        "vegeta-12.txt",
        {"throughput": ((50.3,), "1/s", HIGHER), "latency": ((2.646,), "ms", LOWER)},
    ),
    ("vegeta", "vegeta-6.txt", {"latency p50": ((0.501733,), "ms", LOWER)}),
    ("asv", "asv-1.json", {"time_units.mem_unit: memory": ((728,), "B", LOWER)}),
    (
        "asv",
        "asv-2.json",
        {
            "benchmarks.time_sort(100): time": ((1.8311290342036977e-06,), "s", LOWER),
            "benchmarks.time_ranges_multi(100, 'range'): time": ((5.322195698640758e-07,), "s", LOWER),
        },
    ),
    (
        "mmtests",
        "mmtests-hackbench.txt",
        {
            "6.12.0-vanilla: Amean 1": ((0.6284,), "", LOWER),
            "6.18.0-patch-v2: Amean 4": ((1.9334,), "", LOWER),
        },
    ),
    (
        "mmtests",
        "mmtests-netperf.txt",
        {
            "series: Hmean send-1024": ((2760.45,), "", HIGHER),
            "revert: GB/sec copy-2": ((34.3,), "GB/s", HIGHER),
        },
    ),
    ("netperf", "netperf-tcp-rr.txt", {"transactions": ((40151.94,), "1/s", HIGHER)}),
    ("netperf", "netperf-tcp-stream.txt", {"throughput": ((5516.75,), "Mbit/s", HIGHER)}),
    ("netperf", "netperf-tcp-stream-cpu.txt", {"throughput": ((2826.12,), "Mbit/s", HIGHER)}),
    ("netperf", "netperf-udp-stream.txt", {"sent": ((1135.73,), "Mbit/s", HIGHER)}),
    (
        "benchmarkdotnet",
        "benchmarkdotnet-0.15.8-full.json",
        {
            "BenchmarkDotNet.Samples.Memory.AllocEmptyList: time": ((77.49449412027995,), "ns", LOWER),
            "BenchmarkDotNet.Samples.Memory.AllocExactList: memory": ((184,), "B/op", LOWER),
        },
    ),
    (
        "benchmarkdotnet",
        "benchmarkdotnet-0.9.9.json",
        {"BenchmarkDotNet.Samples.Intro.IntroJsonExport.Sleep10: time": ((10362283.085796878,), "ns", LOWER)},
    ),
    (
        "benchmarkdotnet-log",
        "benchmarkdotnet-log-0.13.10.log",
        {
            "Work.Concat: DefaultJob [N=10]: time": ((51.167536286830895, 51.03562885761261), "ns", LOWER),
            "Work.Join: DefaultJob [N=10]: time": ((64.85619566011428, 64.64924396657945), "ns", LOWER),
        },
    ),
    (
        "benchmarkdotnet-log",
        "benchmarkdotnet-log-0.10.14.log",
        {"time": ((51.40722568368913,), "ns", LOWER)},
    ),
    ("catch2", "catch2-2.11.txt", {"Fibonacci 20: time": ((41731,), "ns", LOWER)}),
    ("catch2", "catch2-3.1.0.xml", {"Heap sort: time": ((1712040,), "ns", LOWER)}),
    ("criterion", "criterion-0.5.1-raw.csv", {"time": (CRITERION, "ns", LOWER)}),
    ("criterion", "criterion-0.5.1-sample.json", {"time": (CRITERION, "ns", LOWER)}),
    ("criterion", "criterion-0.5.1-flat-estimates.json", {"time": ((61.59901351994021,), "ns", LOWER)}),
    ("criterion", "criterion-0.5.1-estimates.json", {"time": ((33.71924022667958,), "ns", LOWER)}),
    (
        "jmh-csv",
        "jmh-1.37-gc.csv",
        {
            "my.B.sum size=10: throughput": ((26.873322,), "ops/us", HIGHER),
            "my.B.text size=1000: time": ((111.992193,), "us/op", LOWER),
        },
    ),
    ("jmh-csv", "jmh-1.37-german.csv", {"my.B.sum size=10: time": ((0.028957,), "us/op", LOWER)}),
    ("jmh-csv", "jmh-1.37-scsv.csv", {"sampled time p99.9": ((14.86568,), "us/op", LOWER)}),
    (
        "jmh-csv",
        "jmh-1.19.csv",
        {
            "my.B.text size=10: single shot time": ((43.214167,), "us/op", LOWER),
            "my.B.sum size=10: sampled time p50": ((0.04,), "us/op", LOWER),
        },
    ),
    ("lkp", "lkp-kbuild.json", {"time": ((212.4,), "", LOWER)}),
    ("lkp", "lkp-elapsed.json", {"elapsed time": ((33.7,), "s", LOWER)}),
    (
        "lkp",
        "lkp-matrix.json",
        {
            "hackbench.throughput: rate": ((214432.5, 216020.8, 213077.1), "", HIGHER),
            "hackbench.throughput_worst: rate": ((198310.4, 201177.9, 197022.3), "", HIGHER),
        },
    ),
    ("lkp", "lkp-stats.json", {"will-it-scale.per_process_ops: rate": ((1152813,), "", HIGHER)}),
    ("lmbench", "lmbench-2alpha8.txt", {"Pagefaults on /tmp/file: latency": ((11520,), "µs", LOWER)}),
    (
        "lmbench",
        "lmbench-3.txt",
        {
            "Pipe bandwidth: throughput": ((21.05,), "MB/s", HIGHER),
            "context switch, 16 processes of 32k: latency": ((31.87,), "µs", LOWER),
        },
    ),
    (
        "perf-bench",
        "perf-bench-mem-memcpy-6.1.txt",
        {"mem/memcpy default: throughput": ((27.126736,), "GB/s", HIGHER)},
    ),
    (
        "perf-bench",
        "perf-bench-sched-all-6.1.txt",
        {
            "sched/messaging: time": ((1.774,), "s", LOWER),
            "sched/pipe: operation": ((10.163657,), "µs", LOWER),
        },
    ),
    ("rt-tests", "rt-cyclicdeadline-2.40.txt", {"latency": ((40,), "µs", LOWER)}),
    ("rt-tests", "rt-hwlatdetect-1.0.txt", {"samples over threshold": ((0,), "", LOWER)}),
    ("rt-tests", "rt-hwlatdetect-2.40.txt", {"worst latency": ((27,), "µs", LOWER)}),
    ("rt-tests", "rt-oslat-2.40.txt", {"latency": ((2.096 / (0.98 / 1.916 + 1.116 / 1.867),), "µs", LOWER)}),
    ("rt-tests", "rt-pi-stress-0.83.txt", {"inversions": ((70726,), "", HIGHER)}),
    ("rt-tests", "rt-pi-stress-2.40.txt", {"inversions": ((53453,), "", HIGHER)}),
    ("rt-tests", "rt-ptsematest-0.83-again.txt", {"worst latency": ((30179,), "µs", LOWER)}),
    ("rt-tests", "rt-signaltest-0.83.txt", {"latency": ((564,), "µs", LOWER)}),
    ("rt-tests", "rt-signaltest-2.40.txt", {"worst latency": ((124380,), "µs", LOWER)}),
    ("rt-tests", "rt-sigwaittest-0.83.txt", {"latency": (((120 * 476 + 1000) / 220,), "µs", LOWER)}),
    ("rt-tests", "rt-ptsematest-2.40.txt", {"latency": (((300 * 15 + 297 * 90) / 597,), "µs", LOWER)}),
    ("rt-tests-json", "rt-oslat-2.40.json", {"latency": ((1.019243116321486,), "µs", LOWER)}),
    ("rt-tests-json", "rt-pi-2.40.json", {"inversions": ((68943,), "", HIGHER)}),
    ("rt-tests-json", "rt-pmqtest-2.40.json", {"worst latency": ((43,), "µs", LOWER)}),
    ("rt-tests-json", "rt-ptsematest-2.40.json", {"latency": ((8.31,), "µs", LOWER)}),
    ("rt-tests-json", "rt-signaltest-2.40.json", {"latency": ((504.74,), "µs", LOWER)}),
    ("schbench", "schbench-old.txt", {"latency p99": ((5256,), "µs", LOWER)}),
    ("schbench", "schbench-reports.txt", {"latency p99.9": ((12496,), "µs", LOWER)}),
    (
        "schbench",
        "schbench.txt",
        {"request latency p50": ((16864,), "µs", LOWER), "requests": ((3024.6,), "1/s", HIGHER)},
    ),
    ("pytest-benchmark", "pytest-benchmark-2.5.0.json", {"time": ((2.622408132654948e-07,), "s", LOWER)}),
    (
        "pytest-benchmark",
        "pytest-benchmark-3.2.2.json",
        {"bench.py::test_fib_20: time": ((0.002985030672661863,), "s", LOWER)},
    ),
    ("sysstat", "sysstat-12.6.1.csv", {"steal": (((0.5 + 0.49 + 0.49) / 4,), "%", LOWER)}),
    (
        "sysstat",
        "sysstat-12.6.1.json",
        {"run queue": ((63.25,), "", LOWER), "context switches": ((11703.4775,), "1/s", LOWER)},
    ),
    (
        "vmstat",
        "vmstat-3.3.txt",
        {"CPU idle": ((6.5,), "%", HIGHER), "context switches": ((4300,), "1/s", LOWER)},
    ),
    ("vmstat", "vmstat-4.0.2-times.txt", {"CPU user": ((66.25,), "%", LOWER)}),
    ("vmstat", "vmstat-4.0.2-wide.txt", {"run queue": ((58.75,), "", LOWER)}),
    (
        "sysbench-0",
        "sysbench-0.4.12-oltp.txt",
        {
            "transactions": ((20232.89,), "1/s", HIGHER),
            "latency": ((1000 * 7677.91 / 1214016,), "ms", LOWER),
            "latency p95": ((11.05,), "ms", LOWER),
        },
    ),
    ("sysbench-0", "sysbench-0.4.12-memory.txt", {"throughput": ((5948.99,), "MiB/s", HIGHER)}),
    ("sysbench-0", "sysbench-0.4-fileio.txt", {"file throughput": ((1.8629,), "MiB/s", HIGHER)}),
    ("sysbench-0", "sysbench-0.5-oltp.txt", {"read/write requests": ((70143.25,), "1/s", HIGHER)}),
]


@pytest.mark.parametrize(("name", "file", "expected"), READ)
def test_what_a_program_printed_is_read(name: str, file: str, expected: dict[str, Number]) -> None:
    got = numbers(read(name, file))
    for metric, (values, unit, direction) in expected.items():
        assert got[metric][0] == pytest.approx(values), metric
        assert got[metric][1:] == (unit, direction), metric


@pytest.mark.parametrize(("name", "file", "expected"), [row for row in READ if row[0] != "mmtests"])
def test_every_metric_that_is_read_stands_in_its_format_s_table(
    name: str, file: str, expected: dict[str, Number]
) -> None:
    known = {(each.metric, each.unit, each.direction) for each in program_outputs.find(name).columns}
    units = {"ops/us": "ops/s"}
    got = {
        (each.metric, units.get(each.unit, each.unit), each.direction) for each in read(name, file).measured
    }
    assert expected
    assert got <= known


ONE_REPORT = {name: file for name, file, _ in READ if name not in ("lmbench", "hackbench", "vmstat")}
"""Lines of lmbench's programs, runs of hackbench and samples of vmstat are put together."""


@pytest.mark.parametrize(("name", "file"), sorted(ONE_REPORT.items()))
def test_two_reports_in_one_output_are_no_report(name: str, file: str) -> None:
    with pytest.raises(OutputDamaged):
        program_outputs.find(name).read(text_of(file).rstrip() + "\n" + text_of(file))


# --- Each format as a workload's metrics.


@cache
def readable() -> list[tuple[str, Path]]:
    """Each format with its first file that is read without a failure."""
    files = sorted(file for place in (PROGRAM_OUTPUTS, FOREIGN) for file in place.iterdir() if file.is_file())
    first: dict[str, Path] = {}
    for name, format in program_outputs.installed()[0].items():
        for file in files:
            try:
                is_read = format.recognises(file.read_text()) and not format.read(file.read_text()).failures
            except OutputError:
                continue
            if is_read:
                first.setdefault(name, file)
    return sorted(first.items())


def test_every_format_has_a_file() -> None:
    assert {name for name, _ in readable()} == set(program_outputs.installed()[0])


@pytest.mark.parametrize("name", program_outputs.installed()[0])
def test_each_format_works_as_a_workload_s_metrics(name: str) -> None:
    text = dict(readable())[name].read_text()
    use = WorkloadUse(
        name="mine", command=Command(argv=("true",), metrics=(MetricRule(format=name),), repeats=2)
    )
    outputs = tuple(
        StepResult.model_validate({"step": step, "do": "run", "exit": 0, "stdout": text}) for step in range(3)
    )
    samples = {sample.metric: sample for sample in find(use).samples(use, Mode.TIMED, outputs)}
    report = program_outputs.find(name).read(text).named()
    assert {metric: (sample.unit, sample.direction) for metric, sample in samples.items()} == {
        metric: (measurement.unit, measurement.direction) for metric, measurement in report.items()
    }


# --- What is no right number.

REFUSED: list[tuple[str, str, tuple[str, str], str]] = [
    (
        "benchmarkdotnet",
        "benchmarkdotnet-0.9.9.json",
        ('"Max": 10436', '"Max": 1043'),
        "and its Max 1.04301e+06",
    ),
    ("benchmarkdotnet", "benchmarkdotnet-0.9.9.json", ('"Sleep20"', '"Sleep10"'), "it is there twice"),
    ("catch2", "catch2-2.11.txt", ("341 ns", "345 ns"), "outside its interval"),
    ("catch2", "catch2-2.11-zeros.txt", (" 1 ns", " 0 ns"), "no benchmark has a mean above 0"),
    ("catch2", "catch2-3.1.0.xml", ("<mean value", "<mode value"), "it has no mean"),
    ("catch2", "catch2-3.1.0.xml", ("TestCase", "Test"), "2 of its benchmarks are in no test case"),
    (
        "sysbench",
        "sysbench-cpu-1.0.20.txt",
        ("Latency (ms):", "Removing test files..."),
        "it prepared a test or cleaned up after one, and ran none",
    ),
    ("criterion", "criterion-0.5.1-raw.csv", (",ns,", ",cycles,"), "its unit is 'cycles', no time"),
    ("criterion", "criterion-0.5.1-raw.csv", (",ns,333900", ",ns"), "line 3: it has 7 fields, not 8"),
    ("criterion", "criterion-0.5.1-sample.json", ("166950.0,333900.0", "333900.0"), "9 iters and 10 times"),
    (
        "criterion",
        "criterion-0.5.1-estimates.json",
        ('"slope":{', '"slope":{"point_estimate":1,'),
        "there twice",
    ),
    (
        "jmh-csv",
        "jmh-1.37-gc.csv",
        ('"my.B.text","avgt",1,6,', '"my.B.text","avgt",1,'),
        "it has 7 fields, not 8",
    ),
    ("jmh-csv", "jmh-1.37-gc.csv", ('"my.B.sum","thrpt"', '"my.B.sum","all"'), "its mode is 'all'"),
    ("jmh-csv", "jmh-1.37-german.csv", ('"0,028957"', '"0.028,957"'), "'0.028,957' where a number"),
    ("lkp", "lkp-matrix.json", ("198310.4,", "198310.4, 0,"), "it has 5 numbers, and stats_source 4"),
    ("lkp", "lkp-kbuild.json", ("212.4", "212.4, 213"), "it is what one run did over time"),
    ("lkp", "lkp-elapsed.json", ("33.7", '"33.7"'), "numbers were expected"),
    (
        "mmtests",
        "mmtests-hackbench.txt",
        ("0.5624 *", "0.5424 *"),
        "line 6: 0.5424 is not 10.5 % from 0.6284",
    ),
    ("mmtests", "mmtests-hackbench.txt", (" -1.43%", "  1.43%"), "the same sign as those of other rows"),
    ("mmtests", "mmtests-netperf.txt", ("base                 series ", "base"), "names its 3 columns"),
    ("sysstat", "sysstat-12.6.1.csv", (";36.32;", ";26.32;"), "the CPUs' time are 90 % together"),
    ("sysstat", "sysstat-12.6.1.csv", ("14:10:30", "14:10:29"), "line 3: it is there twice"),
    ("sysstat", "sysstat-12.6.1.json", ('"steal": 0.50, ', ""), "its steal is not there"),
    ("vmstat", "vmstat-3.3.txt", ("71 19", "71 9"), "line 4: the shares of the CPUs' time are 90 % together"),
    ("netperf", "netperf-tcp-stream.txt", ("10^6bits/sec", "MBytes/sec"), "it is not there"),
    ("netperf", "netperf-tcp-stream.txt", ("   5516.75", ""), "the test prints another"),
    ("netperf", "netperf-udp-stream.txt", ("101417      0", "10141      0"), "are not 1135.73 Mbit/s"),
    ("cyclictest", "cyclictest-0.83.txt", ("Avg:  108", "Avg:  908"), "its average is 908, from 63 to 144"),
    ("cyclictest", "cyclictest-2.40.txt", ("T: 0", "T: 2"), "the threads 1, 2 are told of"),
    ("cyclictest", "cyclictest-histogram.txt", ("00061 00082", "00082"), "different numbers of threads"),
    ("hackbench", "hackbench-2.40.txt", ("0.090", "0.000"), "0 is less than it can tell"),
    ("hackbench", "hackbench-2.40.txt", ("Time: 0.090", "fork: failed Time: "), "no run printed its time"),
    ("hackbench", "hackbench-0.83-groups.txt", ("with 1 groups", "of 1 groups"), "others do not"),
    ("ab", "ab-2.3.txt", ("[#/sec] (mean)", "[#/sec]"), "second: mean: it is not there"),
    ("dbench", "dbench-4.txt", ("max_latency=49", "max_latency=9"), "which is more than max_latency"),
    ("dbench", "dbench-4.txt", (" Operation", "open failed\n Operation"), "it failed: open failed"),
    (
        "gnu-time",
        "gnu-time-1.9.txt",
        ("0.07user", "Command exited with non-zero status 2\n0.07user"),
        "failed",
    ),
    ("gnu-time", "gnu-time-1.9-verbose.txt", ("status: 0", "status: 2"), "the command ended with 2"),
    ("gnu-time", "gnu-time-1.9.txt", ("0:00.36", "0:00.00"), "less than it can tell"),
    ("will-it-scale", "will-it-scale-2023.txt", ("806917", "806911"), "that of the 3 samples is 806800"),
    (
        "will-it-scale",
        "will-it-scale-mmtests.txt",
        ("max:404276 total:806917", "max:906917 total:806917"),
        "are not",
    ),
    (
        "benchmarkdotnet-log",
        "benchmarkdotnet-log-0.10.14.log",
        ("Result   3:", "Result   4:"),
        "is not the next",
    ),
    (
        "benchmarkdotnet-log",
        "benchmarkdotnet-log-0.10.14.log",
        ("N = 5,", "N = 6,"),
        "where the log counts 6",
    ),
    (
        "benchmarkdotnet-log",
        "benchmarkdotnet-log-0.10.14.log",
        ("Mean = 51.407", "Mean = 51.4"),
        "its mean is 51.4",
    ),
    ("benchmarkdotnet-log", "benchmarkdotnet-log-0.10.14.log", ("k: Work.Concat", "k: Work"), "is not among"),
    ("ab", "ab-2.3.txt", ("558.10", "55.81"), "are not 2000 in"),
    ("ab", "ab-2.3.txt", ("7.167 ", "1.167 "), "of 4 clients do not take 1.167 ms each"),
    ("ab", "ab-2.3.txt", ("  90%     17", "  90%     1"), "a higher percentile is shorter"),
    ("ab", "ab-2.3.txt", ("requests:        0", "requests:        3"), "3 failed (why is not told)"),
    ("ab", "ab-2.3.txt", ("Total tr", "Non-2xx responses:      9\nTotal tr"), "there are Non-2xx responses"),
    ("ab", "ab-2.3.txt", ("\n\nServer", "\napr_socket_recv: Reset\nServer"), "ab gave up: apr_so"),
    ("ab", "ab-2.0.txt", ("Exceptions: 0", "Exceptions: 2"), "not all requests were answered: 199 failed"),
    ("ab-requests", "ab-2.3-requests.tsv", ("\t1\t", "\t91\t"), "line 2: ttime is"),
    ("ab-requests", "ab-2.3-requests.tsv", ("2026\t", "\t"), "line 2: this is no row of a request"),
    ("ab-percentiles", "ab-2.3-percentiles.csv", ("\n7,", "\n8,"), "line 9: '8' where 7 was expected"),
    (
        "ycsb",
        "ycsb-0.17.0.txt",
        ("[READ], Return=OK", "[READ], Return=ERROR"),
        "operations failed: [READ] Return=ERROR",
    ),
    (
        "ycsb",
        "ycsb-0.17.0.txt",
        ("2666.6666666666665", "266.6666666666666"),
        "2000 operations are not the 200",
    ),
    ("ycsb", "ycsb-0.17.0.txt", ("Return=OK, 987", "Return=OK, 978"), "and another number that returned"),
    (
        "ycsb",
        "ycsb-0.17.0.txt",
        ("AverageLatency(us), 263", "AverageLatency(us), 26"),
        "outside the shortest",
    ),
    ("stream", "stream-5.10.txt", ("13842.6", "1384.3"), "MB/s are not 2 arrays in 0.023117 s"),
    (
        "stream",
        "stream-5.10.txt",
        ("Solution Validates", "Failed Validation on array a[]"),
        "Failed Validation",
    ),
    ("hey", "hey-0.1.4.txt", ("[200]\t500", "[500]\t500"), "not all requests were answered: [500]"),
    ("hey", "hey-0.1.4.txt", ("534.3679", "53.3679"), "are not 500 in 0.9357 s"),
    ("sar", "sar-10.txt", ("94.79", "84.79"), "line 5: the shares of the CPUs' time are 90 % together"),
    ("sar", "sar-10.txt", ("94.61", "84.61"), "the mean of %idle is printed as 84.61, and is 94.61"),
    ("sar", "sar-10.txt", ("03:17:26", "03:16:56"), "line 5: it is there twice"),
    ("oha", "oha-0.6.txt", ("[200]", "[404]"), "not all requests were answered: [404]"),
    ("oha", "oha-0.6.txt", ("50000", "5000"), "are not 5000 in 4.9915 s"),
    ("oha", "oha-0.2.txt", ("90% in 14.7995", "90% in 1.7995"), "is outside what is below and above it"),
    ("oha-json", "oha-1.x-deadline.json", ('"200": 18120', '"501": 18120'), "not all requests were answered"),
    ("oha-json", "oha-1.x-deadline.json", ("18120", "1812"), "requests a second are not 1832"),
    ("vegeta", "vegeta-12.json", ('"success":1', '"success":0.9'), "only 90 % of the requests"),
    ("vegeta", "vegeta-12.txt", ("5.037ms", "2.037ms"), "they do not grow"),
    ("vegeta", "vegeta-12.txt", ("50.34, 50.30", "50.34, 5.30"), "5.3 a second are not 150 requests"),
    ("perf-bench", "perf-bench-sched-pipe-6.1.txt", ("355998", "35599"), "do not take 2.809"),
    ("rt-tests", "rt-ptsematest-2.40.txt", ("Cycles 297", "Cycles 0"), "it has no sample"),
    (
        "rt-tests",
        "rt-ptsematest-2.40.txt",
        ("Avg   90", "Avg 90909"),
        "its average is 90909, from 5 to 16004",
    ),
    ("rt-tests", "rt-ptsematest-2.40.txt", ("#3 -> #2", "#3 - > #2"), "not told of equally often"),
    ("rt-tests", "rt-ptsematest-0.83-again.txt", ("Cycles 120", "Cycles 12"), "its cycles did not grow"),
    ("rt-tests", "rt-signaltest-0.83.txt", ("T: 0 ", "T: 2 "), "of threads only 1, 2 are told of"),
    ("rt-tests", "rt-oslat-2.40.txt", ("Maximum:\t 200130", "Maximum:\t 20"), "without the minimum"),
    (
        "rt-tests",
        "rt-pi-stress-0.83.txt",
        ("performed: 70726", "performed: 7072"),
        "7072 in all, after 70725",
    ),
    (
        "rt-tests",
        "rt-hwlatdetect-2.40.txt",
        ("exceeding threshold: 2", "exceeding threshold: 0"),
        "0 samples",
    ),
    (
        "rt-tests-json",
        "rt-pi-2.40.json",
        ('"return_code": 0', '"return_code": 1'),
        "the program ended with 1",
    ),
    ("rt-tests-json", "rt-signaltest-2.40.json", ('"num_threads": 2', '"num_threads": 3'), "2 of 3 threads"),
    ("rt-tests-json", "rt-pmqtest-2.40.json", ('"avg": 5.73', '"avg": 573'), "its avg is 573, from 3 to 43"),
    ("schbench", "schbench-old.txt", ("*99.0000th: 5256", "*99.0000th: 52"), "percentiles do not grow"),
    ("schbench", "schbench-reports.txt", ("runtime 25", "runtime 20"), "its runtime did not grow"),
    ("asv", "asv-1.json", ('"version": 1', '"version": 3'), "it is 3, neither 1 nor 2"),
    ("asv", "asv-2.json", ('[["10", "100"]]', '[["10"]]'), "2 results for 1 combinations"),
    ("asv", "asv-2.json", ("1.8311290342036977e-06", "2.8e-06"), "its quartiles are"),
    ("pytest-benchmark", "pytest-benchmark-3.2.2.json", ('"ops": 335.0', '"ops": 33.0'), "its ops is 33"),
    ("pytest-benchmark", "pytest-benchmark-2.5.0.json", ('"max": 1.1', '"minimum": 1.1'), "max: None where"),
    ("sysbench-0", "sysbench-0.4.12-oltp.txt", ("(20232.89 per", "(2023.34 per"), "are not its events"),
    (
        "sysbench-0",
        "sysbench-0.4.12-memory.txt",
        ("0.17ms\n        max", "1.17ms\n        max"),
        "where its events give",
    ),
    ("sysbench-0", "sysbench-0.5-oltp.txt", ("Threads started!", "FATAL: no table"), "FATAL: no table"),
]


@pytest.mark.parametrize(("name", "file", "change", "problem"), REFUSED)
def test_what_is_no_right_number_is_refused(
    name: str, file: str, change: tuple[str, str], problem: str
) -> None:
    with pytest.raises((OutputDamaged, OutputEmpty)) as error:
        program_outputs.find(name).read(changed(file, change))
    assert problem in error.value.message
    assert len(error.value.message) <= 200


TOLD: list[tuple[str, str, tuple[str, str], str]] = [
    ("benchmarkdotnet", "benchmarkdotnet-0.9.9.json", ("RELEASE", "DEBUG"), "it is a debug build"),
    (
        "criterion",
        "criterion-0.5.1-raw.csv",
        ("sums,xor,64,,,8815386.0,ns,333900\n", ""),
        "9 samples, no multiple",
    ),
    ("hackbench", "hackbench-0.83-groups.txt", ("Time: 0.243\n", ""), "1 of 6 runs printed no time"),
    ("hackbench", "hackbench-0.83-groups.txt", ("0.243", "0.228"), "alike to the last digit"),
    ("lkp", "lkp-matrix.json", ("198310.4,", "0,"), "LKP calls 1 of 4 runs incomplete"),
    ("lkp", "lkp-matrix.json", ("198310.4,", "0,"), "3 numbers are missing, 0, or of runs that failed"),
    ("lkp", "lkp-stats.json", ("_ops", "_oops"), "of 2 statistics the name does not say which way is better"),
    (
        "mmtests",
        "mmtests-hackbench.txt",
        (" patch-v2\nDur", " patch-v3\nDur"),
        "name their columns differently",
    ),
    ("vmstat", "vmstat-3.3.txt", ("71 19", "71"), "1 of 3 lines was not understood"),
    ("vmstat", "vmstat-4.0.2-wide.txt", ("", ""), "means of 4 samples, which are one run"),
    ("mmtests", "mmtests-hackbench.txt", ("Amean     4", "Amean     4:"), "of how many runs the means are"),
    ("lmbench", "lmbench-2alpha8.txt", ("FIFO latency", "FOFO latency"), "1 of 14 lines was not understood"),
    ("lmbench", "lmbench-3.txt", ("Simple read:", "Simple syscall:"), "from 1 to 2 values"),
    ("asv", "asv-1.json", (" 6.59472942352295e-05", " null"), "1 results failed; they are left out"),
    ("asv", "asv-1.json", (" 6.59472942352295e-05", " NaN"), "1 results were skipped"),
    ("asv", "asv-1.json", ("time_units.mem_unit", "time_units.track_unit"), "a unit that this file does not"),
    (
        "sysbench-0",
        "sysbench-0.5-oltp.txt",
        ("ignored errors:                      0 ", "ignored errors: 7 "),
        "7 ignored errors",
    ),
]


@pytest.mark.parametrize(("name", "file", "change", "text"), TOLD)
def test_what_is_left_out_is_told(name: str, file: str, change: tuple[str, str], text: str) -> None:
    report = program_outputs.find(name).read(changed(file, change))
    assert text in " ".join(note.text for note in (*report.failures, *report.notes))


def test_what_jmh_s_scores_scatter_is_kept_but_not_of_sampled_times() -> None:
    metrics = read("jmh-csv", "jmh-1.19.csv").named()
    spread = metrics["my.B.sum size=10: throughput"].spread
    assert spread is not None
    assert spread.runs == 6
    assert spread.standard_error == pytest.approx(34.156295 / 6.868827, rel=1e-5)
    assert metrics["my.B.sum size=10: sampled time"].spread is None
    assert [note.text for note in read("jmh-csv", "jmh-1.37-gc.csv").notes] == [
        "errors take the iterations of all JVMs for independent: they may be too small",
        "28 rows of profilers are not read: gc.alloc.rate",
    ]


def test_a_table_of_jmh_s_that_r_wrote_is_read() -> None:
    format, text = program_outputs.find("jmh-csv"), text_of("jmh-1.37-gc.csv")
    of_r = text.replace("Score Error (99.9%)", "Score.Error..99.9..").replace("Param: size", "Param..size")
    assert format.recognises(of_r)
    assert format.read(of_r) == format.read(text)


def test_hackbench_s_times_alone_are_runs_of_one_kind() -> None:
    format, times = program_outputs.find("hackbench"), "Time: 0.123\nTime: 0.256\nTime: 0.178\n"
    assert format.recognises(times)
    assert format.read(times).named()["time"].values == (0.123, 0.256, 0.178)
    assert not format.recognises(f"{times}Time: 12\n")
    assert format.read(f"{times}Time: ?\n").notes[0].text == "1 of 4 lines was not understood: 'Time: ?'"


def test_catch2_s_benchmarks_of_one_name_have_their_test_case_before_it() -> None:
    text = changed("catch2-2.11.txt", ("Fibonacci~ 5!", "Fibonacci 20 "))
    assert list(program_outputs.find("catch2").read(text).named()) == [
        "Fibonacci 10: time",
        "Fibonacci: Fibonacci 20: time",
        "More Fibonacci: Fibonacci 20: time",
        "Fibonacci-15_bench: time",
    ]


def test_catch2_s_benchmark_that_was_cut_out_of_a_report_is_read() -> None:
    lines = changed("catch2-3.1.0.xml").splitlines()
    [mean] = program_outputs.find("catch2").read("\n".join(lines[3:9])).measured
    assert (mean.of, mean.values) == ("Quick sort", (201340.0,))


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ({"suite.time_one": None, "suite.peakmem_two": None}, "no benchmark has a result: 2 failed"),
        ({"suite.time_one": None, "suite.time_two": math.nan}, "a result: 1 failed, 1 skipped"),
        ({"suite.track_one": 3.0}, "no benchmark has a result whose unit is known"),
    ],
)
def test_asv_s_report_without_a_result_says_why(results: dict[str, float | None], problem: str) -> None:
    document = json.loads(changed("asv-1.json")) | {"results": results}
    with pytest.raises(OutputEmpty, match=problem):
        program_outputs.find("asv").read(json.dumps(document))


def test_fio_s_numbers_that_are_not_read_are_named() -> None:
    document = json.loads(changed("fio-3.33.json"))
    fio = program_outputs.find("fio-json")
    assert fio.read(json.dumps(document)).unread == ("slat_ns", "clat_ns mean", "bw_mean", "iops_mean")
    document["jobs"][0]["sync"] = {"total_ios": 4, "lat_ns": {"mean": 2100.0}}
    assert fio.read(json.dumps(document)).unread[-1] == "sync"


def test_benchmarkdotnet_s_launches_are_values() -> None:
    before = '"LaunchIndex": 1,\n     "IterationIndex": 3,'
    text = changed("benchmarkdotnet-0.15.8-full.json", (before, before.replace("1,", "2,", 1)))
    values = program_outputs.find("benchmarkdotnet").read(text).measured[0].values
    assert len(values) == 2
    assert values[1] == pytest.approx(78.70677709579468)
