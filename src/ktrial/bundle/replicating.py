"""Runs a bundle's study again in a store of its own, in guests only, and compares."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from ktrial import kernels
from ktrial.analysis.replication import compared
from ktrial.analysis.result import record_of
from ktrial.bundle.errors import HostFilesNamed, NoSuchWorkloadInBundle, NotReplicable
from ktrial.bundle.kernel_sources import KernelSources
from ktrial.bundle.reading import Bundle
from ktrial.bundle.writing import host_files
from ktrial.experiment import guest_storage, session
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, default_resources
from ktrial.kernels import Progress
from ktrial.machines import Machine
from ktrial.model.boot import CarriedFile
from ktrial.model.kernel import Kernel
from ktrial.model.replication import Replication
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.store import Store

IN_GUESTS = frozenset({"exact", "exact-parallel", "kvm"})
"""Machines that run whatever a study says in a guest."""

FileReader = Callable[[str, tuple[str, ...]], tuple[CarriedFile, ...]]
"""Who asks, and files of this system → what a guest is given."""


@dataclass(frozen=True)
class ReplicationRequest:
    """What of a bundle is run again."""

    only: tuple[str, ...] = ()
    """Workloads, by name or label; empty: all."""
    perturbations: int | None = None
    """Of exact mode: so many of the perturbations; None: all."""
    host_files: bool = False
    """Whether guests may be given the files of this system that the study names."""


def study_again(bundle: Bundle, asked: ReplicationRequest) -> Study:
    """The part of the bundle's study that is run again.

    Raises NotReplicable, HostFilesNamed, NoSuchWorkloadInBundle.
    """
    study = bundle.study
    _check(bundle, study, asked)
    kept = tuple(use for use in study.workloads if not asked.only or {use.name, use.label} & set(asked.only))
    known = {name for use in study.workloads for name in (use.name, use.label)}
    if missing := [name for name in asked.only if name not in known]:
        there = ", ".join(use.label for use in study.workloads)
        raise NoSuchWorkloadInBundle(file=bundle.file, workload=missing[0], there=there)
    fewer = (
        study.perturbations if asked.perturbations is None else min(asked.perturbations, study.perturbations)
    )
    timing = study.timing
    if timing and asked.only:
        primary = tuple(one for one in timing.primary if one.partition(":")[0] in {use.label for use in kept})
        timing = timing.model_copy(update={"primary": primary})
    return study.model_copy(update={"workloads": kept, "perturbations": fewer, "timing": timing})


def _check(bundle: Bundle, study: Study, asked: ReplicationRequest) -> None:
    if study.machine.kind not in IN_GUESTS:
        _refuse(bundle, f"its machine is {study.machine.kind}: its commands would run on this system itself")
    if study.search:
        _refuse(bundle, "it is a search, whose trials depend on each other")
    if (named := host_files(study)) and not asked.host_files:
        raise HostFilesNamed(file=bundle.file, files=", ".join(named[:5]))


def _refuse(bundle: Bundle, problem: str) -> NoReturn:
    raise NotReplicable(file=bundle.file, problem=problem)


@dataclass(frozen=True)
class Replicated:
    """What was run again, with the first time."""

    replication: Replication
    before: StudyRecord
    now: StudyRecord


def replicate(
    bundle: Bundle,
    stores: tuple[Store, Store],
    asked: ReplicationRequest,
    *,
    observer: Observer | None = None,
    jobs: int | None = None,
    machine: Machine | None = None,
    sources: Resources | None = None,
    cached: Callable[[str, Progress], Kernel] = kernels.cached,
) -> Replicated:
    """Run it again, and compare. `stores`: one to read the bundle into, and one for what is measured now.

    Raises what `study_again` and `session.run` raise.
    """
    study = study_again(bundle, asked)
    first, fresh = stores
    stored = first.find(bundle.fill(first))
    before = record_of(first, stored, first.trials(stored.id))
    plain = sources or default_resources()
    kernel_sources = KernelSources(bundle, plain.kernel, cached)
    files = plain.files if asked.host_files else _own_programs(bundle.file, study, plain.files)
    again = replace(plain, obtain=kernel_sources.obtain, builder=kernel_sources.builder(), files=files)
    now = session.run(
        study,
        store=fresh,
        machine=machine,
        observer=observer,
        jobs=jobs,
        sources=again,
        any_settings=True,
        one_sided=True,
    )
    made = compared(before, now, kernel_sources.had, asked.only, bundle.signer)
    return Replicated(made, before, now)


def _own_programs(file: Path, study: Study, files: FileReader) -> FileReader:
    """In place of what reads files of this system: only what ktrial itself gives a guest to make its disk.

    study_again has said that the study names none.
    """
    own = {guest_storage.program(study.machine.disk)} if study.machine.disk else set()

    def only_own(who: str, named: tuple[str, ...]) -> tuple[CarriedFile, ...]:
        if set(named) - own:
            raise HostFilesNamed(file=file, files=", ".join(named))
        return files(who, named)

    return only_own
