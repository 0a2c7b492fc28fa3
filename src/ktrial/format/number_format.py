"""Numbers, durations and moments as people read them."""

import math
from datetime import UTC, datetime
from fractions import Fraction

NONE = "–"
MINUS = "\u2212"
_OPEN = "∞"
SPACE = "\u00a0"
"""Keeps a number and its unit on one line."""


def number(value: float | None) -> str:
    """`163,150`, `320.5`, `0.00214`; `–` where there is none. Five significant digits below 10 000."""
    if value is None:
        return NONE
    if not math.isfinite(value):
        return _infinite(value)
    text = f"{value:,.0f}" if abs(value) >= 10_000 else _significant(value)
    return text.replace("-", MINUS) if value < 0 and text.strip("-0.") else text.lstrip("-")


# Times: whatever unit they were measured in, people read them in s, ms, µs or ns.

_IN_SECONDS = {
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanoseconds"), 1e-9),
    **dict.fromkeys(("us", "\u00b5s", "\u03bcs", "usec", "usecs", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "msecs", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "seconds"), 1.0),
}
_SHOWN_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "\u00b5s"), (1e-9, "ns"))


def seconds_in(unit: str) -> float | None:
    """How long `ns`, `usecs` or `ns/operation` is, in seconds; None where the unit is no time."""
    return _IN_SECONDS.get(unit.partition("/")[0])


def is_time(unit: str) -> bool:
    """Whether a metric of this unit is a time."""
    return seconds_in(unit) is not None


def quantity(value: float | None, unit: str) -> str:
    """A measured value: a time in three digits with its unit, `31.0 ms` for 31,020,920 ns; else `number`."""
    if value is None or not value or not math.isfinite(value) or not is_time(unit):
        return number(value)
    rounded = float(f"{value:.3g}")
    scale, shown = time_scale(rounded, unit)
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded) * scale) + 1e-9))
    size = abs(value) * scale
    text = f"{size:,.{decimals}f}" if decimals <= 5 else f"{size:.3g}"
    return f"{MINUS if value < 0 else ''}{text}{SPACE}{shown}"


def time_scale(value: float, unit: str) -> tuple[float, str]:
    """By what to multiply times in this unit, and in which one they are then: that in which `value` is read.

    Another unit's values stay as they are, and say no unit.
    """
    factor = seconds_in(unit)
    if factor is None:
        return 1.0, ""
    seconds = abs(value) * factor * (1 + 1e-9)
    size, shown = next((fit for fit in _SHOWN_TIMES if seconds >= fit[0]), _SHOWN_TIMES[-1])
    return factor / size, shown


def change(ratio: float | None, *, percent: bool = True) -> str:
    """A ratio as relative change: `+35.80 %`, `−2.10 %`, `0.00 %`; `–` where there is none."""
    if ratio is None:
        return NONE
    if not math.isfinite(ratio):
        return _infinite(ratio)
    value = (ratio - 1) * 100
    text = f"{abs(value):,.0f}" if abs(value) >= 1000 else f"{abs(value):.2f}"
    sign = ("+" if value > 0 else MINUS) if text != "0.00" else ""
    return f"{sign}{text}{SPACE}%" if percent else f"{sign}{text}"


def step(ratio: float | None, value: float | None, unit: str = "") -> str:
    """`change` of a ratio; where there is none, as after zero, what it came to: `→ 272`, `→ 1.20 ms`."""
    return f"→{SPACE}{quantity(value, unit)}" if ratio is None and value is not None else change(ratio)


def interval(low: float | None, high: float | None) -> str:
    """The interval of a ratio as relative changes, in %: `+35.72 … +35.91`; empty where there is none.

    One end alone: the other is open, `+35.72 … ∞` or `−100.00 … −12.10`.
    """
    if low is None and high is None:
        return ""
    return f"{change(low or 0.0, percent=False)} … {_OPEN if high is None else change(high, percent=False)}"


def percentage(fraction: float, *, space: str = SPACE) -> str:
    """`1 %`, `0.5 %`, `0.016 %`: at most two significant digits below 10 %."""
    value = fraction * 100
    text = f"{value:.0f}" if value >= 10 else f"{value:.2g}"
    return f"{text}{space}%"


def short_change(ratio: float) -> str:
    """A ratio as a change in a sentence: `+14.3 %`, `−0.0123 %`, `+250 %`: three digits below 100 %."""
    return f"{short_percent(ratio)} %"


def short_percent(ratio: float) -> str:
    """The same without the sign of per cent."""
    value = (ratio - 1) * 100
    text = f"{abs(value):.3g}" if abs(value) < 100 else f"{abs(value):,.0f}"
    return f"{'+' if value > 0 else MINUS if value < 0 else ''}{text}"


def short_interval(ratio: float | None, low: float | None, high: float | None) -> str:
    """` (+13.9 … +14.4)`, behind the change; nothing where its ends read like the change itself."""
    if ratio is None or (low is None and high is None):
        return ""
    ends = short_percent(low or 0.0), _OPEN if high is None else short_percent(high)
    return "" if {*ends} == {short_percent(ratio)} else f" ({ends[0]} … {ends[1]})"


def tenths(fraction: float) -> str:
    """A fraction in %, with its sign, and without the sign of per cent: `+1.2`, `−4.1`."""
    return f"{fraction * 100:+.1f}".replace("-", MINUS)


def moment(when: datetime) -> str:
    """`2026-11-21 09:30 UTC`; a moment without a time zone is taken for UTC."""
    return (when if when.tzinfo is None else when.astimezone(UTC)).strftime("%Y-%m-%d %H:%M UTC")


def duration(seconds: float) -> str:
    """`0.31 s`, `14 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2g}{SPACE}s"
    if seconds < 60:
        return f"{seconds:.0f}{SPACE}s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}{SPACE}min {seconds}{SPACE}s"
    return f"{minutes // 60}{SPACE}h {minutes % 60}{SPACE}min"


def size(count: int) -> str:
    """Bytes: `0 bytes`, `812 bytes`, `35.2 KiB`, `1.5 MiB`, `2.0 GiB`."""
    if count < 1024:
        return f"{count}{SPACE}byte{'' if count == 1 else 's'}"
    value = float(count)
    unit = "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if value >= 1024:
            value, unit = value / 1024, larger
    return f"{value:.1f}{SPACE}{unit}"


def counted(count: int, noun: str) -> str:
    """`1 trial`, `3 trials`."""
    return f"{count}{SPACE}{noun}" if count == 1 else f"{count}{SPACE}{noun}s"


def signed(value: float, unit: str = "") -> str:
    """`+1,234`, `−0.5`, `0`; a difference of times as times are written: `+1.20 ms`."""
    text = quantity(value, unit)
    return f"+{text}" if value > 0 and text != "0" else text


def rounded(value: float) -> str:
    """`+14,103`, `−120`, `+8.25`: with its sign and at least three digits, in a sentence."""
    return signed(round(value) if abs(value) >= 100 else float(f"{value:.3g}"))


def share(fraction: float | None) -> str:
    """A fraction in %, without the sign of it: `35.8`, `−4.1`; `–` where there is none."""
    if fraction is None:
        return NONE
    text = f"{fraction * 100:,.1f}"
    return text.lstrip("-") if text.strip("-0.") == "" else text.replace("-", MINUS)


def share_of(fraction: float | None) -> str:
    """The same with the sign of per cent: `35.8 %`; `–` where there is none."""
    return NONE if fraction is None else f"{share(fraction)}{SPACE}%"


def exactly(value: Fraction) -> str:
    """`1256`, `418.666667`: all digits of a whole number, six decimals of another, for other programs."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.6f}"


def _significant(value: float) -> str:
    if value == 0:
        return "0"
    decimals = max(0, 4 - math.floor(math.log10(abs(value))))
    if decimals > 12:
        return f"{value:.4g}"
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _infinite(value: float) -> str:
    if math.isnan(value):
        return NONE
    return _OPEN if value > 0 else f"{MINUS}{_OPEN}"
