"""`ktrial check` from the command line: what it prints, and what it ends with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command_line import FORK, GOOD, SLOW, SLOW_FORK, Here, here_in, numbers
from tests.support.fake_builds import a_source_tree, git
from tests.support.scripted import a_kernel, ends

from ktrial.errors import KtrialError
from ktrial.kernels import Progress
from ktrial.kernels.build.builds import name_of
from ktrial.kernels.build.requests import BuildRequest
from ktrial.kernels.errors import (
    BuildFailed,
    BuildToolsMissing,
    CacheFull,
    FetchFailed,
    ImageTruncated,
    KernelError,
    NotAKernel,
    OptionNotTaken,
)
from ktrial.machines.errors import QemuUnusable
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, NewOption, Origin
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.target import Run, StepResult


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_source_tree(tmp_path / "linux")


def test_a_kernel_beyond_the_limit_ends_with_1_and_says_by_how_much(here: Here) -> None:
    said = here.run(*SLOW_FORK, "--max", "+1%")
    assert said.status == 1
    (row,) = [line for line in said.output.splitlines() if line.startswith("fork")]
    assert row.split() == [
        "fork",
        "1,000",
        "1,100",
        "+10.00",
        "%",
        "+10.00",
        "…",
        "+10.00",
        "+1",
        "%",
        "✗",
        "beyond",
    ]
    assert "Beyond the limit: fork +10.00 %; 1 of 1 metric" in said.output


@pytest.mark.parametrize("limits", [("--max", "+12%"), ("--max", "1%", "--max", "fork=+12%")])
def test_a_kernel_within_the_limit_ends_with_0(limits: tuple[str, ...], here: Here) -> None:
    said = here.run(*SLOW_FORK, *limits)
    assert (said.status, "Within the limit" in said.output) == (0, True)


def test_a_faster_kernel_is_within_any_limit(here: Here) -> None:
    assert here.run("check", "--kernel", GOOD, "--against", SLOW, *FORK).status == 0


def test_a_change_inside_the_spread_is_undecided_and_ends_with_125(here: Here) -> None:
    def wide(boot: Boot, run: Run) -> StepResult:
        number = int(run.argv[1])
        moved = 40 * (2 - number if boot.kernel.name.startswith(SLOW) else number)
        return StepResult(step=0, do="run", exit=0, stdout=str(1000 + moved))

    here.machine(wide)
    said = here.run(*SLOW_FORK)
    assert (said.status, "Undecided: fork" in said.output) == (125, True)


def test_what_perturbations_move_alike_in_both_kernels_is_no_spread(here: Here) -> None:
    def wide(boot: Boot, run: Run) -> StepResult:
        return StepResult(step=0, do="run", exit=0, stdout=str(1000 + 40 * int(run.argv[1])))

    here.machine(wide)
    said = here.run(*SLOW_FORK)
    assert (said.status, "Within the limit" in said.output) == (0, True)


BUILD = {"name": "x", "directory": "/x", "log": "/x.log"}

OPTION = {"option": "CONFIG_X", "wanted": "y", "problem": "it became n", "advice": ""}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BuildFailed(**BUILD, problem="a.c:1: error: oh"), 125),
        (OptionNotTaken(name="x", directory="/x", **OPTION), 125),
        (BuildToolsMissing(name="x", directory="/x", tools="flex", packages="flex"), 128),
        (CacheFull(name="x", directory="/x", needed="1 GB", free="0 B"), 128),
    ],
)
def test_a_build_that_fails_is_skipped_and_what_the_host_lacks_stops_a_bisection(
    error: KtrialError, status: int, here: Here, source: Path
) -> None:
    here.builds(error)
    said = here.run("check", "--source", source, "--against", GOOD, *FORK)
    assert said.status == status
    assert error.message in said.messages


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotAKernel(name="x", path="/x", found="text"), 125),
        (ImageTruncated(name="x", path="/x", present=1, promised=2), 125),
        (FetchFailed(name="x", distribution="Debian", problem="no network"), 128),
        (QemuUnusable(machine="exact", program="qemu", problem="crashes"), 128),
    ],
)
def test_a_kernel_that_cannot_be_had_is_skipped_only_where_that_is_its_own_fault(
    error: KernelError, status: int, here: Here
) -> None:
    here.machine(missing={f"{SLOW}:cloud": error})
    assert here.run(*SLOW_FORK).status == status


def test_a_baseline_that_cannot_be_had_is_never_the_tested_kernels_fault(here: Here) -> None:
    here.machine(missing={f"{GOOD}:cloud": NotAKernel(name="x", path="/x", found="text")})
    assert here.run(*SLOW_FORK).status == 128


@pytest.mark.parametrize("broken", [GOOD, SLOW])
def test_a_kernel_that_panics_is_skipped_and_a_baseline_that_does_is_not(broken: str, here: Here) -> None:
    def panics(boot: Boot, run: Run) -> StepResult:
        if boot.kernel.name == f"{broken}:cloud":
            raise ends(Outcome.PANICKED, "Fatal exception", "[1.0] not syncing")
        return numbers(boot, run)

    here.machine(panics)
    said = here.run(*SLOW_FORK)
    if broken == SLOW:
        assert (said.status, "not syncing" in said.output) == (125, True)
    else:
        assert (said.status, "could not be measured" in said.messages) == (128, True)


MISTAKES = (
    ("check", "--kernel", SLOW, *FORK),
    ("check", "--against", GOOD, *FORK),
    ("check", "--kernel", SLOW, "--source", ".", "--against", GOOD, *FORK),
    ("check", "--kernel", SLOW, "--against", GOOD),
    ("check", "--kernel", SLOW, "--against", GOOD, "--workload", "frok"),
    ("check", "--kernel", SLOW, "--against", "nobody", *FORK),
    ("check", "--kernel", "dbian:6.1", "--against", GOOD, *FORK),
    ("check", "--kernel", SLOW, "--against", GOOD, *FORK, "--max", "much"),
    ("check", "--kernel", SLOW, "--against", GOOD, *FORK, "--max", "pipe=1%"),
    ("check", "--kernel", SLOW, "--against", GOOD, *FORK, "--option", "SMP=y"),
    ("check", "--kernel", SLOW, "--against", GOOD, *FORK, "--memory", "1X"),
    ("check", "--source", "nowhere", "--against", GOOD, *FORK),
    ("check", "--source", "--against", GOOD, *FORK, "--option", "SMP"),
    ("check", "--no-such-option"),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda words: " ".join(words[1:]))
def test_a_mistake_ends_with_2(mistake: tuple[str, ...], here: Here) -> None:
    said = here.run(*mistake)
    assert (said.status, "error:" in said.messages) == (2, True)


@pytest.mark.parametrize("mistake", [MISTAKES[4], MISTAKES[-1]], ids=lambda words: words[-1])
def test_a_mistake_in_a_tree_that_is_being_bisected_stops_the_bisection(
    mistake: tuple[str, ...], here: Here, tmp_path: Path
) -> None:
    """git would take 2 for a bad commit, and name one that is innocent."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".git" / "BISECT_START").write_text("master\n")
    assert here.run(*mistake).status == 128


def test_a_bug_of_ktrials_own_is_no_verdict(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.limits", broken)
    assert here.run(*SLOW_FORK).status == 128


def test_a_ktrial_that_cannot_even_start_is_no_verdict(
    here: Here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ktrial.cli.app", None)
    assert here.run(*SLOW_FORK).status == 128
    assert here.run("list").status == 70


def test_what_is_no_kernels_source_is_refused_before_anything_is_booted(here: Here, source: Path) -> None:
    machine = here.machine()
    here.builds("good")
    (source / "Kconfig").unlink()
    (source / "Makefile").rename(source.parent / "Makefile")
    said = here.run("check", "--source", source, "--against", GOOD, *FORK)
    assert (said.status, machine.prepared) == (2, [])
    assert "is not a kernel's source tree: it lacks Makefile" in said.messages


def test_a_kernel_that_does_not_build_is_told_before_the_baseline_boots(here: Here, source: Path) -> None:
    machine = here.machine()
    here.builds(BuildFailed(**BUILD, problem="oh"))
    said = here.run("check", "--source", source, "--against", GOOD, *FORK)
    assert (said.status, machine.prepared) == (125, [])


def test_a_commit_is_a_kernel_and_a_source(here: Here, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Build] = []

    def build(wanted: Build, progress: Progress) -> Kernel:
        built.append(wanted)
        return a_kernel(wanted.name, digest=digest("slow"))

    monkeypatch.setattr("ktrial.kernels.build.builds.build", build)
    git(source, "init", "--quiet")
    said = here.run("check", "--source", "git:linux@v6.1", "--option", "SMP=y", "--against", GOOD, *FORK)
    assert said.status == 1
    assert (built[0].source, built[0].options) == (f"git:{source}@v6.1", {"CONFIG_SMP": "y"})
    assert here.run("check", "--source", "git:linux", "--against", GOOD, *FORK).status == 2


def test_source_alone_means_the_tree_that_ktrial_stands_in(
    here: Here, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.builds("slow")
    monkeypatch.chdir(source)
    said = here.run("check", "--source", "--against", GOOD, *FORK)
    assert said.status == 1
    assert f"source:{source}" in said.output
    assert f"source:{source}: building: 50 files" in said.messages


def test_a_bisection_over_builds_finds_its_way_by_the_exit_codes(here: Here, source: Path) -> None:
    """What git would do: good, skipped and bad commits, told by nothing but the exit codes."""
    here.builds("good")
    assert here.run("baseline", "save", "good", "--source", source, *FORK).status == 0
    bad_ones = []
    for outcome in ("good", BuildFailed(**BUILD, problem="oh"), "also good", "slow"):
        here.builds(outcome)
        bad_ones.append(here.run("check", "--source", source, "--against", "good").status)
    assert bad_ones == [0, 125, 0, 1]


def test_the_result_as_json_has_the_numbers_and_the_decision(here: Here) -> None:
    said = here.run(*SLOW_FORK, "--json")
    data = json.loads(said.output)
    (row,) = data["rows"]
    assert (said.status, data["decision"], data["baseline"]) == (1, "beyond", f"{GOOD}:cloud")
    assert (row["workload"], row["ratio"], row["limit"], row["decision"]) == ("fork", 1.1, 0.01, "beyond")


def test_a_kernel_that_is_the_baselines_own_is_told_as_the_same_image(here: Here, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    said = here.run("check", "--kernel", GOOD, "--against", GOOD, *FORK, "--summary", summary)
    told = "is the same image as the baseline's: there is nothing to compare"
    assert (said.status, f"warning: {GOOD}:cloud {told}" in said.output) == (0, True)
    assert told in summary.read_text()
    as_json = json.loads(here.run("check", "--kernel", GOOD, "--against", GOOD, *FORK, "--json").output)
    assert [one["kind"] for one in as_json["warnings"]] == ["same-image"]
    assert "same image" not in here.run(*SLOW_FORK).output


def test_a_limit_that_is_raised_is_told_with_what_was_asked(here: Here, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    small = ("check", "--kernel", GOOD, "--against", GOOD, *FORK, "--max", "fork=+0.001%")
    said = here.run(*small, "--summary", summary)
    told = "a limit below +0.3 % is raised to that: +0.001 % for fork"
    assert (said.status, told in said.output.replace("\u00a0", " ")) == (0, True)
    assert "is raised to that" in summary.read_text()
    kinds = [one["kind"] for one in json.loads(here.run(*small, "--json").output)["warnings"]]
    assert kinds == ["same-image", "limit-raised"]
    assert "raised" not in here.run(*small[:-1], "+0.3%").output


def test_options_that_a_checked_kernels_patches_bring_are_told(
    here: Here, monkeypatch: pytest.MonkeyPatch, source: Path
) -> None:
    origin = Origin(
        provider="source", source=str(source), new_options=(NewOption(option="CONFIG_NEW", value="n"),)
    )

    def add(wanted: BuildRequest, progress: Progress) -> Kernel:
        return a_kernel(name_of(wanted.source)).model_copy(update={"origin": origin})

    monkeypatch.setattr("ktrial.kernels.build.builds.add", add)
    said = here.run("check", "--source", source, "--against", GOOD, *FORK)
    assert "options that its patches bring: NEW=n" in " ".join(said.output.split())


def test_the_summary_is_appended_to_what_other_steps_wrote(here: Here, tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("### Another step\n")
    here.run(*SLOW_FORK, "--summary", path)
    text = path.read_text()
    assert text.startswith("### Another step\n### ktrial check: ✗ beyond\n")
    assert "| `fork` | ✗ beyond | 1,000 | 1,100 | +10.00 % | +10.00 … +10.00 | +1 % |" in text.replace(
        "\xa0", " "
    )


def test_a_summary_that_cannot_be_written_is_no_verdict(here: Here, tmp_path: Path) -> None:
    assert here.run(*SLOW_FORK, "--summary", tmp_path / "no" / "such.md").status == 128
