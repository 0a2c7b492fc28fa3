"""Two kernels whose numbers follow from a rule, for tests of what proves causes: no guest is run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.making import a_sample, a_trial
from tests.support.profiles import a_profile
from tests.support.scripted import a_kernel, scripted_resources

from ktrial.experiment.jobs import Job
from ktrial.experiment.provenance import provenance
from ktrial.experiment.resources import Resources
from ktrial.kernels import Progress
from ktrial.machines.fake import FakeMachine
from ktrial.model.design import PlannedTrial
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.references import KernelRef
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Mode
from ktrial.target import Failure, Step, StepResult, Walk, Write

OLD, NEW = "debian:6.12", "debian:7.2"
FEATURES = "/sys/kernel/debug/sched/features"
PREEMPT = "/sys/kernel/debug/sched/preempt"
SETTINGS = {
    OLD: {
        FEATURES: "PLACE_LAG NO_HRTICK",
        PREEMPT: "none (voluntary) full",
        "/proc/sys/vm/dirty_ratio": "20",
        "/proc/sys/net/core/rmem_max": "212992",
    },
    NEW: {
        FEATURES: "PLACE_LAG HRTICK",
        PREEMPT: "full (lazy)",
        "/proc/sys/vm/dirty_ratio": "10",
        "/sys/kernel/mm/lru_gen/enabled": "0x0007",
        "/proc/sys/net/core/rmem_max": "4194304",
    },
}
CONFIGS = {
    OLD: "CONFIG_SMP=y\nCONFIG_PSI=y\n",
    NEW: "CONFIG_SMP=y\nCONFIG_UCLAMP_TASK=y\n",
}
Rule = Callable[[str, Mapping[str, str], tuple[str, ...], int], float]
"""Kernel, what was written, boot parameters, perturbation → instructions per operation."""


def by_rule(kernel: str, written: Mapping[str, str], parameters: tuple[str, ...], number: int) -> float:
    """7.2 takes 1,000 more: 250 of the tick, 100 of MGLRU; writing anything costs one; psi costs 6.12 40."""
    value = 10_000.0 + number + len(written)
    if kernel == OLD:
        return value - 40 * ("psi=0" in parameters)
    value += 1_000 + number
    value -= 250 * (written.get(FEATURES) == "NO_HRTICK")
    return value - 100 * (written.get("/sys/kernel/mm/lru_gen/enabled") == "0")


@dataclass
class World:
    """The kernels, and what was run of them."""

    directory: Path
    rule: Rule = by_rule
    refused: frozenset[tuple[str, str]] = frozenset({(NEW, "voluntary"), (OLD, "lazy")})
    """Kernel and value that it does not take."""
    settings: dict[str, dict[str, str]] = field(
        default_factory=lambda: {name: dict(files) for name, files in SETTINGS.items()}
    )
    """Kernel → what its files say."""
    panics: Callable[[Mapping[str, str]], bool] = lambda _written: False
    """Whether a kernel panics with these values."""
    ran: list[tuple[str, int]] = field(default_factory=list)
    """Treatment and perturbation, in order."""
    interrupt_after: int | None = None

    def __post_init__(self) -> None:
        self.have_a_new_machine()

    def have_a_new_machine(self) -> None:
        """As a ktrial that is started again has one."""
        self.machine = FakeMachine(self._answer, mode=Mode.EXACT_PLUGIN)

    def resources(self) -> Resources:
        """Kernels with a configuration."""
        real = scripted_resources()
        return Resources(self._obtain, real.modules, real.workload, real.files)

    def run_trial(
        self, machine: object, trial: PlannedTrial, jobs: tuple[Job, ...], *_: Any, **__: Any
    ) -> Trial:
        """Stands for `ktrial.experiment.trial.run_trial`."""
        (job,) = jobs
        if self.interrupt_after is not None and len(self.ran) >= self.interrupt_after:
            raise KeyboardInterrupt
        kernel, number = job.boot.kernel, trial.perturbation.number
        self.ran.append((trial.treatment.label, number))
        told = provenance(kernel, self.machine.identity(job.boot))
        written = {each.path: each.value for each in job.settings}
        for each in job.settings:
            if (kernel.name, each.value) in self.refused:
                reason = f"{each.name} = {each.value} was refused: EINVAL"
                return a_trial(trial, outcome=Outcome.REFUSED, reason=reason, provenance=told)
        if self.panics(written):
            return a_trial(trial, outcome=Outcome.PANICKED, reason="Kernel panic", provenance=told)
        value = self.rule(kernel.name, written, job.boot.parameters, number)
        counts = {("enqueue_task_fair", ""): int(value * 6), ("lru_gen_add_folio", ""): int(value * 4)}
        profile = a_profile(counts, kernel=kernel.name).model_copy(update={"workload": job.label})
        sample = a_sample(job.label, value, mode=Mode.EXACT_PLUGIN, mean=value)
        return a_trial(trial, samples=(sample,), profiles=(profile,), provenance=told)

    def _obtain(self, kernel: KernelRef, progress: Progress) -> Kernel:
        name = kernel.asked.removesuffix(":cloud")
        directory = self.directory / name.replace(":", "-")
        directory.mkdir(exist_ok=True)
        (directory / "config").write_text(CONFIGS[name])
        return a_kernel(name, image=directory / "vmlinuz", config=directory / "config")

    def _answer(self, boot: Boot, step: Step) -> StepResult:
        if isinstance(step, Write):
            return self._written(boot.kernel.name, step)
        files = self.settings[boot.kernel.name] if isinstance(step, Walk) else {}
        return StepResult(step=0, do=step.do, files=files)

    def _written(self, kernel: str, step: Write) -> StepResult:
        if (kernel, step.value) in self.refused:
            failure = Failure(name="EINVAL", text=f"write {step.path}: Invalid argument")
            return StepResult(step=0, do=step.do, failure=failure)
        return StepResult(step=0, do=step.do, after=step.value)


def a_world(directory: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose trials stand for real ones."""
    made = World(directory)
    monkeypatch.setattr("ktrial.experiment.executor.run_trial", made.run_trial)
    monkeypatch.setattr("ktrial.experiment.proof.module_names", lambda kernel: ())
    return made
