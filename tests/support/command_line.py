"""Runs the command line inside the test, with a scripted machine where trials are run."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.support.fake_builds import FakeBuilder, has_what_builds_need, requested
from tests.support.scripted import Answer, ScriptedMachine, a_kernel, scripted_resources

from ktrial.cli.main import main
from ktrial.errors import KtrialError
from ktrial.experiment import session
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Installed
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.build.builds import name_of
from ktrial.kernels.build.requests import BuildRequest
from ktrial.kernels.errors import BadKernelName, KernelError
from ktrial.kernels.providers import full_name
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.model.references import KernelRef
from ktrial.model.workload import Direction, Metric, Parameter, WorkloadDescription, WorkloadUse
from ktrial.store.store import Store
from ktrial.studyfile.references import Registry
from ktrial.target import Run, StepResult
from ktrial.workloads.errors import WorkloadError

INSTRUCTIONS = Metric(name="instructions", unit="instructions/operation", direction=Direction.LOWER)


STUDY = """\
question = "What did the upgrade cost?"
perturbations = 2
workloads = ["fork", "pipe"]
[factors.kernel]
levels = ["debian:6.1", "debian:6.12"]
"""


def a_workload(name: str, *parameters: Parameter) -> WorkloadDescription:
    return WorkloadDescription(name=name, summary="", does="", metrics=(INSTRUCTIONS,), parameters=parameters)


def kernel(name: str) -> KernelRef:
    provider, _, wanted = full_name(name).partition(":")
    if provider not in {"debian", "path", "host"}:
        raise BadKernelName(name=name, problem=f"there is no provider '{provider}'", allowed="debian:VERSION")
    canonical = f"debian:{wanted}:cloud" if provider == "debian" and ":" not in wanted else name
    release = wanted if provider == "debian" else ""
    return KernelRef(asked=name, name=canonical, provider=provider, wanted=wanted, release=release)


def check(use: WorkloadUse) -> None:
    if use.command and use.command.argv[0] == "/bin/sl":
        raise WorkloadError(f"Workload {use.name}: no trains")


KNOWN = Registry(
    workloads={
        "syscall": a_workload("syscall"),
        "fork": a_workload("fork"),
        "pipe": a_workload("pipe"),
        "hackbench": a_workload(
            "hackbench",
            Parameter(name="groups", summary="", default=1, minimum=1, maximum=64),
            Parameter(name="transport", summary="", default="pipe", choices=("pipe", "socket")),
            Parameter(name="load", summary="", default=0.5),
        ),
    },
    machines=("exact", "fake"),
    kernel=kernel,
    check=check,
    build=requested,
)


def has_names(patch: pytest.MonkeyPatch, names: Registry) -> None:
    """From now on these are the names that studies may use."""
    patch.setattr("ktrial.experiment.resources.installed", lambda: Installed(names, ()))


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    status: int
    output: str
    messages: str


class CommandLine:
    """`ktrial`, as a user types it."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._captured = captured
        has_names(patch, KNOWN)

    def machine(self, machine: ScriptedMachine, builds: FakeBuilder | None = None) -> None:
        """From now on trials run on this machine, and kernels are built by `builds`."""
        own = scripted_resources(builder=builds.builder) if builds else scripted_resources()
        for name in ("run", "plan_run"):
            on_machine = partial(getattr(session, name), machine=machine, resources=own)
            self._patch.setattr(f"ktrial.cli.running.study.{name}", on_machine)

    def __call__(self, *arguments: object) -> Said:
        self._patch.setattr(sys, "argv", ["ktrial", *map(str, arguments)])
        self._captured.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._captured.readouterr()
        assert isinstance(ended.value.code, int)
        assert "Traceback" not in said.err
        return Said(ended.value.code, said.out, said.err)


# What tests of `ktrial check` and `ktrial check baseline` share: a machine and kernels that a test chooses.

GOOD, SLOW = "debian:6.1", "debian:6.12"


FORK = ("--workload", "fork")


SLOW_FORK = ("check", "--kernel", SLOW, "--against", GOOD, *FORK)


class Here:
    """The command line, with a machine and kernels that a test chooses."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.run = CommandLine(patch, captured)
        self._patch = patch
        self.machine()

    def machine(
        self, answer: Answer | None = None, missing: dict[str, KernelError] | None = None
    ) -> ScriptedMachine:
        machine = ScriptedMachine(answer or numbers)

        def runs(store: Store, observer: Observer, jobs: int | None) -> Runs:
            return Runs(store, observer, jobs, machine, scripted_resources(missing=missing))

        self._patch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)
        return machine

    def builds(self, outcome: KtrialError | str) -> None:
        """What comes of building: an error, or the content of a kernel."""

        def add(wanted: BuildRequest, progress: Progress) -> Kernel:
            progress("building: 50 files")
            if isinstance(outcome, KtrialError):
                raise outcome
            return a_kernel(name_of(wanted.source), digest=digest(outcome))

        self._patch.setattr("ktrial.kernels.build.builds.add", add)


def numbers(boot: Boot, run: Run) -> StepResult:
    slow = boot.kernel.name.startswith(SLOW) or boot.kernel.digest == digest("slow")
    return StepResult(step=0, do="run", exit=0, stdout="1100" if slow else "1000")


def here_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command line, with a store and a cache of its own, on a system that can build."""
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    has_what_builds_need(monkeypatch, tmp_path / "host")
    monkeypatch.chdir(tmp_path)
    return Here(monkeypatch, capsys)
