"""Kernels from source without a compiler: what is asked for is written down, and has a name."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.scripted import a_kernel

from ktrial.experiment.resources import Builder
from ktrial.kernels import Progress
from ktrial.kernels.errors import BadBuildOption, BuildFailed, KernelError, NotASource, OptionNotTaken
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, Origin, Patch

NO_OPTION = "CONFIG_NO_SUCH"
"""No source has it."""


def requested(
    source: str,
    *,
    config: str = "guest",
    options: Mapping[str, str] | Sequence[str] = (),
    patches: Sequence[str] = (),
    make: Mapping[str, str] | None = None,
    fuzz: int = 0,
    directory: Path,
) -> Build:
    """Every source is one, unless it is called `nowhere`; a patch is a file that is there."""
    if source == "nowhere":
        raise NotASource(name=source, directory=source, problem="there is no such directory")
    named = dict(options if isinstance(options, Mapping) else (text.split("=", 1) for text in options))
    for name, value in named.items():
        if not value or " " in name:
            text = f"{name}={value}"
            raise BadBuildOption(name=text, directory="", text=text, problem="there is no value")
    return Build(
        source=source if ":" in source else str(directory / source),
        config=config,
        options={f"CONFIG_{name.removeprefix('CONFIG_')}": value for name, value in named.items()},
        patches=tuple(_patch(directory / patch) for patch in patches),
        make=dict(make or {}),
        fuzz=fuzz,
    )


def _patch(path: Path) -> Patch:
    if not path.is_file():
        raise NotASource(name=path, directory=path, problem="there is no such patch")
    return Patch(path=str(path), digest=digest(path.read_text()))


class FakeBuilder:
    """Writes down what it is asked for; builds whose option or flag says so fail."""

    def __init__(self, cached: Sequence[str] = ()) -> None:
        self.configured: list[Build] = []
        self.built: list[Build] = []
        self._cached = set(cached)
        self._lock = threading.Lock()

    @property
    def builder(self) -> Builder:
        return Builder(build=self._build, configured=self._configured, cached=self._kept)

    def _kept(self, wanted: Build) -> Kernel | None:
        return self.kernel(wanted) if wanted.name in self._cached else None

    def _configured(self, wanted: Build, progress: Progress) -> dict[str, str]:
        self.configured.append(wanted)
        progress("configuring")
        if NO_OPTION in wanted.options:
            raise self.not_taken()
        return dict(wanted.options)

    def _build(self, wanted: Build, progress: Progress) -> Kernel:
        with self._lock:
            self.built.append(wanted)
        progress("building", 1, 2)
        if wanted.make.get("KCFLAGS") == "-broken":
            raise self.failed()
        self._cached.add(wanted.name)
        return self.kernel(wanted)

    @staticmethod
    def not_taken() -> KernelError:
        facts = {"option": NO_OPTION, "wanted": "y", "problem": "there is no such option", "advice": ""}
        return OptionNotTaken(name="linux", directory="linux", **facts)

    @staticmethod
    def failed() -> KernelError:
        return BuildFailed(name="linux", directory="linux", problem="gcc: error: -broken", log="build.log")

    @staticmethod
    def kernel(wanted: Build) -> Kernel:
        origin = Origin(
            provider="build", source=wanted.source, version="6.1.1", build=wanted, compiler="gcc 12.2"
        )
        return a_kernel(wanted.name, release="6.1.1", origin=origin, digest=digest(wanted.key))
