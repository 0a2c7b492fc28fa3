"""`ktrial check` and `baseline` from the command line: what they print, keep, and end with."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.support.command_line import FORK, GOOD, SLOW, SLOW_FORK, Here, here_in, numbers
from tests.support.fake_builds import a_source_tree, git
from tests.support.making import a_table
from tests.support.profiles import a_profile
from tests.support.scripted import a_kernel, ends

from ktrial.analysis.attribution.decomposition import explain
from ktrial.cli.render.regression_check import as_json, as_markdown, print_check
from ktrial.errors import KtrialError
from ktrial.experiment import regression_check
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
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.fidelity import NO_FIDELITY
from ktrial.model.kernel import Build, Kernel, NewOption, Origin, Reach
from ktrial.model.machine import Boot
from ktrial.model.regression_check import CheckedMetric, Decision, RegressionCheck
from ktrial.model.trial import Outcome
from ktrial.model.workload import Direction, Mode
from ktrial.store.location import default_location
from ktrial.target import Run, StepResult

SAME = ("check", "--kernel", GOOD, "--against", GOOD, *FORK)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return here_in(tmp_path, monkeypatch, capsys)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_source_tree(tmp_path / "linux")


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_a_limit_names_a_workload_with_its_parameters(cli: Here) -> None:
    label = "hackbench(groups=2, loops=3)"
    kernels = ("--kernel", GOOD, "--against", GOOD, "--no-route")
    result = cli.run("check", *kernels, "--workload", label, "--max", f"{label}=+50%", "--json")
    assert result.status == 0
    (row,) = json.loads(result.output)["rows"]
    assert (row["workload"], row["limit"]) == (label, 0.5)


def test_a_kernel_beyond_the_limit_ends_with_1_and_says_by_how_much(cli: Here, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("### Another step\n")
    result = cli.run(*SLOW_FORK, "--max", "+1%", "--summary", summary)
    assert result.status == 1
    (row,) = [line for line in result.output.splitlines() if line.startswith("fork")]
    assert " ".join(row.split()) == "fork 1,000 1,100 +10.00 % +10.00 … +10.00 +1 % ✗ beyond"
    assert "Beyond the limit: fork +10.00 % (new); 1 of 1 metric" in result.output
    text = plain(summary.read_text())
    assert text.startswith("### Another step\n### ktrial check: ✗ beyond\n")
    assert "| `fork` | ✗ beyond | 1,000 | 1,100 | +10.00 % | +10.00 … +10.00 | +1 % |" in text
    data = json.loads(cli.run(*SLOW_FORK, "--json").output)
    (row,) = data["rows"]
    assert (data["decision"], data["baseline"]) == ("beyond", f"{GOOD}:cloud")
    assert (row["workload"], row["ratio"], row["limit"], row["decision"]) == ("fork", 1.1, 0.01, "beyond")
    assert cli.run(*SLOW_FORK, "--summary", tmp_path / "no" / "such.md").status == 128, "it is no verdict"


@pytest.mark.parametrize(
    "command",
    [
        (*SLOW_FORK, "--max", "+12%"),
        (*SLOW_FORK, "--max", "1%", "--max", "fork=+12%"),
        ("check", "--kernel", GOOD, "--against", SLOW, *FORK),
    ],
    ids=["limit", "limit of the workload", "faster"],
)
def test_a_kernel_within_the_limit_ends_with_0(command: tuple[str, ...], cli: Here) -> None:
    result = cli.run(*command)
    assert (result.status, "Within the limit" in result.output) == (0, True)


@pytest.mark.parametrize("alike", [False, True])
def test_a_change_inside_the_spread_is_undecided_unless_both_kernels_are_moved_alike(
    alike: bool, cli: Here
) -> None:
    def wide(boot: Boot, run: Run) -> StepResult:
        number = int(run.argv[1])
        steps = 2 - number if boot.kernel.name.startswith(SLOW) and not alike else number
        return StepResult(step=0, do="run", exit=0, stdout=str(1000 + 40 * steps))

    cli.machine(wide)
    result = cli.run(*SLOW_FORK)
    assert (result.status, "Undecided: fork" in result.output) == ((0, False) if alike else (125, True))


BUILD = {"name": "x", "directory": "/x", "log": "/x.log"}
PLACE = {"name": "x", "directory": "/x"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BuildFailed(**BUILD, problem="a.c:1: error: oh"), 125),
        (OptionNotTaken(**PLACE, option="CONFIG_X", wanted="y", problem="it became n", advice=""), 125),
        (BuildToolsMissing(**PLACE, tools="flex", packages="flex"), 128),
        (CacheFull(**PLACE, needed="1 GB", free="0 B"), 128),
    ],
)
def test_a_build_that_fails_is_skipped_and_what_the_host_lacks_stops_a_bisection(
    error: KtrialError, status: int, cli: Here, source: Path
) -> None:
    machine = cli.machine()
    cli.builds(error)
    result = cli.run("check", "--source", source, "--against", GOOD, *FORK)
    assert (result.status, machine.prepared) == (status, []), "it is told before the baseline boots"
    assert error.message in result.messages


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotAKernel(path="/x", found="text"), 125),
        (ImageTruncated(path="/x", present=1, promised=2), 125),
        (FetchFailed(name="x", distribution="Debian", problem="no network"), 128),
        (QemuUnusable(machine="exact", program="qemu", problem="crashes"), 128),
    ],
)
def test_a_kernel_that_cannot_be_had_is_skipped_only_where_that_is_its_own_fault(
    error: KernelError, status: int, cli: Here
) -> None:
    cli.machine(missing={f"{SLOW}:cloud": error})
    assert cli.run(*SLOW_FORK).status == status
    cli.machine(missing={f"{GOOD}:cloud": error})
    assert cli.run(*SLOW_FORK).status == 128, "of a baseline it is never the tested kernel's fault"


@pytest.mark.parametrize("broken", [GOOD, SLOW])
def test_a_kernel_that_panics_is_skipped_and_a_baseline_that_does_is_not(broken: str, cli: Here) -> None:
    def panics(boot: Boot, run: Run) -> StepResult:
        if boot.kernel.name == f"{broken}:cloud":
            raise ends(Outcome.PANICKED, "Fatal exception", "[1.0] not syncing")
        return numbers(boot, run)

    cli.machine(panics)
    result = cli.run(*SLOW_FORK)
    if broken == SLOW:
        assert (result.status, "not syncing" in result.output) == (125, True)
    else:
        assert (result.status, "could not be measured" in result.messages) == (128, True)


SLOW_AGAINST = ("check", "--kernel", SLOW, "--against", GOOD)
MISTAKES = (
    ("check", "--kernel", SLOW, *FORK),
    ("check", "--against", GOOD, *FORK),
    ("check", "--kernel", SLOW, "--source", ".", "--against", GOOD, *FORK),
    ("check", GOOD),
    (*SLOW_AGAINST, "--workload", "frok"),
    ("check", "--kernel", SLOW, "--against", "nobody", *FORK),
    ("check", "--kernel", "dbian:6.1", "--against", GOOD, *FORK),
    (*SLOW_FORK, "--max", "much"),
    (*SLOW_FORK, "--max", "pipe=1%"),
    (*SLOW_FORK, "--option", "SMP=y"),
    (*SLOW_FORK, "--memory", "1X"),
    ("check", "--source", "nowhere", "--against", GOOD, *FORK),
    ("check", "--source", "--against", GOOD, *FORK, "--option", "SMP"),
    ("check", "--no-such-option"),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda words: " ".join(words[1:]))
def test_a_mistake_ends_with_2(mistake: tuple[str, ...], cli: Here) -> None:
    result = cli.run(*mistake)
    assert (result.status, "error:" in result.messages) == (2, True)


@pytest.mark.parametrize("mistake", [MISTAKES[4], MISTAKES[-1]], ids=lambda words: words[-1])
def test_a_mistake_in_a_tree_that_is_being_bisected_stops_the_bisection(
    mistake: tuple[str, ...], cli: Here, tmp_path: Path
) -> None:
    """git would take 2 for a bad commit, and name one that is innocent."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".git" / "BISECT_START").write_text("master\n")
    assert cli.run(*mistake).status == 128


def test_a_bug_of_ktrials_own_is_no_verdict(
    cli: Here, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.limits", broken)
    assert cli.run(*SLOW_FORK).status == 128
    monkeypatch.setitem(sys.modules, "ktrial.cli.app", None)  # it cannot even start
    assert cli.run(*SLOW_FORK).status == 128
    assert cli.run("list").status == 70


def test_what_is_no_kernels_source_is_refused_before_anything_is_booted(cli: Here, source: Path) -> None:
    machine = cli.machine()
    cli.builds("good")
    (source / "Kconfig").unlink()
    (source / "Makefile").rename(source.parent / "Makefile")
    result = cli.run("check", "--source", source, "--against", GOOD, *FORK)
    assert (result.status, machine.prepared) == (2, [])
    assert "is not a kernel's source tree: it lacks Makefile" in result.messages


def test_a_commit_is_a_kernel_and_a_source(cli: Here, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Build] = []

    def build(wanted: Build, progress: Progress) -> Kernel:
        built.append(wanted)
        return a_kernel(wanted.name, digest=digest("slow"))

    monkeypatch.setattr("ktrial.kernels.build.builds.build", build)
    git(source, "init", "--quiet")
    result = cli.run("check", "--source", "git:linux@v6.1", "--option", "SMP=y", "--against", GOOD, *FORK)
    assert result.status == 1
    assert (built[0].source, built[0].options) == (f"git:{source}@v6.1", {"CONFIG_SMP": "y"})
    assert cli.run("check", "--source", "git:linux", "--against", GOOD, *FORK).status == 2


def test_source_alone_means_the_tree_that_ktrial_stands_in(
    cli: Here, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.builds("slow")
    monkeypatch.chdir(source)
    result = cli.run("check", "--source", "--against", GOOD, *FORK)
    assert result.status == 1
    assert f"source:{source}" in result.output
    assert f"source:{source}: building: 50 files" in result.messages


def test_the_trees_own_file_names_workloads_and_limits(cli: Here, source: Path) -> None:
    file = source / ".ktrial.toml"
    file.write_text('[paths."mm/"]\nworkloads = ["fork"]\nmax = "+30%"\n')
    cli.builds("slow")
    command = ("check", "--source", source, "--against", GOOD)
    result = cli.run(*command)
    assert (result.status, "pipe" in result.output) == (0, False), result
    assert ".ktrial.toml: mm: fork, +30\u00a0%" in result.messages
    assert cli.run(*command, "--max", "+1%").status == 1
    file.write_text('[paths."mm/"]\nlimit = "+30%"\n')
    assert cli.run(*command).status == 2
    assert cli.run(*command, *FORK, "--max", "+1%").status == 1, "it is not read where it would say nothing"


def test_a_bisection_over_builds_finds_its_way_by_the_exit_codes(cli: Here, source: Path) -> None:
    """What git would do: good, skipped and bad commits, told by nothing but the exit codes."""
    cli.builds("good")
    assert cli.run("check", "baseline", "save", "good", "--source", source, *FORK).status == 0
    codes = []
    for outcome in ("good", BuildFailed(**BUILD, problem="oh"), "also good", "slow"):
        cli.builds(outcome)
        codes.append(cli.run("check", "--source", source, "--against", "good").status)
    assert codes == [0, 125, 0, 1]


@pytest.mark.parametrize(
    ("options", "warning", "kinds"),
    [
        ((), "is the same image as the baseline's: there is nothing to compare", ["same-image"]),
        (
            ("--max", "fork=+0.001%"),
            "a limit below +0.3 % is raised to that: +0.001 % for fork",
            ["same-image", "limit-raised"],
        ),
    ],
)
def test_what_is_odd_about_a_check_is_told_everywhere(
    options: tuple[str, ...], warning: str, kinds: list[str], cli: Here, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    result = cli.run(*SAME, *options, "--summary", summary)
    assert (result.status, warning in plain(result.output)) == (0, True)
    assert "Same code: the two kernels have the same functions and data" in result.output
    assert warning.partition(":")[0] in plain(summary.read_text())
    warnings = json.loads(cli.run(*SAME, *options, "--json").output)["warnings"]
    assert [printed["kind"] for printed in warnings] == kinds
    assert "warning" not in cli.run(*SLOW_FORK, "--max", "fork=+0.3%").output


def test_options_that_a_checked_kernels_patches_bring_are_told(
    cli: Here, monkeypatch: pytest.MonkeyPatch, source: Path
) -> None:
    brought = (NewOption(option="CONFIG_NEW", value="n"),)
    origin = Origin(provider="source", source=str(source), new_options=brought)

    def add(wanted: BuildRequest, progress: Progress) -> Kernel:
        return a_kernel(name_of(wanted.source)).model_copy(update={"origin": origin})

    monkeypatch.setattr("ktrial.kernels.build.builds.add", add)
    result = cli.run("check", "--source", source, "--against", GOOD, *FORK)
    assert "options that its commits bring: NEW=n" in " ".join(result.output.split())


BEFORE = a_profile({("fork", ""): 10_000, ("exit", ""): 5_000, ("tick", ""): 50})
AFTER = a_profile(
    {("fork", ""): 13_000, ("exit", ""): 4_000, ("tick", ""): 55, ("clear_page", ""): 10},
    string_bytes={("clear_page", ""): 40_960},
    kernel="path:/vmlinux",
)


NOT_EXECUTED = "Not executed: none of the 7 functions that differ (sockfd, …) ran in fork"
CONTROL = "Within the limit: 1 metric, by instructions counted, not time; not executed: none of the 7"


@pytest.mark.parametrize(
    ("first", "decision", "answer", "status"),
    [
        (Decision.NOT_EXECUTED, "not-executed", NOT_EXECUTED, "∅ not executed"),
        (Decision.WITHIN, "within", CONTROL, "✓ within"),
    ],
)
def test_what_did_not_run_the_change_is_said_to_tell_nothing_of_it(
    first: Decision, decision: str, answer: str, status: str
) -> None:
    checked = a_check()
    row = replace(checked.rows[0], decision=Decision.NOT_EXECUTED, explanation=None, profiles=None)
    pipe = replace(row, decision=first, comparison=row.comparison.model_copy(update={"workload": "pipe"}))
    reach = Reach(functions=7, data=0, named=("sockfd",), not_run=("fork", "pipe"))
    checked = replace(
        checked, rows=(row, pipe), reach=reach, decision=regression_check.worst([row.decision, first])
    )
    console = Console(width=120)
    with console.capture() as capture:
        print_check(checked, 5, console)
    shown = " ".join(plain(capture.get()).split())
    assert answer in shown
    assert status in shown
    assert as_markdown(checked, 5).startswith(f"### ktrial check: {status}")
    data = as_json(checked)
    assert (data["decision"], data["rows"][0]["decision"]) == (decision, "not-executed")
    assert (data["reach"]["functions"], data["reach"]["not_run"]) == (7, ["fork", "pipe"])


def a_check(metric: str = "fork, exit, wait", *, secondary: bool = False) -> RegressionCheck:
    comparison = Comparison(
        workload="fork", metric=metric, unit="instructions", direction=Direction.LOWER,
        baseline="debian:6.1", treatment="path:/vmlinux", baseline_value=1505, value=1706.5, ratio=1.134,
        low=1.13, high=1.14, verdict=Verdict.WORSE, mode=Mode.EXACT_PLUGIN,
    )  # fmt: skip
    explanation = explain(BEFORE, AFTER)
    row = CheckedMetric(
        comparison, 0.01, Decision.BEYOND, secondary=secondary, explanation=explanation,
        profiles=(BEFORE, AFTER),
    )  # fmt: skip
    return RegressionCheck("path:/vmlinux", "6.1.7", "debian:6.1", Decision.BEYOND, (row,))


def test_the_functions_that_weigh_are_named_with_their_shares_and_a_tick_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_check(a_check(), 5, Console(width=100, markup=False, highlight=False), whole=True)
    printed = capsys.readouterr().out.splitlines()
    start = next(place for place, line in enumerate(printed) if "made of, in instructions" in line)
    rows = [" ".join(line.split()) for line in printed[start + 1 : start + 4]]
    assert rows == ["+300 149 % fork", "−100 −50 % exit", ""]
    net = next(place for place, line in enumerate(printed) if line.startswith("  fork +"))
    assert net < start, "what it adds up to stands first: functions by themselves may cancel"
    assert "own code:" in printed[net - 1]


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        (0.0, ""),
        (0.32, ""),
        (
            0.41,
            "fork: 41 % of this difference is in functions that lock memory: on several CPUs it may go the "
            "other way.",
        ),
    ],
)
@pytest.mark.parametrize("decision", [Decision.BEYOND, Decision.WITHIN])
def test_a_change_that_rests_on_locks_says_so_for_the_better_and_for_the_worse(
    share: float, sentence: str, decision: Decision, capsys: pytest.CaptureFixture[str]
) -> None:
    check = a_check()
    check = replace(check, rows=(replace(check.rows[0], locking_share=share, decision=decision),))
    assert ("lock memory" in plain(as_markdown(check, 5))) == bool(sentence)
    assert as_json(check)["rows"][0]["locking_share"] == share
    print_check(check, 5, Console(width=160, markup=False, highlight=False))
    printed = " ".join(plain(capsys.readouterr().out).split())
    assert (sentence in printed) if sentence else ("lock memory" not in printed)


def test_a_row_of_bytes_is_explained_by_bytes() -> None:
    text = plain(as_markdown(a_check("string-bytes", secondary=True), 5))
    assert "| `fork string-bytes` | ✗ beyond |" in text
    assert "made of, in bytes of string instructions per operation" in text
    assert "| `clear_page` | +4,096 | 100 % |" in text


@pytest.mark.parametrize(("top", "functions"), [(0, 0), (1, 1), (5, 2)])
def test_no_more_functions_are_shown_than_were_asked_for(top: int, functions: int) -> None:
    text = as_markdown(a_check(), top)
    assert sum(text.count(f"| `{name}` |") for name in ("fork", "exit")) == functions + 1, "and the workload"


def test_names_from_a_kernel_are_no_markup() -> None:
    names = ("path:/a|b`c", "6.1 @somebody <b>", "debian:6.1")
    text = as_markdown(RegressionCheck(*names, Decision.NOT_RUN, (), "*no*", "\x1b[31mred\n"), 5)
    assert "@somebody" not in text
    assert "\x1b" not in text
    assert r"\*no\*" in text


def test_json_keeps_what_tables_round() -> None:
    (row,) = as_json(a_check())["rows"]
    assert (row["ratio"], row["decision"], row["explanation"]["workload"]) == (1.134, "beyond", "fork")


def test_a_change_is_cited_with_what_is_known_of_changes_of_its_size() -> None:
    check = replace(a_check(), fidelity=(a_table(3), a_table(58)))
    result = (
        "on machines like this one (host, EPYC; calls) changes of 10 to 30 % by instructions had the right"
    )
    text = plain(as_markdown(check, 5))
    assert result + " sign in 58 of 58 cases; real time left 2 undecided" in text
    cited = as_json(check)["rows"][0]["fidelity"]
    assert (cited["band"]["same_sign"], cited["names"], cited["count"]) == (58, ["calls"], "instructions")
    assert cited["sentence"].startswith(result)


def test_where_nothing_is_known_only_what_people_take_for_time_says_so() -> None:
    row = a_check().rows[0]

    def with_comparison(**changes: object) -> RegressionCheck:
        comparison = row.comparison.model_copy(
            update={"unit": "cycles", "metric": "modelled-cycles", **changes}
        )
        return replace(a_check(), rows=(replace(row, comparison=comparison),))

    assert NO_FIDELITY in as_markdown(with_comparison(), 5)
    assert NO_FIDELITY not in as_markdown(a_check(), 5)
    assert as_json(with_comparison())["rows"][0]["fidelity"] is None
    assert NO_FIDELITY not in as_markdown(with_comparison(verdict=Verdict.EQUIVALENT), 5)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE studies SET spec = replace(spec, 'fork', 'fori') WHERE name = 'baseline:second'",
        "UPDATE samples SET value = value + 1 WHERE trial_id = (SELECT max(id) FROM trials)",
    ],
    ids=["study", "trial"],
)
def test_baselines_beside_a_damaged_one_are_listed_and_it_is_told(damage: str, cli: Here) -> None:
    for name in ("first", "second"):
        cli.run("check", "baseline", "save", name, "--kernel", GOOD, *FORK)
    with closing(sqlite3.connect(default_location())) as raw:
        assert raw.execute(damage).rowcount > 0
        raw.commit()
    result = cli.run("check", "baseline", "list", "--json")
    assert result.status == 1
    assert [baseline["name"] for baseline in json.loads(result.output)] == ["first"]
    assert "ktrial: warning: baseline second, is damaged" in result.messages
    assert cli.run("check", "baseline", "show", "first").status == 0
    shown = cli.run("check", "baseline", "show", "second")
    assert (shown.status, "ktrial store verify" in shown.messages) == (1, True)


def test_what_ktrial_measured_for_itself_is_listed_only_when_asked_for(cli: Here) -> None:
    cli.run("check", "baseline", "save", "v6.1", "--kernel", GOOD, *FORK)
    cli.run(*SLOW_FORK)
    result = cli.run("list")
    assert result.output == ""
    assert result.messages.startswith("3 more")
    assert result.messages.endswith("that commands made (baseline 1, check 2): ktrial list --all\n")
    assert cli.run("list", "--json").output == "[]\n"
    names = [study["study"] for study in json.loads(cli.run("list", "--all", "--json").output)]
    assert sorted(names) == ["baseline:v6.1", "check", "check"]
    assert cli.run("list", "--all").messages == ""


def test_a_baseline_is_saved_shown_listed_and_removed(cli: Here) -> None:
    saved = cli.run("check", "baseline", "save", "v6.1", "--kernel", GOOD, "--workload", "fork,pipe")
    assert saved.status == 0
    shown = cli.run("check", "baseline", "show", "v6.1")
    assert shown.output == saved.output
    assert "7.2.22" in shown.output, "all that numbers depend on is shown"
    (data,) = json.loads(cli.run("check", "baseline", "list", "--json").output)
    assert (data["name"], data["numbers"][0]["values"]) == ("v6.1", [1000.0] * 3)
    assert "v6.1" in cli.run("check", "baseline", "list").output
    assert cli.run("check", "baseline", "remove", "v6.1").status == 0
    assert cli.run("check", "baseline", "show", "v6.1").status == 2
    assert "no baselines yet" in cli.run("check", "baseline", "list").messages


def test_a_check_against_a_saved_baseline_measures_as_the_baseline_was_measured(cli: Here) -> None:
    cli.run(
        "check", "baseline", "save", "good", "--kernel", GOOD, "--workload", "fork,pipe", "--memory", "1G"
    )
    against = ("check", "--kernel", SLOW, "--against", "good")
    for options, workloads in (((), ["fork", "pipe"]), (FORK, ["fork"])):
        rows = json.loads(cli.run(*against, *options, "--json").output)["rows"]
        assert [row["workload"] for row in rows] == workloads
    assert cli.run(*against, "--memory", "1G").status == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--workload", "syscall"), "was not measured with workload syscall; it has fork"),
        (("--memory", "1G"), "was not measured with --memory 1024; it has 512"),
        (("--boot", "quiet"), "was not measured with --boot quiet; it has none"),
        (("--perturbations", "5"), "was not measured with --perturbations 5; it has 3"),
    ],
)
def test_a_check_in_another_way_than_the_baseline_is_refused(
    options: tuple[str, ...], problem: str, cli: Here
) -> None:
    cli.run("check", "baseline", "save", "good", "--kernel", GOOD, *FORK)
    result = cli.run("check", "--kernel", SLOW, "--against", "good", *options)
    assert (result.status, problem in result.messages) == (2, True)


def test_a_check_on_several_cpus_says_both_and_ends_with_the_worse(cli: Here, tmp_path: Path) -> None:
    def contended(boot: Boot, _run: Run) -> StepResult:
        tested = 1380 if boot.cpus > 1 else 880
        number = tested if boot.kernel.name.startswith(SLOW) else 1000
        return StepResult(step=0, do="run", exit=0, stdout=str(number))

    machine = cli.machine(contended)
    summary = tmp_path / "summary.md"
    alone = cli.run(*SLOW_FORK, "--no-route")
    assert alone.status == 0
    assert {boot.cpus for boot in machine.prepared} == {1}
    result = cli.run(*SLOW_FORK, "--route", "--summary", summary)
    assert result.status == 1
    told = "fork: one CPU −12.00 %; 4 CPUs 1,000 → 1,380, +38.00 % (+38.00 … +38.00): ✗ beyond"
    assert told in " ".join(plain(result.output).split())
    assert told in plain(summary.read_text())
    assert "One CPU: Within the limit: 1 metric" in result.output
    assert "4 CPUs: Beyond the limit: fork +38.00 %" in plain(" ".join(result.output.split()))
    data = json.loads(cli.run(*SLOW_FORK, "--route", "--json").output)
    assert (data["decision"], data["on_several"]["decision"]) == ("beyond", "beyond")
    assert [row["decision"] for row in data["rows"]] == ["within"]
    assert data["on_several"]["cpus"] == 4


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--against", GOOD, "--cpus", "2"), "it compares one CPU with several: leave out --cpus"),
        (("--against", "before"), "a saved baseline was measured on one CPU: give a kernel to --against"),
    ],
)
def test_a_route_that_cannot_be_taken_is_refused_before_anything_is_booted(
    options: tuple[str, ...], problem: str, cli: Here
) -> None:
    machine = cli.machine()
    result = cli.run("check", "--kernel", SLOW, *options, "--route", *FORK)
    assert (result.status, problem in result.messages, machine.prepared) == (2, True, [])
