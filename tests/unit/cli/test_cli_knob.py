"""`ktrial knob` and `ktrial host restore`, as a user types them, on a tree of files."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.knob_tree import Tree, made

from ktrial.cli.options.completion import knob_names, knob_settings, subsystem_names
from ktrial.knobs import journal_location
from ktrial.knobs.apply import changing
from ktrial.knobs.journal import Journal
from ktrial.knobs.journal_location import VARIABLE


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setenv("COLUMNS", "120")
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree = made(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "journal"))
    monkeypatch.setattr("ktrial.target.local.LocalTarget", lambda: tree.target)
    return tree


def test_knobs_are_listed_by_subsystem(cli: CommandLine) -> None:
    result = cli("knob", "list", "--subsystem", "thp")
    assert "transparent_hugepage/enabled" in result.output
    assert "swappiness" not in result.output
    every = json.loads(cli("knob", "list", "--json").output)
    assert len(every) >= 80
    assert {"name", "places", "defaults", "safety", "documentation"} <= set(every[0])


def test_the_shell_completes_knobs_and_what_can_be_set() -> None:
    assert [name for name, _ in knob_names("vm.swap")] == ["vm.swappiness"]
    assert [name for name, _ in knob_settings("vm.swap")] == ["vm.swappiness="]
    assert knob_settings("mitig") == []
    assert subsystem_names("th") == ["thp"]


def test_a_subsystem_that_is_not_there_is_told_with_those_that_are(cli: CommandLine) -> None:
    result = cli("knob", "list", "--subsystem", "trap")
    assert result.status == 2
    assert "the subsystems are block, boot," in result.messages


def test_a_knob_is_shown_with_its_places_and_its_successor(cli: CommandLine) -> None:
    result = cli("knob", "show", "kernel.sched_latency_ns").output
    assert "/sys/kernel/debug/sched/latency_ns in 5.13 to 6.5" in result
    assert "8a99b6833c88" in result
    assert "base_slice_ns, which is not the same thing" in result


def test_a_knob_is_shown_with_its_value_here_and_whether_it_can_act(
    cli: CommandLine, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    for has_swap, end in ((True, ""), (False, "; this system has no swap: it does nothing here")):
        monkeypatch.setattr("ktrial.experiment.preflight.has_swap", lambda has=has_swap: has)
        assert f"here: 60{end}\n" in cli("knob", "show", "vm.swappiness").output


def test_knobs_are_read(cli: CommandLine, tree: Tree) -> None:
    result = cli("knob", "get", "swappiness", "read_ahead_kb@*", "/sys/block/vda/queue/read_ahead_kb")
    assert result.output.splitlines() == [
        "vm.swappiness = 60",
        "queue/read_ahead_kb@vda = 128",
        "queue/read_ahead_kb@vdb = 64",
        "/sys/block/vda/queue/read_ahead_kb = 128",
    ]
    (row,) = json.loads(cli("knob", "get", "transparent_hugepage", "--json").output)
    assert (row["value"], row["text"]) == ("madvise", "always [madvise] never")


def test_one_that_cannot_be_read_does_not_hide_the_others(cli: CommandLine, tree: Tree) -> None:
    result = cli("knob", "get", "no.such", "swappiness", "mitigations")
    assert result.output == "vm.swappiness = 60\n"
    assert "no.such" in result.messages
    assert "boot parameter" in result.messages
    assert result.status == 1


def test_what_was_set_stays_until_it_is_restored(cli: CommandLine, tree: Tree) -> None:
    result = cli("knob", "set", "vm.swappiness=10", "read_ahead_kb@vda=256")
    assert result.output.splitlines() == [
        "vm.swappiness = 10, was 60",
        "queue/read_ahead_kb@vda = 256, was 128",
    ]
    assert result.messages == "to put back what was there: ktrial host restore\n"
    cli("knob", "get", "swappiness")
    assert tree.read("proc/sys/vm/swappiness") == "10"
    assert [row["knob"] for row in json.loads(cli("host", "restore", "--list", "--json").output)] == [
        "vm.swappiness",
        "queue/read_ahead_kb@vda",
    ]
    assert "dry run" in cli("host", "restore", "--dry-run").messages
    assert cli("host", "restore").output.splitlines() == [
        "queue/read_ahead_kb@vda is 128 again",
        "vm.swappiness is 60 again",
    ]
    assert cli("host", "restore").messages == "there is nothing to put back\n"


def test_somebody_elses_change_is_a_warning_and_a_status(cli: CommandLine, tree: Tree) -> None:
    cli("knob", "set", "vm.swappiness=10")
    tree.write("proc/sys/vm/swappiness", "33")
    result = cli("host", "restore")
    assert (result.status, tree.read("proc/sys/vm/swappiness")) == (1, "33")
    assert "somebody else has made it 33 since" in result.messages
    (undone,) = json.loads(cli("host", "restore", "--force", "--json").output)
    assert (undone["ending"], tree.read("proc/sys/vm/swappiness")) == ("restored", "60")


def test_any_command_puts_back_what_a_killed_one_has_left(cli: CommandLine, tree: Tree) -> None:
    tree.leave(("swappiness", "10"))
    (path,) = tree.entries
    change_owner(tree, Journal(tree.root / "journal").boot)
    result = cli("knob", "show", "swappiness")
    assert "left by an earlier ktrial that was ended: vm.swappiness is 60 again" in result.messages
    assert not path.exists()
    assert cli("knob", "show", "swappiness").messages == ""


def change_owner(tree: Tree, boot: str) -> None:
    """Another process of the running system has made the change."""
    journal = tree.journal()
    (entry,), _ = journal.entries()
    with journal.held():
        facts = {"boot": boot, "owner": entry.owner.model_copy(update={"pid": 2**22 + 1})}
        journal.put(entry.model_copy(update=facts), durable=True)


def test_while_its_owner_is_alive_nobody_else_restores(cli: CommandLine, tree: Tree) -> None:
    with changing(tree.target, "a study") as changes:
        changes.apply(("swappiness", "10"))
        assert cli("knob", "show", "swappiness").messages == ""
        assert tree.read("proc/sys/vm/swappiness") == "10"


@pytest.mark.parametrize(
    ("setting", "status", "message"),
    [
        ("swappiness", 2, "ktrial knob set swappiness=VALUE"),
        ("swappiness=2000", 2, "too large"),
        ("swappiness=1\n2", 2, "line break"),
        ("/etc/passwd=root", 2, "below /proc/sys or /sys"),
        ("mitigations=off", 1, "boot parameter"),
        ("cpu.weight=200", 2, "app.slice"),
        ("vm.percpu_pagelist_fraction=8", 1, "is gone"),
    ],
)
def test_what_cannot_be_set_says_why(
    cli: CommandLine, tree: Tree, setting: str, status: int, message: str
) -> None:
    result = cli("knob", "set", setting)
    assert result.status == status
    assert message in result.messages
    assert not tree.entries


def test_the_unit_runs_this_ktrial_on_this_journal(cli: CommandLine, tree: Tree) -> None:
    path = tree.root / journal_location.NAME
    result = cli("host", "restore", "--install-unit", "--unit-path", path)
    assert result.output == f"{path}\n"
    assert "systemctl enable ktrial-restore.service" in result.messages
    text = path.read_text()
    assert "restore\n" in text
    assert str(tree.root / "journal") in text


def test_a_dry_run_shows_the_unit_and_writes_none(cli: CommandLine, tree: Tree) -> None:
    path = tree.root / journal_location.NAME
    result = cli("host", "restore", "--install-unit", "--dry-run", "--unit-path", path)
    assert result.status == 0
    assert "[Service]" in result.output
    assert f"nothing was written: this was a dry run; it would be {path}" in result.messages
    assert not path.exists()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd checks its own units")
@pytest.mark.parametrize("directory", ["journal", "with blank", "100%"])
def test_systemd_takes_the_unit(tmp_path: Path, directory: str) -> None:
    program = shutil.which("true")
    assert program
    plain = tmp_path / "plain.service"
    plain.write_text(f"[Service]\nExecStart={program}\n")
    if what := complaint_of_systemd(plain):
        pytest.skip(f"systemd checks no unit here: {what}")
    path = journal_location.install(Path(program), tmp_path / directory, tmp_path / journal_location.NAME)
    assert complaint_of_systemd(path) == ""


def complaint_of_systemd(unit: Path) -> str:
    """What it says of a unit; empty where nothing is wrong."""
    checked = subprocess.run(
        ["systemd-analyze", "--man=no", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    return checked.stderr.strip() or ("" if checked.returncode == 0 else f"status {checked.returncode}")


def test_a_unit_that_cannot_be_written_is_an_error(cli: CommandLine, tree: Tree) -> None:
    result = cli("host", "restore", "--install-unit", "--unit-path", tree.root / "no/where/x.service")
    assert result.status == 1
    assert "The systemd unit" in result.messages
    assert "cannot be written: No such file or directory" in result.messages
