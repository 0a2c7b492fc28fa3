"""Memory sizes and margins as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ktrial.model import notation


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("64M", 64),
        ("512M", 512),
        ("512 MiB", 512),
        ("1G", 1024),
        ("2GiB", 2048),
        ("1024G", 1 << 20),
        ("1T", 1 << 20),
        ("1GB", 1024),
    ],
)
def test_a_memory_size_is_read(text: str, mib: int) -> None:
    assert notation.memory_mib(text) == mib


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
