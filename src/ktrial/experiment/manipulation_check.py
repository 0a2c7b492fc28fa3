"""What a treatment puts in force around a workload, and how one knows that it was: more than a setting.

Of schedulers that are programs `sched_ext` knows that; the preemption model is here. A kernel that does not
know a model says so in its log, and boots with its default. Built with CONFIG_PREEMPT_DYNAMIC it tells in
debugfs which one is in force (since Linux 5.13); else its configuration does. lazy came with 6.13; of
Debian's kernels, 6.18 knows all four and 7.2 only full and lazy.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ktrial.experiment.sched_ext import SchedExt
from ktrial.experiment.settings import SettingRefused
from ktrial.kernels import scheduling
from ktrial.model.design import FactorKind, Treatment, scheduler_argv
from ktrial.model.kernel import Kernel
from ktrial.model.study import Study
from ktrial.target import Read, Step, StepResult


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
    checks: list[ManipulationCheck] = []
    if model := preemption_of(study, kernel, parameters):
        checks.append(model)
    for factor in study.factors:
        if factor.kind is FactorKind.SCHEDULER and (argv := scheduler_argv(treatment.levels[factor.name])):
            checks.append(SchedExt(argv))
    return tuple(checks)


PARAMETER = "preempt"


_FILE = "/sys/kernel/debug/sched/preempt"


@dataclass(frozen=True)
class Preemption:
    """One model, as it is asked for."""

    asked: str
    """Empty: the kernel's own, which is told."""
    built_in: str
    """The only model of a kernel that cannot choose; empty where it can, or nobody knows."""

    @property
    def before(self) -> tuple[Step, ...]:
        """What the kernel says."""
        return (Read(path=_FILE),)

    @property
    def after(self) -> tuple[Step, ...]:
        """It stays as it is."""
        return ()

    def read_back(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """The model in force. Raises SettingRefused where it is another one than was asked for."""
        (told,) = before
        chosen = re.search(r"\((\w+)\)", told.content)
        now = chosen.group(1) if chosen else self.built_in
        if self.asked and self.asked != now:
            raise SettingRefused(f"{PARAMETER}={self.asked} was asked for, {self._instead(told, now)}")
        return {PARAMETER: now} if now else {}

    def _instead(self, told: StepResult, now: str) -> str:
        if told.content:
            known = told.content.replace("(", "").replace(")", "").split()
            return f"the kernel made it {now}: it knows {', '.join(known)}"
        if now:
            return f"the kernel is built for {now} and nothing else (CONFIG_PREEMPT_DYNAMIC is not set)"
        return f"and nothing tells what became of it: {told.failure.text if told.failure else _FILE}"


def preemption_of(study: Study, kernel: Kernel, parameters: Sequence[str]) -> Preemption | None:
    """The model that the boot asks for; None where neither the study nor its machine speaks of it."""
    asked = [each.partition("=")[2] for each in parameters if each.startswith(f"{PARAMETER}=")]
    is_factor = any(each.kind is FactorKind.BOOT and each.target == PARAMETER for each in study.factors)
    if not asked and not is_factor:
        return None
    known = scheduling(kernel)
    built_in = "" if known.chosen_at_boot else known.preemption
    return Preemption(asked=asked[-1] if asked else "", built_in=built_in)
