"""Quantities and texts as people write them, in the same way wherever they are written."""

import difflib
import re
from collections.abc import Iterable
from decimal import Decimal

DURATIONS = '"100 ms", "90 s", "10 min", "1.5h", "7 d"'
"""Durations as examples, for messages."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(rf"([0-9]*\.?[0-9]+) ?({'|'.join(_SECONDS)})?")
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,15}) ?(?:([KMGT])(?:iB|B)?|(B))?")
"""512M, 512 MiB and 512 MB are one size: a K is 1024 bytes, as memory and caches are counted."""
_SHARE = re.compile(r"([+-]?[0-9]*\.?[0-9]+) ?(%?)")
_LARGEST_NAMED = 1e6
"""Larger ones are no margin in either reading."""
SMALLEST_MEMORY_MIB = 64
LARGEST_MEMORY_MIB = 1024 * 1024


_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 0.01, 3600.0


def seconds(text: str, *, bare: bool = False) -> float:
    """Seconds in `90 s`, `10 min`, `10m`, `1.5h`, `100 ms` or `7 d`; with `bare`, in `90` too.

    Raises ValueError, which says what is allowed.
    """
    match = _DURATION.fullmatch(text.strip())
    if not match or not float(match[1]) or not (match[2] or bare):
        raise ValueError(f"a time is a number above 0 with its unit: {DURATIONS}")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def interval(text: str) -> float:
    """Seconds in `100 ms` or `1 s`, from 10 ms to an hour. Raises ValueError, which says what is allowed."""
    length = seconds(text)
    if not _SHORTEST_INTERVAL <= length <= _LONGEST_INTERVAL:
        raise ValueError("an interval lies between 10 ms and 60 min")
    return length


def size_bytes(text: str, *, bare: bool = False) -> int:
    """Bytes in `32K`, `512M`, `512 MiB`, `1G` or `1 GiB`; with `bare`, in `4096` too.

    Raises ValueError, which says what is allowed.
    """
    match = _SIZE.fullmatch(text)
    if not match or not (match[2] or match[3] or bare):
        plain = " in bytes, or" if bare else ""
        raise ValueError(f"a size is a whole number{plain} with K, M, G or T: 32K, 512M, 1 GiB")
    return int(match[1]) * _BYTES[match[2] or ""]


def size_text(size: int) -> str:
    """`32K` for 32768: `size_bytes` reads the same size from it."""
    letter = next((letter for letter in "TGMK" if size and not size % _BYTES[letter]), "")
    return f"{size // _BYTES[letter]}{letter or 'B'}"


def memory_mib(text: str, *, smallest: int = SMALLEST_MEMORY_MIB) -> int:
    """Mebibytes in `512M`, `512 MiB`, `1G` or `1 GiB`, at least `smallest`.

    Raises ValueError, which says what is allowed.
    """
    try:
        size, remainder = divmod(size_bytes(text), _BYTES["M"])
    except ValueError:
        raise ValueError("a memory size is a whole number with M or G: 512M, 1G") from None
    if remainder:
        raise ValueError("a memory size is a whole number of MiB: 512M, 1G")
    if not smallest <= size <= LARGEST_MEMORY_MIB:
        largest = f"{LARGEST_MEMORY_MIB // 1024}G"
        raise ValueError(f"a memory size lies between {smallest}M and {largest}")
    return size


def share(text: str, *, name: str = "share") -> float:
    """The fraction that `1 %`, `1%` or `+1%` means.

    Raises ValueError, which says what is allowed; of a bare number, which some write for a fraction and
    others for a percentage, both readings.
    """
    match = _SHARE.fullmatch(text.strip())
    if not match:
        raise ValueError(f'a {name} is a percentage: "1 %"')
    if float(match[1]) and not match[2]:
        raise ValueError(_ambiguous(name, float(match[1])))
    return float(Decimal(match[1]) / 100)


def percentage(fraction: float) -> str:
    """`1 %` for 0.01: `share` reads the very same fraction from it."""
    return f"{Decimal(repr(fraction)) * 100:f} %"


def _ambiguous(name: str, number: float) -> str:
    as_percentage = f'as a percentage it is "{number:g} %"'
    if abs(number) >= 1:
        return f"a {name} has its percent sign: {as_percentage}"
    return f'a {name} has its percent sign: as a fraction this is "{100 * number:g} %", {as_percentage}'


def margin(value: str | float) -> float:
    """The fraction that `1 %` or `1%` means. Raises ValueError, which says what is allowed."""
    if not isinstance(value, str) and 0 < abs(value) <= _LARGEST_NAMED:
        raise ValueError(_ambiguous("margin", float(value)))
    fraction = share(value, name="margin") if isinstance(value, str) else value
    if not 0 < fraction < 1:
        raise ValueError("a margin lies above 0 % and below 100 %")
    return float(fraction)


# Texts.


def one_line(text: str) -> str:
    """The text. Raises ValueError where it holds control characters."""
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("it holds control characters")
    return text


def plain_text(text: str) -> str:
    """Text of one line. Raises ValueError where it is empty or holds control characters."""
    if not text.strip():
        raise ValueError("it is empty")
    return one_line(text)


def boot_text(text: str) -> str:
    """A boot parameter, or its value. Raises ValueError where the kernel would read more than one."""
    # A quoted value may hold spaces: dyndbg="file sched.c +p".
    if not re.fullmatch(r'(?:[^\s"]|"[^"]*")*', text):
        raise ValueError("spaces separate boot parameters: give one at a time, or quote its value")
    return text


def io_limit(text: str) -> str:
    """A line of io.max (Documentation/admin-guide/cgroup-v2.rst). Raises ValueError."""
    if not re.fullmatch(r"[0-9]+:[0-9]+( (rbps|wbps|riops|wiops)=([0-9]+|max))+", plain_text(text)):
        raise ValueError("a limit names a device and what it may do: 8:0 rbps=1048576 wiops=120")
    return text


def guest_path(text: str) -> str:
    """An absolute path. Raises ValueError."""
    if not plain_text(text).startswith("/") or ".." in text.split("/"):
        raise ValueError("it is a path in the guest: it begins with / and holds no ..")
    return text


def regular_expression(text: str) -> str:
    """A regular expression with one group. Raises ValueError."""
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"it has {groups} groups, and needs one, around the number: ([0-9.]+)")
    return text


def nearest(name: str, names: Iterable[str], count: int = 3) -> str:
    """Return ` (did you mean a, b or c?)`, or an empty string where nothing is near."""
    *first, last = difflib.get_close_matches(name, list(names), n=count) or [""]
    if not last:
        return ""
    return f" (did you mean {' or '.join(filter(None, [', '.join(first), last]))}?)"
