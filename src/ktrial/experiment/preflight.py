"""What a command will need of this system, looked for in its first second: what is missing is told at once.

Nothing is fetched, built or booted before. Each room declares what it needs (`ktrial.system_tools`); an error
that is raised later, where something of it is missing, reads the same declaration.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ktrial import monitors
from ktrial.analysis.setting_reach import out_of_reach
from ktrial.experiment.errors import NothingCanAct, SystemNotReady
from ktrial.experiment.guest_storage import disk_tool, memory_mib
from ktrial.experiment.resources import Resources, default_resources
from ktrial.kernels.build import sandbox
from ktrial.kernels.build.build_room import least_room, usual_room
from ktrial.kernels.build.errors import BUBBLEWRAP
from ktrial.kernels.cache.disk_space import free_bytes, shown
from ktrial.kernels.cache.location import cache_directory
from ktrial.kernels.errors import KernelError
from ktrial.machines import Machine
from ktrial.model import quantities
from ktrial.model.base import digest
from ktrial.model.design import FactorKind
from ktrial.model.kernel import Build
from ktrial.model.parallel import MONITORS
from ktrial.model.plan import plan, treatments
from ktrial.model.references import KernelRef
from ktrial.model.study import EXACT_MACHINES, REAL_MACHINES, MachineSettings, Study, builds_of
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.package_names import INSTALL
from ktrial.store import Store
from ktrial.system_tools import NeedsTools, Tool, missing_of, packages_of

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
    jobs: int | None = None
    tools: tuple[Tool, ...] = ()
    """What the command itself runs, beside all that."""
    confined: bool = False
    """Whether a source that a stranger has sent is built: without a sandbox nothing of it is."""
    sources: Resources = field(default_factory=default_resources)


def undertaking(
    study: Study, machine: Machine, sources: Resources, jobs: int | None, *, kernels: bool = True
) -> Undertaking:
    """What running a study takes, whose references are resolved. `kernels`: whether any has to be had."""
    named = (one for name, one in study.references.kernels.items() if name not in study.builds)
    return Undertaking(
        machine=machine,
        settings=study.machine,
        kernels=tuple(named) if kernels else (),
        builds=tuple(builds_of(study, treatments(study)).values()) if kernels and study.builds else (),
        uses=study.workloads,
        memory_mib=_largest_memory(study),
        jobs=jobs,
        sources=sources,
    )


def check_study(
    study: Study,
    store: Store,
    machine: Machine,
    sources: Resources,
    jobs: int | None,
    replaced: frozenset[Outcome],
    tell: Callable[[str], None],
) -> None:
    """As `check`, of a study's trials; where all are stored, no kernel has to be had. `replaced`: outcomes of
    stored trials that are run again.
    """
    stored = store.newest(digest=digest(study))
    done = store.finished_keys(stored.id, apart_from=replaced) if stored else frozenset()
    missing = any(planned.key not in done for planned in plan(study).trials)
    check(undertaking(study, machine, sources, jobs, kernels=missing), tell)


class Shortage(NamedTuple):
    """What this system has too little of."""

    text: str
    advice: str
    certain: bool = False
    """Whether nothing can come of the command; else it may."""


def check(wanted: Undertaking, tell: Callable[[str], None]) -> None:
    """Raise SystemNotReady, which names all that is missing here. `tell`: told what may be too little."""
    kernels = _of_kernels(wanted)
    missing = [*kernels.missing, *missing_of(_of_trials(wanted))]
    short = [*_room(wanted, kernels.built), *_memory(wanted)]
    if kernels.confined or wanted.confined:
        unconfined = _unconfined(wanted)
        # Where something is to be installed anyway, the sandbox is, too.
        if unconfined and BUBBLEWRAP.path() is None and (missing or wanted.confined):
            missing.append(BUBBLEWRAP)
        short += unconfined
    _raise(missing, [shortage for shortage in short if shortage.certain])
    for shortage in short:
        tell(f"warning: {shortage.text}; {shortage.advice}")


def _unconfined(wanted: Undertaking) -> list[Shortage]:
    """What is wrong with the sandbox."""
    problem = sandbox.problem()
    if not problem:
        return []
    if wanted.confined:
        text = f"what a stranger has sent is built in a sandbox only, and there is none: {problem}"
        return [Shortage(text, "--trust builds it as yourself", certain=True)]
    text = f"kernels are built without a sandbox: {problem}"
    return [Shortage(text, "what their sources run can reach your files")]


def _raise(missing: list[Tool], short: list[Shortage]) -> None:
    """Raise SystemNotReady where there is anything."""
    problems = [f"not installed: {_named(missing)}"] if missing else []
    problems += [shortage.text for shortage in short]
    line = [f"{INSTALL} {packages_of(missing)}"] if missing else []
    if problems:
        advice = "\n".join([*line, *(shortage.advice for shortage in short)])
        raise SystemNotReady(problems="; ".join(problems), advice=advice)


def check_factors(study: Study, tell: Callable[[str], None]) -> None:
    """Tell which factors cannot act in the study's guests. Raises NothingCanAct where none can."""
    inert = {warning.text: warning.advice for warning in out_of_reach(study)}
    certain = not any(use.command for use in study.workloads)  # a program of the user's may do anything
    if inert and certain and len(inert) == len(study.factors):
        advice = "; ".join(dict.fromkeys(inert.values()))
        raise NothingCanAct(study=study.name, problem="; ".join(inert), advice=advice)
    for text, advice in inert.items():
        tell(f"warning: {text}; {advice}")


class _Kernels(NamedTuple):
    """How a command's kernels are had."""

    built: list[Build]
    """Those of the builds that the cache may lack."""
    missing: list[Tool]
    """What fetching and building lacks."""
    confined: bool
    """Whether sources run programs, which belong into the sandbox."""


def _of_kernels(wanted: Undertaking) -> _Kernels:
    """Whether the cache has a build is looked up only where something is missing: it reads the source."""
    needed = [tool for kernel in wanted.kernels for tool in _bringing(wanted, kernel)]
    built = []
    for build in wanted.builds:
        with suppress(KernelError):  # what is wrong with it is an outcome of its trials, or is told later
            tools = wanted.sources.builder.tools(build)
            if tools and (wanted.anew or not (missing_of(tools) and wanted.sources.builder.cached(build))):
                built.append(build)
                needed += tools
    # Without the sandbox sources of one's own are built all the same.
    missing = missing_of(tool for tool in needed if tool != BUBBLEWRAP)
    return _Kernels(built, missing, BUBBLEWRAP in needed)


def _bringing(wanted: Undertaking, kernel: KernelRef) -> tuple[Tool, ...]:
    with suppress(KernelError):
        return wanted.sources.kernel_tools(kernel)
    return ()


def _of_trials(wanted: Undertaking) -> Iterator[Tool]:
    """What the command itself runs, the machine, its disk, the workloads and the monitors."""
    yield from wanted.tools
    if wanted.machine is None:
        return
    if isinstance(wanted.machine, NeedsTools):
        yield from wanted.machine.needed_tools
    if wanted.settings.disk:
        yield disk_tool(wanted.settings.disk)
    for use in wanted.uses:
        workload = wanted.sources.workload(use)
        if isinstance(workload, NeedsTools):
            yield from workload.needed_tools
    tracers = monitors.installed_tracers() if wanted.settings.monitors else {}
    for name in wanted.settings.monitors:
        if name not in MONITORS and isinstance(tracer := tracers[name], NeedsTools):
            yield from tracer.needed_tools


def _named(missing: Iterable[Tool]) -> str:
    """`make, flex (builds kernels), patch (applies patches)`."""
    by_purpose: dict[str, dict[str, None]] = {}
    for tool in missing:
        by_purpose.setdefault(tool.purpose, {})[tool.name] = None
    return ", ".join(f"{', '.join(names)} ({purpose})" for purpose, names in by_purpose.items())


def _room(wanted: Undertaking, built: list[Build]) -> list[Shortage]:
    """What the cache's disk has too little of."""
    place = cache_directory()
    free = free_bytes(place)
    least, usual = _room_of_builds(built)
    usual += sum(_ROOM_OF_A_KERNEL for kernel in wanted.kernels if _bringing(wanted, kernel))
    if free >= usual:
        return []
    advice = "free some (ktrial kernel list, ktrial kernel remove NAME), or set KTRIAL_CACHE elsewhere"
    if free < least and (wanted.anew or not all(map(wanted.sources.builder.cached, built))):
        text = f"{place} has {shown(free)} free, and a build needs {shown(least)} at least"
        return [Shortage(text, advice, certain=True)]
    text = f"{place} has {shown(free)} free, and the kernels usually take {shown(usual)}"
    return [Shortage(text, advice)]


def _room_of_builds(built: list[Build]) -> tuple[int, int]:
    """Bytes, at least and usually: builds go one after another, and use each other's trees."""
    return max(map(least_room, built), default=0), max(map(usual_room, built), default=0)


def _memory(wanted: Undertaking) -> list[Shortage]:
    """What guests may take together; a guest takes its memory as it uses it."""
    if not isinstance(wanted.machine, NeedsTools) or wanted.settings.kind in REAL_MACHINES:
        return []
    guest = wanted.memory_mib or wanted.settings.memory_mib
    if wanted.settings.disk:
        guest += memory_mib(wanted.settings.disk)
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, swap, free = (
        int(facts[name].split()[0]) // 1024 for name in ("MemTotal", "SwapTotal", "MemAvailable")
    )
    if guest > total + swap:
        text = f"a guest has {guest} MiB of memory, and this system {total + swap} MiB with its swap"
        return [Shortage(text, "memory in [machine], or --memory, makes it smaller", certain=True)]
    at_once = wanted.jobs or len(os.sched_getaffinity(0)) if wanted.settings.kind in EXACT_MACHINES else 1
    if at_once * guest <= free:
        return []
    text = f"{at_once} guests at once may take {at_once * guest} MiB of memory, and {free} MiB are free"
    return [Shortage(text, f"--jobs {max(1, free // guest)} runs fewer at once")]


def _largest_memory(study: Study) -> int:
    levels = [
        quantities.memory_mib(level) if isinstance(level, str) else int(level)
        for factor in study.factors
        if factor.kind is FactorKind.MEMORY
        for level in factor.levels
    ]
    return max(levels, default=study.machine.memory_mib)
