"""Quantities as people write them: memory sizes and margins."""

import re

_MEBIBYTES = {"M": 1, "MiB": 1, "G": 1024, "GiB": 1024}
SMALLEST_MEMORY_MIB = 64
LARGEST_MEMORY_MIB = 1024 * 1024


def memory_mib(text: str, *, smallest: int = SMALLEST_MEMORY_MIB) -> int:
    """Mebibytes in `512M`, `512 MiB`, `1G` or `1 GiB`, at least `smallest`.

    Raises ValueError, which says what is allowed.
    """
    match = re.fullmatch(r"([0-9]{1,9}) ?([A-Za-z]*)", text)
    if not match or match[2] not in _MEBIBYTES:
        raise ValueError("a memory size is a whole number with M or G: 512M, 1G")
    size = int(match[1]) * _MEBIBYTES[match[2]]
    if not smallest <= size <= LARGEST_MEMORY_MIB:
        largest = f"{LARGEST_MEMORY_MIB // 1024}G"
        raise ValueError(f"a memory size lies between {smallest}M and {largest}")
    return size


def margin(value: str | float) -> float:
    """The fraction that `1 %`, `1%` or `0.01` means. Raises ValueError, which says what is allowed."""
    fraction = _fraction(value) if isinstance(value, str) else value
    if not 0 < fraction < 1:
        raise ValueError("a margin lies above 0 and below 100 % (below 1, as a fraction)")
    return float(fraction)


def _fraction(text: str) -> float:
    match = re.fullmatch(r"([0-9]*\.?[0-9]+) ?(%?)", text.strip())
    if not match:
        raise ValueError('a margin is a percentage or a fraction: "1 %" or 0.01')
    return float(match[1]) / (100 if match[2] else 1)


_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Seconds in `90 s`, `10 min` or `2 h`. Raises ValueError, which says what is allowed."""
    return _seconds(text, r"s|min|h", '"90 s", "10 min", "2 h"')


_SHORTEST, _LONGEST = 0.01, 3600.0


def interval(text: str) -> float:
    """Seconds in `100 ms` or `1 s`, from 10 ms to an hour. Raises ValueError, which says what is allowed."""
    found = _seconds(text, r"ms|s|min", '"100 ms", "1 s"')
    if not _SHORTEST <= found <= _LONGEST:
        raise ValueError("an interval lies between 10 ms and 60 min")
    return found


def _seconds(text: str, units: str, examples: str) -> float:
    match = re.fullmatch(rf"([0-9]*\.?[0-9]+) ?({units})", text.strip())
    if not match or not float(match[1]):
        raise ValueError(f"a time is a number above 0 with its unit: {examples}")
    return float(match[1]) * _SECONDS[match[2]]
