"""`--metrics FORMAT`: a command is measured by what it prints, with `check`, `counters` and `tune`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import has_what_builds_need
from tests.support.scripted import ScriptedMachine, sources
from tests.support.tuning import TunableMachine

from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources
from ktrial.experiment.single_kernel import Runs
from ktrial.machines import Machine
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.store.store import Store
from ktrial.target import Run, StepResult
from ktrial.workloads.command import WORKLOAD

REPORT = Path(__file__).parents[2] / "data/program_outputs/nginx-wrk-4.1.0.txt"
OLD, NEW = "debian:6.1", "debian:6.12"
KERNELS = {
    "check": ("--kernel", NEW, "--against", OLD),
    "counters": ("--kernel", OLD, "--kernel", NEW),
}
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
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/report").write_text(report("10000.00"))
    monkeypatch.chdir(tmp_path / "work")
    machine, resources = ScriptedMachine(slower_when_new), sources(workloads={"cat": WORKLOAD})

    def runs(store: Store, observer: Observer, jobs: int | None) -> Runs:
        return Runs(store, observer, jobs, machine, resources)

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return CommandLine(monkeypatch, capsys)


def test_a_check_compares_what_the_command_tells_where_more_is_better(cli: CommandLine) -> None:
    said = cli("check", *KERNELS["check"], "--max", "+1%", *COMMAND)
    assert said.status == 1, said.messages
    assert "Beyond the limit: cat requests −10.00 %; 1 of " in said.output
    assert "as the command tells them by the guest's clock" in " ".join(said.output.split())
    assert cli("check", *KERNELS["check"], "--max", "+20%", *COMMAND).status == 0


def test_a_check_s_json_has_a_row_for_each_metric_of_the_format(cli: CommandLine) -> None:
    rows = json.loads(cli("check", *KERNELS["check"], "--json", *COMMAND).output)["rows"]
    decisions = {row["metric"]: row["decision"] for row in rows}
    assert decisions["requests"] == "beyond"
    assert {"throughput", "latency"} <= decisions.keys()
    assert {decision for name, decision in decisions.items() if name != "requests"} == {"within"}


def test_counters_of_a_command_that_is_measured_so_are_kept_with_its_metrics(cli: CommandLine) -> None:
    said = cli("counters", *KERNELS["counters"], "--json", *COMMAND)
    assert said.status == 0, said.messages
    assert {row["workload"] for row in json.loads(said.output)["counters"]} == {"cat"}
    shown = json.loads(cli("show", "counters", "--json").output)["comparisons"]
    (rate,) = (one for one in shown if one["metric"] == "requests")
    assert (rate["unit"], rate["baseline_value"], rate["value"]) == ("1/s", 10000, 9000)


def test_tune_makes_a_metric_of_the_format_larger(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def on_machine(
        study: Study, store: Store, *, allow_host_changes: bool
    ) -> Iterator[tuple[Machine, Resources]]:
        yield TunableMachine(lambda boot, written: 1.0), sources(workloads={"cat": WORKLOAD})

    monkeypatch.setattr("ktrial.cli.running.search.on_machine", on_machine)
    wanted = ("--maximise", "requests", "--subject-to", "latency<=2ms", "--knobs", "vm.swappiness")
    plan = cli("tune", "--kernel", NEW, *wanted, "--dry-run", *COMMAND)
    assert plan.status == 0, plan.messages
    assert "tune-cat: higher requests, with latency <= 2000 µs" in plan.output


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("check", *KERNELS["check"], "--workload", "fork", "--metrics", "wrk"), "it is for a command"),
        (("check", *KERNELS["check"], "--metrics", "wrkk", "--", "true"), "did you mean wrk?"),
        (("counters", *KERNELS["counters"], "--workload", "fork", "--metrics", "wrk"), "it is for a command"),
        (("counters", "study", "--metrics", "wrk"), "--metrics: it goes with --kernel"),
        (("tune", "--knobs", "vm", "--metrics", "wrk", "--workload", "fork"), "it is for a command"),
        (("tune", "--knobs", "vm", "--metrics", "wrkk", "--", "true"), "did you mean wrk?"),
        (("tune", "--knobs", "vm", *COMMAND), "--maximise or --minimise one of: requests, throughput"),
        (("tune", "mine.toml", "--metrics", "wrk"), "a study file says it"),
    ],
)
def test_what_does_not_go_together_is_told_before_anything_boots(
    cli: CommandLine, words: tuple[str, ...], problem: str
) -> None:
    said = cli(*words)
    assert said.status in {2, 128}
    assert problem in " ".join(said.messages.split())


@pytest.mark.parametrize("command", ["check", "counters", "tune"])
def test_help_names_the_formats_list(cli: CommandLine, command: str) -> None:
    assert "ktrial workload formats" in " ".join(cli(command, "--help").output.replace("│", " ").split())
