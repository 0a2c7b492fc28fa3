"""What the cache writes down: an entry (content) and the names that lead to it."""

from datetime import datetime
from pathlib import Path

from ktrial.kernels.image.image import boot_image
from ktrial.model.base import Model
from ktrial.model.kernel import BootImage, Kernel, Origin

IMAGE, VMLINUX, CONFIG, SYSTEM_MAP, KALLSYMS = "vmlinuz", "vmlinux", "config", "System.map", "kallsyms"
ENTRY_FILE = "kernel.json"


class EntryRecord(Model):
    """`kernel.json`: one content, whatever it is called."""

    format: int = 1
    release: str
    architecture: str = "x86_64"
    digest: str
    config_digest: str = ""
    size: int
    vmlinux_reason: str = ""
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
        boot_image=entry.boot_image or boot_image(part(VMLINUX) or directory / IMAGE),
        config=part(CONFIG),
        modules=part("lib", "modules", entry.release),
    )
