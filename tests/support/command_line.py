"""Runs the command line inside the test, with a scripted machine where trials are run."""

import sys
from dataclasses import dataclass
from functools import partial

import pytest
from tests.support.fake_builds import FakeBuilder, requested
from tests.support.scripted import ScriptedMachine, sources

from ktrial.cli.main import main
from ktrial.experiment import session
from ktrial.kernels.errors import BadKernelName
from ktrial.model.references import KernelRef
from ktrial.model.workload import Direction, Metric, Parameter, WorkloadDescription, WorkloadUse
from ktrial.studyfile.references import Registry
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
    provider, _, wanted = name.partition(":")
    if provider not in {"debian", "path", "host"}:
        raise BadKernelName(name=name, problem=f"there is no provider '{provider}'", allowed="debian:VERSION")
    canonical = f"{name}:cloud" if provider == "debian" and ":" not in wanted else name
    release = wanted if provider == "debian" else ""
    return KernelRef(asked=name, name=canonical, provider=provider, wanted=wanted, release=release)


def check(use: WorkloadUse) -> None:
    if use.command and use.command.argv[0] == "/bin/sl":
        raise WorkloadError(workload=use.name, problem="no trains")


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
        patch.setattr("ktrial.cli.studies.registry", lambda: KNOWN)

    def machine(self, machine: ScriptedMachine, builds: FakeBuilder | None = None) -> None:
        """From now on trials run on this machine, and kernels are built by `builds`."""
        own = sources(builder=builds.builder) if builds else sources()
        run = partial(session.run, machine=machine, sources=own)
        self._patch.setattr("ktrial.cli.running.study.run", run)

    def __call__(self, *arguments: object) -> Said:
        self._patch.setattr(sys, "argv", ["ktrial", *map(str, arguments)])
        self._captured.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._captured.readouterr()
        assert isinstance(ended.value.code, int)
        assert "Traceback" not in said.err
        return Said(ended.value.code, said.out, said.err)
