"""`run`, `compare`, `show` and `list`, from a study file to what is printed, on a scripted machine."""

import json
import os
import random
import re
import shlex
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import KNOWN, STUDY, CommandLine, has_names
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, ends, number_of, scripted_resources

from ktrial.experiment.observer import Observer
from ktrial.experiment.session import run
from ktrial.machines.errors import MachineStopped
from ktrial.model.base import digest
from ktrial.model.machine import Boot
from ktrial.model.study import Stopping, Timing
from ktrial.model.trial import Outcome
from ktrial.model.workload import Mode
from ktrial.store.store import open_store
from ktrial.target import Run, StepResult

COMPARISON = {
    "workload", "metric", "unit", "direction", "baseline", "treatment", "baseline_value", "value", "ratio",
    "low", "high", "verdict", "mode", "reason", "estimand", "beside", "blocks", "unseen",
}  # fmt: skip


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "store" / "ktrial.db"))
    monkeypatch.delenv("COLUMNS", raising=False)
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "upgrade.toml"
    path.write_text(STUDY)
    return path


def _panics_on_6_12(boot: Boot, run: Run) -> StepResult:
    if boot.kernel.name == "debian:6.12":
        raise ends(Outcome.PANICKED, "Fatal exception in interrupt", "[ 1.0] Kernel panic\x1b[31m\n")
    return number_of(boot, run)


def _json(text: str) -> Any:
    return json.loads(text)


def test_a_run_ends_with_verdicts_an_answer_and_a_report(
    cli: CommandLine, study: Path, tmp_path: Path
) -> None:
    cli.machine(ScriptedMachine())
    result = cli("run", study)
    assert result.status == 0
    lines = result.output.splitlines()
    assert lines[0] == "upgrade: What did the upgrade cost?"
    assert any(line.startswith("fork ") for line in lines)
    report = tmp_path / "store" / "reports" / "upgrade-1.html"
    assert f"report: {report}" in lines
    assert " ".join(lines[-2:]).endswith("(within 1 %) from debian:6.1 to   debian:6.12.")
    assert report.read_text().startswith("<!doctype html>")
    assert result.messages.startswith("4 trials\n")
    assert result.messages.endswith("trials: 4/4\n")


def test_the_advice_of_a_study_without_a_file_can_be_typed_as_it_is_printed(
    cli: CommandLine, tmp_path: Path
) -> None:
    machine = ScriptedMachine(_noisy, mode=Mode.TIMED)
    stored = a_study(name="mine of 6.12", workloads=("fork",), timing=Timing(blocks=60))
    with open_store(tmp_path / "store" / "ktrial.db") as store:
        run(stored, store=store, machine=machine, resources=scripted_resources(), observer=Observer())
    cli.machine(machine)
    result = " ".join(cli("show", "mine of 6.12").output.split())
    advice = re.search(r"ktrial (run 'mine of 6.12' --confirm 30)", result)
    assert advice, result
    confirmed = cli(*shlex.split(advice[1]))
    assert confirmed.status == 0, confirmed.messages
    assert "mine of 6.12-confirmation" in confirmed.output


@pytest.fixture
def of_time(cli: CommandLine, tmp_path: Path) -> ScriptedMachine:
    """With a stored study `tails`: of a kernel that typically takes less, and now and then twice as much."""
    machine = ScriptedMachine(_with_a_tail, mode=Mode.TIMED)
    stored = a_study(name="tails", workloads=("fork",), timing=Timing(blocks=40, stopping=Stopping.FIXED))
    with open_store(tmp_path / "store" / "ktrial.db") as store:
        run(stored, store=store, machine=machine, resources=scripted_resources(), observer=Observer())
    cli.machine(machine)
    return machine


def test_what_stands_beside_a_verdict_is_in_every_output(
    cli: CommandLine, of_time: ScriptedMachine, tmp_path: Path
) -> None:
    (comparison,) = _json(cli("show", "tails", "--json").output)["comparisons"]
    clause = comparison["beside"]
    assert comparison["verdict"] == "better", str(comparison)
    assert comparison["estimand"] == "typical"
    assert clause.startswith("typically ")
    assert "of debian:6.12 is twice as large: in total" in clause
    assert comparison["unseen"] > 0.1
    for command in (("show", "tails"), ("show", "tails", "-v")):
        shown = " ".join(cli(*command).output.replace("\u00a0", " ").split())
        assert "Of typical trials: fork got better" in shown
        assert clause in shown
        assert "% of trials are not ruled out after" in shown
        assert "timed mode; typical trials" in shown
    page = tmp_path / "page.html"
    assert cli("report", "tails", "--html", page).status == 0
    for written in (page.read_text(), cli("report", "tails", "--markdown").output):
        assert "is twice as large: in total" in written
        assert "are not ruled out after" in written


def test_equivalent_says_in_the_same_sentence_what_is_not_ruled_out_in_every_output(
    cli: CommandLine, tmp_path: Path
) -> None:
    """No block has met a spike."""
    machine = ScriptedMachine(_steady, mode=Mode.TIMED)
    timing = Timing(blocks=20, stopping=Stopping.FIXED)
    stored = a_study(name="alike", workloads=("fork",), timing=timing)
    with open_store(tmp_path / "store" / "ktrial.db") as store:
        run(stored, store=store, machine=machine, resources=scripted_resources(), observer=Observer())
    cli.machine(machine)
    told = _json(cli("show", "alike", "--json").output)
    assert told["comparisons"][0]["verdict"] == "equivalent"
    assert told["comparisons"][0]["unseen"] > 0.02
    page = tmp_path / "page.html"
    assert cli("report", "alike", "--html", page).status == 0
    for output in (
        told["answer"],
        cli("show", "alike").output,
        cli("show", "alike", "-v").output,
        cli("report", "alike", "--markdown").output,
        page.read_text(),
    ):
        sentence = re.search(
            r"fork stayed equivalent ((?!\. ).)*are not ruled out after 20 blocks\.", _plain(output)
        )
        assert sentence, output[:2000]
        assert "spikes in up to 14 % of trials" in sentence[0]


def _plain(output: str) -> str:
    return " ".join(output.replace("\u00a0", " ").replace("&#160;", " ").split())


def _steady(boot: Boot, run: Run) -> StepResult:
    rng = random.Random(digest([boot.kernel.name, run.argv]))
    return StepResult(step=0, do="run", exit=0, stdout=str(1000 * (1 + rng.gauss(0.0, 0.002))))


def test_what_verdicts_are_about_is_chosen_before_the_first_trial(
    cli: CommandLine, study: Path, of_time: ScriptedMachine
) -> None:
    few = cli("run", "tails", "--estimand", "tail")
    assert few.status == 2
    assert "that takes 60 blocks at least, and the study has 40 at most" in few.messages
    exact = cli("run", study, "--estimand", "total")
    assert exact.status == 2
    assert "the numbers of the study upgrade are exact" in exact.messages


def _with_a_tail(boot: Boot, run: Run) -> StepResult:
    rng = random.Random(digest([boot.kernel.name, run.argv]))
    mean = 900 * (1 + (rng.random() < 0.12)) if boot.kernel.name == "debian:6.12" else 1000
    return StepResult(step=0, do="run", exit=0, stdout=str(mean * (1 + rng.gauss(0.0, 0.002))))


def test_a_study_that_is_neither_a_file_nor_stored_is_told(cli: CommandLine) -> None:
    result = cli("run", "no-such-study")
    assert result.status == 2
    assert "no-such-study cannot be read" in result.messages


def _noisy(boot: Boot, run: Run) -> StepResult:
    """Around 1000; on 6.12 a fifth more."""
    drawn = random.Random(digest([boot.kernel.name, run.argv])).gauss(0.0, 0.01)
    mean = 1200 if boot.kernel.name == "debian:6.12" else 1000
    return StepResult(step=0, do="run", exit=0, stdout=str(mean * (1 + drawn)))


def test_json_is_all_there_is_on_standard_output(cli: CommandLine, study: Path, tmp_path: Path) -> None:
    cli.machine(ScriptedMachine())
    printed = cli("run", study, "--json")
    result = _json(printed.output)
    assert {key: result[key] for key in ("study", "question", "id", "planned")} == {
        "study": "upgrade",
        "question": "What did the upgrade cost?",
        "id": 1,
        "planned": 4,
    }
    assert result["store"] == str(tmp_path / "store" / "ktrial.db")
    assert Path(result["report"]).is_file()
    assert [set(row) for row in result["comparisons"]] == [COMPARISON, COMPARISON]
    assert [row["workload"] for row in result["comparisons"]] == ["fork", "pipe"]
    assert [(row["treatment"], row["perturbation"], row["outcome"]) for row in result["trials"]]
    assert {row["outcome"] for row in result["trials"]} == {"completed"}
    assert all(row["provenance"]["qemu"] == "7.2.22" for row in result["trials"])
    assert all(row["seconds"] >= 0 for row in result["trials"])


def test_two_stores_give_the_same_comparisons(cli: CommandLine, study: Path, tmp_path: Path) -> None:
    cli.machine(ScriptedMachine())
    first = _json(cli("run", study, "--json", "--store", tmp_path / "a.db").output)
    second = _json(cli("run", study, "--json", "--store", tmp_path / "b.db", "--jobs", 1).output)
    assert first["comparisons"] == second["comparisons"]


def test_the_same_run_again_repeats_no_trial(cli: CommandLine, study: Path) -> None:
    cli.machine(ScriptedMachine())
    first = cli("run", study, "--no-html", "--json")
    again = ScriptedMachine()
    cli.machine(again)
    second = cli("run", study, "--no-html", "--json")
    assert again.programs == []
    assert second.output == first.output
    assert second.messages == "4 trials, 4 of them stored before\n"


def test_the_report_goes_where_it_is_told(cli: CommandLine, study: Path, tmp_path: Path) -> None:
    cli.machine(ScriptedMachine())
    result = cli("run", study, "--html", tmp_path / "new" / "page.html")
    assert f"report: {tmp_path}/new/page.html" in result.output.splitlines()
    assert (tmp_path / "new" / "page.html").is_file()
    assert not (tmp_path / "store" / "reports").exists()


def test_a_report_that_cannot_be_written_loses_no_result(
    cli: CommandLine, study: Path, tmp_path: Path
) -> None:
    cli.machine(ScriptedMachine())
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "reports").write_text("a file where the directory would be")
    result = cli("run", study, "--json")
    assert result.status == 1
    assert _json(result.output)["report"] is None
    assert f"The report {tmp_path}/store/reports/upgrade-1.html cannot be written: " in result.messages
    assert cli("show", "--json").status == 0
    printed = cli("run", study)
    assert printed.status == 1
    assert " ".join(printed.output.split()).endswith("from debian:6.1 to debian:6.12."), (
        "the answer is printed"
    )


def test_failed_trials_are_listed_and_change_the_exit_code(cli: CommandLine, study: Path) -> None:
    cli.machine(ScriptedMachine(_panics_on_6_12))
    result = cli("run", study, "--no-html")
    assert result.status == 3
    text = " ".join(result.output.split())
    assert "2 trials of 4 failed:" in text
    assert "debian:6.12, perturbations 0, 1: the kernel panicked: fork: Fatal exception in interrupt" in text
    assert "failed: debian:6.12, perturbation 0" in result.messages
    assert cli("run", study, "--no-html").status == 3, "a failure is not retried away"
    console = cli("show", "--console").output
    assert console.count("[ 1.0] Kernel panic\n") == 2


def test_failed_trials_run_again_where_it_is_asked_for(cli: CommandLine, study: Path) -> None:
    cli.machine(ScriptedMachine(_panics_on_6_12))
    cli("run", study, "--no-html")
    cli.machine(ScriptedMachine())
    assert cli("run", study, "--no-html", "--retry-failed").status == 0


def test_an_interrupted_run_goes_on_where_it_stopped(cli: CommandLine, study: Path) -> None:
    process = 0

    def stops(boot: Boot, run: Run) -> StepResult:
        nonlocal process
        process += 1
        if process == 4:
            os.kill(os.getpid(), signal.SIGINT)
            machine.stopped.wait(300)
            raise MachineStopped(machine="scripted")
        return number_of(boot, run)

    machine = ScriptedMachine(stops)
    cli.machine(machine)
    result = cli("run", study, "--jobs", 1)
    assert (result.status, result.output) == (130, "")
    assert "stopping: what is finished is being stored" in result.messages
    assert "ktrial: error: Interrupted: 1 of 4 trials are stored" in result.messages
    rest = ScriptedMachine()
    cli.machine(rest)
    assert "next: ktrial run 1" in cli("show").output.splitlines()
    assert cli("run", "1", "--no-html").status == 0
    assert len(rest.programs) == 5, "three trials of two workloads, but for the one that had ended"
    assert "next: ktrial run" not in cli("show").output
    assert cli("run", study, "--no-html").status == 0
    assert len(rest.programs) == 5, "the file's is the same study"


def test_perturbations_can_be_changed_for_one_run(cli: CommandLine, study: Path) -> None:
    cli.machine(ScriptedMachine())
    assert _json(cli("run", study, "--json", "--no-html", "--perturbations", 5).output)["planned"] == 10


def test_seeds_are_trials_of_each_treatment_where_cpus_have_an_order(
    cli: CommandLine, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = cli("run", study, "--seeds", 5)
    assert refused.status == 2
    assert "on the machine exact a seed does not change the order of CPUs" in refused.messages
    cli.machine(ScriptedMachine())
    known = replace(KNOWN, machines=("exact", "exact-parallel"))
    has_names(monkeypatch, known)
    study.write_text(f'{STUDY}[machine]\nkind = "exact-parallel"\ncpus = 2\n')
    assert _json(cli("run", study, "--json", "--no-html", "--seeds", 5).output)["planned"] == 10
    both = cli("run", study, "--seeds", 5, "--perturbations", 2)
    assert (both.status, both.output) == (2, "")
    assert "--seeds 5 and --perturbations 2" in both.messages


TWO_KERNELS = ("--kernel", "debian:6.1", "--kernel", "debian:6.12")


def test_scale_compares_kernels_at_one_number_of_cpus(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = ScriptedMachine()
    cli.machine(machine)
    has_names(monkeypatch, replace(KNOWN, machines=("exact", "exact-parallel")))
    options = ("--workload", "fork", "--cpus", 4, "--json", "--no-html")
    told = _json(cli("scale", *TWO_KERNELS, "--seeds", 2, *options).output)
    assert told["question"] == "How does debian:6.12 compare with debian:6.1 on 4 CPUs?"
    assert {boot.cpus for boot in machine.prepared} == {4}
    assert told["planned"] == 4
    assert [(row["workload"], row["treatment"]) for row in told["comparisons"]] == [("fork", "debian:6.12")]
    assert told["scaling"] == []
    assert "fork" in told["answer"]
    assert any("a block of instructions is atomic" in warning["text"] for warning in told["warnings"])


def test_scale_of_one_kernel_at_one_number_of_cpus_is_no_question(cli: CommandLine) -> None:
    machine = ScriptedMachine()
    cli.machine(machine)
    result = cli("scale", "--kernel", "debian:6.1", "--workload", "fork", "--cpus", 4)
    assert (result.status, result.output, machine.prepared) == (2, "", [])
    assert "one kernel on 4 CPUs leaves nothing to compare" in result.messages
    assert "--cpus 1,2,4, or a second kernel" in result.messages


def test_scale_of_several_numbers_has_three_seeds(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.machine(ScriptedMachine())
    has_names(monkeypatch, replace(KNOWN, machines=("exact", "exact-parallel")))
    options = ("--workload", "fork", "--cpus", "1,2", "--json", "--no-html")
    told = _json(cli("scale", "--kernel", "debian:6.1", *options).output)
    assert told["planned"] == 6
    # What is scripted counts instructions, which say nothing about how much gets done.
    assert [point["cpus"] for point in told["over_cpus"][0]["points"]] == [1, 2]


@pytest.mark.parametrize("command", ["scale", "run"])
def test_help_says_what_seeds_and_simulated_cpus_do_not_show(cli: CommandLine, command: str) -> None:
    told = " ".join(cli(command, "--help").output.split())
    assert "A seed decides only when" in told
    limits = {
        "scale": (
            "a block of instructions is atomic, memory is sequentially consistent, and plain loads and "
            "stores share cache lines for free"
        ),
        "run": "an unlocked update within a block of instructions is never lost",
    }
    assert limits[command] in told.replace("│ ", "")


def test_a_mistake_in_the_study_runs_nothing(cli: CommandLine, study: Path, tmp_path: Path) -> None:
    machine = ScriptedMachine()
    cli.machine(machine)
    study.write_text(STUDY.replace('"pipe"', '"pip"'))
    result = cli("run", study)
    assert (result.status, result.output, machine.prepared) == (2, "", [])
    assert result.messages.startswith(
        f'ktrial: error: {study}:3: workloads[1]: there is no workload "pip"; did you mean "pipe"?'
    )
    assert not (tmp_path / "store").exists()


def test_compare_measures_the_same_as_a_study_file(cli: CommandLine, study: Path) -> None:
    cli.machine(ScriptedMachine())
    of_file = _json(cli("run", study, "--json", "--no-html").output)
    kernels = ("--kernel", "debian:6.1", "--kernel", "debian:6.12")
    options = ("--workload", "fork,pipe", "--perturbations", 2, "--margin", "1%", "--json", "--no-html")
    compared = _json(cli("compare", *kernels, *options).output)
    assert compared["comparisons"] == of_file["comparisons"]
    assert compared["study"] == "compare"
    assert compared["question"] == "How does debian:6.12 compare with debian:6.1?"


def test_compare_hands_on_memory_and_boot_parameters(cli: CommandLine) -> None:
    machine = ScriptedMachine()
    cli.machine(machine)
    kernels = ("--kernel", "debian:5.10", "--kernel", "debian:6.1", "--kernel", "debian:6.12")
    cli("compare", *kernels, "--workload", "fork", "--memory", "1G", "--boot", "nosmt", "--boot", "a=1")
    assert {boot.memory_mib for boot in machine.prepared} == {1024}
    assert {boot.parameters for boot in machine.prepared} == {("nosmt", "a=1")}
    assert {boot.kernel.name for boot in machine.prepared} == {"debian:5.10", "debian:6.1", "debian:6.12"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--kernel", "debian:6.1", "--kernel", "debain:6.12", "--workload", "fork"),
            "--kernel: found \"debain:6.12\": there is no provider 'debain'",
        ),
        (
            ("--kernel", "debian:6.1", "--kernel", "debian:6.12", "--workload", "frok"),
            '--workload: there is no workload "frok"; did you mean "fork"?',
        ),
        (
            ("--kernel", "host", "--kernel", "debian:6.1", "--workload", "fork", "--margin", "2 ms"),
            '--margin: found "2 ms": a margin is a percentage',
        ),
        (
            ("--kernel", "host", "--kernel", "debian:6.1", "--workload", "fork", "--memory", "1"),
            '--memory: found "1": a memory size is a whole number with M or G',
        ),
        (
            ("--kernel", "host", "--kernel", "debian:6.1", "--workload", "fork", "--boot", "a b"),
            '--boot: found "a b": spaces separate boot parameters',
        ),
    ],
)
def test_a_mistake_names_its_option(cli: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    result = cli("compare", *arguments)
    assert (result.status, result.output) == (2, "")
    assert result.messages.startswith(f"ktrial: error: {message}")
    assert result.messages.endswith("hint: ktrial compare --help\n")


def test_show_finds_a_study_by_name_number_and_file(cli: CommandLine, study: Path) -> None:
    cli.machine(ScriptedMachine())
    ran = _json(cli("run", study, "--json", "--no-html").output)
    cli("compare", "--kernel", "host", "--kernel", "debian:6.1", "--workload", "fork", "--no-html")
    for wanted in ("upgrade", "1", study):
        assert _json(cli("show", wanted, "--json").output)["comparisons"] == ran["comparisons"]
    assert _json(cli("show", "--json").output)["study"] == "compare", "the latest where nothing is said"
    assert cli("show", "upgrade").output.startswith("upgrade: What did the upgrade cost?")
    assert cli("show", "--console").output == "no trial of compare failed\n"


def test_show_says_what_is_not_there(cli: CommandLine, study: Path, tmp_path: Path) -> None:
    result = cli("show")
    assert (result.status, result.output) == (1, "")
    assert "there is no study yet" in result.messages
    cli.machine(ScriptedMachine())
    cli("run", study, "--no-html")
    result = cli("show", "upgrad")
    assert result.status == 1
    assert "has no study upgrad (did you mean upgrade?)." in result.messages


def test_list_shows_every_study(cli: CommandLine, study: Path, tmp_path: Path) -> None:
    result = cli("list")
    assert (result.status, result.output) == (0, "")
    assert "there is no study in" in result.messages
    assert cli("list", "--json").output == "[]\n"
    cli.machine(ScriptedMachine(_panics_on_6_12))
    cli("run", study, "--no-html")
    [entry] = _json(cli("list", "--json").output)
    assert (entry["id"], entry["study"], entry["planned"], entry["finished"], entry["failed"]) == (
        1,
        "upgrade",
        4,
        4,
        2,
    )
    row = cli("list").output.splitlines()[1].split()
    assert row[:2] == ["1", "upgrade"]
    assert "4/4, 2 failed" in " ".join(row)


def test_a_store_that_is_none_is_refused(cli: CommandLine, study: Path, tmp_path: Path) -> None:
    cli.machine(ScriptedMachine())
    (tmp_path / "letter.db").write_text("Dear reader, " * 100)
    result = cli("run", study, "--store", tmp_path / "letter.db")
    assert (result.status, result.output) == (1, "")
    assert "letter.db is not a ktrial store" in result.messages
    assert (tmp_path / "letter.db").read_text() == "Dear reader, " * 100
