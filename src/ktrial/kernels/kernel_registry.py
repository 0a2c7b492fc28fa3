"""Obtain kernels by name, and find those that were obtained."""

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ktrial.kernels import Progress, cache_repair, silent
from ktrial.kernels.cache_repair import KernelCheck, drop_damaged_additions, mend, whole_kernel
from ktrial.kernels.errors import (
    BadKernelName,
    CacheDamaged,
    KernelDamaged,
    KernelError,
    KernelNameAmbiguous,
    KernelNotFound,
)
from ktrial.kernels.files import file_system_errors
from ktrial.kernels.image import read_image
from ktrial.kernels.kernel_cache import Cache, NameRecord
from ktrial.kernels.providers import (
    GoesStale,
    Keeps,
    KnowsWithoutFetching,
    Parts,
    Request,
    RunsTools,
    TellsRelease,
    all_providers,
    provider_named,
    provider_of,
)
from ktrial.model.kernel import Kernel
from ktrial.model.references import KernelRef
from ktrial.system_tools import Tool


def reference(name: str) -> KernelRef:
    """Which kernel the name means, by the name alone. Raises BadKernelName, KernelNameAmbiguous."""
    provider, selector = provider_of(name)
    return KernelRef(
        asked=name,
        name=provider.canonical(name, selector),
        provider=provider.prefix,
        wanted=selector,
        release=provider.release(selector) if isinstance(provider, TellsRelease) else "",
    )


def add(
    kernel: str | KernelRef,
    *,
    modules: Path | None = None,
    config: Path | None = None,
    progress: Progress = silent,
    refresh: bool = False,
) -> Kernel:
    """Obtain a kernel and keep it in the cache.

    A distribution's kernel that is there already comes back as it is, unless `refresh` asks for a newer one;
    files and the host's kernel are read each time. Raises KernelError and its kind: BadKernelName,
    NoSuchRelease, FetchFailed, ImageError, ModulesUnusable, ConfigUnusable, CacheFull and others.
    """
    name = kernel if isinstance(kernel, str) else kernel.asked
    ref = kernel if isinstance(kernel, KernelRef) and kernel.provider else reference(name)
    provider = provider_named(ref.provider)
    if (modules or config) and not provider.takes_files:
        problem = f"modules and configuration come with {provider.prefix}: kernels"
        raise BadKernelName(name=name, problem=problem, allowed="give --modules and --config with path: only")
    cache = Cache()
    with file_system_errors(cache.root), cache.adding(ref.name, progress):
        if provider.remembers and not refresh and (present := _usable(cache, ref.name, progress)):
            return present
        with cache.workspace() as workspace:
            request = Request(
                name=name,
                selector=ref.wanted,
                workspace=workspace,
                state=cache.root / "providers" / provider.prefix,
                progress=progress,
                modules=modules,
                config=config,
                refresh=refresh,
            )
            return cache.store(ref.name, provider.fetch(request), workspace, progress)


def add_parts(name: str, parts: Callable[[Path], Parts], progress: Progress = silent) -> Kernel:
    """Keep a kernel that no provider brings under this name. `parts` puts its files into an empty directory.

    Raises KernelError.
    """
    cache = Cache()
    with file_system_errors(cache.root), cache.adding(name, progress), cache.workspace() as workspace:
        return cache.store(name, parts(workspace), workspace, progress)


def cached(name: str, progress: Progress = silent) -> Kernel:
    """The kernel of this name or digest as the cache has it, whole. Raises KernelNotFound, KernelError."""
    cache = Cache()
    with file_system_errors(cache.root):
        return whole_kernel(cache, name, progress)


def _usable(cache: Cache, name: str, progress: Progress) -> Kernel | None:
    """The kernel, whole; None where it has to be fetched: it is not there, or damaged beyond repair."""
    try:
        entry = cache.record(name)
        mend(cache, entry, progress)
        drop_damaged_additions(cache.entry_directory(entry.digest))
        return cache.kernel(name)
    except (KernelDamaged, CacheDamaged) as error:
        warnings.warn(f"{error.message} It is fetched anew", stacklevel=3)
    except KernelNotFound:
        pass
    return None


def get(name: str) -> Kernel:
    """Return a kernel from the cache, by name or by the start of its digest.

    Raises KernelNotFound, which names near ones, KernelNameAmbiguous and CacheDamaged.
    """
    cache = Cache()
    with file_system_errors(cache.root):
        return cache.kernel(_canonical_or_digest(name))


def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel in the cache, by name."""
    cache = Cache()
    with file_system_errors(cache.root):
        return tuple(cache.kernel(record.name) for record in cache.names())


def record(name: str) -> NameRecord:
    """Return when and whence a kernel came. Raises KernelNotFound, KernelNameAmbiguous."""
    cache = Cache()
    with file_system_errors(cache.root):
        return cache.record(_canonical_or_digest(name))


def verify(name: str, progress: Progress = silent) -> KernelCheck:
    """Read all of a kernel's files, and compare them with what was noted of them when it was added.

    Raises KernelNotFound, KernelNameAmbiguous.
    """
    cache = Cache()
    with file_system_errors(cache.root):
        return cache_repair.verify(cache, cache.record(_canonical_or_digest(name)), progress)


def remove(name: str) -> tuple[str, int]:
    """Take a name, or a digest, out of the cache, with what its provider keeps to build it again.

    Content that another name shares stays.

    Returns the name and the bytes freed. Raises KernelNotFound, KernelNameAmbiguous.
    """
    cache = Cache()
    with file_system_errors(cache.root):
        removed, freed = cache.remove(_canonical_or_digest(name))
        with suppress(BadKernelName):
            provider, selector = provider_of(removed)
            if isinstance(provider, Keeps):
                freed += provider.forget(selector)
        return removed, freed


def tools_for(kernel: KernelRef) -> tuple[Tool, ...]:
    """Programs and headers that bring the kernel; none where the cache has it. Nothing is fetched.

    Raises KernelError.
    """
    if kernel.provider not in all_providers():
        return ()
    provider = provider_named(kernel.provider)
    if not isinstance(provider, RunsTools):
        return ()
    with suppress(KernelNotFound):
        if provider.remembers and Cache().record(kernel.name):
            return ()
    return provider.tools(kernel.wanted)


def is_cached(kernel: KernelRef) -> bool:
    """Whether the cache has the kernel; its files are not read. Raises KernelError."""
    with suppress(KernelNotFound):
        return not _is_stale(kernel.name, Cache().kernel(kernel.name))
    return False


def is_listed(kernel: KernelRef) -> bool:
    """Whether its provider's lists have it; False where that is not known without fetching them.

    Raises KernelError where they are new, and do not have it.
    """
    if kernel.provider not in all_providers():
        return False
    provider = provider_named(kernel.provider)
    if not isinstance(provider, KnowsWithoutFetching):
        return True
    return provider.is_listed(kernel.asked, kernel.wanted, Cache().root / "providers" / provider.prefix)


def lenient_reference(name: str) -> KernelRef:
    """As `reference`; what no provider knows is left as it is: it may be a digest, or a stored study's."""
    try:
        return reference(name)
    except BadKernelName:
        return KernelRef(asked=name, name=name)


def problem_of_file(kernel: KernelRef) -> str:
    """Why the file that the kernel would be read from is no kernel; empty where it is one or is not read.

    A file that was added with modules or a configuration is not read again, and may be gone.
    """
    if kernel.provider != "path":
        return ""
    file = Path(kernel.name.removeprefix("path:"))
    try:
        read_image(file)
    except KernelError as error:
        problem = (
            f"{error.message.rstrip('.')}; {error.advice}" if file.exists() else f"there is no file {file}"
        )
    else:
        return ""
    with suppress(KernelError):
        cached_kernel = get(kernel.name)
        return problem if cached_kernel.modules is None and cached_kernel.config is None else ""
    return problem


def canonical_name(name: str) -> str:
    """Write a kernel's name in the way the cache does; what no provider knows is left as it is."""
    return lenient_reference(name).name


def _canonical_or_digest(name: str) -> str:
    try:
        return reference(name).name
    except KernelNameAmbiguous:
        raise
    except BadKernelName:
        return name


def obtain(kernel: str | KernelRef, progress: Progress = silent) -> Kernel:
    """The kernel, fetched if the cache lacks it, and whole: ready to be booted. Raises KernelError.

    A file of the user's is read again each time, as it may have been built anew; unless it was added together
    with modules or a configuration, which its name does not tell. A revision of a git repository that is
    another commit now is built anew.
    """
    name = _canonical_or_digest(kernel) if isinstance(kernel, str) else kernel.name
    cache = Cache()
    try:
        with file_system_errors(cache.root):
            cached_kernel = whole_kernel(cache, name, progress)
    except KernelNotFound:
        return add(kernel, progress=progress)
    alone = cached_kernel.modules is None and cached_kernel.config is None
    outdated = cached_kernel.origin.provider == "host" and cached_kernel.release != os.uname().release
    if outdated or (cached_kernel.origin.provider == "path" and alone) or _is_stale(name, cached_kernel):
        return add(kernel, progress=progress)
    return cached_kernel


def _is_stale(name: str, kernel: Kernel) -> bool:
    try:
        provider, selector = provider_of(name)
    except BadKernelName:
        return False  # the digest of a content means that
    return isinstance(provider, GoesStale) and provider.outdated(selector, kernel)
