"""A machine and kernels for the runner's tests: what the guest answers is written down beforehand."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ktrial.experiment.resources import Builder, Resources, default_builder
from ktrial.kernels import Progress
from ktrial.kernels.errors import KernelError, KernelNotFound
from ktrial.machines import PreparationProgress as Telling
from ktrial.machines.errors import MachineStopped
from ktrial.model.base import digest
from ktrial.model.design import Perturbation
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.machine import NO_FILES, Boot, CarriedFile, FileSet, MachineIdentity
from ktrial.model.references import KernelRef
from ktrial.model.trial import Outcome
from ktrial.model.workload import Direction, Metric, Mode, Sample, WorkloadDescription, WorkloadUse
from ktrial.target import Failure, Read, Run, Step, StepResult, Write
from ktrial.target.errors import GuestEnded
from ktrial.workloads import Workload
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.frozen_files import FrozenFiles
from ktrial.workloads.host_files import with_all_they_need

CPUS_ONLINE = Read(path="/sys/devices/system/cpu/online")
INSTRUCTIONS = Metric(name="instructions", unit="instructions/operation", direction=Direction.LOWER)


def a_kernel(name: str = "debian:6.1", **changes: object) -> Kernel:
    plain = {
        "name": name,
        "release": f"{name.partition(':')[2]}.0-1-cloud-amd64",
        "origin": Origin(provider="debian", source=f"linux-image-{name}", version="1"),
        "digest": digest(name),
        "config_digest": digest([name]),
        "image": Path("/nowhere/vmlinuz"),
    }
    return Kernel.model_validate(plain | changes)


class ScriptedWorkload:
    """One program, whose one number is what the machine answers."""

    def __init__(self, name: str, files: tuple[CarriedFile, ...] = ()) -> None:
        self._files = files
        self.description = WorkloadDescription(name=name, summary="", does="", metrics=(INSTRUCTIONS,))

    def files(self, use: WorkloadUse) -> tuple[CarriedFile, ...]:
        return self._files

    def steps(self, use: WorkloadUse, mode: Mode, perturbation: Perturbation) -> tuple[Step, ...]:
        arguments = [f"{key}={value}" for key, value in use.parameters.items()]
        return (Run(argv=(use.name, str(perturbation.number), *arguments)),)

    def samples(self, use: WorkloadUse, mode: Mode, results: tuple[StepResult, ...]) -> tuple[Sample, ...]:
        (result,) = results
        assert result.step == 0, "a workload's results are numbered as it numbered its steps"
        if result.exit != 0:
            raise WorkloadError(f"Workload {use.name}: it ended with {result.exit}: {result.stderr}")
        metric = INSTRUCTIONS
        number = float(result.stdout)
        return (
            Sample(
                workload=use.label,
                metric=metric.name,
                unit=metric.unit,
                direction=metric.direction,
                mode=mode,
                value=number,
                operations=1000,
                minimum=number,
                median=number,
                mean=number,
            ),
        )


Answer = Callable[[Boot, Run], StepResult]


def number_of(boot: Boot, run: Run) -> StepResult:
    """A number that follows from all that was asked: the same on every host, whatever runs beside it."""
    drawn = int(digest([boot.kernel.name, boot.parameters, boot.memory_mib, run.argv])[:6], 16)
    return StepResult(step=0, do="run", exit=0, stdout=str(1000 + drawn % 5))


def ends(outcome: Outcome, reason: str, console: str = "") -> GuestEnded:
    return GuestEnded(outcome=outcome, reason=reason, console=console, results=())


class ScriptedMachine:
    """Answers as `answer` says, takes `seconds` for each program, and counts what is asked of it."""

    def __init__(
        self,
        answer: Answer = number_of,
        *,
        seconds: float = 0.0,
        mode: Mode = Mode.EXACT_CLOCK,
        on_prepare: Callable[[Boot], None] = lambda boot: None,
        on_write: Callable[[Write], StepResult] | None = None,
        on_end: Callable[[], object] = lambda: None,
        plain_boot_reason: str = "",
        qemu: str = "7.2.22",
    ) -> None:
        self.name, self.mode = "scripted", mode
        self.prepared: list[Boot] = []
        self.programs: list[tuple[Boot, tuple[Step, ...]]] = []
        self.checked = 0
        self.at_once = self.most_at_once = 0
        self._answer, self._seconds = answer, seconds
        self._on_prepare, self._on_write, self._on_end = on_prepare, on_write, on_end
        self._identity = MachineIdentity(
            machine="scripted",
            mode=mode,
            qemu=qemu,
            cpu_model="max",
            agent_digest="agent",
            snapshot="" if plain_boot_reason else "key",
            plain_boot_reason=plain_boot_reason,
        )
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def check(self) -> None:
        self.checked += 1

    def prepare(self, boot: Boot, progress: Telling) -> None:
        progress("booting")
        with self._lock:
            self.prepared.append(boot)
        self._on_prepare(boot)

    @contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator["_Target"]:
        boot = boot.model_copy(update={"files": (*boot.files, *carried.files)})
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            yield _Target(self, boot, self._identity)
        finally:
            self._on_end()
            with self._lock:
                self.at_once -= 1

    def stop(self) -> None:
        self.stopped.set()

    def perform(self, boot: Boot, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        if self.stopped.wait(self._seconds):
            raise MachineStopped(machine=self.name)
        with self._lock:
            self.programs.append((boot, steps))
        results = [self._one(boot, step) for step in steps]
        return tuple(result.model_copy(update={"step": at}) for at, result in enumerate(results))

    def _one(self, boot: Boot, step: Step) -> StepResult:
        if isinstance(step, Write):
            if self._on_write:
                return self._on_write(step)
            return StepResult(step=0, do="write", before="60\n", after=f"{step.value}\n")
        if not isinstance(step, Run):  # a file is read; a disk is made, or looked at
            content = f"0-{boot.cpus - 1}\n" if step == CPUS_ONLINE else ""
            return StepResult(step=0, do=step.do, content=content)
        answer = self._answer(boot, step)
        return answer.model_copy(
            update={
                "watched": {file: {"pgfault": (2.0,)} for file in step.watch if file == "/proc/vmstat"},
                "rusage": {"minflt": 1.0},
            }
        )


class _Target:
    def __init__(self, machine: ScriptedMachine, boot: Boot, identity: MachineIdentity) -> None:
        self._machine, self._boot, self.identity = machine, boot, identity

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        return self._machine.perform(self._boot, steps)


def refused(name: str, text: str) -> StepResult:
    return StepResult(step=0, do="write", failure=Failure(errno=22, name=name, text=text))


def scripted_resources(
    workloads: Mapping[str, Workload] | None = None,
    missing: dict[str, KernelError] | None = None,
    builder: Builder | None = None,
    frozen: FrozenFiles | None = None,
) -> Resources:
    """Every kernel is there but those in `missing`; every workload is a scripted one."""

    def obtain(kernel: KernelRef, progress: Progress) -> Kernel:
        progress("fetching", 1, 2)
        if error := (missing or {}).get(kernel.asked):
            raise error
        return a_kernel(kernel.asked)

    def modules(kernel: Kernel, names: Iterable[str]) -> tuple[Path, ...]:
        return tuple(Path(f"/modules/{name}.ko") for name in names)

    def workload(use: WorkloadUse) -> Workload:
        return (workloads or {}).get(use.name) or ScriptedWorkload(use.name)

    return Resources(
        obtain=obtain,
        modules=modules,
        workload=workload,
        files=with_all_they_need,
        builder=builder or default_builder(),
        frozen=frozen,
    )


def not_found(name: str) -> KernelNotFound:
    return KernelNotFound(name=name, similar="")


def wait_until(true: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
