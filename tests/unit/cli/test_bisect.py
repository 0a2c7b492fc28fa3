"""`ktrial bisect` from the command line: a machine that answers as planted, kernels that nobody builds."""

import json
import math
import random
from pathlib import Path

import pytest
from tests.support.bisecting import (
    FORK,
    OPTIONS,
    SOURCE,
    FakeSource,
    Here,
    a_series,
    all_on,
    causes_of,
    here_in,
    result_of,
)
from tests.support.scripted import a_kernel

from ktrial.errors import Interrupted
from ktrial.kernels import Progress
from ktrial.kernels.build.make import remember_build
from ktrial.kernels.errors import BuildFailed, KernelError, OptionNotTaken, PatchNotApplied
from ktrial.kernels.providers.debian import Available
from ktrial.model.kernel import Build, Kernel, MenuOption, Menus
from ktrial.model.machine import Boot
from ktrial.model.workload import Mode

CONFIG = ("bisect", "config", "guest", all_on(), *SOURCE, *FORK)
KNOBS = ("bisect", "knobs", "--kernel", "debian:6.1", *FORK)
VERSIONS = ("bisect", "versions", "6.0..6.19", *FORK)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


def slow_with(*options: str) -> FakeSource:
    """A tenth more instructions where all of these are on."""
    return FakeSource(lambda on: 1100 if {*options} <= on else 1000)


def test_debians_kernels_are_searched_by_their_configurations_built_here(
    cli: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own builds cannot be repeated."""
    cli.source(slow_with("SLUB_DEBUG_ON"))
    kernels = {}
    for name, options in {
        "debian:6.1:cloud": ["HZ"],
        "debian:6.1:rt": ["HZ", "SLUB_DEBUG_ON", "NLS"],
    }.items():
        config = tmp_path / name.replace(":", "-")
        config.write_text("".join(f"CONFIG_{option}=y\n" for option in options))
        kernels[name] = a_kernel(name, release="6.1.0-9-amd64", config=config)
    monkeypatch.setattr("ktrial.kernels.kernel_registry.get", kernels.__getitem__)
    result = cli.run("bisect", "config", "debian:6.1:cloud", "debian:6.1:rt", *FORK, "--json")
    assert causes_of(result_of(result)) == [{"SLUB_DEBUG_ON"}]
    note = " ".join(result.messages.split())
    assert "note: debian:6.1:cloud and debian:6.1:rt are Debian's, whose builds cannot be repeated" in note
    assert "by this system's compiler and without Debian's signatures" in note


def test_the_option_that_matters_is_found_among_64_within_the_bound(cli: Here) -> None:
    source = cli.source(slow_with("SLUB_DEBUG_ON"))
    command = ("bisect", "config", "guest", all_on("SLUB_DEBUG_ON"), *SOURCE, *FORK, "--json")
    result = result_of(cli.run(*command))
    assert causes_of(result) == [{"SLUB_DEBUG_ON"}]
    assert (result["found"], result["differing"]) == (True, 65)
    assert result["built"] == result["builds"] == len(source.built) <= 2 * math.log2(65) + 6


def test_a_pair_that_only_matters_together_is_told_with_what_each_does_alone(cli: Here) -> None:
    cli.source(slow_with("LEAF_7", "LEAF_50"))
    result = cli.run(*CONFIG)
    assert result.status == 0
    assert "Cause 1 (only together):" in result.output
    assert result.output.count("alone it does 0.0 % of it") == 2
    assert result.output.splitlines()[-1] == (
        "LEAF_50 n → y with LEAF_7 n → y explain the difference: fork instructions +10.00 %."
    )


def test_two_options_that_each_carry_a_part_are_told_with_their_shares(cli: Here) -> None:
    cli.source(FakeSource(lambda on: 1000 * 1.06 ** ("LEAF_7" in on) * 1.04 ** ("LEAF_50" in on)))
    result = result_of(cli.run(*CONFIG, "--json"))
    assert sorted(map(sorted, causes_of(result))) == [["LEAF_50"], ["LEAF_7"]]
    causes = result["causes"]
    assert isinstance(causes, list)
    shares = [next(iter(cause["shares"].values())) for cause in causes]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(math.log(1.06) / math.log(1.06 * 1.04))


def test_what_an_option_needs_is_told_with_it(cli: Here) -> None:
    menus = Menus(
        options={
            **{f"CONFIG_{name}": MenuOption(kind="bool", prompt=name) for name in OPTIONS},
            "CONFIG_LEAF_9": MenuOption(kind="bool", prompt="Nine", menu=("Drivers",), depends="LEAF_40"),
        }
    )
    place = {"name": "x", "directory": "x"}
    refused = OptionNotTaken(**place, option="LEAF_9", wanted="y", problem="n", advice="")

    def refuse(on: set[str]) -> KernelError | None:
        return refused if "LEAF_9" in on and "LEAF_40" not in on else None

    cli.source(FakeSource(lambda on: 1100 if "LEAF_9" in on else 1000, menus, refuse))
    result = cli.run(*CONFIG)
    assert result.status == 0
    assert "  LEAF_9 n → y (Drivers › Nine)" in result.output
    assert "  goes with what it needs: LEAF_40 n → y (LEAF_40); that alone does 0.0 % of it" in result.output
    assert "unresolved" not in result.output


def test_what_was_measured_is_not_measured_again_and_the_study_that_confirms_can_be_shown(cli: Here) -> None:
    source = cli.source(slow_with("LEAF_3"))
    first = cli.run(*CONFIG)
    programs = len(cli.machine.programs)
    again = cli.run(*CONFIG)
    assert len(cli.machine.programs) == programs
    assert again.output.splitlines()[-1] == first.output.splitlines()[-1]
    assert "its trials are in the store" in again.messages
    assert len(source.built) == len(set(source.built))
    assert "ktrial show bisect-config" in first.output
    assert "+10.00" in cli.run("show", "bisect-config").output


def test_a_dry_run_measures_nothing_and_says_what_it_would_cost(cli: Here) -> None:
    source = cli.source(FakeSource(lambda on: 1000))
    result = cli.run(*CONFIG, "--dry-run")
    assert result.status == 0
    assert "64 options differ" in result.output
    assert "at most 10 kernels built where one is the cause" in result.output
    assert "how long that takes is not known yet on this machine" in result.output
    assert not source.built
    plan = json.loads(cli.run(*CONFIG, "--dry-run", "--json").output)
    assert (plan["groups"], plan["candidates_for_one"], plan["trials_each"]) == (64, 10, 3)
    assert plan["build_seconds"] is None
    for seconds in (61.0, 63.0):
        remember_build(seconds, from_nothing=False)
    assert json.loads(cli.run(*CONFIG, "--dry-run", "--json").output)["build_seconds"] == 62.0
    assert "a build takes about 1 min 2 s, by past ones" in cli.run(*CONFIG, "--dry-run").output


def test_where_nothing_differs_measurably_that_is_the_answer(cli: Here) -> None:
    source = cli.source(FakeSource(lambda on: 1000))
    result = cli.run(*CONFIG)
    assert result.status == 0
    assert "There is nothing to explain: fork instructions differ by less than 1 %." in result.output
    assert len(source.built) == 2


LEAF = ("config", "guest", "guest+LEAF_1=y", *SOURCE)
OF_KNOBS = ("knobs", "--kernel", "debian:6.1", *FORK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("config", "guest", "guest", *SOURCE, *FORK), "do not differ in any option"),
        (("config", "guest", "guest+LEAF_1", *SOURCE, *FORK), "there is no '='"),
        (("config", "build:no-such", "guest", *FORK), "ktrial has built no kernel"),
        (LEAF, "--workload: which workload, or which command?"),
        ((*LEAF, *FORK, "--margin", "2"), "--margin"),
        ((*LEAF, *FORK, "--metric", "joy"), "measures 'joy'"),
        ((*LEAF, *FORK, "--machine", "host"), "boots no other kernel"),
        ((*LEAF, *FORK, "--machine", "moon"), "moon"),
        (OF_KNOBS, "which knobs?"),
        (("knobs", "--knob", "vm.swappiness=60..1", *FORK), "which kernel?"),
        ((*OF_KNOBS, "--knob", "vm.swappiness=60"), "no two values"),
        ((*OF_KNOBS, "--knob", "a.b=1..1"), "do not differ in any knob"),
        (
            (*OF_KNOBS, "--knob", "vm.swapiness=1..2", "--dry-run"),
            "There is no knob vm.swapiness (did you mean vm.swappiness",
        ),
        ((*OF_KNOBS, "--knob", "vm.swapiness=1..2"), "give its path: /proc/sys/vm/swapiness"),
        ((*OF_KNOBS, "--knob", "swapiness=1..2"), "There is no knob swapiness"),
        ((*OF_KNOBS, "--knob", "/etc/motd=1..2"), "below /proc/sys or /sys"),
        ((*OF_KNOBS, "--from", "a"), "give both, or none"),
        ((*OF_KNOBS, "--from", "a", "--to", "b"), "The file a cannot be used"),
        (
            ("patches", "--patches", "series", "--make", "KCFLAG=-O3", *SOURCE, *FORK),
            "The make variable KCFLAG=-O3 cannot be set",
        ),
        (("patches", "--patches", "nowhere", *SOURCE, *FORK), "The series nowhere cannot be used"),
        (("patches", "--patches", "series", "--fuzz", "3", *SOURCE, *FORK), "--fuzz"),
        (("versions", "6.1", *FORK), "'6.1' is not a range of releases"),
    ],
)
def test_bad_input_is_one_message_and_no_trial(cli: Here, arguments: tuple[str, ...], message: str) -> None:
    cli.source(FakeSource(lambda on: 1000))
    result = cli.run("bisect", *arguments)
    assert result.status == 2
    assert message in result.messages


def test_an_end_that_does_not_build_ends_the_search(cli: Here) -> None:
    failed = BuildFailed(directory="/x", log="/x.log", problem="a.c:1: error: oh")
    cli.source(FakeSource(lambda on: 1000, refuse=lambda on: failed if "LEAF_1" in on else None))
    result = cli.run("bisect", *LEAF, *FORK)
    assert (result.status, "a.c:1: error: oh" in result.messages) == (1, True)


@pytest.mark.parametrize(
    "ending",
    [KeyboardInterrupt(), Interrupted("0 of 1 trials are stored")],
    ids=["while it is built", "while it is measured"],
)
def test_an_interrupted_candidate_says_how_to_go_on(cli: Here, ending: BaseException) -> None:
    def refuse(on: set[str]) -> KernelError | None:
        if "LEAF_1" in on and "LEAF_63" not in on:
            raise ending
        return None

    cli.source(FakeSource(lambda on: 1100 if "LEAF_3" in on else 1000, refuse=refuse))
    result = cli.run(*CONFIG)
    assert result.status == 130
    assert "run the same command again" in result.messages
    assert "the candidates that were built and measured are kept" in result.messages
    assert "0 of 1" not in result.messages, "that is of one candidate"


def test_an_interrupted_search_of_options_tells_the_causes_that_it_has_found(cli: Here) -> None:
    builds: list[int] = []

    def refuse(_on: set[str]) -> KernelError | None:
        builds.append(1)
        if len(builds) > 16:
            raise KeyboardInterrupt
        return None

    cli.source(
        FakeSource(lambda on: 1000 * 1.06 ** ("LEAF_7" in on) * 1.04 ** ("LEAF_50" in on), refuse=refuse)
    )
    result = cli.run(*CONFIG)
    assert result.status == 130
    assert "Cause 1" in result.output
    assert "it was interrupted" in " ".join(result.output.split())


class RecordingSource(FakeSource):
    """Remembers flags and fuzz of each build; a kernel is faster with one patch."""

    def __init__(self, patch: str) -> None:
        super().__init__(lambda on: 900 if patch in on else 1000)
        self.requested: list[Build] = []

    def build(self, wanted: Build, progress: Progress) -> Kernel:
        self.requested.append(wanted)
        return super().build(wanted, progress)


def test_patches_are_built_with_the_flags_and_the_fuzz_that_are_given(cli: Here, tmp_path: Path) -> None:
    source = RecordingSource("0001.patch")
    cli.source(source)
    options = ("--make", "KCFLAGS=-O3", "--fuzz", "2")
    result = cli.run("bisect", "patches", "--patches", a_series(tmp_path, 2), *options, *SOURCE, *FORK)
    assert result.status == 0
    assert {tuple(build.make.items()) for build in source.requested} == {(("KCFLAGS", "-O3"),)}
    fuzz = {(bool(build.patches), build.fuzz) for build in source.requested}
    assert fuzz == {(False, 0), (True, 2)}, "the source stays the build that it is"


def test_the_patch_that_matters_is_found_in_a_series(cli: Here, tmp_path: Path) -> None:
    source = cli.source(FakeSource(lambda on: 900 if "0011.patch" in on else 1000))
    result = cli.run("bisect", "patches", "--patches", a_series(tmp_path, 16), *SOURCE, *FORK)
    assert result.status == 0
    assert "  0011.patch (change 11)" in result.output
    assert "candidate 3: the first 8 of 16 patches" in result.messages
    assert len(source.built) <= 4 + 4


def test_a_patch_that_does_not_apply_alone_is_grouped_with_what_it_needs(cli: Here, tmp_path: Path) -> None:
    directory = a_series(tmp_path, 8)
    shared = (directory / "0002.patch").read_text()
    (directory / "0005.patch").write_text(shared.replace("change 2", "change 5"))
    refused = PatchNotApplied(directory="x", path="0005.patch", problem="hunk 1 fails", advice="")

    def refuse(on: set[str]) -> KernelError | None:
        return refused if "0005.patch" in on and "0002.patch" not in on else None

    cli.source(FakeSource(lambda on: 900 if "0005.patch" in on else 1000, refuse=refuse))
    result = cli.run("bisect", "patches", "--patches", directory, *SOURCE, *FORK)
    assert "  0005.patch (change 5)" in result.output
    assert "goes with what it needs: 0002.patch (change 2); that alone does 0.0 % of it" in result.output


def by_path(*knobs: str) -> list[str]:
    return [word for knob in knobs for word in ("--knob", knob)]


def unrelated(count: int) -> list[str]:
    return by_path(*(f"/proc/sys/net/core/k{number}=1..2" for number in range(count)))


def test_a_knob_that_is_named_by_its_path_is_for_the_kernel_to_judge(cli: Here) -> None:
    result = cli.run(*KNOBS, *by_path("/proc/sys/vm/swapiness=1..2"), "--dry-run")
    assert (result.status, "1 knob differs" in result.output) == (0, True)


def test_of_ten_knobs_two_that_matter_together_are_found(cli: Here) -> None:
    def number(_boot: Boot, settings: dict[str, str]) -> float:
        both = (
            settings["/proc/sys/vm/stat_interval"] == "1" and settings["/proc/sys/vm/overcommit_ratio"] == "5"
        )
        return 1200 if both else 1000

    cli.measured_on(number)
    result = cli.run(*KNOBS, *unrelated(8), *by_path("vm.stat_interval=60..1", "vm.overcommit_ratio=20..5"))
    assert result.status == 0
    assert result.output.splitlines()[-1] == (
        "vm.stat_interval 60 → 1 with vm.overcommit_ratio 20 → 5 explain the difference: fork instructions "
        "+20.00 %."
    )


def test_knobs_from_two_files(cli: Here, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("# before\nvm.stat_interval = 60\nvm/overcommit_ratio = 20\nkernel.same=1\n")
    (tmp_path / "b").write_text("vm.stat_interval=1\n; after\nvm.overcommit_ratio=5\nkernel.same=1\n")
    cli.measured_on(lambda _boot, settings: 1200 if settings["/proc/sys/vm/stat_interval"] == "1" else 1000)
    result = result_of(cli.run(*KNOBS, "--from", "a", "--to", "b", "--json"))
    assert (causes_of(result), result["differing"]) == ([{"vm.stat_interval"}], 2)
    (tmp_path / "b").write_text("vm.stat_interval=1\n")
    printed = cli.run(*KNOBS, "--from", "a", "--to", "b")
    assert (printed.status, "it has no value for kernel.same" in printed.messages) == (2, True)


@pytest.mark.nightly
def test_in_real_time_each_answer_is_a_test_and_the_error_is_told(cli: Here) -> None:
    noise = random.Random(1)

    def number(_boot: Boot, settings: dict[str, str]) -> float:
        slow = 1.2 if settings["/proc/sys/vm/stat_interval"] == "1" else 1.0
        return 1000 * slow * math.exp(noise.gauss(0, 0.01))

    cli.measured_on(number, Mode.TIMED)
    command = (*KNOBS, *unrelated(3), *by_path("vm.stat_interval=60..1"), "--machine", "kvm")
    result = cli.run(*command)
    assert result.status == 0, result.messages
    assert result.output.splitlines()[-1].startswith("vm.stat_interval 60 → 1 explains the difference")
    assert "any decision of this search is wrong is at most 5 %" in result.output
    assert "is decided with probability" in result.output
    programs = len(cli.machine.programs)
    again = cli.run(*command)
    assert again.status == 0, again.messages
    assert again.output.splitlines()[-1] == result.output.splitlines()[-1]
    assert len(cli.machine.programs) == programs, "what was measured is not measured again"


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"6.{minor}.0" for minor in range(20)]
    available = tuple(
        Available(f"debian:{name}-cloud-amd64", f"{name}-cloud-amd64", f"{name}-1", "sid") for name in names
    )
    monkeypatch.setattr("ktrial.kernels.providers.debian.releases", lambda _flavour, _progress: available)


def minor(boot: Boot) -> int:
    return int(boot.kernel.name.split(".")[1])


def in_two_steps(boot: Boot, _settings: dict[str, str]) -> float:
    return 1000 * 1.1 ** ((minor(boot) >= 4) + (minor(boot) >= 15))


@pytest.mark.usefixtures("releases")
def test_releases_end_with_two_neighbours_and_their_packages(cli: Here) -> None:
    cli.measured_on(lambda boot, _settings: 1000 if minor(boot) < 13 else 1080)
    result = cli.run(*VERSIONS)
    assert result.status == 0
    assert "follows debian:6.12.0-cloud-amd64" in result.output
    assert result.output.splitlines()[-1] == (
        "The numbers change between debian:6.12.0-cloud-amd64 and debian:6.13.0-cloud-amd64."
    )
    assert len({boot.kernel.name for boot, _ in cli.machine.programs}) <= math.ceil(math.log2(20)) + 2


@pytest.mark.usefixtures("releases")
def test_the_plan_for_releases_says_what_more_than_one_step_costs(cli: Here) -> None:
    plan = " ".join(cli.run(*VERSIONS, "--dry-run").output.split())
    assert "at most 7 candidates measured where the numbers change in one place" in plan
    assert "and about 5 more for each further place; all 20 at the very most" in plan
    cli.measured_on(in_two_steps)
    assert cli.run(*VERSIONS).status == 0
    assert len({boot.kernel.name for boot, _ in cli.machine.programs}) <= 7 + 5


@pytest.mark.usefixtures("releases")
def test_an_interrupted_search_of_releases_tells_what_it_knows(cli: Here) -> None:
    measured: set[int] = set()

    def number(boot: Boot, settings: dict[str, str]) -> float:
        measured.add(minor(boot))
        if len(measured) == 9:
            raise KeyboardInterrupt
        return in_two_steps(boot, settings)

    cli.measured_on(number)
    result = cli.run(*VERSIONS)
    assert result.status == 130
    text = " ".join(result.output.split())
    steps = [f"between debian:6.{at}.0-cloud-amd64 and debian:6.{at + 1}.0-cloud-amd64" for at in (3, 14)]
    assert any(step in text for step in steps)
    for part in ("it changes somewhere between", "+10.0", "it was interrupted"):
        assert part in text
