"""Memory sizes and margins as people write them."""

import pytest

from ktrial.model import quantities


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
    assert quantities.memory_mib(text) == mib


@pytest.mark.parametrize(
    "text", ["", "512", "M", "1.0G", "-1G", "512m", "100K", "512 M ", "1e3M", "63M", "1025G", "9" * 40]
)
def test_a_memory_size_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a memory size"):
        quantities.memory_mib(text)


@pytest.mark.parametrize(
    ("written", "fraction"),
    [
        ("1 %", 0.01),
        ("1%", 0.01),
        ("0.5 %", 0.005),
        (".5%", 0.005),
        ("0.02", 0.02),
        (0.02, 0.02),
        (" 2 % ", 0.02),
    ],
)
def test_a_margin_is_read(written: str | float, fraction: float) -> None:
    assert quantities.margin(written) == pytest.approx(fraction, rel=1e-15)


@pytest.mark.parametrize(
    "written", ["", "%", "1 ms", "-1 %", "1e-2", "100 %", "0", 0, 1, -0.5, 10**400, float("nan")]
)
def test_a_margin_that_cannot_be_meant_is_refused(written: str | float) -> None:
    with pytest.raises(ValueError, match="a margin"):
        quantities.margin(written)
