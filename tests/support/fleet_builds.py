"""Kernels that fleets build without a compiler: workers do as they are told to, and log it."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.fake_builds import FakeBuilder
from tests.support.fleets import BEHAVIOUR, log, logged, told, worker_number
from tests.support.scripted import wait_until

from ktrial.experiment.resources import Builder, Listener
from ktrial.fault_points import VARIABLE
from ktrial.file_digests import digest_of_file
from ktrial.fleet.fleet import Fleet
from ktrial.kernels import Progress
from ktrial.kernels.errors import BuildDiffers, BuildFailed, BuildToolsMissing, KernelError
from ktrial.model.base import digest
from ktrial.model.kernel import Build, BuildOrder, Kernel

STEPS = 20
"""Of a build that takes its time."""


class PortableFakeBuilds:
    """What comes out is a text that names what was asked for; two spellings of a flag are the same."""

    def order(self, wanted: Build, progress: Progress) -> BuildOrder | None:
        progress("looking at the source")
        source = Path(wanted.source)
        content = digest([*wanted.options.items(), wanted.make.get("KCFLAGS", "").replace("-O3", "-Ofast")])
        return BuildOrder(wanted, content, None, {digest_of_file(source): source})

    def take(self, order: BuildOrder, archive: Path) -> Kernel:
        if archive.read_text() != f"kernel {order.content}":
            raise BuildDiffers(name="linux", directory="linux", problem="its configuration is another one")
        return FakeBuilder.kernel(order.build)

    def problem(self, order: BuildOrder) -> str:
        return told().get("cannot", "")

    def needed(self, order: BuildOrder) -> tuple[str, ...]:
        return tuple(order.files)

    def make(self, order: BuildOrder, place: Callable[[str], Path], progress: Progress) -> Path:
        behaviour = told()
        log("building", f"{worker_number()} {order.content}")
        wait_until(lambda: len(logged(_directory(), "building")) >= int(behaviour.get("together", "1")))
        is_to_be_killed = VARIABLE in os.environ  # that one's end is what the others wait for
        if (marker := behaviour.get("until")) and not is_to_be_killed:
            wait_until((_directory() / marker).exists)
        assert all(digest_of_file(place(one)) == one for one in order.files)
        for step in range(STEPS):
            progress("building", step, STEPS)
            time.sleep(float(behaviour.get("build", "0")) / STEPS)
        if behaviour.get("loses"):
            raise BuildToolsMissing(name="linux", directory="linux", tools=behaviour["loses"], packages="")
        if order.build.make.get("KCFLAGS") == "-broken":
            printed = _directory() / "build.log"
            printed.write_text("gcc: error: -broken\n")
            raise BuildFailed(name="linux", directory="linux", problem="gcc: error: -broken", log=printed)
        log("compiled", f"{worker_number()} {order.content}")
        archive = _directory() / f"kernel-{worker_number()}-{order.content}"
        archive.write_text(behaviour.get("wrong", f"kernel {order.content}"))
        return archive


def _directory() -> Path:
    return Path(os.environ[BEHAVIOUR])


@dataclass
class FleetBuilder:
    """Builds by a fleet, and what was heard of them."""

    fleet: Fleet
    here: FakeBuilder = field(default_factory=FakeBuilder)
    """What this system builds."""
    notices: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    on_step: Callable[[str], None] = lambda _what: None
    on_notice: Callable[[str], None] = lambda _what: None

    @property
    def builder(self) -> Builder:
        return replace(self.here.builder, elsewhere=PortableFakeBuilds)

    def built(self, *builds: Build) -> dict[str, Kernel | KernelError]:
        """By the builds' names."""
        named = {one.name: one for one in builds}
        return dict(self.fleet.built(named, self.builder, Listener(self._progress, self._notice)))

    def _notice(self, what: str) -> None:
        self.notices.append(what)
        self.on_notice(what)

    def _progress(self, _label: str) -> Progress:
        def progress(what: str, done: int = 0, total: int = 0) -> None:
            self.steps.append(what)
            self.on_step(what)

        return progress


def a_build(source: Path, option: str = "y", flag: str = "") -> Build:
    """Of a file that is there."""
    if not source.exists():
        source.write_text("source")
    return Build(source=str(source), options={"CONFIG_A": option}, make={"KCFLAGS": flag} if flag else {})
