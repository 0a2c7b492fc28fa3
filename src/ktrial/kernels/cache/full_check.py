"""Looking through a cached kernel in full: every file, whatever is remembered of it."""

from collections.abc import Iterator
from pathlib import Path

from ktrial.file_digests import digest_of_file, unsealed
from ktrial.kernels.cache.cache import Cache
from ktrial.kernels.cache.entry import NameRecord
from ktrial.kernels.cache.manifest import (
    FROM_GUEST,
    IMAGE,
    MANIFEST_FILE,
    SEALED_VALUES,
    VALUES,
    VMLINUX,
    Manifest,
    content_of,
    damaged_files,
    digest_of_content,
    kept_manifest,
)
from ktrial.kernels.errors import ImageError
from ktrial.kernels.image.extract_vmlinux import extract_vmlinux
from ktrial.kernels.image.image import read_image
from ktrial.kernels.modules.depmod import LOADABLE, NOTE
from ktrial.kernels.progress import Progress
from ktrial.model.base import Model

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
    if manifest:
        paths = list(manifest.files)
        damaged = list(_in_steps(home, manifest, paths, progress))
    else:
        paths, damaged = _without_manifest(home)
    added = [*_unpacked_modules(home), *(path for path in _told_by_guests(home) if path.exists())]
    damaged += [str(path.relative_to(home)) for path in added if not is_whole_addition(path)]
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


def _in_steps(home: Path, manifest: Manifest, paths: list[str], progress: Progress) -> Iterator[str]:
    for start in range(0, len(paths), _AT_ONCE):
        progress("reading its files", start, len(paths))
        yield from damaged_files(home, manifest, paths[start : start + _AT_ONCE], anew=True)


def _without_manifest(home: Path) -> tuple[list[str], list[str]]:
    """Of a kernel from an older ktrial: its content has one digest, and vmlinux follows from its image."""
    content = content_of(home)
    if digest_of_content(content) != home.name:
        return [*content], [f"its content, or {MANIFEST_FILE}"]
    if not (home / VMLINUX).exists():
        return [*content], []
    try:
        same = extract_vmlinux(read_image(home / IMAGE)).vmlinux == (home / VMLINUX).read_bytes()
    except ImageError:
        same = False
    return [*content, VMLINUX], [] if same else [VMLINUX]


def _told_by_guests(home: Path) -> list[Path]:
    return [*(home / name for name in FROM_GUEST), *sorted((home / VALUES).glob(f"*{SEALED_VALUES}"))]


def _unpacked_modules(home: Path) -> list[Path]:
    return sorted(path for path in (home / LOADABLE).rglob("*.ko") if path.is_file())
