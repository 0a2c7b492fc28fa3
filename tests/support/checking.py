"""What tests of `ktrial check` and `ktrial baseline` share: a machine and kernels that a test chooses."""

from pathlib import Path

import pytest
from tests.support.build_host import has_what_builds_need
from tests.support.command_line import CommandLine
from tests.support.scripted import Answer, ScriptedMachine, a_kernel, sources

from ktrial.errors import KtrialError
from ktrial.experiment.observer import Observer
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.build.builds import name_of
from ktrial.kernels.build.requests import BuildRequest
from ktrial.kernels.errors import KernelError
from ktrial.model.base import digest
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

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
            return Runs(store, observer, jobs, machine, sources(missing=missing))

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
