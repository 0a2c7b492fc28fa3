"""Put a kernel's parts together in the form in which the cache keeps them."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pydantic import Field

from ktrial.kernels.cache.atomic_write import sync_tree
from ktrial.kernels.cache.disk_space import require_space
from ktrial.kernels.cache.manifest import (
    CONFIG,
    ENTRY_FILE,
    IMAGE,
    SYSTEM_MAP,
    VMLINUX,
    content_of,
    digest_of_content,
    kept_manifest,
    write_manifest,
)
from ktrial.kernels.errors import ConfigUnusable
from ktrial.kernels.image.extract_vmlinux import extract_vmlinux
from ktrial.kernels.image.image import KernelImage, boot_image, read_image
from ktrial.kernels.kconfig.config import embedded_config, parse_config
from ktrial.kernels.modules.depmod import module_files, place_modules, run_depmod
from ktrial.kernels.progress import Progress
from ktrial.kernels.providers.protocol import Parts
from ktrial.model.base import Model, digest
from ktrial.model.kernel import BootImage, Kernel, Origin


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
    boot_image: BootImage | None = None
    """None in entries from before it was noted: then the file's headers are read."""


class NameRecord(Model):
    """One name, and the content that it leads to."""

    format: int = 1
    name: str
    digest: str
    flavour: str = ""
    origin: Origin
    added: datetime


def digest_of_record(text: str | bytes) -> str:
    """What a name's record is known by beside its content. When it was added makes no difference."""
    return digest({key: value for key, value in json.loads(text).items() if key != "added"})


def is_of_release(origin: Origin, release: str) -> bool:
    """Whether a kernel of that release can be of that origin, as far as packages tell what they hold."""
    named = [package for package in origin.packages if package.startswith(_DEBIAN_IMAGE)]
    if named:
        return any(package.partition("=")[0] == _DEBIAN_IMAGE + release for package in named)
    tells = origin.packages or (origin.build and origin.build.source.startswith("debian:"))
    return not (tells and origin.version) or _same_version(origin.version, release)


def kernel_of(name: NameRecord, entry: EntryRecord, directory: Path) -> Kernel:
    """Put a name and its content together. `directory` is the entry's. Raises ImageError."""

    def part(*parts: str) -> Path | None:
        path = directory.joinpath(*parts)
        return path if path.exists() else None

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
        boot_image=_boot_image(entry, part(VMLINUX) or directory / IMAGE),
        config=part(CONFIG),
        modules=part("lib", "modules", entry.release),
    )


def _boot_image(entry: EntryRecord, booted: Path) -> BootImage:
    """Its digest stands in the manifest alone: an older ktrial reads what else is noted of it."""
    manifest = kept_manifest(booted.parent)
    noted = entry.boot_image or boot_image(booted)
    return noted.model_copy(update={"digest": manifest.booted}) if manifest else noted


_DEBIAN_IMAGE = "linux-image-"
"""What the name of Debian's package begins with; the kernel's release follows."""
_SMALLEST_SYSTEM_MAP = 100_000
"""Debian ships a System.map of one line that says where the real one is; real ones have megabytes."""


def build_entry(name: str, parts: Parts, made: Path, workspace: Path, progress: Progress) -> EntryRecord:
    """Fill the new directory `made` and return its record, which is written there too; all of it is synced.

    Raises ImageError, ModulesUnusable, ConfigUnusable, ToolMissing, ToolFailed or OSError.
    """
    made.mkdir()
    image = read_image(parts.image)
    progress("unpacking the kernel")
    extracted = extract_vmlinux(image)
    require_space(made, len(extracted.vmlinux or b"") + sum(_copied_bytes(parts, workspace)))
    _take(parts.image, made / IMAGE, workspace)
    _take_config(name, parts, image, extracted.vmlinux or b"", made, workspace)
    if parts.system_map is not None and parts.system_map.stat().st_size >= _SMALLEST_SYSTEM_MAP:
        _take(parts.system_map, made / SYSTEM_MAP, workspace)
    if parts.modules is not None:
        progress("resolving the modules' dependencies")
        place_modules(name, parts.modules, image.release, made, workspace)
    content = content_of(made)
    digest = digest_of_content(content)
    if parts.modules is not None:
        run_depmod(name, made, image.release)
    if extracted.vmlinux is not None:
        (made / VMLINUX).write_bytes(extracted.vmlinux)
    config = made / CONFIG
    record = EntryRecord(
        release=image.release,
        digest=digest,
        config_digest=hashlib.sha256(config.read_bytes()).hexdigest() if config.exists() else "",
        size=sum(path.lstat().st_size for path in made.rglob("*") if path.is_file()),
        vmlinux_reason=extracted.reason,
        unchecked=extracted.unchecked,
        boot_image=boot_image(made / (IMAGE if extracted.vmlinux is None else VMLINUX)),
        module_count=len(module_files(made / "lib" / "modules" / image.release)),
    )
    (made / ENTRY_FILE).write_text(record.model_dump_json(indent=2), encoding="utf-8")
    write_manifest(made, content)
    made.chmod(0o755)
    progress("writing to disk")
    sync_tree(made)
    return record


def _copied_bytes(parts: Parts, workspace: Path) -> Iterator[int]:
    """Sizes of the files that are copied, not moved; unreadable ones are spoken of when it is their turn."""
    outside = [one for one in (parts.image, parts.modules) if one and not one.is_relative_to(workspace)]
    for top in outside:
        for path in module_files(top) if top.is_dir() else [top]:
            yield path.stat().st_size if path.exists() else 0


def _take_config(
    name: str, parts: Parts, image: KernelImage, vmlinux: bytes, made: Path, workspace: Path
) -> None:
    """The configuration that was given, else the one inside the image (CONFIG_IKCONFIG), else none."""
    if parts.config is None:
        if inside := embedded_config(vmlinux):
            (made / CONFIG).write_bytes(inside)
        return
    try:
        text = parts.config.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigUnusable(name=name, path=parts.config, problem=error.strerror) from error
    if not parse_config(text):
        raise ConfigUnusable(name=name, path=parts.config, problem="it has no line like CONFIG_SMP=y")
    stated = re.search(r"^# Linux/\w+ (\S+) Kernel Configuration", text, re.MULTILINE)
    if stated and not _same_version(stated[1], image.release):
        problem = f"it is of Linux {stated[1]}, the image is {image.release}"
        raise ConfigUnusable(name=name, path=parts.config, problem=problem)
    _take(parts.config, made / CONFIG, workspace)


def _same_version(stated: str, release: str) -> bool:
    """Whether both speak of one major.minor: distributions change the rest (6.1.176 is 6.1.0-50)."""
    return stated.split(".")[:2] == re.split(r"[.\-+~]", release)[:2]


def _take(source: Path, target: Path, workspace: Path) -> None:
    """Move what is in the workspace, copy everything else."""
    if source.is_relative_to(workspace) and not source.is_symlink():
        source.rename(target)
    else:
        shutil.copyfile(source, target)
    target.chmod(0o644)
