"""Settings of a treatment: where they are, how they are written, and whether the kernel took them."""

from dataclasses import dataclass

from ktrial.knobs.values import form_of
from ktrial.model.design import FactorKind, Treatment, level_text
from ktrial.model.levels import AS_IT_IS
from ktrial.model.references import KnobRef
from ktrial.model.study import Study
from ktrial.target import StepResult, Write


@dataclass(frozen=True)
class TreatmentSetting:
    """One setting and the value that a treatment gives it."""

    knob: KnobRef
    """A knob (`base_slice_ns`), a sysctl (`vm.swappiness`), or a path."""
    value: str
    path: str
    """Where the treatment's kernel has it: kernels keep the same knob in different places."""

    @property
    def name(self) -> str:
        """The factor's target."""
        return self.knob.asked

    @property
    def step(self) -> Write:
        """The step that writes it and reads it back."""
        return Write(path=self.path, value=self.value, knob=self.knob)

    def is_shown_by(self, text: str) -> bool:
        """Whether the file's text says so: some files show more than a value."""
        return form_of(self.path).shows(self.value, text)


class SettingRefused(Exception):
    """The kernel refused a setting, or made something else of it. The text says which, in one sentence."""


def settings_of(study: Study, treatment: Treatment, release: str = "") -> tuple[TreatmentSetting, ...]:
    """The treatment's settings in a kernel of this release, in the order of the study's factors.

    What stays as it is is not among them.
    """
    knobs = study.references.knobs
    return tuple(
        TreatmentSetting(knob, level_text(treatment.levels[factor.name]), knob.path_in(release))
        for factor in study.factors
        if factor.kind is FactorKind.SETTING
        and treatment.levels[factor.name] != AS_IT_IS
        and (knob := knobs[factor.target])
    )


def read_back(settings: tuple[TreatmentSetting, ...], results: tuple[StepResult, ...]) -> dict[str, str]:
    """The settings in force, by name, from the results of their steps. Raises SettingRefused."""
    by_step = {result.step: result for result in results}
    values = {}
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
        values[setting.name] = result.after.strip()
    return values
