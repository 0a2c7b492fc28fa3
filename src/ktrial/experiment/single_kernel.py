"""One kernel in some workloads: a study of one treatment, told from others by the kernel's content.

A name like `path:vmlinux` stands for another kernel after each build, so that what the store keeps under a
name alone would be another kernel's. The study's question therefore holds the digest: the same content is
measured once, and found again under `git bisect`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ktrial import machines
from ktrial.analysis.comparability import failures
from ktrial.analysis.errors import AnalysisUsageError
from ktrial.experiment.jobs import system_of
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, default_resources
from ktrial.experiment.session import run
from ktrial.kernels import Progress
from ktrial.kernels.code_image import functions_at
from ktrial.machines import Machine, TellsOfBoots
from ktrial.model.comparison import FEWEST_BLOCKS
from ktrial.model.design import Factor, FactorKind
from ktrial.model.kernel import Kernel
from ktrial.model.references import KernelRef
from ktrial.model.study import (
    REAL_MACHINES,
    MachineSettings,
    Measurement,
    Stopping,
    Study,
    StudyRecord,
    plan,
    treatments,
)
from ktrial.model.trial import Outcome, Trial
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

FACTOR = "kernel"
_BOOTED = "booted"
"""Of a study that is never stored: what is booted as in that one."""


@dataclass(frozen=True)
class Runs:
    """Where trials are run and kept."""

    store: Store
    observer: Observer = field(default_factory=Observer)
    jobs: int | None = None
    machine: Machine | None = None
    """Instead of the one that the settings name."""
    resources: Resources = field(default_factory=default_resources)

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name, fetched or read anew. Raises KernelError."""
        return self.resources.kernel(name, self.observer.progress_of(name))

    def run(
        self,
        study: Study,
        kernels: Mapping[str, Kernel],
        *,
        until: int | None = None,
        retry_failed: bool = True,
        any_settings: bool = False,
    ) -> StudyRecord:
        """The study, with the trials run that the store lacks. `kernels`: those at hand, by their names.

        Raises what `session.run` raises.
        """

        def obtain(kernel: KernelRef, progress: Progress) -> Kernel:
            return kernels.get(kernel.asked) or self.resources.obtain(kernel, progress)

        return run(
            study,
            store=self.store,
            machine=self.machine,
            observer=self.observer,
            jobs=self.jobs,
            retry_failed=retry_failed,
            resources=self.resources.with_kernels(obtain),
            until=until,
            any_settings=any_settings,
        )


def measure(
    name: str, question: str, kernel: Kernel, measurement: Measurement, runs: Runs, made_by: str
) -> StudyRecord:
    """Run the trials that the store lacks, and return the study `name`. Raises what `session.run` raises.

    Trials that failed before are tried again. `made_by`: the command whose own study it is.
    """
    study = _study(name, question, kernel, measurement, made_by)
    return runs.run(study, {kernel.name: kernel})


def _study(name: str, question: str, kernel: Kernel, measurement: Measurement, made_by: str) -> Study:
    return Study(
        name=name,
        question=f"{question} Kernel: {kernel.name}, {kernel.release}, content {kernel.digest}.",
        machine=measurement.settings,
        factors=(kernel_factor(kernel.name),),
        workloads=measurement.workloads,
        perturbations=measurement.perturbations,
        made_by=made_by,
    )


def functions_in_boot(kernel: Kernel, measurement: Measurement, runs: Runs) -> frozenset[str]:
    """The kernel's functions that its boot executes, until programs run; it is booted once more for that.

    None on a machine that cannot tell. Raises MachineError, GuestEnded, KernelError.
    """
    machine = runs.machine or machines.find(measurement.settings.kind)
    if not isinstance(machine, TellsOfBoots):
        return frozenset()
    machine.check()
    study = _study(_BOOTED, _BOOTED, kernel, measurement, _BOOTED)
    boot = system_of(study, treatments(study)[0], kernel, runs.resources)
    return functions_at(kernel, machine.executed_in_boot(boot))


def kernel_factor(*kernels: str) -> Factor:
    """The one factor of such studies; the first kernel is the baseline."""
    return Factor(name=FACTOR, kind=FactorKind.KERNEL, levels=kernels, baseline=kernels[0])


def failed(record: StudyRecord) -> tuple[Trial, ...]:
    """The trials that ended with another outcome than `completed`."""
    return tuple(trial for trial in record.trials if trial.outcome is not Outcome.COMPLETED)


def problem_of(record: StudyRecord) -> str:
    """Why the kernel has no numbers, in one sentence; empty where it has all."""
    wrong = failed(record)
    return failures(wrong, record.planned) if wrong else ""


def is_complete(stored: StoredStudy) -> bool:
    """Whether all its trials are in the store, and none failed; an interrupted study is not."""
    return not stored.failed and stored.finished == len(plan(stored.study).trials)


# Studies that are made of others: counted, not timed; on another machine; fresh blocks for a size.

_EXACT = "exact"
LONGEST_NAME = 64
"""Characters that a study file may name its study with."""
COUNTED_SUFFIX = "-counted"
_CONFIRMATION_SUFFIX = "-confirmation"
"""Of their names."""


def counted_study(timed: Study, machine: MachineSettings, perturbations: int) -> Study:
    """`timed` on the machine exact, with as many perturbations, under a name of its own.

    `machine`: for a study of a system that runs already (host, ssh), which has no kernel to boot; one that
    boots its guests has them counted as they are, with that model.
    """
    if timed.machine.kind in REAL_MACHINES:
        target = machine
    else:  # without what is only for real time
        only_timed = {"pin": (), "cgroup": None, "allow_emulated_time": False, "monitors": (), "sample_ns": 0}
        target = timed.machine.model_copy(update={**only_timed, "model": machine.model})
    # A command's own numbers are times: counted are the operations that it marks, or the whole run.
    uses = tuple(
        use.model_copy(update={"command": use.command.model_copy(update={"metrics": (), "user": ""})})
        if use.command
        else use
        for use in timed.workloads
    )
    return timed.model_copy(
        update={
            "name": f"{timed.name}{COUNTED_SUFFIX}",
            "machine": target.model_copy(update={"kind": _EXACT}),
            "workloads": uses,
            "timing": None,
            "perturbations": perturbations,
        }
    )


def confirmation_of(study: Study, blocks: int) -> Study:
    """The study again, with other draws, in a number of blocks that is fixed. Raises AnalysisUsageError.

    An effect that ended its study early looks larger than it is. What ended the first study has no part in
    the second: its estimates are not inflated by it. (Whitehead, 'On the bias of maximum likelihood
    estimation following a sequential test', Biometrika 73(3), 1986, has the bias of the first.)
    """
    if study.timing is None:
        raise AnalysisUsageError(
            f"The study {study.name} is exact: a second run would give the same numbers to the last digit.",
            hint=(
                "only studies in real time are confirmed; more perturbations show more spread: "
                "--perturbations"
            ),
        )
    fewest = FEWEST_BLOCKS.get(study.timing.estimand, 0)
    if blocks < fewest:
        raise AnalysisUsageError(
            f'The study {study.name} has estimand = "{study.timing.estimand}": its verdicts take {fewest} '
            f"blocks at least, and {blocks} are too few.",
            hint=f"--confirm {fewest}",
        )
    timing = study.timing.model_copy(update={"blocks": blocks, "stopping": Stopping.FIXED})
    name, seed = f"{study.name}{_CONFIRMATION_SUFFIX}", (study.seed + 1) % 2**31
    return study.model_copy(update={"name": name, "seed": seed, "timing": timing})


def study_on(study: Study, host: str) -> Study:
    """The study on this machine that ssh reaches, under a name that ends with the machine's."""
    end = f"-{host.rpartition('@')[2]}"
    name = f"{study.name[: max(1, LONGEST_NAME - len(end))]}{end}"
    return study.model_copy(update={"name": name, "machine": study.machine.model_copy(update={"host": host})})
