"""`ktrial bisect` from the command line: a machine that answers as planted, kernels that nobody builds."""

import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine, Said
from tests.support.scripted import ScriptedMachine, a_kernel, sources

from ktrial.bisect.config_options import Builder
from ktrial.errors import Interrupted
from ktrial.experiment.observer import Observer
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.build.errors import BuildFailed, OptionNotTaken, PatchNotApplied
from ktrial.kernels.build.time_estimate import remember_build
from ktrial.kernels.errors import KernelError
from ktrial.kernels.kconfig.config import parse_config
from ktrial.kernels.providers.debian import Available
from ktrial.model.base import digest
from ktrial.model.boot import Boot
from ktrial.model.kconfig import MenuOption, Menus
from ktrial.model.kernel import Build, Kernel, Origin
from ktrial.model.workload import Mode
from ktrial.store import Store
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
        return Builder(self.build, self.configured, lambda _wanted, _progress: self.menus)


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
            return Runs(store, observer, 1, machine, sources())

        self._patch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)

    def source(self, source: FakeSource) -> FakeSource:
        self.measured_on(lambda boot, _settings: source.kernels[boot.kernel.name])
        self._patch.setattr("ktrial.cli.commands.bisect_builds._builder", source.builder)
        return source


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return Here(monkeypatch, capsys)


def _result(said: Said) -> dict[str, object]:
    assert said.status == 0, said.messages
    found = json.loads(said.output)
    assert isinstance(found, dict)
    return found


def _causes(result: Mapping[str, object]) -> list[set[str]]:
    causes = result["causes"]
    assert isinstance(causes, list)
    return [{item["name"] for member in cause["members"] for item in member["items"]} for cause in causes]


def _all_on(*more: str) -> str:
    return "+".join(["guest", *(f"{name}=y" for name in (*OPTIONS, *more))])


def test_the_option_that_matters_is_found_among_64_within_the_bound(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1100 if "SLUB_DEBUG_ON" in on else 1000))
    said = here.run("bisect", "config", "guest", _all_on("SLUB_DEBUG_ON"), *SOURCE, *FORK, "--json")
    result = _result(said)
    assert _causes(result) == [{"SLUB_DEBUG_ON"}]
    assert (result["found"], result["differing"]) == (True, 65)
    assert result["built"] == len(source.built) <= 2 * math.log2(65) + 6
    assert result["builds"] == len(source.built)


def test_a_pair_that_only_matters_together_is_told_with_what_each_does_alone(here: Here) -> None:
    here.source(FakeSource(lambda on: 1100 if {"LEAF_7", "LEAF_50"} <= on else 1000))
    said = here.run("bisect", "config", "guest", _all_on(), *SOURCE, *FORK)
    assert said.status == 0
    assert "Cause 1 (only together):" in said.output
    assert said.output.count("alone it does 0.0 % of it") == 2
    assert said.output.splitlines()[-1] == "LEAF_50 n → y with LEAF_7 n → y explain the difference."


def test_two_options_that_each_carry_a_part_are_told_with_their_shares(here: Here) -> None:
    here.source(FakeSource(lambda on: 1000 * 1.06 ** ("LEAF_7" in on) * 1.04 ** ("LEAF_50" in on)))
    result = _result(here.run("bisect", "config", "guest", _all_on(), *SOURCE, *FORK, "--json"))
    assert sorted(map(sorted, _causes(result))) == [["LEAF_50"], ["LEAF_7"]]
    causes = result["causes"]
    assert isinstance(causes, list)
    shares = [next(iter(cause["shares"].values())) for cause in causes]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(math.log(1.06) / math.log(1.06 * 1.04))


def test_what_an_option_needs_is_told_with_it(here: Here) -> None:
    menus = Menus(
        options={
            **{f"CONFIG_{name}": MenuOption(kind="bool", prompt=name) for name in OPTIONS},
            "CONFIG_LEAF_9": MenuOption(kind="bool", prompt="Nine", menu=("Drivers",), depends="LEAF_40"),
        }
    )

    def refuse(on: set[str]) -> KernelError | None:
        facts = {
            "name": "x",
            "directory": "x",
            "option": "LEAF_9",
            "wanted": "y",
            "problem": "n",
            "advice": "",
        }
        return OptionNotTaken(**facts) if "LEAF_9" in on and "LEAF_40" not in on else None

    here.source(FakeSource(lambda on: 1100 if "LEAF_9" in on else 1000, menus, refuse))
    said = here.run("bisect", "config", "guest", _all_on(), *SOURCE, *FORK)
    assert said.status == 0
    assert "  LEAF_9 n → y (Drivers › Nine)" in said.output
    assert "  goes with what it needs: LEAF_40 n → y (LEAF_40); that alone does 0.0 % of it" in said.output
    assert "unresolved" not in said.output


def test_what_was_measured_is_not_measured_again(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1100 if "LEAF_3" in on else 1000))
    arguments = ("bisect", "config", "guest", _all_on(), *SOURCE, *FORK)
    first = here.run(*arguments)
    programs = len(here.machine.programs)
    again = here.run(*arguments)
    assert len(here.machine.programs) == programs
    assert again.output.splitlines()[-1] == first.output.splitlines()[-1]
    assert "its trials are in the store" in again.messages
    assert len(source.built) == len(set(source.built))


def test_the_study_that_confirms_can_be_shown(here: Here) -> None:
    here.source(FakeSource(lambda on: 1100 if "LEAF_3" in on else 1000))
    said = here.run("bisect", "config", "guest", _all_on(), *SOURCE, *FORK)
    assert "ktrial show bisect-config" in said.output
    shown = here.run("show", "bisect-config")
    assert shown.status == 0
    assert "+10.00" in shown.output


def test_a_dry_run_measures_nothing_and_says_what_it_would_cost(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1000))
    arguments = ("bisect", "config", "guest", _all_on(), *SOURCE, *FORK, "--dry-run")
    said = here.run(*arguments)
    assert said.status == 0
    assert "64 options differ" in said.output
    assert "at most 10 kernels built where one is the cause" in said.output
    assert not source.built
    plan = json.loads(here.run(*arguments, "--json").output)
    assert (plan["groups"], plan["candidates_for_one"], plan["trials_each"]) == (64, 10, 3)


def test_the_plan_says_how_long_past_builds_took(here: Here, tmp_path: Path) -> None:
    here.source(FakeSource(lambda on: 1000))
    arguments = ("bisect", "config", "guest", _all_on(), *SOURCE, *FORK, "--dry-run")
    assert json.loads(here.run(*arguments, "--json").output)["build_seconds"] is None
    for seconds in (61.0, 63.0):
        remember_build(seconds, anew=False)
    assert json.loads(here.run(*arguments, "--json").output)["build_seconds"] == 62.0
    assert "a build takes about 1 min 2 s, by past ones" in here.run(*arguments).output


def test_a_knob_that_is_named_by_its_path_is_for_the_kernel_to_judge(here: Here) -> None:
    knob = ("--knob", "/proc/sys/vm/swapiness=1..2")
    said = here.run("bisect", "knobs", "--kernel", "debian:6.1", *knob, "--dry-run", *FORK)
    assert said.status == 0
    assert "1 knob differs" in said.output


def test_patches_are_built_with_the_flags_that_are_given(here: Here, tmp_path: Path) -> None:
    flags: list[dict[str, str]] = []

    class Flagged(FakeSource):
        def build(self, wanted: Build, progress: Progress) -> Kernel:
            flags.append(wanted.make)
            return super().build(wanted, progress)

    here.source(Flagged(lambda on: 900 if "0001.patch" in on else 1000))
    series = _series(tmp_path, 2)
    said = here.run("bisect", "patches", "--patches", series, "--make", "KCFLAGS=-O3", *SOURCE, *FORK)
    assert said.status == 0
    assert flags
    assert all(one == {"KCFLAGS": "-O3"} for one in flags)


def test_fuzz_is_allowed_where_patches_are_and_the_source_stays_the_build_that_it_is(
    here: Here, tmp_path: Path
) -> None:
    allowed: set[tuple[bool, int]] = set()

    class Fuzzy(FakeSource):
        def build(self, wanted: Build, progress: Progress) -> Kernel:
            allowed.add((bool(wanted.patches), wanted.fuzz))
            return super().build(wanted, progress)

    here.source(Fuzzy(lambda on: 900 if "0001.patch" in on else 1000))
    series = _series(tmp_path, 2)
    said = here.run("bisect", "patches", "--patches", series, "--fuzz", "2", *SOURCE, *FORK)
    assert said.status == 0
    assert allowed == {(False, 0), (True, 2)}
    assert here.run("bisect", "patches", "--patches", series, "--fuzz", "3", *SOURCE, *FORK).status == 2


def test_where_nothing_differs_measurably_that_is_the_answer(here: Here) -> None:
    source = here.source(FakeSource(lambda on: 1000))
    said = here.run("bisect", "config", "guest", _all_on(), *SOURCE, *FORK)
    assert said.status == 0
    assert "There is nothing to explain: fork instructions differ by less than 1 %." in said.output
    assert len(source.built) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("config", "guest", "guest", *SOURCE, *FORK), "do not differ in any option"),
        (("config", "guest", "guest+LEAF_1", *SOURCE, *FORK), "there is no '='"),
        (("config", "build:no-such", "guest", *FORK), "There is no kernel built by ktrial"),
        (("config", "guest", "guest+LEAF_1=y", *SOURCE), "--workload: which workload, or which command?"),
        (("config", "guest", "guest+LEAF_1=y", *SOURCE, *FORK, "--margin", "2"), "--margin"),
        (("config", "guest", "guest+LEAF_1=y", *SOURCE, *FORK, "--metric", "joy"), "measures 'joy'"),
        (("config", "guest", "guest+X=y", *SOURCE, *FORK, "--machine", "host"), "boots no other kernel"),
        (("config", "guest", "guest+X=y", *SOURCE, *FORK, "--machine", "moon"), "moon"),
        (("knobs", "--kernel", "debian:6.1", *FORK), "which knobs?"),
        (("knobs", "--knob", "vm.swappiness=60..1", *FORK), "which kernel?"),
        (("knobs", "--kernel", "debian:6.1", "--knob", "vm.swappiness=60", *FORK), "no two values"),
        (("knobs", "--kernel", "debian:6.1", "--knob", "a.b=1..1", *FORK), "do not differ in any knob"),
        (
            ("knobs", "--kernel", "debian:6.1", "--knob", "vm.swapiness=1..2", "--dry-run", *FORK),
            "There is no knob vm.swapiness (did you mean vm.swappiness",
        ),
        (
            ("knobs", "--kernel", "debian:6.1", "--knob", "vm.swapiness=1..2", *FORK),
            "give its path: /proc/sys/vm/swapiness",
        ),
        (
            ("knobs", "--kernel", "debian:6.1", "--knob", "swapiness=1..2", *FORK),
            "There is no knob swapiness",
        ),
        (("knobs", "--kernel", "debian:6.1", "--knob", "/etc/motd=1..2", *FORK), "below /proc/sys or /sys"),
        (
            ("patches", "--patches", "series", "--make", "KCFLAG=-O3", *SOURCE, *FORK),
            "The make variable KCFLAG=-O3 cannot be set",
        ),
        (("knobs", "--kernel", "debian:6.1", "--from", "a", *FORK), "give both, or none"),
        (("knobs", "--kernel", "debian:6.1", "--from", "a", "--to", "b", *FORK), "The file a cannot be used"),
        (("patches", "--patches", "nowhere", *SOURCE, *FORK), "The series nowhere cannot be used"),
        (("versions", "6.1", *FORK), "'6.1' is no range of releases"),
    ],
)
def test_bad_input_is_one_message_and_no_trial(here: Here, arguments: tuple[str, ...], message: str) -> None:
    here.source(FakeSource(lambda on: 1000))
    said = here.run("bisect", *arguments)
    assert said.status == 2
    assert message in said.messages


def test_an_end_that_does_not_build_ends_the_search(here: Here) -> None:
    def refuse(on: set[str]) -> KernelError | None:
        failed = BuildFailed(name="x", directory="/x", log="/x.log", problem="a.c:1: error: oh")
        return failed if "LEAF_1" in on else None

    here.source(FakeSource(lambda on: 1000, refuse=refuse))
    said = here.run("bisect", "config", "guest", "guest+LEAF_1=y", *SOURCE, *FORK)
    assert said.status == 1
    assert "a.c:1: error: oh" in said.messages


def _series(tmp_path: Path, count: int) -> Path:
    directory = tmp_path / "patches"
    directory.mkdir()
    for at in range(count):
        text = f"Subject: change {at}\n--- a/f{at}.c\n+++ b/f{at}.c\n@@ -1 +1 @@\n-a\n+b{at}\n"
        (directory / f"{at:04}.patch").write_text(text)
    return directory


def test_the_patch_that_matters_is_found_in_a_series(here: Here, tmp_path: Path) -> None:
    source = here.source(FakeSource(lambda on: 900 if "0011.patch" in on else 1000))
    said = here.run("bisect", "patches", "--patches", _series(tmp_path, 16), *SOURCE, *FORK)
    assert said.status == 0
    assert "  0011.patch (change 11)" in said.output
    assert "candidate 3: the first 8 of 16 patches" in said.messages
    assert len(source.built) <= 4 + 4


def test_a_patch_that_does_not_apply_alone_is_grouped_with_what_it_needs(here: Here, tmp_path: Path) -> None:
    directory = _series(tmp_path, 8)
    shared = (directory / "0002.patch").read_text()
    (directory / "0005.patch").write_text(shared.replace("change 2", "change 5"))

    def refuse(on: set[str]) -> KernelError | None:
        facts = {"name": "x", "directory": "x", "path": "0005.patch", "problem": "hunk 1 fails", "advice": ""}
        return PatchNotApplied(**facts) if "0005.patch" in on and "0002.patch" not in on else None

    here.source(FakeSource(lambda on: 900 if "0005.patch" in on else 1000, refuse=refuse))
    said = here.run("bisect", "patches", "--patches", directory, *SOURCE, *FORK)
    assert "  0005.patch (change 5)" in said.output
    assert "goes with what it needs: 0002.patch (change 2); that alone does 0.0 % of it" in said.output


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> None:
    known = tuple(
        Available(f"debian:6.{at}.0-cloud-amd64", f"6.{at}.0-cloud-amd64", f"6.{at}.0-1", "sid")
        for at in range(20)
    )
    monkeypatch.setattr(
        "ktrial.kernels.providers.debian_releases.releases", lambda _flavour, _progress: known
    )


@pytest.mark.usefixtures("releases")
def test_releases_end_with_two_neighbours_and_their_packages(
    here: Here,
) -> None:
    def number(boot: Boot, _settings: dict[str, str]) -> float:
        return 1000 if int(boot.kernel.name.split(".")[1]) < 13 else 1080

    here.measured_on(number)
    said = here.run("bisect", "versions", "6.0..6.19", *FORK)
    assert said.status == 0
    assert "follows debian:6.12.0-cloud-amd64" in said.output
    assert said.output.splitlines()[-1] == (
        "The numbers change between debian:6.12.0-cloud-amd64 and debian:6.13.0-cloud-amd64."
    )
    assert len({boot.kernel.name for boot, _ in here.machine.programs}) <= math.ceil(math.log2(20)) + 2


def _minor(boot: Boot) -> int:
    return int(boot.kernel.name.split(".")[1])


@pytest.mark.usefixtures("releases")
def test_the_plan_for_releases_says_what_more_than_one_step_costs(here: Here) -> None:
    said = here.run("bisect", "versions", "6.0..6.19", *FORK, "--dry-run")
    assert "at most 7 candidates measured where the numbers change in one place" in " ".join(
        said.output.split()
    )
    assert "and about 5 more for each further place; all 20 at the very most" in " ".join(said.output.split())
    here.measured_on(lambda boot, _settings: 1000 * 1.1 ** ((_minor(boot) >= 4) + (_minor(boot) >= 15)))
    assert here.run("bisect", "versions", "6.0..6.19", *FORK).status == 0
    assert len({boot.kernel.name for boot, _ in here.machine.programs}) <= 7 + 5


@pytest.mark.usefixtures("releases")
def test_an_interrupted_search_of_releases_tells_what_it_knows(here: Here) -> None:
    asked: set[int] = set()

    def number(boot: Boot, _settings: dict[str, str]) -> float:
        asked.add(_minor(boot))
        if len(asked) == 9:
            raise KeyboardInterrupt
        return 1000 * 1.1 ** ((_minor(boot) >= 4) + (_minor(boot) >= 15))

    here.measured_on(number)
    said = here.run("bisect", "versions", "6.0..6.19", *FORK)
    assert said.status == 130
    told = " ".join(said.output.split())
    assert "between debian:6.3.0-cloud-amd64 and debian:6.4.0-cloud-amd64" in told or (
        "between debian:6.14.0-cloud-amd64 and debian:6.15.0-cloud-amd64" in told
    )
    assert "it changes somewhere between" in told
    assert "+10.0" in told
    assert "it was interrupted" in told


def test_of_ten_knobs_two_that_matter_together_are_found(here: Here) -> None:
    def number(_boot: Boot, settings: dict[str, str]) -> float:
        both = settings["/proc/sys/vm/swappiness"] == "1" and settings["/proc/sys/vm/dirty_ratio"] == "5"
        return 1200 if both else 1000

    here.measured_on(number)
    knobs = [f"/proc/sys/net/core/k{at}=1..2" for at in range(8)] + [
        "vm.swappiness=60..1",
        "vm.dirty_ratio=20..5",
    ]
    arguments = [part for knob in knobs for part in ("--knob", knob)]
    said = here.run("bisect", "knobs", "--kernel", "debian:6.1", *arguments, *FORK)
    assert said.status == 0
    assert said.output.splitlines()[-1] == (
        "vm.swappiness 60 → 1 with vm.dirty_ratio 20 → 5 explain the difference."
    )


def test_knobs_from_two_files(here: Here, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("# before\nvm.swappiness = 60\nvm/dirty_ratio = 20\nkernel.same=1\n")
    (tmp_path / "b").write_text("vm.swappiness=1\n; after\nvm.dirty_ratio=5\nkernel.same=1\n")
    here.measured_on(lambda _boot, settings: 1200 if settings["/proc/sys/vm/swappiness"] == "1" else 1000)
    result = _result(
        here.run("bisect", "knobs", "--kernel", "debian:6.1", "--from", "a", "--to", "b", *FORK, "--json")
    )
    assert (_causes(result), result["differing"]) == ([{"vm.swappiness"}], 2)
    (tmp_path / "b").write_text("vm.swappiness=1\n")
    said = here.run("bisect", "knobs", "--kernel", "debian:6.1", "--from", "a", "--to", "b", *FORK)
    assert (said.status, "it has no value for kernel.same" in said.messages) == (2, True)


def test_in_real_time_each_answer_is_a_test_and_the_error_is_told(here: Here) -> None:
    noise = random.Random(1)

    def number(_boot: Boot, settings: dict[str, str]) -> float:
        slow = 1.2 if settings["/proc/sys/vm/swappiness"] == "1" else 1.0
        return 1000 * slow * math.exp(noise.gauss(0, 0.01))

    here.measured_on(number, Mode.TIMED)
    knobs = [f"/proc/sys/net/core/k{at}=1..2" for at in range(3)] + ["vm.swappiness=60..1"]
    arguments = [part for knob in knobs for part in ("--knob", knob)]
    command = ("bisect", "knobs", "--kernel", "debian:6.1", *arguments, *FORK, "--machine", "kvm")
    said = here.run(*command)
    assert said.status == 0, said.messages
    assert said.output.splitlines()[-1] == "vm.swappiness 60 → 1 explains the difference."
    assert "any decision of this search is wrong is at most 5 %" in said.output
    assert "is decided with probability" in said.output
    programs = len(here.machine.programs)
    again = here.run(*command)
    assert again.status == 0, again.messages
    assert again.output.splitlines()[-1] == said.output.splitlines()[-1]
    assert len(here.machine.programs) == programs, "what was measured is not measured again"


@pytest.mark.parametrize(
    "ending",
    [KeyboardInterrupt(), Interrupted(what="0 of 1 trials are stored", resume="")],
    ids=["while it is built", "while it is measured"],
)
def test_an_interrupted_candidate_says_how_to_go_on(here: Here, ending: BaseException) -> None:
    def refuse(on: set[str]) -> KernelError | None:
        if "LEAF_1" in on and "LEAF_63" not in on:
            raise ending
        return None

    here.source(FakeSource(lambda on: 1100 if "LEAF_3" in on else 1000, refuse=refuse))
    said = here.run("bisect", "config", "guest", _all_on(), *SOURCE, *FORK)
    assert said.status == 130
    assert "run the same command again" in said.messages
    assert "the candidates that were built and measured are kept" in said.messages
    assert "0 of 1" not in said.messages, "that is of one candidate"


def test_an_interrupted_search_of_options_tells_the_causes_that_it_has_found(here: Here) -> None:
    built: list[int] = []

    def refuse(_on: set[str]) -> KernelError | None:
        built.append(1)
        if len(built) > 16:
            raise KeyboardInterrupt
        return None

    here.source(
        FakeSource(lambda on: 1000 * 1.06 ** ("LEAF_7" in on) * 1.04 ** ("LEAF_50" in on), refuse=refuse)
    )
    said = here.run("bisect", "config", "guest", _all_on(), *SOURCE, *FORK)
    assert said.status == 130
    assert "Cause 1" in said.output
    assert "it was interrupted" in " ".join(said.output.split())
