"""Durations, sizes and shares: one way to write each, wherever they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrial.cli.command_line import BadOption
from ktrial.cli.options.common import duration
from ktrial.cli.options.counting import CacheOptions
from ktrial.machines.qemu.snapshot_cache import snapshots_limit
from ktrial.model import notation

SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
BYTES = {
    unit: 1024**power
    for power, letter in enumerate("KMGT", start=1)
    for unit in (letter, f"{letter}iB", f"{letter}B")
}
SPACE = st.sampled_from(["", " "])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("100 ms", 0.1),
        ("600 s", 600),
        ("600s", 600),
        ("10 min", 600),
        ("10min", 600),
        ("10m", 600),
        ("10 m", 600),
        ("1.5h", 5400),
        (".5 h", 1800),
        ("6h", 21600),
        ("1d", 86400),
        (" 90 s ", 90),
    ],
)
def test_a_duration_is_read_in_the_same_way_everywhere(text: str, seconds: float) -> None:
    assert notation.seconds(text) == pytest.approx(seconds)
    assert duration("--every", text) == pytest.approx(seconds)


def test_a_number_without_a_unit_is_seconds_where_that_was_always_so() -> None:
    assert duration("--block-time", "90", bare=True) == 90
    for read in (notation.seconds, notation.interval):
        with pytest.raises(ValueError, match='a time is a number above 0 with its unit: "100 ms", "90 s"'):
            read("90")
    with pytest.raises(
        BadOption, match="--every: 90 is not a time: a time is a number above 0 with its unit"
    ):
        duration("--every", "90")


@pytest.mark.parametrize(
    "text", ["", "s", "0 s", "-1 s", "1e3 s", "1,5 h", "10 minutes", "10  min", "5 M", "1 h 30 min", "nan s"]
)
def test_what_is_no_duration_is_refused_everywhere(text: str) -> None:
    with pytest.raises(ValueError, match="a time is a number above 0 with its unit"):
        notation.seconds(text)
    for bare in (False, True):
        with pytest.raises(BadOption):
            duration("--time", text, bare=bare)


@given(st.integers(1, 10**6), st.sampled_from([*SECONDS]), SPACE)
def test_every_number_with_every_unit_of_time_is_read(number: int, unit: str, space: str) -> None:
    assert notation.seconds(f"{number}{space}{unit}") == pytest.approx(number * SECONDS[unit], rel=1e-12)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32K", 32 << 10),
        ("512M", 512 << 20),
        ("512 MiB", 512 << 20),
        ("1G", 1 << 30),
        ("1 GiB", 1 << 30),
        ("10GB", 10 << 30),
        ("2T", 2 << 40),
        ("4096B", 4096),
    ],
)
def test_a_size_is_read_in_the_same_way_everywhere(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notation.size_bytes(text) == size
    monkeypatch.setenv("KTRIAL_SNAPSHOT_LIMIT", text)
    assert snapshots_limit() == size


def test_a_size_without_a_unit_is_bytes_where_that_was_always_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_SNAPSHOT_LIMIT", "1048576")
    assert snapshots_limit() == 1 << 20
    caches = CacheOptions(l1d="32768:8:64").shapes()
    assert caches is not None
    assert caches == CacheOptions(l1d="32K:8").shapes() == CacheOptions(l1d="32 KiB:8:64").shapes()
    with pytest.raises(ValueError, match="a size is a whole number with K, M, G or T"):
        notation.size_bytes("4096")
    with pytest.raises(ValueError, match="a memory size is a whole number with M or G"):
        notation.memory_mib("4096")


@pytest.mark.parametrize(
    "text", ["", "K", "1.5G", "-1G", "512m", "1Gb", "1 Gi", "1  G", "1e3M", "9" * 16 + "K"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a size is a whole number in bytes, or with K, M, G or T"):
        notation.size_bytes(text, bare=True)


@given(st.integers(0, 10**15 - 1), st.sampled_from([*BYTES]), SPACE)
def test_every_number_with_every_unit_of_size_is_read(number: int, unit: str, space: str) -> None:
    assert notation.size_bytes(f"{number}{space}{unit}") == number * BYTES[unit]


@given(st.integers(64, 1 << 20), SPACE)
def test_memory_is_read_as_it_was_written(mib: int, space: str) -> None:
    assert notation.memory_mib(f"{mib}{space}MiB") == mib
    assert notation.memory_mib(f"{mib * 1024}{space}K") == mib


@pytest.mark.parametrize(
    ("text", "fraction"), [("1 %", 0.01), ("+1%", 0.01), ("-3.2 %", -0.032), ("100%", 1.0)]
)
def test_a_share_is_read(text: str, fraction: float) -> None:
    assert notation.share(text) == pytest.approx(fraction, rel=1e-15)


@given(st.decimals(min_value=-1000, max_value=1000, places=4), SPACE)
def test_every_percentage_is_the_fraction_that_it_means(percent: object, space: str) -> None:
    assert notation.share(f"{percent}{space}%") == pytest.approx(float(str(percent)) / 100, abs=1e-12)


@pytest.mark.parametrize("text", ["", "%", "much", "1e-2", "1 %%", "+-1 %", "nan", "0.01", "1"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a share (is a percentage|has its percent sign)"):
        notation.share(text)


@pytest.mark.parametrize(
    "text", ["", "512", "M", "1.0G", "-1G", "512m", "100K", "512 M ", "1e3M", "63M", "1025G", "9" * 40]
)
def test_a_memory_size_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a memory size"):
        notation.memory_mib(text)


@pytest.mark.parametrize(
    ("written", "fraction"),
    [
        ("1 %", 0.01),
        ("1%", 0.01),
        ("0.5 %", 0.005),
        (".5%", 0.005),
        (" 2 % ", 0.02),
    ],
)
def test_a_margin_is_read(written: str, fraction: float) -> None:
    assert notation.margin(written) == pytest.approx(fraction, rel=1e-15)


@pytest.mark.parametrize(
    ("written", "readings"),
    [
        ("0.5", ('as a fraction this is "50 %"', 'as a percentage it is "0.5 %"')),
        (0.01, ('as a fraction this is "1 %"', 'as a percentage it is "0.01 %"')),
        ("2", ('as a percentage it is "2 %"',)),
        (1, ('as a percentage it is "1 %"',)),
    ],
)
def test_a_bare_number_is_refused_with_both_readings(written: str | float, readings: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="percent sign") as told:
        notation.margin(written)
    assert all(reading in str(told.value) for reading in readings)


@given(st.floats(min_value=1e-9, max_value=0.999999))
def test_a_fraction_written_as_a_percentage_is_read_as_the_same_number(fraction: float) -> None:
    assert notation.share(notation.percentage(fraction)) == fraction


@pytest.mark.parametrize(
    "written",
    ["", "%", "0.02", 0.02, "1 ms", "-1 %", "1e-2", "100 %", "0", 0, 1, -0.5, 10**400, float("nan")],
)
def test_a_margin_that_cannot_be_meant_is_refused(written: str | float) -> None:
    with pytest.raises(ValueError, match="a margin"):
        notation.margin(written)
