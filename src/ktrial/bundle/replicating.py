"""Runs a bundle's study again in a store of its own, in guests only, and compares."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from ktrial.analysis.replication import compared
from ktrial.analysis.result import make_record
from ktrial.bundle.archive import KERNELS, KernelEntry
from ktrial.bundle.errors import BadBundle, BundleError, HostFilesNamed
from ktrial.bundle.reading import Bundle
from ktrial.bundle.writing import CONFIG, IMAGE, MODULES, SYSTEM_MAP, host_files
from ktrial.experiment import guest_storage, guest_swap, session
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Builder, Resources, default_resources
from ktrial.kernels import Progress, kernel_registry
from ktrial.kernels.errors import KernelError
from ktrial.kernels.providers import Parts
from ktrial.machines import Machine
from ktrial.model.kernel import Build, Kernel, Origin
from ktrial.model.machine import CarriedFile
from ktrial.model.references import KernelRef
from ktrial.model.replication import KernelHad, Replication
from ktrial.model.study import Study, StudyRecord
from ktrial.store.store import Store

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


def study_again(bundle: Bundle, request: ReplicationRequest) -> Study:
    """The part of the bundle's study that is run again.

    Raises BundleError, HostFilesNamed, BadBundle.
    """
    study = bundle.study
    _check(bundle, study, request)
    uses = tuple(
        use for use in study.workloads if not request.only or {use.name, use.label} & set(request.only)
    )
    names = {name for use in study.workloads for name in (use.name, use.label)}
    if missing := [name for name in request.only if name not in names]:
        labels = ", ".join(use.label for use in study.workloads)
        raise BadBundle(f"Bundle {bundle.file} has no workload {missing[0]}.", hint=f"it has {labels}")
    fewer = (
        study.perturbations
        if request.perturbations is None
        else min(request.perturbations, study.perturbations)
    )
    timing = study.timing
    if timing and request.only:
        primary = tuple(
            metric for metric in timing.primary if metric.partition(":")[0] in {use.label for use in uses}
        )
        timing = timing.model_copy(update={"primary": primary})
    return study.model_copy(update={"workloads": uses, "perturbations": fewer, "timing": timing})


def _check(bundle: Bundle, study: Study, request: ReplicationRequest) -> None:
    if study.machine.kind not in IN_GUESTS:
        _refuse(bundle, f"its machine is {study.machine.kind}: its commands would run on this system itself")
    if study.search:
        _refuse(bundle, "it is a search, whose trials depend on each other")
    if (named := host_files(study)) and not request.host_files:
        raise HostFilesNamed(bundle.file, ", ".join(named[:5]))


def _refuse(bundle: Bundle, problem: str) -> NoReturn:
    raise BundleError(
        f"Bundle {bundle.file} is not run again: {problem}.",
        hint="read study.toml in it, and if you trust that: ktrial run study.toml",
    )


@dataclass(frozen=True)
class Replicated:
    """What was run again, with the first time."""

    replication: Replication
    before: StudyRecord
    now: StudyRecord


def replicate(
    bundle: Bundle,
    stores: tuple[Store, Store],
    request: ReplicationRequest,
    *,
    observer: Observer | None = None,
    jobs: int | None = None,
    machine: Machine | None = None,
    resources: Resources | None = None,
    cached: Callable[[str, Progress], Kernel] = kernel_registry.cached,
) -> Replicated:
    """Run it again, and compare. `stores`: one to read the bundle into, and one for what is measured now.

    Raises what `study_again` and `session.run` raise.
    """
    study = study_again(bundle, request)
    first, fresh = stores
    stored = first.find(bundle.fill(first))
    before = make_record(first, stored, first.trials(stored.id))
    plain = resources or default_resources()
    kernel_sources = KernelSources(bundle, plain.kernel, cached)
    files = plain.files if request.host_files else _own_programs(bundle.file, study, plain.files)
    again = replace(plain, obtain=kernel_sources.obtain, builder=kernel_sources.builder(), files=files)
    after = session.run(
        study,
        store=fresh,
        machine=machine,
        observer=observer,
        jobs=jobs,
        resources=again,
        any_settings=True,
        one_sided=True,
    )
    replication = compared(before, after, kernel_sources.had, request.only, bundle.signer)
    return Replicated(replication, before, after)


def _own_programs(file: Path, study: Study, files: FileReader) -> FileReader:
    """In place of what reads files of this system: only what ktrial gives a guest to make its disk and swap.

    study_again has said that the study names none.
    """
    allowed = {guest_storage.program(study.machine.disk)} if study.machine.disk else set()
    allowed |= set(guest_swap.programs()) if study.machine.swap_mib else set()

    def only_own(who: str, named: tuple[str, ...]) -> tuple[CarriedFile, ...]:
        if set(named) - allowed:
            raise HostFilesNamed(file, ", ".join(named))
        return files(who, named)

    return only_own


# Kernels for a replication: by digest from the cache, the bundle, a distribution; or what stands in.
#
# A bundle's kernel never takes a name of the cache's own: it is kept as `bundle:DIGEST`. Nothing is built,
# since building runs a stranger's makefiles here; and no file of this system is taken for a kernel because
# a bundle names it.

_DIGEST = re.compile(r"[0-9a-f]{64}")


_DEBIAN = re.compile(r"debian:[0-9][A-Za-z0-9.+~:-]{0,100}")
"""The one provider that a stranger may name: packages that this system's apt verifies."""


_KEY = 16


Way = tuple[str, Callable[[Progress], Kernel]]


class KernelSources:
    """Obtains a bundle's kernels, and notes how each was had."""

    def __init__(
        self,
        bundle: Bundle,
        obtain: Callable[[str, Progress], Kernel] = kernel_registry.obtain,
        cached: Callable[[str, Progress], Kernel] = kernel_registry.cached,
    ) -> None:
        """`obtain`: a kernel by name; `cached`: one that is there, by digest. Both raise KernelError."""
        self._bundle = bundle
        self._cached = cached
        self._obtain = obtain
        self._entries: Mapping[str, KernelEntry] = {entry.asked: entry for entry in bundle.contents.kernels}
        self._had: dict[str, KernelHad] = {}

    @property
    def had(self) -> tuple[KernelHad, ...]:
        """How each kernel was had, or why not, in the order of asking."""
        return tuple(self._had.values())

    def obtain(self, reference: KernelRef, progress: Progress) -> Kernel:
        """The kernel that a study's name means, or what stands in. Raises KernelError."""
        return self._first(
            reference.label, (*self._same(reference.label), *_others(reference, self._obtain)), progress
        )

    def builder(self) -> Builder:
        """Builds nothing: a kernel that was built is had by its digest, or not at all."""

        def build(order: Build, progress: Progress) -> Kernel:
            return self._first(order.name, tuple(self._same(order.name)), progress, built=True)

        return Builder(build=build, configured=lambda _wanted, _progress: {}, cached=lambda _wanted: None)

    def _same(self, name: str) -> Iterator[Way]:
        """Where that very kernel may be."""
        entry = self._entries.get(name)
        if entry is None or not _DIGEST.fullmatch(entry.digest):
            return
        digest = entry.digest
        yield "the cache", lambda progress: self._cached(digest, progress)
        if f"{KERNELS}/{digest}/{IMAGE}" in self._bundle.names:
            yield "the bundle", lambda progress: self._unpacked(digest, progress)
        package = entry.obtain
        if _DEBIAN.fullmatch(package):
            yield package, lambda progress: self._obtain(package, progress)

    def _first(self, name: str, ways: tuple[Way, ...], progress: Progress, *, built: bool = False) -> Kernel:
        entry = self._entries.get(name, KernelEntry(asked=name))
        problems = []
        for source, obtain in ways:
            try:
                kernel = obtain(progress)
            except KernelError as error:
                problems.append(f"{source}: {error.message}")
                continue
            same = kernel.digest == entry.digest
            self._had[name] = KernelHad(
                asked=name, digest=entry.digest, how=source, release=kernel.release, same=same
            )
            return kernel.model_copy(update={"name": name})
        last = problems[-1].rstrip(".") if problems else "nothing says where it is to be had"
        problem = "it was built, and is neither in the cache nor in the bundle" if built else last
        self._had[name] = KernelHad(asked=name, digest=entry.digest, how="", problem=problem)
        raise KernelError(
            f"Kernel {name} cannot be had for the replication: {problem}.",
            hint="ask the bundle's author for one that has it (ktrial bundle --with-kernels)",
        )

    def _unpacked(self, digest: str, progress: Progress) -> Kernel:
        """The kernel out of the bundle, into the cache. Raises KernelError, BundleDamaged."""

        def parts(workspace: Path) -> Parts:
            where = workspace / "from-bundle"
            for name in self._bundle.names:
                below = name.removeprefix(f"{KERNELS}/{digest}/")
                if below != name:
                    place = where / below  # plain names only: nothing leaves the directory
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(self._bundle.read(name))
            origin = Origin(provider="bundle", source=self._bundle.contents.study, version=digest[:_KEY])
            return Parts(
                image=where / IMAGE,
                origin=origin,
                modules=_there(where / MODULES),
                config=_there(where / CONFIG),
                system_map=_there(where / SYSTEM_MAP),
            )

        return kernel_registry.add_parts(f"bundle:{digest[:_KEY]}", parts, progress)


def _there(path: Path) -> Path | None:
    return path if path.exists() else None


def _others(reference: KernelRef, obtain: Callable[[str, Progress], Kernel]) -> Iterator[Way]:
    """What can stand in: the newest package of a name that the study itself uses."""
    if _DEBIAN.fullmatch(reference.asked):
        yield reference.asked, lambda progress: obtain(reference.asked, progress)
