"""What programs really printed (those of Debian 12, pyperf 2 of PyPI), and every number read of it."""

import pytest
from tests.support.places import FOREIGN, PROGRAM_OUTPUTS
from tests.support.program_texts import HIGHER, LOWER, changed, numbers, read, text_of

from ktrial import program_outputs
from ktrial.model.workload import Direction
from ktrial.program_outputs import FormatNotKnown, OutputDamaged, OutputEmpty

READ = [
    (
        "go-bench",
        "go-bench-without-counts.txt",
        {
            "BenchmarkEncode-2: time": ((271.5,), "ns/op", LOWER),
            "BenchmarkDecoder-2: throughput": ((569.24,), "MB/s", HIGHER),
        },
    ),
    (
        "iperf3-json",
        "iperf3-3.6.json",
        {"throughput": ((7885.378079874256,), "Mbit/s", HIGHER), "retransmits": ((17,), "", LOWER)},
    ),
    ("iperf3-json", "iperf3-3.12.json", {"throughput": ((7666.192057640323,), "Mbit/s", HIGHER)}),
    (
        "jmh-json",
        "jmh-1.19-ten-forks.json",
        {
            "throughput": (
                (
                    3210788.0695886347,
                    2529598.443558374,
                    2397782.856173727,
                    1772695.0263233408,
                    1676022.890696359,
                    1115712.4262409317,
                    2652986.966042938,
                    3587318.4724636297,
                    7144464.92630812,
                    1898573.2245289714,
                ),
                "ops/s",
                HIGHER,
            )
        },
    ),
    (
        "fio-json",
        "fio-3.33.json",
        {
            "read rate": ((14844.155844,), "IOPS", HIGHER),
            "read throughput": ((60801662 / 1024,), "KiB/s", HIGHER),
            "read latency": ((66692.100478,), "ns", LOWER),
            "read latency p99": ((112128,), "ns", LOWER),
        },
    ),
    (
        "fio-json",
        "fio-3.33-jobs.json",
        {
            "a: read rate": ((9018.181818,), "IOPS", HIGHER),
            "a: write latency p99": ((16768,), "ns", LOWER),
            "b: write rate": ((204800,), "IOPS", HIGHER),
            "b (2): write rate": ((170666.666667,), "IOPS", HIGHER),
        },
    ),
    ("fio-json", "fio-3.33-json-and-text.txt", {"read rate": ((85333.333333,), "IOPS", HIGHER)}),
    (
        "cyclictest-json",
        "cyclictest-2.40.json",
        {
            "latency": ((1000 * (799 * 386.57 + 627 * 216.80) / (799 + 627),), "ns", LOWER),
            "worst latency": ((35_685_000,), "ns", LOWER),
        },
    ),
    (
        "google-benchmark",
        "google-benchmark-1.7.1.json",
        {
            "BM_a: real time": ((271.7037200, 262.27408, 184.3960900), "ns", LOWER),
            "BM_man/iterations:5/manual_time: real time": ((1e6, 1e6, 1e6), "ns", LOWER),
        },
    ),
    ("google-benchmark", "google_benchmark.json", {"real time": ((812.5, 815.0, 811.0), "ns", LOWER)}),
    (
        "hyperfine",
        "hyperfine-1.15.json",
        {"sleep 0.01: time": ((0.0116863, 0.01558816, 0.016604533, 0.015776105, 0.01330652), "s", LOWER)},
    ),
    ("pyperf", "pyperf.json", {"time": ((0.0011, 0.0011, 0.0013), "s", LOWER)}),
    (
        "perf-stat",
        "perf-stat-6.1.187-without-pmu.csv",
        {"task-clock": ((0.9,), "ms", LOWER), "page-faults": ((49,), "", LOWER)},
    ),
    ("perf-stat", "perf-stat-6.1.187.json", {"task-clock": ((0.809249,), "ms", LOWER)}),
    (
        "perf-stat",
        "perf-stat-6.1.187.txt",
        {
            "task-clock": ((0.79,), "ms", LOWER),
            "page-faults": ((48,), "", LOWER),
            "time elapsed": ((0.005094835,), "s", LOWER),
            "user": ((0.001599,), "s", LOWER),
        },
    ),
    ("perf-stat", "perf-stat-6.1.187-runs.txt", {"time elapsed": ((0.000751,), "s", LOWER)}),
    ("perf-stat", "perf-stat-6.1.187-runs.csv", {"task-clock": ((0.76,), "ms", LOWER)}),
    (
        "pgbench",
        "pgbench-15.txt",
        {"transactions": ((168.841548,), "1/s", HIGHER), "latency": ((23.691,), "ms", LOWER)},
    ),
    (
        "stress-ng-yaml",
        "stress-ng-0.15.06-two.yaml",
        {
            "cpu: operations": ((176.311093,), "1/s", HIGHER),
            "pipe: operations by CPU time": ((412643.911736,), "1/s", HIGHER),
        },
    ),
    (
        "sysbench",
        "sysbench-cpu-1.0.20.txt",
        {
            "events": ((3372.79,), "1/s", HIGHER),
            "latency": ((999.22 / 3377,), "ms", LOWER),
            "latency p95": ((0.32,), "ms", LOWER),
        },
    ),
    ("sysbench", "sysbench-memory-1.0.20.txt", {"throughput": ((8012.54,), "MiB/s", HIGHER)}),
    (
        "sysbench",
        "sysbench-fileio-1.0.20.txt",
        {"fsync rate": ((3761.5,), "1/s", HIGHER), "write throughput": ((587.42,), "MiB/s", HIGHER)},
    ),
    ("sysbench", "sysbench-oltp-1.0.20.txt", {"transactions": ((244.97,), "1/s", HIGHER)}),
    ("sysbench", "sysbench-threads-1.0.20.txt", {"events": ((1893 / 1.0041,), "1/s", HIGHER)}),
    (
        "wrk",
        "nginx-wrk-4.1.0.txt",
        {
            "requests": ((21726.72,), "1/s", HIGHER),
            "throughput": ((89.86 * 1024,), "KiB/s", HIGHER),
            "latency": ((3450,), "µs", LOWER),
            "latency p99": ((14180,), "µs", LOWER),
        },
    ),
]


@pytest.mark.parametrize(
    ("name", "file", "wanted"), READ, ids=lambda each: each if isinstance(each, str) else ""
)
def test_what_a_program_printed_is_read(
    name: str, file: str, wanted: dict[str, tuple[tuple[float, ...], str, Direction]]
) -> None:
    got = numbers(read(name, file))
    for metric, (values, unit, direction) in wanted.items():
        assert got[metric][0] == pytest.approx(values), metric
        assert got[metric][1:] == (unit, direction), metric


@pytest.mark.parametrize(
    "file", [*PROGRAM_OUTPUTS.iterdir(), *FOREIGN.iterdir()], ids=lambda file: str(file.name)
)
def test_no_output_is_taken_for_another_program_s(file: object) -> None:
    name = getattr(file, "name", "")
    formats, _ = program_outputs.installed()
    taken = [each for each, one in formats.items() if one.recognises(text_of(name))]
    assert len(taken) <= 1
    assert all(name.replace("_", "-").removeprefix("nginx-").startswith(each.split("-")[0]) for each in taken)


def test_every_metric_that_is_read_stands_in_its_format_s_table() -> None:
    formats, warnings = program_outputs.installed()
    assert not warnings
    for name, file, _ in READ:
        if name == "perf-stat":
            continue
        known = {(each.metric, each.unit, each.direction) for each in formats[name].columns}
        assert {(each.metric, each.unit, each.direction) for each in read(name, file).measured} <= known, file


def test_an_unknown_format_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(FormatNotKnown, match=r"no format of metrics fio-josn \(did you mean fio-json"):
        program_outputs.find("fio-josn")


TOLD = [
    ("fio-json", "fio-3.33-jobs.json", "2 jobs are called b"),
    ("google-benchmark", "google-benchmark-1.7.1.json", "3 benchmarks report an error"),
    ("hyperfine", "hyperfine-1.15-stdout.txt", "true: 2 of its 2 times are 0"),
    ("hyperfine", "hyperfine.json", "1 runs ended with an error"),
    ("perf-stat", "perf-stat-6.1.187.txt", "did not count cycles, instructions, branches, branch-misses"),
    ("perf-stat", "perf-stat-6.1.187-runs.txt", "the means of 3 runs"),
    ("perf-stat", "perf-stat-6.1.187-runs.csv", "the means of several runs"),
    ("sysbench", "sysbench-fileio-1.0.20.txt", "the 95th percentile is printed as 0.00 ms"),
]


@pytest.mark.parametrize(("name", "file", "text"), TOLD)
def test_what_is_left_out_is_told(name: str, file: str, text: str) -> None:
    report = read(name, file)
    assert text in " ".join(each.text for each in (*report.failures, *report.notes))


REFUSED = [
    ("google-benchmark", "google-benchmark-1.7.1-aggregates.json", "there are aggregates only"),
    ("hyperfine", "hyperfine-1.15-failed.json", "all 3 runs of false ended with an error"),
    ("perf-stat", "perf-stat-6.1.187-intervals.csv", "it tells parts of the run"),
    ("perf-stat", "perf-stat-6.1.187-each-cpu.csv", "it tells parts of the run"),
    ("cyclictest-json", "cyclictest-2.40-overwritten.json", "there is no JSON object in it"),
]


@pytest.mark.parametrize(("name", "file", "text"), REFUSED)
def test_what_cannot_be_one_right_number_is_refused(name: str, file: str, text: str) -> None:
    with pytest.raises((OutputDamaged, OutputEmpty), match=text):
        read(name, file)


OTHERWISE = [
    ("fio-json", "fio-3.33.json", (('"error": 0', '"error": 5'),), "the job t reports error 5"),
    ("fio-json", "fio-3.33.json", (("14844.155844", "-1"),), "t, read, iops: -1 where a number from 0"),
    ("fio-json", "fio-3.33.json", (("14844.155844", "NaN"),), "nan where a number from 0"),
    ("fio-json", "fio-3.33.json", (('"iops": 14844.155844,', ""),), "t, read, iops: None where a number"),
    ("fio-json", "fio-3.33.json", (('"runtime": 1001', '"runtime": 0'),), "less than a millisecond"),
    ("fio-json", "fio-3.33.json", (('"total_ios": 14859', '"total_ios": 0'),), "no job did an operation"),
    (
        "fio-json",
        "fio-3.33.json",
        (('"bw": 59376,', '"bw": 59376, "iops": 1,'),),
        "the key 'iops' is there twice, with different values",
    ),
    ("fio-json", "fio-3.33.json", (('"jobs": [', '"client_stats": ['),), "jobs: a list of objects"),
    (
        "cyclictest-json",
        "cyclictest-2.40.json",
        (('"num_threads": 2', '"num_threads": 3'),),
        "2 of 3 threads",
    ),
    ("cyclictest-json", "cyclictest-2.40.json", (('"cycles": 799', '"cycles": 0'),), "it never woke up"),
    ("cyclictest-json", "cyclictest-2.40.json", (('"return_code": 0', '"return_code": 1'),), "ended with 1"),
    (
        "cyclictest-json",
        "cyclictest-2.40.json",
        (('"resolution_in_ns": 0', '"resolution_in_ns": 2'),),
        "resolution_in_ns",
    ),
    ("google-benchmark", "google_benchmark.json", (('"ns"', '"ticks"'),), "its time_unit is 'ticks'"),
    ("hyperfine", "hyperfine-1.15.json", (("0.0116863", "-0.01"),), "a time is below 0"),
    ("pyperf", "pyperf.json", (("0.0010", "-0.0010"),), "-0.001 where a number from 0"),
    ("perf-stat", "perf-stat-6.1.187-without-pmu.csv", (("0.90", "0,90"),), "decimal commas"),
    ("perf-stat", "perf-stat-6.1.187.txt", (("0.79 msec", "0,79 msec"),), "LC_ALL=C"),
    ("perf-stat", "perf-stat-6.1.187.txt", (("  48      page", "  48.12   page"), ("0.79", "1.2.3")), "task"),
    (
        "perf-stat",
        "perf-stat-6.1.187-without-pmu.csv",
        (("minor-faults", "page-faults"),),
        "page-faults: it is there 2 times",
    ),
    ("pgbench", "pgbench-15.txt", (("latency average = 23.691 ms", ""),), "latency average"),
    ("pgbench", "pgbench-15.txt", (("168.841548", "nan"),), "'nan' where a number from 0"),
    ("pgbench", "pgbench-15.txt", (("168.841548", "0.000000"),), "no transaction was processed"),
    ("pgbench", "pgbench-15.txt", (("tps = ", "Run was aborted\ntps = "),), "the run was aborted"),
    ("stress-ng-yaml", "stress-ng-0.15.06.yaml", (("metrics:", "other:"),), "--metrics asks for them"),
    ("stress-ng-yaml", "stress-ng-0.15.06.yaml", (("bogo-ops: 2382", "bogo-ops: 0"),), "did no operation"),
    ("stress-ng-yaml", "stress-ng-0.15.06.yaml", (("2369.809980", ".nan"),), "'.nan' where a number"),
    ("sysbench", "sysbench-cpu-1.0.20.txt", (("3372.79", "3,372.79"),), "LC_ALL=C"),
    (
        "sysbench",
        "sysbench-cpu-1.0.20.txt",
        (("events:              3377", "events: 0"),),
        "there was no event",
    ),
    ("sysbench", "sysbench-cpu-1.0.20.txt", (("Latency (ms):", "Latency:"),), "Latency"),
    ("wrk", "nginx-wrk-4.1.0.txt", (("89.86MB", "89.86XB"),), "'89.86X' where a number"),
    ("wrk", "nginx-wrk-4.1.0.txt", (("3.45ms    3.45ms", "3.45xs    3.45ms"),), "'3.45x' where a number"),
    ("wrk", "nginx-wrk-4.1.0.txt", (("21726.72", "0.00"),), "no request was answered"),
    (
        "wrk",
        "nginx-wrk-4.1.0.txt",
        (("Requests/sec", "  Socket errors: connect 0, read 3, write 0, timeout 0\nRequests/sec"),),
        "not all requests were answered: Socket errors: connect 0, read 3",
    ),
]


@pytest.mark.parametrize(("name", "file", "changes", "text"), OTHERWISE)
def test_what_is_no_right_number_is_an_error_that_says_where(
    name: str, file: str, changes: tuple[tuple[str, str], ...], text: str
) -> None:
    with pytest.raises((OutputDamaged, OutputEmpty)) as told:
        program_outputs.find(name).read(changed(file, *changes))
    assert text in told.value.message


ONE_REPORT = {name: file for name, file, _ in READ if name != "go-bench"}
"""Go's reports are put together, as -count does."""


@pytest.mark.parametrize(("name", "file"), sorted(ONE_REPORT.items()))
def test_two_reports_in_one_output_are_no_report(name: str, file: str) -> None:
    twice = text_of(file).rstrip() + "\n" + text_of(file)
    with pytest.raises(OutputDamaged):
        program_outputs.find(name).read(twice)
