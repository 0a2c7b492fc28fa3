"""Obtain kernels by name, and find those that were obtained."""

import os
from contextlib import suppress
from pathlib import Path

from ktrial.kernels.cache.cache import Cache
from ktrial.kernels.cache.disk_space import file_system_errors
from ktrial.kernels.cache.records import NameRecord
from ktrial.kernels.errors import BadKernelName, CacheDamaged, KernelNameAmbiguous, KernelNotFound
from ktrial.kernels.progress import Progress, silent
from ktrial.kernels.providers.protocol import Keeps, Request, provider_of
from ktrial.model.kernel import Kernel


def add(
    name: str,
    *,
    modules: Path | None = None,
    config: Path | None = None,
    progress: Progress = silent,
    refresh: bool = False,
) -> Kernel:
    """Obtain the kernel `name` and keep it in the cache.

    A distribution's kernel that is there already comes back as it is, unless `refresh` asks for a newer one;
    files and the host's kernel are read each time. Raises KernelError and its kind: BadKernelName,
    NoSuchRelease, FetchFailed, ImageError, ModulesUnusable, ConfigUnusable, CacheFull and others.
    """
    provider, wanted = provider_of(name)
    canonical = provider.canonical(name, wanted)
    if (modules or config) and not provider.takes_files:
        problem = f"modules and configuration come with {provider.prefix}: kernels"
        raise BadKernelName(name=name, problem=problem, allowed="give --modules and --config with path: only")
    cache = Cache()
    with file_system_errors(cache.root), cache.adding(canonical, progress):
        if provider.remembers and not refresh:
            # A damaged entry is fetched again.
            with suppress(KernelNotFound, CacheDamaged):
                return cache.kernel(canonical)
        with cache.workspace() as workspace:
            request = Request(
                name=name,
                wanted=wanted,
                workspace=workspace,
                state=cache.root / "providers" / provider.prefix,
                progress=progress,
                modules=modules,
                config=config,
                refresh=refresh,
            )
            return cache.store(canonical, provider.fetch(request), workspace, progress)


def get(name: str) -> Kernel:
    """Return a kernel from the cache, by name or by the start of its digest.

    Raises KernelNotFound, which names near ones, KernelNameAmbiguous and CacheDamaged.
    """
    cache = Cache()
    with file_system_errors(cache.root):
        return cache.kernel(_meant(name))


def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel in the cache, by name."""
    cache = Cache()
    with file_system_errors(cache.root):
        return tuple(cache.kernel(record.name) for record in cache.names())


def record(name: str) -> NameRecord:
    """Return when and whence a kernel came. Raises KernelNotFound, KernelNameAmbiguous."""
    cache = Cache()
    with file_system_errors(cache.root):
        return cache.record(_meant(name))


def remove(name: str) -> tuple[str, int]:
    """Take a name, or a digest, out of the cache, with what its provider keeps to build it again.

    Content that another name shares stays.

    Returns the name and the bytes freed. Raises KernelNotFound, KernelNameAmbiguous.
    """
    cache = Cache()
    with file_system_errors(cache.root):
        removed, freed = cache.remove(_meant(name))
        with suppress(BadKernelName):
            provider, wanted = provider_of(removed)
            if isinstance(provider, Keeps):
                freed += provider.forget(wanted)
        return removed, freed


def canonical_name(name: str) -> str:
    """Write a kernel's name in the way the cache does; what no provider knows is left as it is."""
    try:
        return _meant(name)
    except KernelNameAmbiguous:
        return name


def _meant(name: str) -> str:
    try:
        provider, wanted = provider_of(name)
        return provider.canonical(name, wanted)
    except KernelNameAmbiguous:
        raise
    except BadKernelName:
        return name


def obtain(name: str, progress: Progress = silent) -> Kernel:
    """The kernel `name`, fetched if the cache lacks it. Raises KernelError.

    A file of the user's is read again each time, as it may have been built anew; unless it was added together
    with modules or a configuration, which its name does not tell.
    """
    try:
        known = get(name)
    except KernelNotFound:
        return add(name, progress=progress)
    alone = known.modules is None and known.config is None
    outdated = known.origin.provider == "host" and known.release != os.uname().release
    if outdated or (known.origin.provider == "path" and alone):
        return add(name, progress=progress)
    return known
