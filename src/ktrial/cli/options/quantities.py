"""Percentages and times on the command line."""

import re

from ktrial.importers.errors import BadAmount

_PERCENTAGE = re.compile(r"([+-]?[0-9]*\.?[0-9]+) ?(%?)")
_TIME = re.compile(r"([0-9]*\.?[0-9]+) ?(s|min|m|h)?")
_SECONDS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, None: 1.0}


def share(option: str, value: str, *, least: float, most: float) -> float:
    """The fraction that `1%`, `1 %` or `0.01` means, between the two. Raises BadAmount."""
    match = _PERCENTAGE.fullmatch(value.strip())
    if not match:
        raise BadAmount(option=option, value=value, problem="not a percentage")
    fraction = float(match[1]) / (100 if match[2] else 1)
    if not least <= fraction <= most:
        problem = f"it has to lie between {least * 100:g} % and {most * 100:g} %"
        raise BadAmount(option=option, value=value, problem=problem)
    return fraction


def seconds(option: str, value: str) -> float:
    """Seconds in `90s`, `10min`, `1.5h`. Raises BadAmount."""
    match = _TIME.fullmatch(value.strip())
    if not match or not float(match[1]) > 0:
        hint = "a time is a number with s, min or h: 90s, 10min, 1.5h"
        raise BadAmount(option=option, value=value, problem="not a time", hint=hint)
    return float(match[1]) * _SECONDS[match[2]]
