"""What tests of `ktrial bisect` share: a machine that answers as planted, kernels that nobody builds."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine, Said
from tests.support.fake_builds import has_what_builds_need
from tests.support.scripted import ScriptedMachine, a_kernel, scripted_resources

from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Builder
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.config import parse_config
from ktrial.kernels.errors import KernelError
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, Menus, Origin
from ktrial.model.machine import Boot
from ktrial.model.workload import Mode
from ktrial.store.store import Store
from ktrial.target import Run, Step, StepResult, Write

FORK = ("--workload", "fork")
SOURCE = ("--source", "debian:linux-source-6.1")
OPTIONS = [f"LEAF_{at}" for at in range(64)]


@dataclass
class FakeSource:
    """Configures as an obedient Kconfig does, and builds nothing; counts what it would have built."""

    slow: Callable[[set[str]], float]
    """Options that are on, and patches that are applied → instructions."""
    menus: Menus = field(default_factory=Menus)
    refuse: Callable[[set[str]], KernelError | None] = lambda _features: None
    built: list[str] = field(default_factory=list)
    kernels: dict[str, float] = field(default_factory=dict)

    def features(self, wanted: Build) -> set[str]:
        given = Path(wanted.config)
        config = parse_config(given.read_text()) if given.is_absolute() else {}
        on = {
            name.removeprefix("CONFIG_")
            for name, value in {**config, **wanted.options}.items()
            if value != "n"
        }
        on |= {Path(patch.path).name for patch in wanted.patches}
        if error := self.refuse(on):
            raise error
        return on

    def configured(self, wanted: Build, _progress: Progress) -> Mapping[str, str]:
        return {f"CONFIG_{name}": "y" for name in self.features(wanted)}

    def build(self, wanted: Build, progress: Progress) -> Kernel:
        features = self.features(wanted)
        name = f"build:{digest(sorted(features))[:12]}"
        if name not in self.kernels:
            progress("building: 10 files")
            self.built.append(name)
        self.kernels[name] = self.slow(features)
        origin = Origin(provider="build", source=wanted.source, build=wanted)
        return a_kernel(name, release="6.1.0", origin=origin)

    def builder(self) -> Builder:
        return Builder(
            build=self.build,
            configured=self.configured,
            cached=lambda _build: None,
            menus=lambda _build, _progress: self.menus,
        )


class Machine(ScriptedMachine):
    """Remembers what was written before a program runs."""

    def __init__(
        self, number: Callable[[Boot, dict[str, str]], float], mode: Mode = Mode.EXACT_CLOCK
    ) -> None:
        super().__init__(mode=mode)
        self._number = number

    def _one(self, boot: Boot, step: Step) -> StepResult:
        if isinstance(step, Write):
            self.settings[step.path] = step.value
            return super()._one(boot, step)
        assert isinstance(step, Run)
        return StepResult(step=0, do="run", exit=0, stdout=str(self._number(boot, self.settings)))

    def perform(self, boot: Boot, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        self.settings: dict[str, str] = {}
        return super().perform(boot, steps)


class Here:
    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self.run = CommandLine(patch, captured)
        self._patch = patch
        self.machine = Machine(lambda boot, settings: 1000.0)

    def measured_on(
        self, number: Callable[[Boot, dict[str, str]], float], mode: Mode = Mode.EXACT_CLOCK
    ) -> None:
        machine = self.machine = Machine(number, mode)

        def runs(store: Store, observer: Observer, _jobs: int | None) -> Runs:
            # One after another: the settings are the machine's.
            return Runs(store, observer, 1, machine, scripted_resources())

        self._patch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)

    def source(self, source: FakeSource) -> FakeSource:
        self.measured_on(lambda boot, _settings: source.kernels[boot.kernel.name])
        self._patch.setattr("ktrial.experiment.resources.default_builder", source.builder)
        return source


def result_of(said: Said) -> dict[str, object]:
    assert said.status == 0, said.messages
    result = json.loads(said.output)
    assert isinstance(result, dict)
    return result


def causes_of(result: Mapping[str, object]) -> list[set[str]]:
    causes = result["causes"]
    assert isinstance(causes, list)
    return [{item["name"] for member in cause["members"] for item in member["items"]} for cause in causes]


def all_on(*more: str) -> str:
    return "+".join(["guest", *(f"{name}=y" for name in (*OPTIONS, *more))])


def a_series(tmp_path: Path, count: int) -> Path:
    directory = tmp_path / "patches"
    directory.mkdir()
    for at in range(count):
        text = f"Subject: change {at}\n--- a/f{at}.c\n+++ b/f{at}.c\n@@ -1 +1 @@\n-a\n+b{at}\n"
        (directory / f"{at:04}.patch").write_text(text)
    return directory


def here_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command line, with a store and a cache of its own."""
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    has_what_builds_need(monkeypatch, tmp_path / "host")
    monkeypatch.chdir(tmp_path)
    return Here(monkeypatch, capsys)
