"""Ctrl-C, SIGTERM and SIGHUP at each stage of a bisection: what is known is told; the same command goes on.

Each case runs the command in a process of its own, which is sent the signal at a fault point.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.command_line import KNOWN, has_names
from tests.support.killing import directory_in_memory, forked
from tests.support.scripted import ScriptedMachine, a_kernel, scripted_resources

from ktrial.cli.main import main
from ktrial.experiment.observer import Observer
from ktrial.experiment.single_kernel import Runs
from ktrial.fault_points import SIGNAL, VARIABLE, fault_point
from ktrial.kernels import Progress
from ktrial.kernels.providers.debian import Available
from ktrial.machines.errors import MachineStopped
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.references import KernelRef
from ktrial.model.workload import Mode
from ktrial.store.store import Store, open_store
from ktrial.target import Run, Step, StepResult, Write

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HOW = ("--workload", "fork", "--perturbations", "2")
VERSIONS = ("bisect", "versions", "6.0..6.19", *HOW)
FOUND_VERSION = "follows debian:6.12.0-cloud-amd64"
"""The numbers change with 6.13."""
SETTINGS = [f"--knob=/proc/sys/net/core/k{at}=1..2" for at in range(8)]
KNOBS = ("bisect", "knobs", "--kernel", "debian:6.12", *SETTINGS, *HOW)
IN_TIME = ("bisect", "knobs", "--kernel", "debian:6.12", *SETTINGS, "--workload", "fork", "--machine", "kvm")


class Machine(ScriptedMachine):
    """Linux 6.13 is slower, and so is a system with both of two settings."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(self._number, mode=mode, on_prepare=self._boots, on_write=self._written)
        self._settings: dict[str, str] = {}

    def perform(self, boot: Boot, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        self._settings = {}
        return super().perform(boot, steps)

    def before_a_program(self) -> None:
        """A test may have something happen here."""

    def _boots(self, _boot: Boot) -> None:
        fault_point("test: while a guest boots")

    def _written(self, step: Write) -> StepResult:
        self._settings[step.path] = step.value
        return StepResult(step=0, do="write", before="1\n", after=f"{step.value}\n")

    def _number(self, boot: Boot, program: Run) -> StepResult:
        self.before_a_program()
        fault_point("test: in a program")
        slow = int(re.findall(r"\d+", boot.kernel.name)[1]) >= 13
        both = all(self._settings.get(f"/proc/sys/net/core/k{at}") == "2" for at in (2, 5))
        noise = len(self.programs) * 37 % 11 if self.mode is Mode.TIMED else int(program.argv[1]) % 2
        value = 1000 + 80 * slow + 100 * both + noise
        return StepResult(step=0, do="run", exit=0, stdout=str(value))


class Ended(NamedTuple):
    status: int
    output: str
    messages: str


def obtained(kernel: KernelRef, _progress: Progress) -> Kernel:
    fault_point("test: a kernel is fetched")
    return a_kernel(kernel.asked)


def available(_flavour: str, _progress: Progress) -> tuple[Available, ...]:
    fault_point("test: releases are listed")
    names = [f"6.{at}.0-cloud-amd64" for at in range(20)]
    return tuple(Available(f"debian:{name}", name, name, "sid") for name in names)


def be_ktrial(directory: Path, arguments: tuple[str, ...]) -> int:
    """Its exit status."""

    def runs(store: Store, observer: Observer, _jobs: int | None) -> Runs:
        mode = Mode.TIMED if arguments == IN_TIME else Mode.EXACT_CLOCK
        return Runs(store, observer, 1, Machine(mode), replace(scripted_resources(), obtain=obtained))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KTRIAL_STORE", str(directory / "ktrial.db"))
        patch.setenv("KTRIAL_CACHE", str(directory))
        patch.setenv("COLUMNS", "150")
        patch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)
        patch.setattr("ktrial.kernels.providers.debian.releases", available)
        has_names(patch, KNOWN)
        patch.setattr(sys, "argv", ["ktrial", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


def command(directory: Path, arguments: tuple[str, ...], armed: str, number: signal.Signals) -> Ended:
    """The command in another process, which sends itself the signal at the fault point."""

    def child() -> None:
        for each in SIGNALS:
            signal.signal(each, signal.default_int_handler if each is signal.SIGINT else signal.SIG_DFL)
        for descriptor, name in ((1, "output"), (2, "messages")):
            os.dup2(os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.environ.update({VARIABLE: armed, SIGNAL: number.name})
        status = be_ktrial(directory, arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)

    status = os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1])
    return Ended(status, *((directory / name).read_text() for name in ("output", "messages")))


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """What the commands import when they run is imported here, and not in each of the processes."""
    for arguments in (VERSIONS, KNOBS):
        with directory_in_memory() as directory:
            assert be_ktrial(directory, arguments) == 0


def stored(directory: Path) -> set[tuple[str, str]]:
    """Study and trial."""
    if not (directory / "ktrial.db").exists():
        return set()
    with open_store(directory / "ktrial.db") as store:
        return {
            (study.digest, f"{trial.planned.key} {trial.started}")
            for study in store.studies()
            for trial in store.trials(study.id)
        }


@pytest.fixture
def directory() -> Iterator[Path]:
    with directory_in_memory() as directory:
        yield directory


NOTHING = ""
EACH_CHANGE = (
    (VERSIONS, "test: releases are listed", NOTHING),
    (VERSIONS, "test: in a program#9", r"between debian:6\.9\.0-.* and debian:6\.14\.0-.*\+8\.0"),
    (VERSIONS, "test: in a program#15", FOUND_VERSION),
    (KNOBS, "test: in a program#23", "Cause 1"),
)
AT_NIGHT = (
    (IN_TIME, "test: in a program#40", r"\+\d+\.\d+ % not explained .* it was interrupted"),
    (VERSIONS, "test: a kernel is fetched", NOTHING),
    (VERSIONS, "test: while a guest boots", NOTHING),
    (VERSIONS, "test: in a program#2", NOTHING),
    (VERSIONS, "test: a kernel is fetched#3", r"between debian:6\.0\.0-.* and debian:6\.19\.0-.*\+8\.0"),
    (VERSIONS, "session: all trials stored#4", r"between debian:6\.9\.0-.* and debian:6\.19\.0-.*\+8\.0"),
    (VERSIONS, "session: all trials stored#8", FOUND_VERSION),
    (KNOBS, "test: a kernel is fetched", NOTHING),
    (KNOBS, "test: in a program#2", NOTHING),
    (KNOBS, "test: in a program#5", r"\+10\.0"),
    (KNOBS, "test: in a program#21", "Cause 1"),
    (KNOBS, "session: all trials stored#12", "Cause 1"),
    (IN_TIME, "test: in a program#2", NOTHING),
    (IN_TIME, "test: in a program#180", "Cause 1"),
)
CASES = [
    pytest.param(*change, number, marks=[pytest.mark.nightly] if change in AT_NIGHT else [])
    for change, number in zip((*EACH_CHANGE, *AT_NIGHT), cycle(SIGNALS), strict=False)
]


@pytest.mark.parametrize(("arguments", "point", "known", "number"), CASES)
def test_what_is_known_is_told_and_the_same_command_goes_on(
    arguments: tuple[str, ...], point: str, known: str, number: signal.Signals, directory: Path
) -> None:
    ended = command(directory, arguments, point, number)
    assert ended.status == 128 + number, ended
    assert "Traceback" not in ended.messages
    assert re.search(known, " ".join(ended.output.split())), ended
    before = stored(directory)
    again = command(directory, arguments, "", number)
    assert again.status == 0, again
    assert before <= stored(directory)


@pytest.mark.parametrize("arguments", [VERSIONS, pytest.param(KNOBS, marks=pytest.mark.nightly)])
def test_of_a_store_that_was_deleted_nothing_is_promised(
    arguments: tuple[str, ...], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deleting(machine: Machine) -> None:
        for file in directory.glob("ktrial.db*"):
            file.unlink()
        os.kill(os.getpid(), signal.SIGINT)
        machine.stopped.wait(300)
        raise MachineStopped(machine=machine.name)

    monkeypatch.setattr(Machine, "before_a_program", deleting)
    ended = command(directory, arguments, "", signal.SIGINT)
    assert ended.status == 128 + signal.SIGINT
    assert "no candidate's trials are known to be kept" in ended.messages
    assert "measured are kept" not in ended.messages
