"""A kernel: image, modules, configuration, symbols and where they came from."""

from pathlib import Path

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.kernel_build import Build


class Origin(Model):
    """Where a kernel came from."""

    provider: str
    """`debian`, `path`, `host`, `source` or `build`."""
    source: str
    """Package name, or the path that was given."""
    version: str = ""
    """Package version; empty where there is none."""
    suite: str = ""
    """The distribution's suite that held it: `bookworm`, `trixie-backports`."""
    packages: tuple[str, ...] = ()
    """Every package that a part was taken from, as `name=version`."""
    build: Build | None = None
    """What was asked of the build; None where ktrial did not build it."""
    compiler: str = ""
    """What the compiler calls itself, for a kernel that ktrial built."""
    inexact_patches: tuple[str, ...] = ()
    """Hunks of its patches that apply elsewhere than they say, or to other lines around them, in words."""


class BootImage(Model):
    """What a machine must know of the file that it boots, read when the kernel came into the cache."""

    size: int
    """Bytes of the file: a shorter one is damaged."""
    memory_end: int
    """Up to which address the kernel fills memory while it boots."""


class Kernel(Model):
    """A kernel in the cache. Paths are absolute; a missing part is None."""

    name: str
    """What the user calls it and studies name it by: `debian:6.1`, `debian:6.12:generic`."""
    release: str
    """`uname -r`: `6.1.0-50-cloud-amd64`."""
    flavour: str = ""
    architecture: str = "x86_64"
    origin: Origin
    digest: str
    """SHA-256 over image, modules and configuration: two kernels with one digest are one kernel."""
    config_digest: str = ""
    """SHA-256 of the configuration; empty where it is unknown."""
    size: int = 0
    """Bytes on disk."""
    image: Path
    """The bzImage as it was shipped."""
    vmlinux: Path | None = None
    """The ELF image taken out of `image`, bootable through its PVH note; None where there is none."""
    vmlinux_reason: str = ""
    """Why there is no `vmlinux`, in a few words; empty where there is one."""
    boot_image: BootImage | None = Field(default=None, exclude=True)
    """Of `vmlinux`, or of `image` where there is none; None for a kernel that is not in the cache."""
    config: Path | None = None
    modules: Path | None = None
    """The directory that holds `modules.dep` and the modules (`…/lib/modules/<release>`)."""
