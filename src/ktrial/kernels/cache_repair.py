"""Kernels in the cache are whole before they are used: what is damaged is made again, or the kernel refused.

What follows from a kernel's content (vmlinux, depmod's lists) is made from that. Damaged content is fetched
again where it came in a package, built again where ktrial built it, and taken if it is the same kernel, to
the last bit.
"""

from collections.abc import Iterable
from pathlib import Path

from ktrial.errors import KtrialError
from ktrial.file_digests import digest_of_file, unsealed
from ktrial.kernels import Progress, silent
from ktrial.kernels.depmod import LOADABLE, NOTE
from ktrial.kernels.errors import KernelDamaged
from ktrial.kernels.kernel_cache import (
    BY_DIGEST,
    CONFIG,
    FROM_GUEST,
    IMAGE,
    MANIFEST_FILE,
    SEALED_VALUES,
    SYSTEM_MAP,
    VALUES,
    Cache,
    Manifest,
    NameRecord,
    build_entry,
    damaged_files,
    kept_manifest,
    named,
    replace_damaged,
)
from ktrial.kernels.providers import Parts, Request, TellsRelease, provider_of
from ktrial.model.base import Model
from ktrial.model.kernel import Kernel, Origin

_NOWHERE = Origin(provider="", source="")
_UNKNOWN = "parts of it"


def whole_kernel(cache: Cache, name: str, progress: Progress) -> Kernel:
    """The kernel, all of whose files but the modules are what they were when it was added.

    Raises KernelNotFound, CacheDamaged, KernelDamaged.
    """
    record = cache.record(name)
    home = cache.entry_directory(record.digest)
    manifest = kept_manifest(home)
    if manifest is None or damaged_files(home, manifest, manifest.needed):
        with cache.adding(record.name, progress):
            mend(cache, record, progress, ())
    return cache.kernel(name)


def whole_modules(kernel: Kernel, files: Iterable[Path]) -> None:
    """Make sure that these files of the kernel's are what they were. Raises KernelDamaged.

    A kernel that is not in the cache is left alone.
    """
    home, cache = kernel.image.parent, Cache()
    manifest = kept_manifest(home) if home.parent == cache.root / BY_DIGEST else None
    if manifest is None:
        return
    paths = [str(file.relative_to(home)) for file in files]
    if damaged_files(home, manifest, [path for path in paths if path in manifest.files]):
        record = cache.record(kernel.name)
        with cache.adding(record.name, silent):
            mend(cache, record, silent, paths)


def mend(cache: Cache, record: NameRecord, progress: Progress, paths: Iterable[str] | None = None) -> None:
    """Make damaged files again, and warn; the name must be held (`Cache.adding`). Raises KernelDamaged.

    Looked at are `paths` (None: every module), and all files but the modules.
    """
    home = cache.entry_directory(record.digest)
    manifest = kept_manifest(home)
    looked_at = manifest.files if manifest and paths is None else {*(paths or ())}
    damaged = damaged_files(home, manifest, {*manifest.needed, *looked_at}) if manifest else ()
    if manifest and not damaged:
        return  # another process was here
    with cache.workspace() as workspace:
        directory, source = _made_again(cache, record, manifest, damaged, workspace, progress)
        replace_damaged(home, directory, record.name, source)


def _made_again(
    cache: Cache,
    record: NameRecord,
    manifest: Manifest | None,
    damaged: tuple[str, ...],
    workspace: Path,
    progress: Progress,
) -> tuple[Path, str]:
    """The kernel put together anew, in the workspace, and from what. Raises KernelDamaged."""
    home, directory = cache.entry_directory(record.digest), workspace / "entry"
    if manifest is None or not any(path in manifest.content for path in damaged):
        try:
            if (
                build_entry(record.name, _own_parts(home), directory, workspace, progress).digest
                == record.digest
            ):
                return directory, "its image and modules"
        except KtrialError as error:
            if manifest is not None:
                raise _refused(record, damaged, error.message) from error
        # Its content is damaged, too: a module, say, which nobody has looked at.
        directory = workspace / "fetched"
    source, verb = _source(record)
    if not source:
        raise _refused(record, damaged, f"it came from {record.origin.source}, and from no package")
    if record.origin.build:
        progress(f"damaged in the cache ({named(damaged) or _UNKNOWN}): building it again")
    try:
        parts = _fetched(cache, record, workspace, progress)
        entry = build_entry(record.name, parts, directory, workspace, progress)
    except KtrialError as error:
        raise _refused(record, damaged, f"{source} cannot be {verb} again: {error.message}") from error
    if entry.digest != record.digest:
        raise _refused(record, damaged, f"what can be {verb} now is not {source}")
    return directory, source


def _source(record: NameRecord) -> tuple[str, str]:
    """What the kernel can be had from again, and how; nothing where its files were the user's own."""
    if record.origin.build:
        return f"the source {record.origin.source} ({record.origin.version})", "built"
    return ", ".join(record.origin.packages), "fetched"


def _own_parts(home: Path) -> Parts:
    def part(path: Path) -> Path | None:
        return path if path.exists() else None

    modules = next(iter(sorted((home / "lib" / "modules").glob("*"))), None)
    return Parts(
        image=home / IMAGE,
        origin=_NOWHERE,
        modules=modules,
        config=part(home / CONFIG),
        system_map=part(home / SYSTEM_MAP),
    )


def _fetched(cache: Cache, record: NameRecord, workspace: Path, progress: Progress) -> Parts:
    """The parts from the package of its very release, where the provider's names tell releases."""
    provider, selector = provider_of(record.name)
    home = cache.entry_directory(record.digest)
    release = next((path.name for path in sorted((home / "lib" / "modules").glob("*"))), "")
    if release and isinstance(provider, TellsRelease):
        selector = release
    request = Request(
        name=f"{provider.prefix}:{selector}",
        selector=selector,
        workspace=workspace,
        state=cache.root / "providers" / provider.prefix,
        progress=progress,
    )
    return provider.fetch(request)


def _refused(record: NameRecord, damaged: tuple[str, ...], problem: str) -> KernelDamaged:
    return KernelDamaged(name=record.name, files=named(damaged) or _UNKNOWN, problem=problem.rstrip("."))


# Looking through a cached kernel in full: every file, whatever is remembered of it.

_AT_ONCE = 64


class KernelCheck(Model):
    """What became of looking through one kernel."""

    name: str
    digest: str
    files: int
    """How many were read."""
    damaged: tuple[str, ...]
    """Paths below the kernel's directory."""
    directory: Path


def verify(cache: Cache, record: NameRecord, progress: Progress) -> KernelCheck:
    """Read all of a kernel's files, and compare them with what was noted when it was added."""
    home = cache.entry_directory(record.digest)
    manifest = kept_manifest(home)
    progress("reading its files")
    paths = list(manifest.files) if manifest else [MANIFEST_FILE]
    damaged = [] if manifest else [MANIFEST_FILE]
    if manifest:
        for start in range(0, len(paths), _AT_ONCE):
            progress("reading its files", start, len(paths))
            damaged += damaged_files(home, manifest, paths[start : start + _AT_ONCE], reread=True)
    added = [*_unpacked_modules(home), *(path for path in _told_by_guests(home) if path.exists())]
    damaged = damaged + [str(path.relative_to(home)) for path in added if not is_whole_addition(path)]
    return KernelCheck(
        name=record.name,
        digest=record.digest,
        files=len(paths) + len(added),
        damaged=tuple(damaged),
        directory=home,
    )


def drop_damaged_additions(home: Path) -> None:
    """Delete what was added to the kernel later and is damaged: it is made again when it is asked for."""
    for path in (*_unpacked_modules(home), *_told_by_guests(home)):
        if path.exists() and not is_whole_addition(path):
            path.unlink()


def is_whole_addition(path: Path) -> bool:
    """Whether an unpacked module, or what a guest has told, is what it was when it was written."""
    if path.name in FROM_GUEST or path.suffix == SEALED_VALUES:
        return unsealed(path.read_bytes()) is not None
    note = path.with_name(path.name + NOTE)
    return note.exists() and note.read_bytes().decode("ascii", "replace") == digest_of_file(path, anew=True)


def _told_by_guests(home: Path) -> list[Path]:
    return [*(home / name for name in FROM_GUEST), *sorted((home / VALUES).glob(f"*{SEALED_VALUES}"))]


def _unpacked_modules(home: Path) -> list[Path]:
    return sorted(path for path in (home / LOADABLE).rglob("*.ko") if path.is_file())
