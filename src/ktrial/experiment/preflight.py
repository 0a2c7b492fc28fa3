"""What a command will need of this system, looked for in its first second: what is missing is told at once.

Nothing is fetched, built or booted before. Each room declares what it needs (`ktrial.system_tools`); an error
that is raised later, where something of it is missing, reads the same declaration.
"""

import os
import pwd
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ktrial import monitors
from ktrial.analysis.reach import Inert, inert_factors, inert_knobs
from ktrial.errors import KtrialError
from ktrial.experiment import guest_storage, guest_swap
from ktrial.experiment.errors import HOST_PROBLEMS, StudyRefused, SystemNotReady
from ktrial.experiment.guest_storage import disk_tool, memory_mib
from ktrial.experiment.jobs import Job
from ktrial.experiment.manipulation import TreatmentSetting
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, RunsAlready, default_resources
from ktrial.installation import cache_directory
from ktrial.kernels.build import sandbox
from ktrial.kernels.errors import BUBBLEWRAP, KernelError
from ktrial.kernels.files import free_bytes, shown
from ktrial.knobs import catalogue, lookup, values
from ktrial.knobs.errors import KnobAbsent, KnobError, KnobForbidden, KnobNotMounted
from ktrial.knobs.lookup import KnobInstance, System, find
from ktrial.machines import Machine
from ktrial.machines.errors import HostUsageProblem, MachineStopped, VariableNamesNoProgram
from ktrial.machines.exact import ExactMachine, check_cpus
from ktrial.machines.host import HostMachine
from ktrial.machines.qemu import program
from ktrial.machines.ssh import SshMachine
from ktrial.model import notation
from ktrial.model.base import digest
from ktrial.model.design import FactorKind, Treatment, level_text
from ktrial.model.kernel import Build
from ktrial.model.knob import version_of
from ktrial.model.machine import Boot
from ktrial.model.notation import nearest
from ktrial.model.parallel import MONITORS
from ktrial.model.references import KernelRef
from ktrial.model.study import (
    EXACT_MACHINES,
    REAL_MACHINES,
    MachineSettings,
    Study,
    builds_of,
    plan,
    treatments,
)
from ktrial.model.trial import Outcome
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import WorkloadUse
from ktrial.package_names import INSTALL
from ktrial.store.store import Store
from ktrial.system_tools import NeedsTools, Tool, missing_of, packages_of
from ktrial.target import Failure, StepResult
from ktrial.target.local import LocalTarget
from ktrial.text_lines import lines_of

_ROOM_OF_A_KERNEL = 350 * 10**6
"""Bytes, with apt's lists and a guest's snapshot. Of Debian's cloud kernels 6.1 and 6.12 the cache keeps 134
MB each, 104 MB of lists, and 74 MB a snapshot; the packages are there while they are unpacked."""


@dataclass(frozen=True)
class Undertaking:
    """What a command is going to do, as far as that decides what this system has to have."""

    machine: Machine | None = None
    """What trials run on; None: none are run."""
    settings: MachineSettings = field(default_factory=MachineSettings)
    kernels: tuple[KernelRef, ...] = ()
    """Those that are fetched, read, or built by their names."""
    builds: tuple[Build, ...] = ()
    anew: bool = False
    """Whether others are built that are like those: that the cache has them is not enough."""
    uses: tuple[WorkloadUse, ...] = ()
    memory_mib: int = 0
    """Of the largest guest; 0: as the settings say."""
    cpus: int = 0
    """Of the guest that has most; 0: as the settings say."""
    jobs: int | None = None
    tools: tuple[Tool, ...] = ()
    """What the command itself runs, beside all that."""
    confined: bool = False
    """Whether a source that a stranger has sent is built: without a sandbox nothing of it is."""
    resources: Resources = field(default_factory=default_resources)


def undertaking(
    study: Study, machine: Machine, resources: Resources, jobs: int | None, *, kernels: bool = True
) -> Undertaking:
    """What running a study takes, whose references are resolved. `kernels`: whether any has to be had."""
    named = (kernel for name, kernel in study.references.kernels.items() if name not in study.builds)
    return Undertaking(
        machine=machine,
        settings=study.machine,
        kernels=tuple(named) if kernels else (),
        builds=tuple(builds_of(study, treatments(study)).values()) if kernels and study.builds else (),
        uses=study.workloads,
        memory_mib=_largest_memory(study),
        cpus=_most_cpus(study),
        jobs=jobs,
        resources=resources,
    )


def check_study(
    study: Study,
    store: Store,
    machine: Machine,
    resources: Resources,
    jobs: int | None,
    replaced: frozenset[Outcome],
    tell: Callable[[str], None],
) -> None:
    """As `check`, of a study's trials; where all are stored, no kernel has to be had. `replaced`: outcomes of
    stored trials that are run again.
    """
    stored = store.newest(digest=digest(study))
    finished = store.finished_keys(stored.id, apart_from=replaced) if stored else frozenset()
    missing = any(planned.key not in finished for planned in plan(study).trials)
    check(undertaking(study, machine, resources, jobs, kernels=missing), tell)


class Shortage(NamedTuple):
    """What this system has too little of."""

    text: str
    advice: str
    certain: bool = False
    """Whether nothing can come of the command; else it may."""


def check(undertaking: Undertaking, tell: Callable[[str], None]) -> None:
    """Raise SystemNotReady, which names all that is missing here. `tell`: told what may be too little.

    Raises HostProblem where QEMU cannot count so many CPUs.
    """
    kernels = _of_kernels(undertaking)
    missing = [*kernels.missing, *missing_of(_of_trials(undertaking))]
    short = [*_room(undertaking, kernels.built), *_memory(undertaking)]
    if kernels.confined or undertaking.confined:
        unconfined = _unconfined(undertaking)
        # Where something is to be installed anyway, the sandbox is, too.
        if unconfined and BUBBLEWRAP.path() is None and (missing or undertaking.confined):
            missing.append(BUBBLEWRAP)
        short += unconfined
    _raise(missing, [shortage for shortage in short if shortage.certain])
    cpus = undertaking.cpus or undertaking.settings.cpus
    if cpus > 1 and isinstance(undertaking.machine, ExactMachine):
        check_cpus(cpus, program.find(), undertaking.machine.name)
    for shortage in short:
        tell(f"warning: {shortage.text}; {shortage.advice}")


def _unconfined(undertaking: Undertaking) -> list[Shortage]:
    """What is wrong with the sandbox."""
    problem = sandbox.problem() or (sandbox.weakness() if undertaking.confined else "")
    if not problem:
        return []
    if undertaking.confined:
        text = f"code from strangers is built in a whole sandbox only, and there is none here: {problem}"
        return [Shortage(text, "--trust builds it as yourself", certain=True)]
    text = f"kernels are built without a sandbox: {problem}"
    return [Shortage(text, "what their sources run can reach your files")]


def _raise(missing: list[Tool], short: list[Shortage]) -> None:
    """Raise SystemNotReady where there is anything."""
    misnamed = [
        VariableNamesNoProgram(variable=tool.variable, program=tool.name) for tool in missing if tool.variable
    ]
    short = [*(Shortage(error.message.rstrip("."), error.advice) for error in misnamed), *short]
    missing = [tool for tool in missing if not tool.variable]
    problems = [f"not installed: {_named(missing)}"] if missing else []
    problems += [shortage.text for shortage in short]
    line = [f"{INSTALL} {packages_of(missing)}"] if missing else []
    if problems:
        advice = "\n".join([*line, *(shortage.advice for shortage in short)])
        raise SystemNotReady(f"This system is not ready for that: {'; '.join(problems)}.", hint=advice)


def check_factors(study: Study, tell: Callable[[str], None] | None = None) -> None:
    """Raise StudyRefused where a factor certainly cannot act: in the study's guests, or on this system.

    `tell`: told which may not, where the study's result will not say it.
    """
    targets = [factor.target for factor in study.factors if factor.kind is FactorKind.SETTING]
    on_this_system = study.machine.kind == "host"
    here = inert_knobs(study.machine, targets, has_swap=has_swap()) if on_this_system else ()
    _refuse_inert(f"The study {study.name}", [*inert_factors(study), *here], tell)


def check_knobs(names: Iterable[str], settings: MachineSettings) -> None:
    """The same of knobs that a command varies. `names`: those that somebody named."""
    _refuse_inert("The search", list(inert_knobs(settings, names, has_swap=has_swap())), None)


def has_swap(file: Path = Path("/proc/swaps")) -> bool:
    """Whether this system swaps anywhere; True where nobody can tell."""
    try:
        return len(lines_of(file.read_text())) > 1
    except OSError:
        return True


def _refuse_inert(subject: str, inert: Sequence[Inert], tell: Callable[[str], None] | None) -> None:
    certain = [knob.warning for knob in inert if knob.certain]
    if certain:
        texts = "; ".join(warning.text for warning in certain)
        advice = "; ".join(dict.fromkeys(warning.advice for warning in certain))
        raise StudyRefused(f"{subject} is refused: {texts}.", hint=advice)
    for knob in inert:
        if tell:
            tell(f"warning: {knob.warning.text}; {knob.warning.advice}")


class _Kernels(NamedTuple):
    """How a command's kernels are had."""

    built: list[Build]
    """Those of the builds that the cache may lack."""
    missing: list[Tool]
    """What fetching and building lacks."""
    confined: bool
    """Whether sources run programs, which belong into the sandbox."""


def _of_kernels(undertaking: Undertaking) -> _Kernels:
    """Whether the cache has a build is looked up only where something is missing: it reads the source."""
    needed = [tool for kernel in undertaking.kernels for tool in _bringing(undertaking, kernel)]
    built = []
    for build in undertaking.builds:
        with suppress(KernelError):  # what is wrong with it is an outcome of its trials, or is told later
            tools = undertaking.resources.builder.tools(build)
            if tools and (
                undertaking.anew or not (missing_of(tools) and undertaking.resources.builder.cached(build))
            ):
                built.append(build)
                needed += tools
    # Without the sandbox sources of one's own are built all the same.
    missing = missing_of(tool for tool in needed if tool != BUBBLEWRAP)
    return _Kernels(built, missing, BUBBLEWRAP in needed)


def _bringing(undertaking: Undertaking, kernel: KernelRef) -> tuple[Tool, ...]:
    with suppress(KernelError):
        return undertaking.resources.kernel_tools(kernel)
    return ()


def _of_trials(undertaking: Undertaking) -> Iterator[Tool]:
    """What the command itself runs, the machine, its disk, the workloads and the monitors."""
    yield from undertaking.tools
    if undertaking.machine is None:
        return
    if isinstance(undertaking.machine, NeedsTools):
        yield from undertaking.machine.needed_tools
    if undertaking.settings.disk:
        yield disk_tool(undertaking.settings.disk)
    if undertaking.settings.swap_mib:
        yield from guest_swap.TOOLS
    for use in undertaking.uses:
        workload = undertaking.resources.workload(use)
        if isinstance(workload, NeedsTools):
            yield from workload.needed_tools
    tracers = monitors.installed_tracers() if undertaking.settings.monitors else {}
    for name in undertaking.settings.monitors:
        if name not in MONITORS and isinstance(tracer := tracers[name], NeedsTools):
            yield from tracer.needed_tools


def _named(missing: Iterable[Tool]) -> str:
    """`make, flex (builds kernels), patch (applies patches)`."""
    by_purpose: dict[str, dict[str, None]] = {}
    for tool in missing:
        by_purpose.setdefault(tool.purpose, {})[tool.name] = None
    return ", ".join(f"{', '.join(names)} ({purpose})" for purpose, names in by_purpose.items())


def _room(undertaking: Undertaking, built: list[Build]) -> list[Shortage]:
    """What the cache's disk has too little of."""
    place = cache_directory()
    free = free_bytes(place)
    # Builds go one after another, and use each other's trees.
    least = usual = 0
    if built:
        from ktrial.kernels.build.builds import least_room, usual_room  # what builds takes its time to load

        least, usual = max(map(least_room, built)), max(map(usual_room, built))
    usual += sum(_ROOM_OF_A_KERNEL for kernel in undertaking.kernels if _bringing(undertaking, kernel))
    if free >= usual:
        return []
    advice = "free some (ktrial kernel list, ktrial kernel remove NAME), or set KTRIAL_CACHE elsewhere"
    if free < least and (undertaking.anew or not all(map(undertaking.resources.builder.cached, built))):
        text = f"{place} has {shown(free)} free, and a build needs {shown(least)} at least"
        return [Shortage(text, advice, certain=True)]
    text = f"{place} has {shown(free)} free, and the kernels usually take {shown(usual)}"
    return [Shortage(text, advice)]


def _memory(undertaking: Undertaking) -> list[Shortage]:
    """What guests may take together; a guest takes its memory as it uses it."""
    if not isinstance(undertaking.machine, NeedsTools) or undertaking.settings.kind in REAL_MACHINES:
        return []
    guest = undertaking.memory_mib or undertaking.settings.memory_mib
    if undertaking.settings.disk:
        guest += memory_mib(undertaking.settings.disk)
    guest += guest_swap.memory_mib(undertaking.settings.swap_mib)
    facts = dict(line.split(":", 1) for line in lines_of(Path("/proc/meminfo").read_text()))
    total, swap, free = (
        int(facts[name].split()[0]) // 1024 for name in ("MemTotal", "SwapTotal", "MemAvailable")
    )
    if guest > total + swap:
        text = f"a guest has {guest} MiB of memory, and this system {total + swap} MiB with its swap"
        return [Shortage(text, "memory in [machine], or --memory, makes it smaller", certain=True)]
    at_once = (
        undertaking.jobs or len(os.sched_getaffinity(0)) if undertaking.settings.kind in EXACT_MACHINES else 1
    )
    if at_once * guest <= free:
        return []
    text = f"{at_once} guests at once may take {at_once * guest} MiB of memory, and {free} MiB are free"
    return [Shortage(text, f"--jobs {max(1, free // guest)} runs fewer at once")]


def _largest_memory(study: Study) -> int:
    levels = [
        notation.memory_mib(level) if isinstance(level, str) else int(level)
        for factor in study.factors
        if factor.kind is FactorKind.MEMORY
        for level in factor.levels
    ]
    return max(levels, default=study.machine.memory_mib)


def _most_cpus(study: Study) -> int:
    factors = (factor for factor in study.factors if factor.kind is FactorKind.CPUS)
    return max((int(level) for factor in factors for level in factor.levels), default=study.machine.cpus)


# What a study asks of this system, looked at before its first trial: settings, and as whom programs run.

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def check_host(study: Study, machine: Machine) -> None:
    """Raise what would keep a treatment from being tried here, before one is; elsewhere nothing is looked at.

    Of settings: what `ktrial knob set` raises before it writes. Of programs: HostUsageProblem. Of a
    guest's disk: MachineToolMissing. Of another system: HostChangeForbidden, CannotBoot, MachineUsageError.
    """
    if study.machine.disk:
        guest_storage.program(study.machine.disk)
    if isinstance(machine, SshMachine):
        _check_other(study, machine)
    if isinstance(machine, HostMachine):
        for user in dict.fromkeys(use.command.user for use in study.workloads if use.command):
            _check_user(machine.name, user)
        check_host_settings(study, LocalTarget())


def _check_other(study: Study, machine: SshMachine) -> None:
    """What another system has to be able to do. Raises HostChangeForbidden, CannotBoot, MachineUsageError."""
    if study.machine.boots:
        machine.check_boots()
    if study.machine.pin:
        machine.check_is_linux("pinning to CPUs")
    if any(factor.kind is FactorKind.SETTING for factor in study.factors):
        machine.check_is_linux("settings")
    if built_in := [use.label for use in study.workloads if use.command is None]:
        machine.check_is_linux(f"workloads of its own ({built_in[0]})")


def check_host_settings(study: Study, target: LocalTarget) -> None:
    """Find every setting of every treatment, and look whether it may be written. Raises KnobError."""
    system = System(target)
    for factor in study.factors:
        if factor.kind is FactorKind.SETTING:
            for setting in find(system, study.references.knobs[factor.target]):
                _check_writable(setting, target)
                for level in factor.levels:
                    values.check(setting.name, setting.knob, level_text(level), system.version)


def _check_writable(instance: KnobInstance, target: LocalTarget) -> None:
    if not target.mode(instance.path) & _WRITABLE:
        advice = "even root may not: the file is read-only; ktrial knob list names what can be changed"
        raise KnobForbidden(instance.name, "writing it", "no bit of its mode allows it", hint=advice)


def _check_user(machine: str, user: str) -> None:
    if not user:
        return
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise HostUsageProblem(
            f"Machine {machine}: a program is to run as {user}, and there is no such user on this system.",
            hint="name another user beside the command in the study file (getent passwd lists them), or "
            "leave it out",
        ) from None
    if os.geteuid() not in {0, account.pw_uid}:
        raise HostUsageProblem(
            f"Machine {machine} cannot run a program as {user}: ktrial itself runs as user {os.geteuid()}, "
            "not as root.",
            hint="run ktrial as root (sudo ktrial …), or leave user out: the program then runs as ktrial "
            "does",
        )


def warnings_of(machine: Machine, job: Job) -> tuple[DataWarning, ...]:
    """A command of the user's that has all rights here, without having been given them by name."""
    return of_use(machine, job.use)


def of_use(machine: Machine, use: WorkloadUse) -> tuple[DataWarning, ...]:
    """The same of a workload of the study's, before it runs."""
    command = use.command
    if not isinstance(machine, HostMachine) or command is None or command.user or os.geteuid() != 0:
        return ()
    text = f"{use.name} runs as root: ktrial does, and its command names no user"
    advice = (
        '--user nobody (or root), or user = "nobody" beside its command in the study file, names the '
        "user that it runs as"
    )
    return (DataWarning(kind=WarningKind.RUNS_AS_ROOT, text=text, advice=advice),)


# Whether the kernels of a study have the settings that it names: looked for before its first trial.
#
# Of many knobs the catalogue knows that every kernel of a version has them. Any other is asked for: the
# settings of a treatment are written in the system that its trials start from, without a workload, and what
# comes of it is not stored. That a version has none is not believed: distributions bring knobs to older
# kernels. A setting that some kernels of the study have is tried; in the others it is an outcome of trials.

_ABSENT = frozenset({"ENOENT", "ENOTDIR"})
_DENIED = _ABSENT | {"EACCES", "EISDIR", "EPERM", "EROFS"}
"""Answers to whoever writes where nothing can be set. EACCES and EPERM may be said of one value alone."""


def check_settings(
    treatments: Iterable[Treatment], jobs: Mapping[str, Sequence[Job]], machine: Machine, observer: Observer
) -> None:
    """Raise StudyRefused for a setting that no kernel has or lets be written.

    `jobs` is by the treatments' keys; those that are not there are not tried. Machines that boot nothing are
    not asked: see `host_checks`. Raises HOST_PROBLEMS, too.
    """
    if isinstance(machine, RunsAlready):
        return
    first = [of_treatment[0] for treatment in treatments if (of_treatment := jobs.get(treatment.key))]
    _SettingSearch(machine, observer, tuple(job for job in first if job.settings)).run()


@dataclass
class _SettingSearch:
    """What is known of the settings so far."""

    machine: Machine
    observer: Observer
    jobs: tuple[Job, ...]
    present: set[str] = field(default_factory=set)
    """Names of those that a kernel has, or may have."""
    missing: dict[str, KnobError] = field(default_factory=dict)
    """The others that were asked for, with why the last kernel does not have it."""
    absent: set[tuple[Boot, str]] = field(default_factory=set)
    """Systems, and files that are not there."""

    def run(self) -> None:
        """What the catalogue knows to be there; of the rest what the kernels say. Raises StudyRefused."""
        settings = [(job, setting) for job in self.jobs for setting in job.settings]
        self.present = {
            setting.name for job, setting in settings if _is_known(setting, job.boot.kernel.release)
        }
        for job in self.jobs:
            if any(self._is_open(job, setting) for setting in job.settings):
                self._ask(job)
        for name in dict.fromkeys(setting.name for _, setting in settings):
            if name not in self.present:
                why = self.missing[name]
                kernels = dict.fromkeys(job.boot.kernel.name for job in self.jobs)
                raise StudyRefused(
                    f"The setting {name} cannot be made in any kernel of the study "
                    f"({', '.join(kernels)}){_similar(why, name)}, so no trial was run: "
                    f"{why.message.rstrip('.')}.",
                    hint=why.advice,
                ) from why

    def _is_open(self, job: Job, setting: TreatmentSetting) -> bool:
        return setting.name not in self.present and (job.boot, setting.path) not in self.absent

    def _ask(self, job: Job) -> None:
        steps = (*job.preparation, *(setting.step for setting in job.settings))
        try:
            self.machine.prepare(job.boot, lambda what: self.observer.preparing(job.boot, what))
            self.observer.preparing(job.boot, "looking for settings")
            with self.machine.start(job.boot) as target:
                results = target.perform(steps)[len(job.preparation) :]
                system = System(target, is_root=True)
                for setting, result in zip(job.settings, results, strict=True):
                    self._saw(job, setting, result, system)
        except KtrialError as error:
            if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
                raise
            # A guest that ends tells nothing about its files: that is an outcome of its trials.
            self.present |= {setting.name for setting in job.settings}
        finally:
            self.observer.prepared(job.boot)

    def _saw(self, job: Job, setting: TreatmentSetting, result: StepResult, system: System) -> None:
        failure = result.failure
        if failure is None or failure.name not in _DENIED:
            self.present.add(setting.name)
        elif self._is_open(job, setting):
            self.missing[setting.name] = _why(setting, failure, system)
            self.absent |= {(job.boot, setting.path)} if failure.name in _ABSENT else set()


def _is_known(setting: TreatmentSetting, release: str) -> bool:
    """Whether all kernels of the release have the file, however they are configured."""
    try:
        version = version_of(release)
    except ValueError:
        return False
    places = setting.knob.knob.places_in(version) if setting.knob.knob else ()
    return any(place.path == setting.path and not place.config and not place.needs for place in places)


def _why(setting: TreatmentSetting, failure: Failure, system: System) -> KnobError:
    knob = None if setting.knob.path else setting.knob.knob
    why = lookup.of_writing(system, setting.name, setting.path, knob, setting.value, failure)
    if isinstance(why, KnobNotMounted):
        return KnobError(f"Knob {setting.name}: this kernel mounts no {why.filesystem}.")
    return why


def _similar(why: KnobError, name: str) -> str:
    """Knobs that are called nearly so; nothing for what is there, for paths, and for those that are one."""
    if not isinstance(why, KnobAbsent) or name.startswith("/") or catalogue.get(name.partition("@")[0]):
        return ""
    return nearest(name, (all_knob.name for all_knob in catalogue.all_knobs()))
