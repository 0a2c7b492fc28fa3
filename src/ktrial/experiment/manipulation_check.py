"""What a treatment puts in force around a workload, and how one knows that it was: more than a setting."""

from collections.abc import Sequence
from typing import Protocol

from ktrial.experiment.preemption_model import preemption_of
from ktrial.experiment.sched_ext import SchedExt
from ktrial.model.design import FactorKind, Treatment, scheduler_argv
from ktrial.model.kernel import Kernel
from ktrial.model.study import Study
from ktrial.target import Step, StepResult


class ManipulationCheck(Protocol):
    """Steps before and after the workload, and what their results say."""

    @property
    def before(self) -> tuple[Step, ...]:
        """Done before anything else."""
        ...

    @property
    def after(self) -> tuple[Step, ...]:
        """Done after the workload."""
        ...

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """What was in force, by name. Raises SettingRefused where that is not what was asked for."""
        ...


def manipulation_checks(
    study: Study, treatment: Treatment, kernel: Kernel, parameters: Sequence[str]
) -> tuple[ManipulationCheck, ...]:
    """The treatment's scheduler and preemption model; nothing where the study does not speak of them.

    `parameters`: the kernel's, as it is booted.
    """
    found: list[ManipulationCheck] = []
    if model := preemption_of(study, kernel, parameters):
        found.append(model)
    for factor in study.factors:
        if factor.kind is FactorKind.SCHEDULER and (argv := scheduler_argv(treatment.levels[factor.name])):
            found.append(SchedExt(argv))
    return tuple(found)
