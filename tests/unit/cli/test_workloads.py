"""`ktrial workload`, and commands of the user's behind `--`: captured, measured, and read by a format."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import has_what_builds_need
from tests.support.scripted import ScriptedMachine, scripted_resources
from tests.support.tuning import TunableMachine

from ktrial.cli.options.workloads import named_workloads
from ktrial.cli.studies import registry
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources
from ktrial.experiment.single_kernel import Runs
from ktrial.machines import Machine
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.workload import Mode
from ktrial.store.store import Store
from ktrial.studyfile.workloads import workload_from_file
from ktrial.target import Run, StepResult
from ktrial.workloads import DEFAULT, WHOLE_BENCHMARKS
from ktrial.workloads.command import WORKLOAD

REPORT = Path(__file__).parents[2] / "data/program_outputs/nginx-wrk-4.1.0.txt"
OLD, NEW = "debian:6.1", "debian:6.12"
BOTH = ("--kernel", OLD, "--kernel", NEW)
CHECK = ("check", "--kernel", NEW, "--against", OLD)
COUNTERS = ("explain", "counters", *BOTH)
COMMAND = ("--metrics", "wrk", "--", "cat", "report")


def report(rate: str) -> str:
    """wrk's report, with so many requests a second."""
    lines = REPORT.read_text().splitlines()
    return "\n".join(f"Requests/sec: {rate:>11}" if line.startswith("Req") else line for line in lines) + "\n"


def slower_when_new(boot: Boot, run: Run) -> StepResult:
    """On the new kernel nine requests where there were ten."""
    rate = "9000.00" if boot.kernel.name.startswith(NEW) else "10000.00"
    return StepResult(step=0, do="run", exit=0, stdout=report(rate))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return tmp_path / "work"


@pytest.fixture
def machine() -> ScriptedMachine:
    return ScriptedMachine(slower_when_new)


@pytest.fixture
def cli(
    place: Path,
    machine: ScriptedMachine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> CommandLine:
    resources = scripted_resources(workloads={"cat": WORKLOAD})

    def runs(store: Store, observer: Observer, jobs: int | None) -> Runs:
        return Runs(store, observer, jobs, machine, resources)

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)
    return CommandLine(monkeypatch, capsys)


def test_workloads_are_listed_and_shown_with_all_that_they_can_be_told(cli: CommandLine) -> None:
    names = [workload["name"] for workload in json.loads(cli("workload", "list", "--json").output)]
    assert {*DEFAULT, *WHOLE_BENCHMARKS, "fio", "pgbench"} < set(names)
    listed = [line.split()[0] for line in cli("workload", "list").output.splitlines() if line[:1].strip()]
    headings = {"built-in", "every", "installed", "several"}
    assert sorted(word for word in listed if word not in headings) == sorted(names)
    text = " ".join(cli("workload", "show", "hackbench").output.split())
    assert "parameter groups: groups of senders and receivers (from 1 to 100, else 1)" in text
    assert "parameter workers: what senders and receivers are (processes or threads, else processes)" in text
    assert json.loads(cli("workload", "show", "hackbench", "--json").output)["name"] == "hackbench"
    result = cli("workload", "show", "frok")
    assert (result.status, result.output) == (2, "")
    assert result.messages.startswith("ktrial: error: There is no workload frok (did you mean fork")


def test_a_capture_is_a_file_that_is_read_as_it_was_captured(place: Path, cli: CommandLine) -> None:
    (place / "data").write_text("x")
    result = cli("workload", "capture", "--name", "mine", "--metrics", "fio-json", "--", "cat", "data")
    assert result.status == 0
    assert result.output.startswith("mine.toml: ")
    assert "next: ktrial compare 6.1 6.12 ./mine.toml" in result.output
    assert tomllib.loads((place / "mine.toml").read_text())["workload"]["metrics"] == "fio-json"
    use = workload_from_file(place / "mine.toml", registry())
    assert use.command is not None
    assert use.command.argv[1:] in {(str(place / "data"),), ("data",)}
    assert str(place / "data") in use.command.files
    assert [rule.format for rule in use.command.metrics] == ["fio-json"]


def test_its_json_has_the_workload_and_what_is_otherwise_in_a_guest(place: Path, cli: CommandLine) -> None:
    result = cli("workload", "capture", "--json", "-o", "mine.toml", "--", "sh", "-c", "echo x >made")
    data = json.loads(result.output)
    assert data["workload"] == tomllib.loads((place / "mine.toml").read_text())["workload"]
    assert "it made 1" in data["notes"][0]["text"]
    assert data["workload"]["notes"] == [data["notes"][0]["text"]]
    assert data["memory_mib"] == 512


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--name", "fork", "--", "true"), "--name: fork is a workload of ktrial's own"),
        (("--name", "a b", "--", "true"), "--name: 'a b': letters, digits"),
        (("-o", "data", "--", "true"), "--output: data is there already"),
        (("--limit", "soon", "--", "true"), "--limit: soon is not a time"),
        (("--metrics", "fio-josn", "--", "true"), "no format of metrics fio-josn (did you mean fio-json"),
        (("--", "no-such-program"), "there is no program no-such-program on this host"),
        (("--", "false"), "the command exited with status 1 when it was run here"),
        ((), "COMMAND"),
    ],
)
def test_a_capture_that_cannot_be_is_one_message(
    place: Path, cli: CommandLine, words: tuple[str, ...], problem: str
) -> None:
    (place / "data").write_text("x")
    result = cli("workload", "capture", *words)
    assert result.status != 0
    assert problem in result.messages
    assert [path.name for path in place.iterdir()] == ["data"]


FORK = ("--workload", "fork")
TUNE = ("tune", "--knobs", "vm")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("compare", *BOTH, "--"), "--: write a command after it"),
        (("profile", "--kernel", OLD, "--"), "--: write a command after it"),
        (("explain", *BOTH, "--"), "--: write a command after it"),
        ((*COUNTERS, "--"), "--: write a command after it"),
        (("profile", "--kernel", OLD, *FORK, "--", "true"), "give a workload or a command, not both"),
        (("explain", "study", "--", "true"), "-- COMMAND: goes with --kernel"),
        (("explain", "counters", "study", "--", "true"), "--: a command goes with kernels"),
        (("explain", "counters", "study", "--metrics", "wrk"), "--metrics: it goes with kernels"),
        (("compare", *BOTH, "--workload", "gone.toml"), "gone.toml"),
        (("profile", "--kernel", OLD, "--workload", "gone.toml"), "gone.toml"),
        (("compare", *BOTH, "--metrics", "wrk", *FORK), "--metrics: it goes with a command"),
        ((*CHECK, *FORK, "--metrics", "wrk"), "it goes with a command"),
        ((*COUNTERS, *FORK, "--metrics", "wrk"), "it goes with a command"),
        ((*TUNE, "--metrics", "wrk", *FORK), "it goes with a command"),
        (("compare", *BOTH, "--metrics", "wrkk", "--", "true"), "did you mean wrk?"),
        ((*CHECK, "--metrics", "wrkk", "--", "true"), "did you mean wrk?"),
        ((*TUNE, "--metrics", "wrkk", "--", "true"), "did you mean wrk?"),
        (("compare", *BOTH, "--after", "ready", *FORK), "--after: it goes with a command"),
        ((*CHECK, *FORK, "--skip-start", "accept4 3"), "--skip-start: it goes with a command"),
        ((*CHECK, "--skip-start", "acept4 3", "--", "true"), "--skip-start: skip_start is 'acept4 3'"),
        ((*CHECK, "--after", "ready", "--skip-start", "write 1", "--", "true"), "give one of them"),
        ((*CHECK, "--after", "ready", *COMMAND), "--after: metrics are read from what it prints"),
        ((*CHECK, "--route", "--after", "ready", "--", "true"), "whole runs are counted: leave out --after"),
        (("explain", "counters", "study", "--after", "ready"), "--after: it goes with kernels"),
        (("compare", *BOTH, "--", "false"), "exited with status 1 when it was run here"),
        ((*TUNE, *COMMAND), "--maximise or --minimise one of requests, throughput"),
        (("tune", "mine.toml", "--metrics", "wrk"), "the study file names the format"),
    ],
)
def test_what_does_not_go_together_is_told_before_anything_boots(
    cli: CommandLine, words: tuple[str, ...], problem: str
) -> None:
    result = cli(*words)
    assert result.status != 0
    assert problem in " ".join(result.messages.split())


@pytest.mark.parametrize("command", ["compare", "profile", "explain", "check", "explain counters", "tune"])
def test_help_shows_where_a_command_goes_and_names_the_formats_list(cli: CommandLine, command: str) -> None:
    text = " ".join(cli(*command.split(), "--help").output.split())
    assert "-- COMMAND" in text
    assert ("ktrial workload formats" in text) == (command not in {"profile", "explain"})


@pytest.mark.parametrize(
    ("option", "watched"),
    [
        (("--after", "listening"), ("--text", "listening")),
        (("--skip-start", "output 2"), ("--outputs", "2")),
    ],
)
def test_a_check_counts_the_command_from_where_its_set_up_ends(
    option: tuple[str, ...], watched: tuple[str, ...], place: Path, machine: ScriptedMachine, cli: CommandLine
) -> None:
    (place / "report").write_text("listening")
    machine.mode = Mode.EXACT_PLUGIN
    cli(*CHECK, *option, "--perturbations", "1", "--", "cat", "report")
    runs = [step for _, steps in machine.programs for step in steps if isinstance(step, Run)]
    assert watched in {run.argv[1 : 1 + len(watched)] for run in runs}


def test_a_study_has_where_the_commands_set_up_ends(place: Path, cli: CommandLine) -> None:
    (place / "report").write_text("listening")
    named = named_workloads(["fork"], ("cat", "report"))
    fork, cat = named.counted_from("listening", None).tables()
    assert (fork, cat["name"], cat["after"]) == ("fork", "cat", "listening")
    _, cat = named.counted_from(None, "accept4 3").tables()
    assert (cat["skip_start"], "after" in cat) == ("accept4 3", False)


def test_a_check_compares_what_the_command_tells_where_more_is_better(place: Path, cli: CommandLine) -> None:
    (place / "report").write_text(report("10000.00"))
    result = cli(*CHECK, "--max", "+1%", *COMMAND)
    assert result.status == 1, result.messages
    assert "Beyond the limit: cat requests −10.00 % (new); 1 of " in result.output
    assert "by the guest's clock" in " ".join(result.output.split())
    assert cli(*CHECK, "--max", "+20%", *COMMAND).status == 0
    rows = json.loads(cli(*CHECK, "--json", *COMMAND).output)["rows"]
    decisions = {row["metric"]: row["decision"] for row in rows}
    assert decisions.pop("requests") == "beyond"
    assert {"throughput", "latency"} <= decisions.keys()
    assert set(decisions.values()) == {"within"}


def test_counters_of_a_command_are_kept_with_its_metrics(place: Path, cli: CommandLine) -> None:
    (place / "report").write_text(report("10000.00"))
    result = cli(*COUNTERS, "--json", *COMMAND)
    assert result.status == 0, result.messages
    assert {row["workload"] for row in json.loads(result.output)["counters"]} == {"cat"}
    shown = json.loads(cli("show", "counters", "--json").output)["comparisons"]
    (rate,) = (comparison for comparison in shown if comparison["metric"] == "requests")
    assert (rate["unit"], rate["baseline_value"], rate["value"]) == ("1/s", 10000, 9000)


def test_tune_makes_a_metric_of_the_format_larger(
    place: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def on_machine(
        study: Study, store: Store, *, allow_host_changes: bool
    ) -> Iterator[tuple[Machine, Resources]]:
        yield TunableMachine(lambda boot, written: 1.0), scripted_resources(workloads={"cat": WORKLOAD})

    (place / "report").write_text(report("10000.00"))
    monkeypatch.setattr("ktrial.cli.running.search.on_machine", on_machine)
    goal = ("--maximise", "requests", "--subject-to", "latency<=2ms", "--knobs", "vm.vfs_cache_pressure")
    plan = cli("tune", "--kernel", NEW, *goal, "--dry-run", *COMMAND)
    assert plan.status == 0, plan.messages
    assert "tune-cat: higher requests, with latency <= 2000 µs" in plan.output
