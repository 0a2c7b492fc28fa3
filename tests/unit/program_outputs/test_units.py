"""The grammar of units: endings of columns, brackets, cells; what is better, converts, or is asked for."""

import pytest
from tests.support.program_texts import HIGHER, LOWER

from ktrial.model.workload import Direction
from ktrial.program_outputs.units import Units, converted, converts, direction_of, unit_named, units_said

COLUMNS = [
    ("throughput_mbit_s", "Mbit/s", HIGHER),
    ("throughput_gbit_s", "Gbit/s", HIGHER),
    ("total_tx_s", "tx/s", HIGHER),
    ("rx_pkts_s", "pkts/s", HIGHER),
    ("sent_msgs_s", "msgs/s", HIGHER),
    ("write_kib_sec", "KiB/s", HIGHER),
    ("total_ops_per_s", "ops/s", HIGHER),
    ("rate_per_sec", "1/s", HIGHER),
    ("errors_per_s", "errors/s", LOWER),
    ("kops_s", "kops/s", HIGHER),
    ("mean_mb_s", "MB/s", HIGHER),
    ("read_iops", "IOPS", HIGHER),
    ("opsPerSec", "ops/s", HIGHER),
    ("totalMBps", "MB/s", HIGHER),
    ("bandwidth_gbps", "Gbit/s", HIGHER),
    ("elapsed_s", "s", LOWER),
    ("wall_seconds", "s", LOWER),
    ("p99_us", "us", LOWER),
    ("latencyUs", "us", LOWER),
    ("ns_per_op", "ns/op", LOWER),
    ("allocs/op", "allocs/op", LOWER),
    ("Time (ms)", "ms", LOWER),
    ("latency [us]", "us", LOWER),
    ("Transfer (KB/s)", "KB/s", HIGHER),
    ("read, MiB/s", "MiB/s", HIGHER),
    ("Requests/sec", "Requests/s", HIGHER),
    ("Frames Per Second", "Frames/s", HIGHER),
    ("Score (lower is better)", "index", LOWER),
]


@pytest.mark.parametrize(("name", "symbol", "direction"), COLUMNS)
def test_a_column_s_name_tells_its_unit_and_what_is_better(
    name: str, symbol: str, direction: Direction
) -> None:
    unit = Units().of_column(name).unit
    assert unit is not None
    assert (unit.symbol, unit.direction) == (symbol, direction)


@pytest.mark.parametrize("name", ["foo_s", "builds_s", "kernel_sec", "query_s", "write_s", "runs_s"])
def test_an_ending_that_may_be_seconds_or_so_many_a_second_is_not_guessed(name: str) -> None:
    named = Units().of_column(name)
    counted = name.rpartition("_")[0]
    assert (named.unit, named.direction) == (None, None)
    assert named.meanings == (f"{name}=s", f"{name}={counted}/s")


@pytest.mark.parametrize("name", ["value", "min", "rows", "energy_j", "sys", "time_stamp", "swappiness", ""])
def test_a_name_that_tells_no_unit_has_none(name: str) -> None:
    assert Units().of_column(name).unit is None


@pytest.mark.parametrize(
    ("value", "unit", "target", "result"),
    [
        (9000.0, "us", "ms", 9.0),
        (1.5, "Seconds", "ms", 1500.0),
        (940.0, "Mbits/sec", "Gbit/s", 0.94),
        (8.0, "Mbit/s", "MB/s", 1.0),
        (1.0, "MiB/s", "KiB/s", 1024.0),
        (3.0, "ops/ms", "ops/s", 3000.0),
        (2.0, "kIOPS", "IOPS", 2000.0),
        (60.0, "lpm", "lps", 1.0),
        (4.0, "us/op", "ns/op", 4000.0),
    ],
)
def test_values_convert_within_a_quantity(value: float, unit: str, target: str, result: float) -> None:
    assert converts(unit, target)
    assert converted(value, unit, target) == result


@pytest.mark.parametrize(
    ("unit", "target"),
    [("ms", "MB/s"), ("mb/s", "MB/s"), ("mbps", "MB/s"), ("ns/op", "ns"), ("ops/s", "tx/s"), ("x", "x")],
)
def test_what_is_another_quantity_or_is_written_for_two_units_does_not_convert(
    unit: str, target: str
) -> None:
    assert not converts(unit, target)
    with pytest.raises(ValueError, match=f"{unit} is no {target}"):
        converted(1.0, unit, target)


def test_bytes_tell_no_direction() -> None:
    assert [direction_of(unit) for unit in ("KiB", "%", "widgets", "")] == [None] * 4


@pytest.mark.parametrize(
    ("text", "column", "symbol", "direction"),
    [
        ("foo_s=foo/s", "total foo_s", "foo/s", HIGHER),
        ("zorps=zorps:lower", "zorps", "zorps", LOWER),
        ("time=ms", "time", "ms", LOWER),
        ("mb/s=MiB/s", "rate (mb/s)", "MiB/s", HIGHER),
    ],
)
def test_what_the_user_says_of_a_unit_holds(
    text: str, column: str, symbol: str, direction: Direction
) -> None:
    unit = units_said([text]).of_column(column).unit
    assert unit is not None
    assert (unit.symbol, unit.direction) == (symbol, direction)


@pytest.mark.parametrize("text", ["mbit_s", "=s", "a=", "zorps=zorps", "a=b:better"])
def test_what_says_nothing_of_a_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"NAME=UNIT|say which way is better"):
        units_said([text])


def test_kib_is_1024_bytes_and_kb_1000() -> None:
    assert [unit.factor for text in ("KiB", "kB", "Kbit") if (unit := unit_named(text))] == [1024, 1000, 125]
