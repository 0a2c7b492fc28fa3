"""A machine for fleets: made anew in each worker, where it may behave as that worker is told to."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.fake_builds import FakeBuilder
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, number_of, scripted_resources, wait_until
from tests.support.tuning import TunableMachine

from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Builder, Listener, Resources
from ktrial.experiment.session import run
from ktrial.fault_points import VARIABLE
from ktrial.file_digests import digest_of_file
from ktrial.fleet.fleet import Fleet
from ktrial.fleet.settings import fleet as fleet_named
from ktrial.installation import CACHE
from ktrial.kernels import Progress
from ktrial.kernels.errors import BuildDiffers, BuildFailed, BuildToolsMissing, KernelError
from ktrial.model.base import digest
from ktrial.model.kernel import Build, BuildOrder, Kernel
from ktrial.model.machine import Boot
from ktrial.model.study import Study, StudyRecord
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

BEHAVIOUR = "KTRIAL_TEST_FLEET"
"""The environment variable with a directory: files there say how workers behave, and workers log in it."""


class PortableScriptedMachine(ScriptedMachine):
    """As the scripted machine, and workers make one like it."""

    def elsewhere(self) -> Callable[[], "PortableScriptedMachine"]:
        return machine_of_worker

    def has_to_agree(self) -> dict[str, str]:
        return {"QEMU": told().get("QEMU", "7.2.22")}


def machine_of_worker() -> PortableScriptedMachine:
    """What a worker makes: it logs what it does, and multiplies its numbers as it is told to."""
    behaviour = told()

    def answer(boot: Boot, program: Run) -> StepResult:
        log("begun", f"{worker_number()} {os.getpid()} {boot.kernel.name} {program.argv[1]}")
        time.sleep(float(behaviour.get("seconds", "0")))
        right = number_of(boot, program)
        log("ended", f"{worker_number()} {os.getpid()} {boot.kernel.name} {program.argv[1]}")
        factor = float(behaviour.get("factor", "1"))
        return right.model_copy(update={"stdout": str(float(right.stdout) * factor)})

    def prepared(boot: Boot) -> None:
        log("preparing", f"{worker_number()} {os.getpid()} {boot.kernel.name}")
        time.sleep(float(behaviour.get("again" if machine.prepared[1:] else "preparing", "0")))
        log("prepared", f"{worker_number()} {os.getpid()} {boot.kernel.name}")

    machine = PortableScriptedMachine(answer, on_prepare=prepared)
    return machine


def worker_number() -> str:
    """Of `local:N`, from 0; its cache is called so. Of the client: not a number."""
    return Path(os.environ.get(CACHE, "client")).name


def behave(directory: Path, worker: int | str, **told: object) -> None:
    """Say how a worker is to behave; `all`: those of which nothing is said.

    `seconds` of a trial, `preparing`: of its first system, `again`: of all others; `factor` of its numbers.
    """
    (directory / f"worker-{worker}.json").write_text(json.dumps({k: str(v) for k, v in told.items()}))


def log(name: str, line: str) -> None:
    """Append a line that nobody else's comes into."""
    if directory := os.environ.get(BEHAVIOUR):
        descriptor = os.open(Path(directory) / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)


def logged(directory: Path, name: str) -> list[list[str]]:
    """The lines of a log, as words."""
    path = directory / name
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def told() -> dict[str, str]:
    directory = Path(os.environ.get(BEHAVIOUR) or "/nowhere")
    paths = (directory / f"worker-{which}.json" for which in (worker_number(), "all"))
    told = next((path for path in paths if path.exists()), None)
    return dict(json.loads(told.read_text())) if told else {}


class Heard(Observer):
    """Keeps what a person is told."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def a_fleet(workers: int | str, **changes: object) -> Fleet:
    """Of so many workers of this system, or at an address."""
    from dataclasses import replace

    settings = fleet_named(f"local:{workers}" if isinstance(workers, int) else workers)
    return Fleet(replace(settings, **changes))  # type: ignore[arg-type]


def with_all_there(fleet: Fleet, workers: int) -> Fleet:
    """Wait until that many workers have come."""
    wait_until(lambda: len(fleet.connection.workers()) >= workers)
    return fleet


def run_here(study: Study, store: Store) -> StudyRecord:
    """On this system, by threads."""
    return run(study, store=store, machine=ScriptedMachine(), resources=scripted_resources(), jobs=2)


def run_on(
    fleet: Fleet,
    study: Study,
    store: Store,
    observer: Observer | None = None,
    jobs: int | None = None,
    resources: Resources | None = None,
) -> StudyRecord:
    """On the fleet."""
    return run(
        study,
        store=store,
        machine=PortableScriptedMachine(),
        resources=resources or scripted_resources(),
        executors=fleet,
        observer=observer,
        jobs=jobs,
    )


def study_of(perturbations: int, name: str = "quick") -> Study:
    """Two kernels in two workloads."""
    return a_study(name, workloads=("fork", "pipe"), perturbations=perturbations)


def numbers(record: StudyRecord) -> dict[str, object]:
    """All that is counted, by trial; not who performed it, nor when."""
    return {one.planned.key: (one.outcome, one.samples, one.counters) for one in record.trials}


# Kernels that fleets build without a compiler: workers do as they are told to, and log it.

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
            raise BuildDiffers(directory="linux", problem="its configuration is another one")
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
            raise BuildToolsMissing(directory="linux", tools=behaviour["loses"], packages="")
        if order.build.make.get("KCFLAGS") == "-broken":
            printed = _directory() / "build.log"
            printed.write_text("gcc: error: -broken\n")
            raise BuildFailed(directory="linux", problem="gcc: error: -broken", log=printed)
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


# A machine for searches on fleets: its numbers follow from its knobs, in each worker as here.

PRESSURE = "/proc/sys/vm/vfs_cache_pressure"


def planted(_boot: Boot, written: Mapping[str, str]) -> float:
    """A fifth fewer instructions where the pressure is high; nothing else matters."""
    log("tuned", worker_number())
    return (800.0 if int(written.get(PRESSURE, "100")) > 300 else 1000.0) * float(told().get("factor", "1"))


class PortableTunableMachine(TunableMachine):
    """Workers make one like it."""

    def __init__(self) -> None:
        super().__init__(planted)

    def elsewhere(self) -> Callable[[], "PortableTunableMachine"]:
        return PortableTunableMachine

    def has_to_agree(self) -> dict[str, str]:
        return {"QEMU": "7.2.22"}


# Slurm's two commands that submit and cancel, for jobs that run at once on this system.

_SBATCH = """#!/bin/sh
here=$(dirname "$0")
if grep -q '^#SBATCH -p nowhere' "$1"; then
    echo 'sbatch: error: invalid partition specified: nowhere' >&2
    exit 1
fi
cp "$1" "$here/job.$$"
setsid sh "$here/job.$$" </dev/null >/dev/null 2>&1 &
echo $! >>"$here/submitted"
echo "Submitted batch job $!"
"""


_SCANCEL = """#!/bin/sh
kill -TERM -- "-$1"
"""


def fake_slurm(directory: Path) -> Path:
    """The directory with both, to be first in PATH."""
    directory.mkdir()
    for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory


def submitted(directory: Path) -> list[int]:
    """The numbers of the jobs: their process groups."""
    path = directory / "submitted"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def runs(job: int) -> bool:
    """Whether anything of it is alive."""
    try:
        os.killpg(job, 0)
    except ProcessLookupError:
        return False
    return True
