"""A kernel: how it is built from source, what it consists of, and its place in the order of versions."""

import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from ktrial.model.base import Model, digest

GUEST, DEFCONFIG, DEBIAN = "guest", "defconfig", "debian"
"""Configurations that go by a name; every other is a file."""
_KEY_LENGTH = 12
_OFF = frozenset({"", "n"})
_MOST_OFF = 8
"""Options that are shown of those that are off."""


class Patch(Model):
    """One patch of a series."""

    path: str
    """Absolute; where it was when the study was read."""
    digest: str
    """SHA-256 of its content: this, not where it lies, decides what is built."""


class Build(Model):
    """One kernel to build. Two Builds of one key ask for the same kernel."""

    source: str
    """`debian:linux-source-6.1`, the absolute path of a directory or a tarball, `git:DIRECTORY@REVISION`."""
    config: str = GUEST
    """`guest`, `defconfig`, `debian`, or the absolute path of a file."""
    config_digest: str = ""
    """SHA-256 of the file, where the configuration is one."""
    options: dict[str, str] = Field(default_factory=dict)
    """Set over the configuration, and have to take: `CONFIG_SLAB` → `y`, `n`, a number, `"quoted text"`."""
    patches: tuple[Patch, ...] = ()
    """Applied to the source, in this order."""
    # Left out where it is 0: a build's key must stay what it was before there was one.
    fuzz: int = Field(default=0, exclude_if=lambda value: not value)
    """How many lines at the edges of a patch's hunk may differ from the source's."""
    make: dict[str, str] = Field(default_factory=dict)
    """Variables of make: `KCFLAGS` → `-O3`."""

    def __hash__(self) -> int:
        """Kernels and what boots them are hashed, and hold it."""
        return hash(self.key)

    @property
    def key(self) -> str:
        """The same for the same request, wherever its files lie. What the source holds is not part of it."""
        asked = self.model_dump(mode="json", exclude={"patches", "config"})
        config = self.config_digest or self.config
        return digest(asked | {"config": config, "patches": [patch.digest for patch in self.patches]})

    @property
    def name(self) -> str:
        """What the kernel is called: `build:linux-source-6.1+SLAB=y@0123456789ab`."""
        source = self.source.rstrip("/").rpartition("/")[2].removeprefix("debian:").removeprefix("git:")
        options = [f"{name.removeprefix('CONFIG_')}={value}" for name, value in sorted(self.options.items())]
        patches = [patch.path.rpartition("/")[2] for patch in self.patches]
        flags = [f"{name}={value}" for name, value in sorted(self.make.items())]
        said = options + patches + flags
        shown = "+".join([source, *(said if len(said) <= 2 else [*said[:2], f"{len(said) - 2} more"])])
        return f"build:{shown.replace(' ', '_')}@{self.key[:_KEY_LENGTH]}"

    def changed(self, change: "BuildChange") -> "Build":
        """The build with what a level of a factor changes; its patches come after those that are there."""
        return self.model_copy(
            update={
                "source": change.source or self.source,
                "options": self.options | change.options,
                "patches": (*self.patches, *change.patches),
                "make": self.make | change.make,
            }
        )


class BuildChange(Model):
    """What a level of a factor changes about the build of a treatment's kernel."""

    source: str = ""
    """In place of the build's own; empty: none."""
    options: dict[str, str] = Field(default_factory=dict)
    patches: tuple[Patch, ...] = ()
    make: dict[str, str] = Field(default_factory=dict)


class NewOption(Model):
    """An option that the source has only with a kernel's patches."""

    option: str
    """With its `CONFIG_`."""
    value: str
    """`y`, `m`, `n`, a number, a text; empty where it is not offered, since what it depends on is off."""

    def __str__(self) -> str:
        """`SCHED_MUQSS=y`."""
        return f"{self.option.removeprefix('CONFIG_')}={self.value or 'n'}"


def options_shown(options: Sequence[NewOption]) -> str:
    """`SCHED_MUQSS=y, SHARERQ=0; off: RQ_MC, RQ_SMT`: all that are on, and some of those that are not."""
    on = [str(one) for one in options if one.value not in _OFF]
    off = [one.option.removeprefix("CONFIG_") for one in options if one.value in _OFF]
    if not on:
        return ", ".join(f"{name}=n" for name in off[:_MOST_OFF]) + _and_more(off)
    left_out = f"off: {', '.join(off[:_MOST_OFF])}{_and_more(off)}" if off else ""
    return "; ".join(filter(None, [", ".join(on), left_out]))


def _and_more(options: Sequence[str]) -> str:
    return f" and {len(options) - _MOST_OFF} more" if len(options) > _MOST_OFF else ""


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
    new_options: tuple[NewOption, ...] = Field(default=(), exclude_if=lambda value: not value)
    """What became of the options that its patches bring, by name."""


class BootImage(Model):
    """What a machine must know of the file that it boots, read when the kernel came into the cache."""

    size: int
    """Bytes of the file: a shorter one is damaged."""
    memory_end: int
    """Up to which address the kernel fills memory while it boots."""
    digest: str = Field(default="", exclude_if=lambda value: not value)
    """SHA-256 of the file; empty where nobody noted it."""


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
    unchecked: str = Field(default="", exclude=True)
    """Why damage to `image` before it came into the cache would not be noticed; empty where it would."""
    boot_image: BootImage | None = Field(default=None, exclude=True)
    """Of `vmlinux`, or of `image` where there is none; None for a kernel that is not in the cache."""
    config: Path | None = None
    modules: Path | None = None
    """The directory that holds `modules.dep` and the modules (`…/lib/modules/<release>`)."""


_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:[-~]?rc(\d+))?")


_NO_RC = 10**6


Order = tuple[int, int, int, int, str]


def version_order(text: str) -> Order:
    """A key to sort by: 6.1 before 6.12, 6.12-rc3 before 6.12, 6.12 before 6.12.5.

    `text` is what `uname -r` says, or a kernel's name; what holds no version comes last.
    """
    match = _RELEASE.search(text)
    if match is None:
        return (_NO_RC, 0, 0, 0, text)
    major, minor, patch, rc = match.groups()
    return (int(major), int(minor), int(patch or 0), int(rc) if rc else _NO_RC, text)


def measured_order(name: str, release: str) -> Order:
    """A key for kernels that were measured: by version; those of one version that are no packages are alike.

    A package's release counts up. What a build appends to its version is the name of a commit, or of a user:
    there the order in which they were measured has to tell.
    """
    *numbers, text = version_order(release or name)
    major, minor, patch, rc = numbers
    return (major, minor, patch, rc, text if name.startswith("debian:") else "")


def series(text: str) -> tuple[int, int] | None:
    """`6.12` of a release or a name, as numbers; None where it holds none."""
    match = _RELEASE.search(text)
    return (int(match[1]), int(match[2])) if match else None
