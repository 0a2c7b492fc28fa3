"""The cache: one directory for each content, named by its digest, and names that lead to them.

    <root>/by-digest/<sha256>/      kernel.json, vmlinuz, vmlinux, config, System.map, lib/modules/<release>/,
                                    manifest.json with the digests of these, and in names/ one empty file for
                                    each name's record that may lead here, called by the record's digest
    <root>/names/<name>.json        which content a name stands for, where it came from, when it was added
    <root>/work/<random>/           being put together; its lock file tells whether its maker still lives
    <root>/locks/                   one for each name while it is added, one for the directory itself
    <root>/providers/<prefix>/      what a provider keeps, such as apt's lists

A content appears by one rename of a directory that was written and synced before, so that whatever is below
by-digest is whole. Locks are the kernel's (flock): they go with their process, also after SIGKILL.
"""

import hashlib
import json
import os
import re
import shutil
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from pydantic import Field, ValidationError

from ktrial.file_digests import digest_of_file, has_digest
from ktrial.format.number_format import duration
from ktrial.installation import cache_directory
from ktrial.kernels import FUNCTION_FILES, Progress, silent
from ktrial.kernels.config import embedded_config, parse_config
from ktrial.kernels.depmod import GENERATED, SUFFIXES, module_files, place_modules, run_depmod
from ktrial.kernels.errors import CacheDamaged, KernelError, KernelNotFound
from ktrial.kernels.files import require_space, sync_directory, sync_tree, write_atomically
from ktrial.kernels.image import KernelImage, boot_image, read_image, vmlinux_of
from ktrial.kernels.providers import Parts
from ktrial.model.base import Model, digest
from ktrial.model.kernel import BootImage, Kernel, Origin
from ktrial.model.notation import nearest
from ktrial.text_lines import lines_of

BY_DIGEST = "by-digest"
"""The directory of all contents, below the cache's root."""
_NAMES = "names"
"""The directory of the names' records, and that of a content's witness of those that may lead to it."""
_SHORTEST_DIGEST = 6
_LONGEST_FILE_NAME = 180


# Put a kernel's parts together in the form in which the cache keeps them.


class EntryRecord(Model):
    """`kernel.json`: one content, whatever it is called."""

    format: int = 1
    release: str
    architecture: str = "x86_64"
    digest: str
    config_digest: str = ""
    size: int
    vmlinux_reason: str = ""
    unchecked: str = Field(default="", exclude_if=lambda value: not value)
    module_count: int = 0
    boot_image: BootImage
    """Of the file that is booted; its digest stands in the manifest."""


class NameRecord(Model):
    """One name, and the content that it leads to."""

    format: int = 1
    name: str
    digest: str
    flavour: str = ""
    origin: Origin
    added: datetime


class Cache:
    """The kernels below one directory. Safe for several processes at once."""

    def __init__(self, directory: Path | None = None) -> None:
        self.root = (directory or cache_directory()) / "kernels"

    def names(self) -> tuple[NameRecord, ...]:
        """Every name that was added, sorted. Raises CacheDamaged."""
        files = sorted((self.root / _NAMES).glob("*.json"))
        return tuple(sorted((self._read_name(path) for path in files), key=lambda record: record.name))

    def record(self, name: str) -> NameRecord:
        """Return the record of a name, or of the content whose digest starts so. Raises KernelNotFound."""
        path = self._name_file(name)
        if path.exists():
            return self._read_name(path)
        records: list[NameRecord] = []
        for file in sorted((self.root / _NAMES).glob("*.json")):
            with suppress(CacheDamaged):  # it keeps no other kernel from being had
                records.append(self._read_name(file))
        by_digest = [record for record in records if record.digest.startswith(name)]
        if len(name) >= _SHORTEST_DIGEST and len({record.digest for record in by_digest}) == 1:
            return by_digest[0]
        similar = nearest(name, [record.name for record in records])
        raise KernelNotFound(name=name, similar=similar, hint=_where_from(name))

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of a name or digest. Raises KernelNotFound, CacheDamaged."""
        record = self.record(name)
        return kernel_of(record, self.entry(record), self.entry_directory(record.digest))

    def entry(self, record: NameRecord) -> EntryRecord:
        """Return what is written down about the content of a name. Raises CacheDamaged."""
        path = self.entry_directory(record.digest) / ENTRY_FILE
        if not _is_whole(path.parent):
            raise CacheDamaged(name=record.name, path=path.parent, problem="parts of it are missing")
        try:
            return EntryRecord.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise CacheDamaged(name=record.name, path=path, problem=_first_line(error)) from error

    def entry_directory(self, digest: str) -> Path:
        """Return where a content is kept."""
        return self.root / BY_DIGEST / digest

    @contextmanager
    def adding(self, name: str, progress: Progress) -> Iterator[None]:
        """Hold the name: a second process that adds it waits here, and then finds it."""
        for part in (BY_DIGEST, _NAMES, "work", "locks", "providers"):
            (self.root / part).mkdir(parents=True, exist_ok=True)
        lock = self.root / "locks" / self._name_file(name).with_suffix(".lock").name
        with held(lock, progress, "waiting for another ktrial that adds the same kernel"):
            self._sweep()
            yield

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Yield an empty directory on the cache's file system; it goes away whatever happens."""
        directory = self.root / "work" / uuid.uuid4().hex
        # Locked before it exists: no other process's sweep may take it for left over.
        with held(_work_lock(directory), silent, ""):
            directory.mkdir()
            try:
                yield directory
            finally:
                shutil.rmtree(directory, ignore_errors=True)
                _work_lock(directory).unlink(missing_ok=True)

    def store(self, name: str, parts: Parts, workspace: Path, progress: Progress) -> Kernel:
        """Put the parts together, and make them appear under `name`. Raises what reading an image raises."""
        directory = workspace / "entry"
        entry = build_entry(name, parts, directory, workspace, progress)
        record = NameRecord(
            name=name,
            digest=entry.digest,
            flavour=parts.flavour,
            origin=parts.origin,
            added=datetime.now(UTC).replace(microsecond=0),
        )
        home = self.entry_directory(entry.digest)
        with self._locked():
            if home.exists() and not _is_whole(home):
                home.rename(workspace / "damaged")
            if home.exists():
                replace_damaged(home, directory, name, parts.origin.source)
            else:
                directory.rename(home)
                sync_directory(home.parent)
            text = record.model_dump_json(indent=2)
            (home / _NAMES).mkdir(exist_ok=True)
            (home / _NAMES / digest_of_record(text)).touch()
            sync_directory(home / _NAMES)
            write_atomically(self._name_file(name), text)
        return kernel_of(record, entry, home)

    def remove(self, name: str) -> tuple[str, int]:
        """Take a name (or a digest's name) away, and its content unless another name shares it.

        Returns the name and the bytes freed (0: shared). Raises KernelNotFound.
        """
        # A record that cannot be read is taken away all the same.
        try:
            full_name = name if self._name_file(name).exists() else self.record(name).name
        except KernelNotFound as error:
            raise KernelNotFound(**error.facts, hint="what there is: ktrial kernel list") from None
        with self._locked():
            self._name_file(full_name).unlink(missing_ok=True)
        return full_name, self._sweep()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock  # where a kernel is only read, nothing is locked

        with FileLock(self.root / "locks" / "directory.lock"):
            yield

    def _sweep(self) -> int:
        """Delete what dead processes left in work/, and contents without a name; return these bytes."""
        freed = 0
        # While a name cannot be read nothing is nameless: any content might be its.
        with self._locked(), suppress(CacheDamaged):
            named = {record.digest for record in self.names()}
            for directory in [path for path in (self.root / BY_DIGEST).iterdir() if path.name not in named]:
                freed += disk_usage(directory)
                directory.rename(self.root / "work" / uuid.uuid4().hex)
        for directory in (self.root / "work").iterdir():
            if directory.is_dir():
                with held_if_free(_work_lock(directory)) as free:
                    if free:
                        shutil.rmtree(directory, ignore_errors=True)
                        _work_lock(directory).unlink(missing_ok=True)
        return freed

    def _name_file(self, name: str) -> Path:
        plain = quote(name, safe=":+")
        if len(plain) > _LONGEST_FILE_NAME:
            plain = f"{plain[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        return self.root / _NAMES / f"{plain}.json"

    def _read_name(self, path: Path) -> NameRecord:
        """The record in a file, which leads to what was added under this very name. Raises CacheDamaged."""
        try:
            text = path.read_bytes()
            record = NameRecord.model_validate_json(text)
        except (OSError, ValidationError) as error:
            raise CacheDamaged(name=unquote(path.stem), path=path, problem=_first_line(error)) from error
        if path != self._name_file(record.name):
            problem = f"it is the record of {record.name}"
            raise CacheDamaged(name=unquote(path.stem), path=path, problem=problem)
        if problem := self._leads_astray(record, text):
            raise CacheDamaged(name=record.name, path=path, problem=problem)
        return record

    def _leads_astray(self, record: NameRecord, text: bytes) -> str:
        """Why the record is not to be followed; empty where it leads to what was added, or nowhere."""
        home = self.entry_directory(record.digest)
        if (home / _NAMES / digest_of_record(text)).exists() or not home.exists():
            return ""
        try:
            release = EntryRecord.model_validate_json((home / ENTRY_FILE).read_bytes()).release
        except (OSError, ValidationError):
            release = ""
        kernel = f"Linux {release}, " if release else ""
        return f"it leads to {kernel}{record.digest[:12]}, which was not added under this name"


def disk_usage(directory: Path) -> int:
    """Bytes of all files below `directory`; a file that goes away meanwhile has none."""
    size, left = 0, [os.fspath(directory)]
    while left:
        # Directories vanish, as those of a make that runs do.
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                else:
                    with suppress(FileNotFoundError):
                        size += entry.stat(follow_symlinks=False).st_size
    return size


def _where_from(name: str) -> str:
    """How a kernel of that name may be had."""
    if name.startswith("build:"):
        return "ktrial kernel list shows what was built; ktrial kernel build SOURCE builds another"
    if ":" not in name:
        return "ktrial kernel list shows what there is, with the digests; names are like debian:6.12"
    return f"add it: ktrial kernel add {name}"


def parts_of(kernel: Kernel) -> Parts:
    """What a kernel in the cache was put together from."""
    system_map = kernel.image.with_name(SYSTEM_MAP)
    return Parts(
        image=kernel.image,
        config=kernel.config,
        modules=kernel.modules,
        system_map=system_map if system_map.exists() else None,
        origin=kernel.origin,
    )


def _work_lock(directory: Path) -> Path:
    return directory.with_name(directory.name + ".lock")


def _is_whole(directory: Path) -> bool:
    return (directory / ENTRY_FILE).exists() and (directory / IMAGE).exists()


def _first_line(error: Exception) -> str:
    return lines_of(str(error))[0]


def digest_of_record(text: str | bytes) -> str:
    """What a name's record is known by beside its content. When it was added makes no difference."""
    return digest({key: value for key, value in json.loads(text).items() if key != "added"})


def kernel_of(name: NameRecord, entry: EntryRecord, directory: Path) -> Kernel:
    """Put a name and its content together. `directory` is the entry's."""

    def part(*parts: str) -> Path | None:
        path = directory.joinpath(*parts)
        return path if path.exists() else None

    manifest = kept_manifest(directory)
    return Kernel(
        name=name.name,
        release=entry.release,
        flavour=name.flavour,
        architecture=entry.architecture,
        origin=name.origin,
        digest=entry.digest,
        config_digest=entry.config_digest,
        size=entry.size,
        image=directory / IMAGE,
        vmlinux=part(VMLINUX),
        vmlinux_reason=entry.vmlinux_reason,
        unchecked=entry.unchecked,
        boot_image=entry.boot_image.model_copy(update={"digest": manifest.booted if manifest else ""}),
        config=part(CONFIG),
        modules=part("lib", "modules", entry.release),
    )


_SMALLEST_SYSTEM_MAP = 100_000
"""Debian ships a System.map of one line that says where the real one is; real ones have megabytes."""


def build_entry(name: str, parts: Parts, directory: Path, workspace: Path, progress: Progress) -> EntryRecord:
    """Fill the new directory, and return its record, which is written there too; all of it is synced.

    Raises ImageError, ModulesUnusable, KernelError, ToolMissing or OSError.
    """
    directory.mkdir()
    image = read_image(parts.image)
    progress("unpacking the kernel")
    extracted = vmlinux_of(image)
    require_space(directory, len(extracted.vmlinux or b"") + sum(_copied_bytes(parts, workspace)))
    _take(parts.image, directory / IMAGE, workspace)
    _take_config(name, parts, image, extracted.vmlinux or b"", directory, workspace)
    if parts.system_map is not None and parts.system_map.stat().st_size >= _SMALLEST_SYSTEM_MAP:
        _take(parts.system_map, directory / SYSTEM_MAP, workspace)
    if parts.modules is not None:
        progress("resolving the modules' dependencies")
        place_modules(name, parts.modules, image.release, directory, workspace)
    content = content_of(directory)
    digest = digest_of_content(content)
    if parts.modules is not None:
        run_depmod(directory, image.release)
    if extracted.vmlinux is not None:
        (directory / VMLINUX).write_bytes(extracted.vmlinux)
    config = directory / CONFIG
    record = EntryRecord(
        release=image.release,
        digest=digest,
        config_digest=hashlib.sha256(config.read_bytes()).hexdigest() if config.exists() else "",
        size=sum(path.lstat().st_size for path in directory.rglob("*") if path.is_file()),
        vmlinux_reason=extracted.reason,
        unchecked=extracted.unchecked,
        boot_image=boot_image(directory / (IMAGE if extracted.vmlinux is None else VMLINUX)),
        module_count=len(module_files(directory / "lib" / "modules" / image.release)),
    )
    (directory / ENTRY_FILE).write_text(record.model_dump_json(indent=2), encoding="utf-8")
    write_manifest(directory, content)
    directory.chmod(0o755)
    progress("writing to disk")
    sync_tree(directory)
    return record


def _copied_bytes(parts: Parts, workspace: Path) -> Iterator[int]:
    """Sizes of the files that are copied, not moved; unreadable ones are spoken of when it is their turn."""
    outside = [part for part in (parts.image, parts.modules) if part and not part.is_relative_to(workspace)]
    for top in outside:
        for path in module_files(top) if top.is_dir() else [top]:
            yield path.stat().st_size if path.exists() else 0


def _take_config(
    name: str, parts: Parts, image: KernelImage, vmlinux: bytes, directory: Path, workspace: Path
) -> None:
    """The configuration that was given, else the one inside the image (CONFIG_IKCONFIG), else none."""
    if parts.config is None:
        if inside := embedded_config(vmlinux):
            (directory / CONFIG).write_bytes(inside)
        return

    def unusable(problem: object) -> KernelError:
        return KernelError(
            f"{parts.config} cannot serve as configuration of kernel {name}: {problem}.",
            hint="expected: the .config that the kernel was built with (lines like CONFIG_SMP=y)",
        )

    try:
        text = parts.config.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise unusable(error.strerror) from error
    if not parse_config(text):
        raise unusable("it has no line like CONFIG_SMP=y")
    stated = re.search(r"^# Linux/\w+ (\S+) Kernel Configuration", text, re.MULTILINE)
    # Of both the major.minor only: distributions change the rest (6.1.176 is 6.1.0-50).
    if stated and stated[1].split(".")[:2] != re.split(r"[.\-+~]", image.release)[:2]:
        raise unusable(f"it is of Linux {stated[1]}, the image is {image.release}")
    _take(parts.config, directory / CONFIG, workspace)


def _take(source: Path, target: Path, workspace: Path) -> None:
    """Move what is in the workspace, copy everything else."""
    if source.is_relative_to(workspace) and not source.is_symlink():
        source.rename(target)
    else:
        shutil.copyfile(source, target)
    target.chmod(0o644)


# The digests of a cached kernel's files, written down when it is added: `manifest.json`.
#
# The files of its content (image, configuration, modules, System.map) have together the digest that the
# kernel's directory is named by, so that they vouch for themselves. What is made from them (vmlinux,
# kernel.json, what depmod writes) is made once, and never changes. Symbols and other things that a guest
# tells later carry their digest themselves (ktrial.file_digests.sealed).

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


def write_manifest(directory: Path, content: dict[str, str]) -> None:
    """Note all files below the directory of a kernel that is being put together."""
    paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    files = {str(path.relative_to(directory)): digest_of_file(path) for path in paths}
    derived = {path: digest for path, digest in files.items() if path not in content}
    noted = Manifest(content=content, derived=derived)
    (directory / MANIFEST_FILE).write_text(noted.model_dump_json(indent=1), encoding="utf-8")


def kept_manifest(directory: Path) -> Manifest | None:
    """The manifest of the kernel in `directory`; None where there is none that fits the directory's name."""
    try:
        noted = Manifest.model_validate_json((directory / MANIFEST_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return noted if digest_of_content(noted.content) == directory.name and noted.derived else None


def replace_damaged(home: Path, fresh: Path, name: str, source: str) -> None:
    """Take over every file that differs from the kernel's just made; a warning names the damaged ones."""
    before = kept_manifest(home)
    manifest = Manifest.model_validate_json((fresh / MANIFEST_FILE).read_bytes())
    differing = damaged_files(home, manifest, manifest.files)
    if before == manifest and not differing:
        return
    # Without a manifest only content, and what follows from that alone, can be judged.
    judged = before.files if before else {*manifest.content, VMLINUX}
    damaged = damaged_files(home, before or manifest, [path for path in differing if path in judged])
    for path in (*differing, MANIFEST_FILE):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (fresh / path).replace(home / path)
        sync_directory((home / path).parent)
    if {IMAGE, VMLINUX} & set(damaged):
        for file in FROM_GUEST:
            (home / file).unlink(missing_ok=True)
    if damaged:
        text = f"kernel {name} was damaged in the cache ({named(damaged)}): made again from {source}"
        warnings.warn(text, stacklevel=2)


def named(files: tuple[str, ...]) -> str:
    """Some of the files, and how many more."""
    more = f" and {len(files) - _MOST_NAMED} more" if len(files) > _MOST_NAMED else ""
    return ", ".join(files[:_MOST_NAMED]) + more


def damaged_files(
    directory: Path, manifest: Manifest, paths: Iterable[str], *, reread: bool = False
) -> tuple[str, ...]:
    """Those of the files that are missing, or not what they were. `reread`: whatever is remembered."""
    return tuple(
        path for path in paths if not _is_file_whole(directory / path, manifest.files[path], reread=reread)
    )


def is_whole(directory: Path) -> bool:
    """Whether every file of the kernel in `directory` is what it was when it was added."""
    manifest = kept_manifest(directory)
    return manifest is not None and not damaged_files(directory, manifest, manifest.files)


def is_usable(directory: Path) -> bool:
    """The same of all its files but the modules, as far as files are remembered to be whole."""
    manifest = kept_manifest(directory)
    return manifest is not None and not damaged_files(directory, manifest, manifest.needed)


def _is_file_whole(path: Path, digest: str, *, reread: bool) -> bool:
    try:
        return digest_of_file(path, anew=True) == digest if reread else has_digest(path, digest)
    except OSError:
        return False  # gone, or the disk cannot read it any more


# Locks between processes: the kernel's (flock), so that they go with their process, also after SIGKILL.


WORD_SECONDS = 30.0
"""How often somebody who waits is told for how long."""


@contextmanager
def held(path: Path, progress: Progress, waiting: str) -> Iterator[None]:
    """Hold the lock file; tell `waiting` where another process has it, and for how long, again and again."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(waiting)
        begin = time.monotonic()
        while not lock.is_locked:
            with suppress(Timeout):
                lock.acquire(timeout=WORD_SECONDS)
                break
            progress(f"{waiting}: {duration(time.monotonic() - begin)} so far")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def held_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock file and yield True; where another process has it, yield False at once."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
