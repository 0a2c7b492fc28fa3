"""`ktrial tune` from the command line: its plan, its mistakes, its answer."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.scripted import scripted_resources
from tests.support.tuning import FILES, TunableMachine

from ktrial.experiment.resources import Resources
from ktrial.machines import Machine
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.workload import Mode
from ktrial.store.store import Store

PRESSURE = "/proc/sys/vm/vfs_cache_pressure"
ON = ("--kernel", "debian:6.12", "--workload", "fork", "--minimise", "instructions")
KNOBS = ("--knobs", "vm.vfs_cache_pressure,vm.watermark_scale_factor")


def planted(boot: Boot, written: Mapping[str, str]) -> float:
    return 800.0 if int(written.get(PRESSURE, "100")) > 300 else 1000.0


class Here(CommandLine):
    """The command line, with a machine for searches."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        super().__init__(patch, captured)
        self.there = TunableMachine(planted)

        @contextmanager
        def on_machine(
            study: Study, store: Store, *, allow_host_changes: bool
        ) -> Iterator[tuple[Machine, Resources]]:
            yield self.there, scripted_resources()

        patch.setattr("ktrial.cli.running.search.on_machine", on_machine)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return Here(monkeypatch, capsys)


def test_a_dry_run_says_what_would_be_done_and_measures_nothing(cli: Here) -> None:
    result = cli("tune", *ON, "--knobs", "vm", "--budget", 30, "--dry-run")
    assert "a guest is booted once, to ask its kernel which knobs it has" in result.messages
    assert result.status == 0, result.messages
    assert cli.there.ran == []
    assert "vm.swappiness" in result.output
    assert "6 … 1600 (logarithmic)" in result.output
    assert "some of its values lose data" in " ".join(result.output.split())
    assert "noise of one run: none (exact mode)" in result.output
    assert "at most 30 runs" in result.output


def test_a_dry_run_tells_that_there_is_nothing_to_try(cli: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the run time in force, which is 950000, no value of the period's range is allowed."""
    for name, value in (("runtime", "950000"), ("period", "1000000")):
        monkeypatch.setitem(FILES, f"/proc/sys/kernel/sched_rt_{name}_us", f"{value}\n")
    result = cli("tune", *ON, "--knobs", "kernel.sched_rt_period_us=1..5,vm.vfs_cache_pressure", "--dry-run")
    assert result.status == 2
    assert "No configuration meets the constraints" in result.messages
    assert result.output == ""


@pytest.mark.nightly
def test_runs_in_real_time_that_do_not_differ_tell_no_noise(cli: Here) -> None:
    """A program that prints three digits: the next plan took that for exact mode."""
    cli.there = TunableMachine(lambda _boot, _written: 1000.0, mode=Mode.TIMED)
    search = ("tune", *ON, "--knobs", "vm.vfs_cache_pressure", "--budget", 24, "--no-html")
    result = cli(*search, "--seed", 1)
    assert result.status == 0, result.messages
    plan = cli(*search, "--seed", 2, "--dry-run").output
    assert "noise of one run: not known yet" in plan
    assert "exact mode" not in plan


def test_a_dry_run_as_json_has_the_space_and_what_is_left_out(cli: Here) -> None:
    plan = json.loads(cli("tune", *ON, "--knobs", "vm", "--dry-run", "--json").output)
    names = [row["name"] for row in plan["space"]["dimensions"]]
    left_out = {row["name"] for row in plan["left_out"]}
    assert "vm.vfs_cache_pressure" in names
    assert {"vm.swappiness", "vm.dirty_ratio"} <= left_out, "guests have neither swap nor a disk"
    assert plan["runs"] == 65


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((*ON,), "which knobs?"),
        (("--dry-run", "--", "/bin/true"), "which knobs?"),
        ((*ON, "--knobs", "vm.swapiness"), "did you mean vm.swappiness"),
        ((*ON, "--knobs", "vm.zone_reclaim_mode"), "no named knob can be varied here"),
        ((*ON, *KNOBS, "--subject-to", "instructions<=1", "--subject-to", "instructions>=2"), "meets both"),
        ((*ON, *KNOBS, "--subject-to", "instructions"), "write a metric"),
        ((*ON, *KNOBS, "--budget", "2"), "too small"),
        ((*ON, *KNOBS, "--optimiser", "luck"), "no optimiser luck"),
        ((*ON, *KNOBS, "--", "/bin/true"), "give a workload or a command, not both"),
        ((*ON, *KNOBS, "--apply"), "--answer DIR writes"),
        ((*KNOBS, "--kernel", "debian:6.12"), "name what to measure"),
        ((*ON, *KNOBS, "--user", "nobody"), "it goes with the machine host"),
        (("nothing.toml",), "nothing.toml"),
        (
            ("--knobs", "vm", "--maximise", "--", "true"),
            "--maximise: its value is missing: --maximise METRIC -- …",
        ),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(
    cli: Here, arguments: tuple[str, ...], text: str
) -> None:
    result = cli("tune", *arguments)
    assert result.status == 2, result.messages
    assert text in " ".join(result.messages.split())
    assert cli.there.ran == []


def test_the_answer_is_printed_kept_and_written(cli: Here, tmp_path: Path) -> None:
    result = cli("tune", *ON, *KNOBS, "--budget", 24, "--answer", tmp_path / "found")
    assert result.status == 0, result.messages
    assert "vm.vfs_cache_pressure" in result.output
    assert "−20.00 %" in result.output
    settings = (tmp_path / "found/sysctl.d/99-tune-fork.conf").read_text()
    assert "\nvm.vfs_cache_pressure = " in settings
    assert "it was 100" in settings
    assert "vm.watermark_scale_factor" not in settings
    undo = (tmp_path / "found/undo.sh").read_text()
    assert "printf '%s\\n' 100 > /proc/sys/vm/vfs_cache_pressure" in undo
    ran = len(cli.there.ran)
    again = json.loads(cli("show", "tune-fork", "--json").output)
    assert list(again["confirmed"]) == ["vm.vfs_cache_pressure"]
    page = cli("report", "tune-fork", "--html", tmp_path / "page.html")
    assert page.status == 0
    assert "vm.vfs_cache_pressure" in (tmp_path / "page.html").read_text()
    assert "tune-fork" in cli("list").output
    markdown = cli("report", "tune-fork", "--markdown").output
    assert "| `vm.vfs_cache_pressure` | `100` |" in markdown
    (row,) = csv.DictReader(io.StringIO(cli("report", "tune-fork", "--csv").output, newline=""))
    assert row["verdict"] == "better"
    assert float(row["ratio"]) == pytest.approx(0.8)
    same = cli("tune", *ON, *KNOBS, "--budget", 24, "--no-html")
    assert same.status == 0
    assert len(cli.there.ran) == ran, "what is stored is not run again"
    assert cli("tune", "--resume").status == 1


def test_a_search_that_ended_with_an_error_is_not_gone_on_with(cli: Here) -> None:
    result = cli("tune", *ON, *KNOBS, "--budget", 40, "--subject-to", "instructions<=1")
    assert result.status == 1
    assert "None of the first" in result.messages
    assert "there is no search that was interrupted" in cli("tune", "--resume").messages
    assert "None of the first" in cli("show", "tune-fork").messages


def test_a_study_file_can_search_and_is_not_run_as_a_study(cli: Here, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'workloads = ["fork"]\n[machine]\nkernel = "debian:6.12"\n'
        '[search]\nknobs = ["vm.vfs_cache_pressure"]\nbudget = 30\n'
    )
    result = cli("run", file)
    assert (result.status, "ktrial tune" in result.messages) == (2, True)
    assert cli("tune", file, "--dry-run").status == 0
    file.write_text(f'{file.read_text()}maximise = ["a", "b", "c"]\n[factors.kernel]\nlevels = ["a", "b"]\n')
    result = cli("tune", file)
    assert result.status == 2
    assert "it cannot do both" in result.messages
