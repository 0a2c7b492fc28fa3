"""Settings of a treatment: where they are, how they are written, and whether the kernel took them."""

from dataclasses import dataclass
from decimal import Decimal

from ktrial.knobs.lookup import path_in
from ktrial.knobs.values import form_of
from ktrial.model.design import Factor, FactorKind, LevelValue, Treatment
from ktrial.target import StepResult, Write


@dataclass(frozen=True)
class Setting:
    """One setting and the value that a treatment gives it."""

    name: str
    """The factor's target: a knob (`base_slice_ns`), a sysctl (`vm.swappiness`), or a path."""
    value: str
    release: str = ""
    """The kernel's: kernels keep the same knob in different places."""

    @property
    def step(self) -> Write:
        """The step that writes it and reads it back."""
        return Write(path=path_in(self.name, self.release), value=self.value)

    def is_shown_by(self, text: str) -> bool:
        """Whether the file's text says so: some files show more than a value."""
        return form_of(self.step.path).shows(self.value, text)


class SettingRefused(Exception):
    """The kernel refused a setting, or made something else of it. The text says which, in one sentence."""


def settings_of(factors: tuple[Factor, ...], treatment: Treatment, release: str = "") -> tuple[Setting, ...]:
    """The treatment's settings in a kernel of this release, in the order of the factors."""
    return tuple(
        Setting(factor.target, level_text(treatment.levels[factor.name]), release)
        for factor in factors
        if factor.kind is FactorKind.SETTING
    )


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
        if not setting.is_shown_by(result.after):
            now = result.after.strip()
            raise SettingRefused(f"{setting.name} = {setting.value} was asked for, the kernel made it {now}")
        found[setting.name] = result.after.strip()
    return found
