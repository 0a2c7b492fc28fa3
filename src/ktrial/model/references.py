"""What a text names, understood once: a kernel, a knob. The text itself is not looked at again.

References are made where names are read (`ktrial.kernels.kernel_registry.reference`,
`ktrial.knobs.catalogue.reference`). They are no part of what is stored: a study keeps the names, and its
digest is of these.
"""

import re

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.kernel import Build
from ktrial.model.knob import Knob, Version, version_of

ALL = "*"
"""The instance that stands for every one."""
STUDYS_DISK = "disk"
"""The instance that stands for the disk that the study's machine makes."""
_SOURCE_PACKAGE = re.compile(r"debian:linux-source-([0-9]+\.[0-9]+)")
_PLACEHOLDER = re.compile(r"\{\w+\}")


class KernelRef(Model):
    """Which kernel a name means."""

    asked: str
    """As the user wrote it: `debian:6.12:cloud`."""
    name: str
    """As the cache calls it: `debian:6.12`. Two references of one name mean one kernel."""
    provider: str = ""
    """`debian`, `path`, `host`; empty where none is known for this name: it may be a content's digest."""
    wanted: str = ""
    """What the provider is asked for: what stands behind its prefix."""
    release: str = ""
    """Begins like `uname -r` of the kernel, as far as the name tells: `6.12`; empty where it does not."""
    build: Build | None = None
    """How it is built, where the study says so; None where it is fetched or read."""

    @property
    def label(self) -> str:
        """What messages and trials call it: the build's name, else what was asked for."""
        return self.build.name if self.build else self.asked

    @property
    def version(self) -> Version | None:
        """Major and minor; None where the name does not tell."""
        try:
            return version_of(self.release)
        except ValueError:
            return None


def built_kernel(name: str, build: Build) -> KernelRef:
    """The kernel that is built so; the study calls it `asked`. Debian's sources tell their release."""
    package = _SOURCE_PACKAGE.fullmatch(build.source)
    return KernelRef(asked=name, name=build.name, release=package[1] if package else "", build=build)


class KnobRef(Model):
    """Which knob a name means: one of the catalogue's, else the file of a sysctl or a path."""

    asked: str
    """As the user wrote it: `swappiness`, `queue/scheduler@vda`, `/sys/block/vda/queue/scheduler`."""
    knob: Knob | None = None
    """None where the catalogue does not have it."""
    instance: str = ""
    """`vda`; `*` for all; empty where none was named."""
    path: str = ""
    """The file, where a path was named, or a sysctl that is not in the catalogue."""

    def path_in(self, release: str = "") -> str:
        """The file in which kernels of this release keep it; without a release, the newest do.

        Where kernels of the release do not have it, it is the newest place: reading it says so.
        """
        files = [place for place in self.knob.places if place.path] if self.knob else []
        if self.path or not files:
            return self.path or sysctl_path(self.asked)
        try:
            version = version_of(release)
        except ValueError:
            return filled(files[0].path, self.instance)
        holding = [place for place in files if place.holds_in(version)]
        return filled((holding or files)[0].path, self.instance)


class References(Model):
    """What the names in one study mean. They follow from the names: all are equal, as far as studies are."""

    kernels: dict[str, KernelRef] = Field(default_factory=dict)
    """The study's name of a kernel that it does not build → which one that is."""
    knobs: dict[str, KnobRef] = Field(default_factory=dict)
    """Target of a factor of kind `setting` → which knob that is."""

    def __eq__(self, other: object) -> bool:
        """A study that was read anew is the study that was stored."""
        return isinstance(other, References)

    def __hash__(self) -> int:
        """As equality has it."""
        return hash(References)


def filled(template: str, instance: str) -> str:
    """The path with the instance in it: a `/` in `eth0/rx-0` goes to the next placeholder."""
    pieces = _PLACEHOLDER.split(template)
    if len(pieces) == 1:
        return template
    parts = instance.split("/", len(pieces) - 2) if len(pieces) > 2 else [instance]
    parts += ["-"] * (len(pieces) - 1 - len(parts))
    return "".join(piece + part for piece, part in zip(pieces, [*parts, ""], strict=True))


def sysctl_path(name: str) -> str:
    """The file of a sysctl.

    As sysctl(8) has it: dots separate, and a slash stands for a dot in a name (`net.ipv4.conf.eth0/1.mtu`);
    where the first separator is a slash, slashes separate and dots are dots.
    """
    first = re.search(r"[./]", name)
    slashes_separate = first is not None and first.group() == "/"
    return "/proc/sys/" + (name if slashes_separate else name.translate(str.maketrans("./", "/.")))
