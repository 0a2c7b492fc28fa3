"""From a study and a treatment to the systems that are booted for it."""

from collections.abc import Iterable
from dataclasses import dataclass

from ktrial.experiment import guest_storage, guest_swap
from ktrial.experiment.errors import FilesChanged
from ktrial.experiment.manipulation import (
    ManipulationCheck,
    TreatmentSetting,
    cpus_online,
    manipulation_checks,
    scheduler_program,
    settings_of,
)
from ktrial.experiment.resources import Resources
from ktrial.kernels import Progress
from ktrial.machines import guest_programs
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
from ktrial.model.machine import NO_FILES, Boot, CgroupLimits, FileSet
from ktrial.model.study import EXACT_MACHINES, Disk, MachineSettings, Study, kernel_of, treatments
from ktrial.model.trial import CARRIED, Trial
from ktrial.model.workload import CountedBy, Mode, WorkloadUse
from ktrial.target import Step, StepResult
from ktrial.workloads import Workload
from ktrial.workloads.later_start import begins_later, refuse_uncounted

_THIS_SYSTEM = "host"
_ON_SEVERAL = "exact-parallel"
_EXACT = "exact"


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
    carried: FileSet = NO_FILES
    """What the workload brings into the guest, which is booted without it."""
    disk: Disk | None = None
    """Made before the settings: one of them may be the disk's."""
    disk_steps: tuple[Step, ...] = ()
    """What makes it."""
    limits: CgroupLimits | None = None
    """For the workload in the guest, and set after the disk is made."""
    checks: tuple[ManipulationCheck, ...] = ()
    """What is loaded or looked at around all that, and verified."""
    monitors: tuple[str, ...] = ()
    """What watches the workload, each in a run of its own."""
    workload_steps: tuple[Step, ...] | None = None
    """What the workload does in one trial, where that was worked out already: by the host whose files it
    has."""

    @property
    def before(self) -> tuple[Step, ...]:
        """What is done before the preparation."""
        return tuple(step for check in self.checks for step in check.before)

    @property
    def after(self) -> tuple[Step, ...]:
        """What is done after the workload."""
        return tuple(step for check in self.checks for step in check.after)

    @property
    def preparation(self) -> tuple[Step, ...]:
        """What is done before the settings."""
        return (*self.disk_steps, *guest_storage.memory_limit_steps(self.limits))

    def steps(self, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        """The workload's own. Raises WorkloadError."""
        if self.workload_steps is not None:
            return self.workload_steps
        return self.workload.steps(self.use, mode, perturbation)

    def checked(
        self, before: tuple[StepResult, ...], after: tuple[StepResult, ...], console: str
    ) -> dict[str, str]:
        """What was in force, by name, from the results of those steps. Raises SettingRefused."""
        in_force: dict[str, str] = {}
        for check in self.checks:
            first, last = len(check.before), len(check.after)
            in_force |= check.in_force(before[:first], after[:last], console)
            before, after = before[first:], after[last:]
        return in_force

    def check_preparation(self, results: tuple[StepResult, ...]) -> None:
        """Raise GuestError where a step of the preparation failed."""
        count = len(self.disk_steps)
        if self.disk:
            guest_storage.check(results[:count], self.disk)
        guest_storage.check_memory_limit(results[count:])


def obtained(study: Study, treatment: Treatment, resources: Resources, progress: Progress) -> Kernel:
    """The treatment's kernel, fetched, or built. Raises KernelError."""
    kernel = kernel_of(study, treatment)
    if kernel.build:
        return resources.builder.build(kernel.build, progress)
    return resources.obtain(kernel, progress)


def check_workloads(study: Study, resources: Resources) -> None:
    """Raise WorkloadError for an unknown workload or a missing host file, before anything is fetched.

    From now on those sources give the files as they are now.
    """
    for use in study.workloads:
        for treatment in treatments(study):
            resources.carried(_with_levels(study, treatment, use))
        if use.command and begins_later(use.command):
            is_counted = study.machine.kind == _EXACT and study.machine.count is not CountedBy.CLOCK
            refuse_uncounted(use.label, Mode.EXACT_PLUGIN if is_counted else Mode.TIMED)
    resources.named_files("the study", study.machine.files)
    resources.named_files("the scheduler", _schedulers(study))


def check_resumed(study: Study, stored: Iterable[Trial], resources: Resources) -> None:
    """Raise FilesChanged where a workload brings other files than in trials that are stored already."""
    for use in study.workloads:
        for trial in stored:
            before = trial.provenance.executed.get(f"{CARRIED}{use.label}", "")
            treatment = trial.planned.treatment
            after = resources.carried(_with_levels(study, treatment, use)).digest if before else ""
            if before and after and before != after:
                files = resources.frozen.differing(before, after) if resources.frozen else ""
                raise FilesChanged(use.label, files)


def jobs_of(study: Study, treatment: Treatment, kernel: Kernel, resources: Resources) -> tuple[Job, ...]:
    """What a trial of the treatment does, one job a workload, in the study's order.

    No number depends on which other workloads the study names: what a workload brings comes into the guest
    after its boot, into its own copy of the system.
    Raises KernelError (a module that the kernel lacks), WorkloadError (a file that is not there),
    MachineToolMissing.
    """
    machine = study.machine
    settings = settings_of(study, treatment, kernel.release)
    common = system_of(study, treatment, kernel, resources)
    disk_steps = guest_storage.steps(machine.disk) if machine.disk else ()
    # The machine of this system limits its programs itself; a guest's are limited inside.
    limits = None if machine.kind == _THIS_SYSTEM else machine.cgroup
    checks = manipulation_checks(study, treatment, kernel, common.parameters)
    if machine.kind == _ON_SEVERAL and common.cpus > 1:
        checks += (cpus_online(common.cpus, common.parameters),)
    if machine.swap_mib:
        checks += (guest_swap.check(machine.swap_mib),)
    if machine.disk:
        checks += (guest_storage.settings_check(machine.disk),)
    jobs = []
    for use in study.workloads:
        workload, with_levels = resources.workload(use), _with_levels(study, treatment, use)
        boot = common
        carried = resources.carried(with_levels)
        if own := tuple(file for file in carried.files if file.guest == guest_programs.TASKS_IN_GUEST):
            # ktrial's own program is part of the system, as the one of all other built-in workloads is.
            boot = common.model_copy(update={"files": tuple(dict.fromkeys((*common.files, *own)))})
            carried = NO_FILES
        elif carried.files and machine.kind in EXACT_MACHINES:
            boot = common.model_copy(update={"awaits_files": True})
        jobs.append(
            Job(
                label=use.label,
                use=with_levels,
                workload=workload,
                boot=boot,
                settings=settings,
                carried=carried,
                disk=machine.disk,
                disk_steps=disk_steps,
                limits=limits,
                checks=checks,
                monitors=machine.monitors,
            )
        )
    return tuple(jobs)


def storage_modules(machine: MachineSettings) -> tuple[str, ...]:
    """The kernel's modules that a guest loads for its swap and its disk."""
    swap = guest_swap.MODULES if machine.swap_mib else ()
    return (*swap, *(guest_storage.modules(machine.disk) if machine.disk else ()))


def system_of(study: Study, treatment: Treatment, kernel: Kernel, resources: Resources) -> Boot:
    """The system that the treatment boots, apart from what single workloads bring. Raises as `jobs_of`."""
    machine, disk = study.machine, study.machine.disk
    module_levels = _levels(study, treatment, FactorKind.MODULE)
    modules = [*machine.modules, *(str(level) for _, level in module_levels if level != AS_IT_IS)]
    files = [
        *(resources.named_files("the study", machine.files) if machine.files else ()),
        *resources.named_files("the scheduler", _schedulers(study)),
    ]
    memory_levels = (level for _, level in _levels(study, treatment, FactorKind.MEMORY))
    memory_level = next(memory_levels, machine.memory_mib)
    memory = notation.memory_mib(memory_level) if isinstance(memory_level, str) else int(memory_level)
    parameters, more_memory = list(machine.boot), guest_swap.memory_mib(machine.swap_mib)
    modules += storage_modules(machine)
    if machine.swap_mib:
        files += resources.named_files("the study", guest_swap.programs())
        parameters += guest_swap.boot_parameters(machine.swap_mib, memory)
    if disk:
        files += guest_storage.files(disk, kernel, resources)
        parameters += guest_storage.boot_parameters(disk, memory)
        more_memory += guest_storage.memory_mib(disk)
    boot_levels = _levels(study, treatment, FactorKind.BOOT)
    parameters += filter(None, (boot_parameter(name, level) for name, level in boot_levels))
    cpus = next((level for _, level in _levels(study, treatment, FactorKind.CPUS)), machine.cpus)
    return Boot(
        kernel=kernel,
        parameters=tuple(parameters),
        memory_mib=memory + more_memory,
        cpus=int(cpus),
        topology=machine.topology,
        modules=resources.modules(kernel, modules) if modules else (),
        files=tuple(dict.fromkeys(files)),
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


def _levels(study: Study, treatment: Treatment, kind: FactorKind) -> list[tuple[str, LevelValue]]:
    """Targets of the factors of a kind, and the treatment's levels of them."""
    return [(factor.target, treatment.levels[factor.name]) for factor in study.factors if factor.kind is kind]


def _schedulers(study: Study) -> tuple[str, ...]:
    """The programs of all levels: every treatment has them, so that nothing else differs between two."""
    levels = (
        level for factor in study.factors if factor.kind is FactorKind.SCHEDULER for level in factor.levels
    )
    programs = (scheduler_program(argv) for level in levels if (argv := scheduler_argv(level)))
    return tuple(dict.fromkeys(programs))


def boot_parameter(name: str, level: LevelValue) -> str:
    """`name=level`; the level `name` gives it without a value; `""` and `as it is` leave it out."""
    text = level_text(level)
    if level == AS_IT_IS or not text:
        return ""
    return name if text == name else f"{name}={text}"


def _with_levels(study: Study, treatment: Treatment, use: WorkloadUse) -> WorkloadUse:
    """The use, with the parameters and variables that are factors set to the treatment's levels."""
    if use.command:
        variables = use.command.environment | {
            name: level_text(level)
            for name, level in _levels(study, treatment, FactorKind.ENVIRONMENT)
            if level != AS_IT_IS
        }
        use = use.model_copy(update={"command": use.command.model_copy(update={"environment": variables})})
    parameters = {
        parameter: level
        for target, level in _levels(study, treatment, FactorKind.PARAMETER)
        for workload, _, parameter in [target.partition(".")]
        if workload == use.name
    }
    return use.model_copy(update={"parameters": use.parameters | parameters}) if parameters else use
