"""Kernels for a replication: by digest from the cache, the bundle, a distribution; or what stands in.

A bundle's kernel never takes a name of the cache's own: it is kept as `bundle:DIGEST`. Nothing is built,
since building runs a stranger's makefiles here; and no file of this system is taken for a kernel because a
bundle names it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ktrial import kernels
from ktrial.bundle.contents import KERNELS, KernelEntry
from ktrial.bundle.errors import KernelNotHad
from ktrial.bundle.kernel_entries import CONFIG, IMAGE, MODULES, SYSTEM_MAP
from ktrial.bundle.reading import Bundle
from ktrial.experiment.resources import Builder
from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError
from ktrial.kernels.providers.protocol import Parts
from ktrial.model.kernel import Build, Kernel, Origin
from ktrial.model.references import KernelRef
from ktrial.model.replication import KernelHad

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
        obtain: Callable[[str, Progress], Kernel] = kernels.obtain,
        cached: Callable[[str, Progress], Kernel] = kernels.cached,
    ) -> None:
        """`obtain`: a kernel by name; `cached`: one that is there, by digest. Both raise KernelError."""
        self._bundle = bundle
        self._cached = cached
        self._obtain = obtain
        self._entries: Mapping[str, KernelEntry] = {one.asked: one for one in bundle.contents.kernels}
        self._had: dict[str, KernelHad] = {}

    @property
    def had(self) -> tuple[KernelHad, ...]:
        """How each kernel was had, or why not, in the order of asking."""
        return tuple(self._had.values())

    def obtain(self, wanted: KernelRef, progress: Progress) -> Kernel:
        """The kernel that a study's name means, or what stands in. Raises KernelNotHad."""
        return self._first(
            wanted.label, (*self._same(wanted.label), *_others(wanted, self._obtain)), progress
        )

    def builder(self) -> Builder:
        """Builds nothing: a kernel that was built is had by its digest, or not at all."""

        def build(wanted: Build, progress: Progress) -> Kernel:
            return self._first(wanted.name, tuple(self._same(wanted.name)), progress, built=True)

        return Builder(build=build, configured=lambda _wanted, _progress: {}, cached=lambda _wanted: None)

    def _same(self, asked: str) -> Iterator[Way]:
        """Where that very kernel may be."""
        entry = self._entries.get(asked)
        if entry is None or not _DIGEST.fullmatch(entry.digest):
            return
        digest = entry.digest
        yield "the cache", lambda progress: self._cached(digest, progress)
        if f"{KERNELS}/{digest}/{IMAGE}" in self._bundle.names:
            yield "the bundle", lambda progress: self._unpacked(digest, progress)
        name = entry.obtain
        if _DEBIAN.fullmatch(name):
            yield name, lambda progress: self._obtain(name, progress)

    def _first(self, asked: str, ways: tuple[Way, ...], progress: Progress, *, built: bool = False) -> Kernel:
        entry = self._entries.get(asked, KernelEntry(asked=asked))
        problems = []
        for how, obtain in ways:
            try:
                kernel = obtain(progress)
            except KernelError as error:
                problems.append(f"{how}: {error.message}")
                continue
            same = kernel.digest == entry.digest
            self._had[asked] = KernelHad(
                asked=asked, digest=entry.digest, how=how, release=kernel.release, same=same
            )
            return kernel.model_copy(update={"name": asked})
        last = problems[-1].rstrip(".") if problems else "nothing says where it is to be had"
        problem = "it was built, and is neither in the cache nor in the bundle" if built else last
        self._had[asked] = KernelHad(asked=asked, digest=entry.digest, how="", problem=problem)
        raise KernelNotHad(name=asked, problem=problem)

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

        return kernels.add_parts(f"bundle:{digest[:_KEY]}", parts, progress)


def _there(path: Path) -> Path | None:
    return path if path.exists() else None


def _others(wanted: KernelRef, obtain: Callable[[str, Progress], Kernel]) -> Iterator[Way]:
    """What can stand in: the newest package of a name that the study itself uses."""
    if _DEBIAN.fullmatch(wanted.asked):
        yield wanted.asked, lambda progress: obtain(wanted.asked, progress)
