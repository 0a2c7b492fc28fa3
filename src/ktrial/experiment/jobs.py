"""From a study and a treatment to the systems that are booted for it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ktrial.experiment import guest_storage, manipulation
from ktrial.experiment.guest_storage import DiskSettings
from ktrial.experiment.manipulation import (
    ManipulationCheck,
    TreatmentSetting,
    cpus_online,
    manipulation_checks,
    settings_of,
)
from ktrial.experiment.resources import Resources
from ktrial.kernels import Progress
from ktrial.model import notation
from ktrial.model.design import (
    AS_IT_IS,
    FactorKind,
    LevelValue,
    Perturbation,
    Treatment,
    level_text,
    scheduler_argv,
)
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot, CarriedFile, CgroupLimits
from ktrial.model.study import Disk, Study, kernel_of
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.target import Step, StepResult
from ktrial.workloads import Workload

_THIS_SYSTEM = "host"
_ON_SEVERAL = "exact-parallel"
"""The machine that limits its programs itself; a guest's are limited inside."""


@dataclass(frozen=True)
class Steps:
    """All that one job of one trial does, worked out where its files are: programs have that host's paths."""

    before: tuple[tuple[Step, ...], ...]
    """Of each check of the job."""
    disk: tuple[Step, ...]
    work: tuple[Step, ...]
    """The workload's."""
    after: tuple[tuple[Step, ...], ...]
    """Of each check."""


@dataclass(frozen=True)
class Job:
    """One workload of a trial: all that is done from one restored state."""

    label: str
    """What the study calls it: its samples are stored under this name, whatever a factor makes of it."""
    use: WorkloadUse
    """With the parameters that the treatment gives it."""
    workload: Workload
    boot: Boot
    settings: tuple[TreatmentSetting, ...]
    disk: Disk | None = None
    """Made before the settings: one of them may be the disk's."""
    limits: CgroupLimits | None = None
    """For the workload in the guest, and set after the disk is made."""
    checks: tuple[ManipulationCheck, ...] = ()
    """What is loaded or looked at around all that, and verified."""
    monitors: tuple[str, ...] = ()
    """What watches the workload, each in a run of its own."""

    said: Steps | None = None
    """What is done, where that was worked out already (`with_steps`)."""

    @property
    def before(self) -> tuple[Step, ...]:
        """What is done before the preparation."""
        return tuple(step for steps in self._around()[0] for step in steps)

    @property
    def after(self) -> tuple[Step, ...]:
        """What is done after the workload."""
        return tuple(step for steps in self._around()[1] for step in steps)

    def _around(self) -> tuple[tuple[tuple[Step, ...], ...], tuple[tuple[Step, ...], ...]]:
        if self.said:
            return self.said.before, self.said.after
        return tuple(check.before for check in self.checks), tuple(check.after for check in self.checks)

    def steps(self, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """The workload's own. Raises WorkloadError."""
        return self.said.work if self.said else self.workload.steps(self.use, mode, perturbation)

    def with_steps(self, mode: Mode, perturbation: Perturbation) -> "Job":
        """The job of one trial, which needs nothing of this host any more to know what it does.

        Raises WorkloadError, MachineToolMissing.
        """
        before, after = self._around()
        return replace(self, said=Steps(before, self.disk_steps, self.steps(mode, perturbation), after))

    def checked(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """What was, by name, from the results of those steps. Raises SettingRefused."""
        in_force: dict[str, str] = {}
        for check, *around in zip(self.checks, *self._around(), strict=True):
            first, last = map(len, around)
            in_force |= check.read_back(before[:first], after[:last], console)
            before, after = before[first:], after[last:]
        return in_force

    @property
    def preparation(self) -> tuple[Step, ...]:
        """What is done before the settings."""
        return (*self.disk_steps, *guest_storage.memory_limit_steps(self.limits))

    @property
    def disk_steps(self) -> tuple[Step, ...]:
        """What makes the disk, if there is one."""
        if self.said:
            return self.said.disk
        return guest_storage.steps(self.disk) if self.disk else ()

    def check_preparation(self, results: tuple[StepResult, ...]) -> None:
        """Raise DiskNotMade or LimitNotSet where a step of the preparation failed."""
        count = len(self.disk_steps)
        if self.disk:
            guest_storage.check(results[:count], self.disk)
        guest_storage.check_memory_limit(results[count:])


def obtained(study: Study, treatment: Treatment, sources: Resources, progress: Progress) -> Kernel:
    """The treatment's kernel: from the cache, fetched, or built. Raises KernelError."""
    kernel = kernel_of(study, treatment)
    if kernel.build:
        return sources.builder.build(kernel.build, progress)
    return sources.obtain(kernel, progress)


def check_workloads(study: Study, sources: Resources) -> None:
    """Raise WorkloadError for an unknown workload or a missing host file, before anything is fetched."""
    for use in study.workloads:
        sources.workload(use).files(use)
    sources.files("the study", study.machine.files)
    sources.files("the scheduler", _schedulers(study))


def jobs_of(study: Study, treatment: Treatment, kernel: Kernel, sources: Resources) -> tuple[Job, ...]:
    """What a trial of the treatment does, one job a workload, in the study's order.

    A workload that brings files gets a system of its own to boot: then no number depends on which other
    workloads the study names.
    Raises KernelError (a module that the kernel lacks), WorkloadError (a file that is not there).
    """
    settings = settings_of(study, treatment, kernel.release)
    common = _boot(study, treatment, kernel, sources)
    jobs = []
    for use in study.workloads:
        workload = sources.workload(use)
        with_levels = _with_parameters(study, treatment, use)
        files = workload.files(with_levels)
        boot = common.model_copy(update={"files": _once((*common.files, *files))}) if files else common
        machine = study.machine
        limits = None if machine.kind == _THIS_SYSTEM else machine.cgroup
        watchers = machine.monitors
        around = manipulation_checks(study, treatment, kernel, boot.parameters)
        if machine.kind == _ON_SEVERAL and boot.cpus > 1:
            around += (cpus_online(boot.cpus, boot.parameters),)
        if machine.disk:
            around += (DiskSettings(machine.disk),)
        jobs.append(
            Job(use.label, with_levels, workload, boot, settings, machine.disk, limits, around, watchers)
        )
    return tuple(jobs)


def _boot(study: Study, treatment: Treatment, kernel: Kernel, sources: Resources) -> Boot:
    """The system that the treatment boots, apart from what single workloads bring."""
    machine = study.machine
    disk = machine.disk
    modules = (
        *machine.modules,
        *_modules(study, treatment),
        *(guest_storage.modules(disk) if disk else ()),
    )
    files = sources.files("the study", machine.files) if machine.files else ()
    memory = _memory_mib(study, treatment)
    for_disk = guest_storage.boot_parameters(disk, memory) if disk else ()
    return Boot(
        kernel=kernel,
        parameters=(*machine.boot, *for_disk, *_boot_parameters(study, treatment)),
        memory_mib=memory + (guest_storage.memory_mib(disk) if disk else 0),
        cpus=_cpus(study, treatment),
        topology=machine.topology,
        modules=sources.modules(kernel, modules) if modules else (),
        files=_once(
            (
                *files,
                *sources.files("the scheduler", _schedulers(study)),
                *(guest_storage.files(disk, kernel, sources) if disk else ()),
            )
        ),
        settle_ns=machine.settle_ns,
        limit_instructions=machine.limit_instructions,
        limit_seconds=machine.limit_seconds,
        pin=machine.pin,
        cgroup=machine.cgroup if machine.kind == _THIS_SYSTEM else None,
        allow_emulated_time=machine.allow_emulated_time,
        quantum_ns=machine.quantum_ns,
        memory_model=machine.memory_model,
        model=machine.model,
        sample_ns=machine.sample_ns,
        boots=machine.boots,
        boot_seconds=machine.boot_seconds,
    )


def _schedulers(study: Study) -> tuple[str, ...]:
    """The programs of all levels: every treatment has them, so that nothing else differs between two."""
    levels = (
        level for factor in study.factors if factor.kind is FactorKind.SCHEDULER for level in factor.levels
    )
    programs = (manipulation.SchedExt(argv).program for level in levels if (argv := scheduler_argv(level)))
    return tuple(dict.fromkeys(programs))


def _modules(study: Study, treatment: Treatment) -> list[str]:
    levels = (treatment.levels[factor.name] for factor in study.factors if factor.kind is FactorKind.MODULE)
    return [str(level) for level in levels if level != AS_IT_IS]


def _boot_parameters(study: Study, treatment: Treatment) -> list[str]:
    parameters = [
        boot_parameter(factor.target, treatment.levels[factor.name])
        for factor in study.factors
        if factor.kind is FactorKind.BOOT
    ]
    return [parameter for parameter in parameters if parameter]


def boot_parameter(name: str, level: LevelValue) -> str:
    """`name=level`; the level `name` gives it without a value; `""` and `as it is` leave it out."""
    if level == AS_IT_IS:
        return ""
    text = level_text(level)
    if text == name:
        return name
    return f"{name}={text}" if text else ""


def _memory_mib(study: Study, treatment: Treatment) -> int:
    for factor in study.factors:
        if factor.kind is FactorKind.MEMORY:
            level = treatment.levels[factor.name]
            return notation.memory_mib(level) if isinstance(level, str) else int(level)
    return study.machine.memory_mib


def _cpus(study: Study, treatment: Treatment) -> int:
    levels = (treatment.levels[factor.name] for factor in study.factors if factor.kind is FactorKind.CPUS)
    return int(next(levels, study.machine.cpus))


def _with_parameters(study: Study, treatment: Treatment, use: WorkloadUse) -> WorkloadUse:
    """The use, with the parameters and variables that are factors set to the treatment's levels."""
    levels = {}
    if use.command:
        variables = use.command.environment | _variables(study, treatment)
        use = use.model_copy(update={"command": use.command.model_copy(update={"environment": variables})})
    for factor in study.factors:
        workload, _, parameter = factor.target.partition(".")
        if factor.kind is FactorKind.PARAMETER and workload == use.name:
            levels[parameter] = treatment.levels[factor.name]
    return use.model_copy(update={"parameters": use.parameters | levels}) if levels else use


def _variables(study: Study, treatment: Treatment) -> dict[str, str]:
    """What the commands' environment has beside the study's own."""
    return {
        factor.target: level_text(level)
        for factor in study.factors
        if factor.kind is FactorKind.ENVIRONMENT and (level := treatment.levels[factor.name]) != AS_IT_IS
    }


def _once(files: Iterable[CarriedFile]) -> tuple[CarriedFile, ...]:
    return tuple(dict.fromkeys(files))
