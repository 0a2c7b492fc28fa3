"""The digests of a cached kernel's files, written down when it is added: `manifest.json`.

The files of its content (image, configuration, modules, System.map) have together the digest that the
kernel's directory is named by, so that they vouch for themselves. What is made from them (vmlinux,
kernel.json, what depmod writes) is made once, and never changes. Symbols and other things that a guest tells
later carry their digest themselves (ktrial.file_digests.sealed).
"""

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from ktrial.file_digests import digest_of_file, has_digest
from ktrial.kernels.cache.atomic_write import sync_directory
from ktrial.kernels.cache.location import FUNCTION_FILES
from ktrial.kernels.modules.depmod import GENERATED, SUFFIXES
from ktrial.model.base import Model

_MOST_NAMED = 3
MANIFEST_FILE = "manifest.json"
ENTRY_FILE = "kernel.json"
IMAGE, VMLINUX, CONFIG, SYSTEM_MAP = "vmlinuz", "vmlinux", "config", "System.map"
KALLSYMS = "kallsyms"
FROM_GUEST = (KALLSYMS, FUNCTION_FILES)
"""What a kernel that was booted has told, or was read with that: `sealed`, and not in the manifest."""
VALUES, SEALED_VALUES = "values", ".sealed"
"""The directory, and the ending, of the settings that a kernel boots with, as a guest told them."""


class Manifest(Model):
    """Path below the kernel's directory → SHA-256."""

    format: int = 1
    content: dict[str, str]
    derived: dict[str, str]

    @property
    def files(self) -> dict[str, str]:
        """All of them."""
        return self.content | self.derived

    @property
    def needed(self) -> tuple[str, ...]:
        """Every file but the modules: those that are loaded are looked at one by one."""
        return tuple(path for path in self.files if not path.endswith(SUFFIXES))

    @property
    def booted(self) -> str:
        """The digest of the file that is booted."""
        return self.derived.get(VMLINUX) or self.content[IMAGE]


def content_of(directory: Path) -> dict[str, str]:
    """The digests of image, configuration, modules and System.map below a directory. Raises OSError.

    What depmod writes is left out: it follows from the modules, and differs with kmod's version.
    """
    modules = sorted((directory / "lib").rglob("*"))
    alone = [directory / name for name in (IMAGE, CONFIG, SYSTEM_MAP)]
    files = [path for path in (*alone, *modules) if path.is_file() and path.name not in GENERATED]
    return {str(path.relative_to(directory)): digest_of_file(path) for path in files}


def digest_of_content(content: Mapping[str, str]) -> str:
    """SHA-256 over paths and contents: what a kernel is known by."""
    lines = (f"{path}\0{content[path]}\n" for path in sorted(content, key=Path))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def write_manifest(made: Path, content: dict[str, str]) -> None:
    """Note all files below the directory of a kernel that is being put together."""
    paths = [path for path in sorted(made.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(made)): digest_of_file(path) for path in paths}
    derived = {path: digest for path, digest in files.items() if path not in content}
    noted = Manifest(content=content, derived=derived)
    (made / MANIFEST_FILE).write_text(noted.model_dump_json(indent=1), encoding="utf-8")


def kept_manifest(directory: Path) -> Manifest | None:
    """The manifest of the kernel in `directory`; None where there is none that fits the directory's name.

    Kernels that an older ktrial added have none.
    """
    try:
        noted = Manifest.model_validate_json((directory / MANIFEST_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return noted if digest_of_content(noted.content) == directory.name and noted.derived else None


def replace_damaged(home: Path, made: Path, name: str, source: str) -> None:
    """Take over every file that differs from the kernel's just made; a warning names the damaged ones."""
    before = kept_manifest(home)
    manifest = Manifest.model_validate_json((made / MANIFEST_FILE).read_bytes())
    differing = damaged_files(home, manifest, manifest.files)
    if before == manifest and not differing:
        return
    # An older ktrial noted no digests: then only content, and what follows from that alone, can be judged.
    judged = before.files if before else {*manifest.content, VMLINUX}
    damaged = damaged_files(home, before or manifest, [path for path in differing if path in judged])
    for path in (*differing, MANIFEST_FILE):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).replace(home / path)
        sync_directory((home / path).parent)
    if {IMAGE, VMLINUX} & set(damaged):
        for told in FROM_GUEST:
            (home / told).unlink(missing_ok=True)
    if damaged:
        text = f"kernel {name} was damaged in the cache ({named(damaged)}): made again from {source}"
        warnings.warn(text, stacklevel=2)


def named(files: tuple[str, ...]) -> str:
    """Some of the files, and how many more."""
    more = f" and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else ""
    return ", ".join(files[:_MOST_NAMED]) + more


def damaged_files(
    directory: Path, manifest: Manifest, paths: Iterable[str], *, anew: bool = False
) -> tuple[str, ...]:
    """Those of the files that are missing, or not what they were. `anew`: whatever is remembered of them."""
    return tuple(path for path in paths if not _is_whole(directory / path, manifest.files[path], anew=anew))


def is_whole(directory: Path) -> bool:
    """Whether every file of the kernel in `directory` is what it was when it was added."""
    manifest = kept_manifest(directory)
    return manifest is not None and not damaged_files(directory, manifest, manifest.files)


def _is_whole(path: Path, digest: str, *, anew: bool) -> bool:
    try:
        return digest_of_file(path, anew=True) == digest if anew else has_digest(path, digest)
    except OSError:
        return False  # gone, or the disk cannot read it any more
