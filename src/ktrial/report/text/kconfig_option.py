"""One option of the kernel's configuration that is not the same in two kernels, in a few characters."""

from typing import Protocol

from ktrial.format import number_format
from ktrial.format.sanitize import shortened
from ktrial.model.attribution import OptionDifference

_VALUE_COLUMNS = 24
_LIST = 4
"""A value of so many words between commas is a list: only the words that differ are shown."""


class Changed(Protocol):
    """An option with both of its values."""

    @property
    def option(self) -> str: ...  # noqa: D102
    @property
    def before(self) -> str | None: ...  # noqa: D102
    @property
    def after(self) -> str | None: ...  # noqa: D102


def option_change(one: Changed) -> str:
    """`+LRU_GEN`: set in the second only; `−NR_CPUS=64`: in the first only; `HZ 250 → 1000`."""
    name = one.option.removeprefix("CONFIG_")
    if one.before is not None and one.after is not None:
        if words := _words(one.before, one.after):
            return f"{name} {words}"
        old, new = (shortened(value, _VALUE_COLUMNS * 2) or '""' for value in (one.before, one.after))
        return f"{name} {old} → {new}"
    value = shortened(one.after or one.before or "", _VALUE_COLUMNS)
    sign = number_format.MINUS if one.after is None else "+"
    return f"{sign}{name}" if value == "y" else f"{sign}{name}={value}"


def followers_of(one: OptionDifference) -> str:
    """` (and 3 that follow)`; empty where nothing follows from it."""
    return f" (and {len(one.followers)} that follow)" if one.followers else ""


def _words(before: str, after: str) -> str:
    """`−smack +ipe`; empty where the values are no lists, or differ in the order only."""
    old, new = (value.split(",") for value in (before, after))
    if min(len(old), len(new)) < _LIST:
        return ""
    gone = [f"{number_format.MINUS}{word}" for word in old if word not in new]
    come = [f"+{word}" for word in new if word not in old]
    return shortened(" ".join([*gone, *come]), _VALUE_COLUMNS * 2)
