"""Settings of a treatment: where they are, how they are written, and whether the kernel took them."""

import re
from dataclasses import dataclass
from decimal import Decimal

from ktrial.model.design import Factor, FactorKind, LevelValue, Treatment
from ktrial.target import StepResult, Write

_SYSCTL = "/proc/sys/"


@dataclass(frozen=True)
class Setting:
    """One setting and the value that a treatment gives it."""

    name: str
    """The factor's target: `vm.swappiness`, or a path below /proc or /sys."""
    value: str

    @property
    def step(self) -> Write:
        """The step that writes it and reads it back."""
        return Write(path=path_of(self.name), value=self.value)


class SettingRefused(Exception):
    """The kernel refused a setting, or made something else of it. The text says which, in one sentence."""


def settings_of(factors: tuple[Factor, ...], treatment: Treatment) -> tuple[Setting, ...]:
    """The treatment's settings, in the order of the factors."""
    return tuple(
        Setting(factor.target, level_text(treatment.levels[factor.name]))
        for factor in factors
        if factor.kind is FactorKind.SETTING
    )


def path_of(name: str) -> str:
    """The file of a setting: a path as it is, a sysctl name below /proc/sys.

    As sysctl(8) has it: dots separate, and a slash stands for a dot in a name (`net.ipv4.conf.eth0/1.mtu`);
    where the first separator is a slash, slashes separate and dots are dots.
    """
    if name.startswith("/"):
        return name
    first = re.search(r"[./]", name)
    slashes_separate = first is not None and first.group() == "/"
    return _SYSCTL + (name if slashes_separate else name.translate(str.maketrans("./", "/.")))


def level_text(level: LevelValue) -> str:
    """A level as the kernel is told it: no exponent, no `.0`."""
    if isinstance(level, float):
        return f"{level:.0f}" if level.is_integer() else format(Decimal(repr(level)), "f")
    return str(level)


def read_back(settings: tuple[Setting, ...], results: tuple[StepResult, ...]) -> dict[str, str]:
    """The settings in force, by name, from the results of their steps. Raises SettingRefused."""
    by_step = {result.step: result for result in results}
    found = {}
    for place, setting in enumerate(settings):
        result = by_step.get(place)
        if result is None:
            raise SettingRefused(f"{setting.name} was never written")
        if result.failure:
            answer = ": ".join(filter(None, (result.failure.name, result.failure.text)))
            raise SettingRefused(f"{setting.name} = {setting.value} was refused: {answer}")
        if not same(setting.value, result.after):
            now = result.after.strip()
            raise SettingRefused(f"{setting.name} = {setting.value} was asked for, the kernel made it {now}")
        found[setting.name] = result.after.strip()
    return found


def same(asked: str, now: str) -> bool:
    """Whether the kernel's file says what was asked for.

    Numbers are compared as numbers, blanks count as one, `[madvise]` marks the choice in `always [madvise]
    never`, and Y and N stand for 1 and 0.
    """
    wanted, found = " ".join(asked.split()), " ".join(now.split())
    chosen = re.search(r"\[([^\]]+)\]", found)
    if chosen and wanted == chosen.group(1):
        return True
    return _plain(wanted) == _plain(found)


def _plain(text: str) -> tuple[str | int, ...]:
    return tuple(_number(word) for word in text.split(" "))


def _number(word: str) -> str | int:
    if word in {"Y", "y", "N", "n"}:
        return int(word in {"Y", "y"})
    try:
        return int(word, 0)
    except ValueError:
        return int(word) if re.fullmatch(r"-?[0-9]+", word) else word
