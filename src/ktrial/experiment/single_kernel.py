"""One kernel in some workloads: a study of one treatment, told from others by the kernel's content.

A name like `path:vmlinux` stands for another kernel after each build, so that what the store keeps under a
name alone would be another kernel's. The study's question therefore holds the digest: the same content is
measured once, and found again under `git bisect`.
"""

from dataclasses import dataclass, field

from ktrial.experiment.observer import Observer, Silent
from ktrial.experiment.resources import Resources, default_resources
from ktrial.experiment.session import run
from ktrial.kernels import Progress
from ktrial.machines import Machine
from ktrial.model.design import Factor, FactorKind
from ktrial.model.kernel import Kernel
from ktrial.model.references import KernelRef
from ktrial.model.study import MachineSettings, Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import WorkloadUse
from ktrial.store import Store

FACTOR = "kernel"


@dataclass(frozen=True)
class Measurement:
    """How kernels are measured that are to be compared: the same for all of them."""

    workloads: tuple[WorkloadUse, ...]
    settings: MachineSettings = field(default_factory=MachineSettings)
    """Without a kernel."""
    perturbations: int = 3


@dataclass(frozen=True)
class Runs:
    """Where trials are run and kept."""

    store: Store
    observer: Observer = field(default_factory=Silent)
    jobs: int | None = None
    machine: Machine | None = None
    """Instead of the one that the settings name."""
    sources: Resources = field(default_factory=default_resources)

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name, fetched or read anew. Raises KernelError."""

        def progress(what: str, done: int = 0, total: int = 0) -> None:
            self.observer.kernel_progress(name, what, done, total)

        return self.sources.kernel(name, progress)


def measure(name: str, question: str, kernel: Kernel, how: Measurement, runs: Runs) -> StudyRecord:
    """Run the trials that the store lacks, and return the study `name`. Raises what `session.run` raises.

    Trials that failed before are tried again.
    """
    study = Study(
        name=name,
        question=f"{question} Kernel: {kernel.name}, {kernel.release}, content {kernel.digest}.",
        machine=how.settings,
        factors=(kernel_factor(kernel.name),),
        workloads=how.workloads,
        perturbations=how.perturbations,
    )

    def this_one(_kernel: KernelRef, _progress: Progress) -> Kernel:
        return kernel

    return run(
        study,
        store=runs.store,
        machine=runs.machine,
        observer=runs.observer,
        jobs=runs.jobs,
        retry_failed=True,
        sources=runs.sources.with_kernels(this_one),
    )


def kernel_factor(*kernels: str) -> Factor:
    """The one factor of such studies; the first kernel is the baseline."""
    return Factor(name=FACTOR, kind=FactorKind.KERNEL, levels=kernels, baseline=kernels[0])


def failed(record: StudyRecord) -> tuple[Trial, ...]:
    """The trials that ended with another outcome than `completed`."""
    return tuple(trial for trial in record.trials if trial.outcome is not Outcome.COMPLETED)
