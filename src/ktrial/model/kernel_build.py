"""A kernel that is built from source: all that is decided before the compiler runs. Plain data."""

from pydantic import Field

from ktrial.model.base import Model, digest

GUEST, DEFCONFIG, DEBIAN = "guest", "defconfig", "debian"
"""Configurations that go by a name; every other is a file."""
_KEY_LENGTH = 12


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

    def changed(self, change: "Change") -> "Build":
        """The build with what a level of a factor changes; its patches come after those that are there."""
        return self.model_copy(
            update={
                "source": change.source or self.source,
                "options": self.options | change.options,
                "patches": (*self.patches, *change.patches),
                "make": self.make | change.make,
            }
        )


class Change(Model):
    """What a level of a factor changes about the build of a treatment's kernel."""

    source: str = ""
    """In place of the build's own; empty: none."""
    options: dict[str, str] = Field(default_factory=dict)
    patches: tuple[Patch, ...] = ()
    make: dict[str, str] = Field(default_factory=dict)
