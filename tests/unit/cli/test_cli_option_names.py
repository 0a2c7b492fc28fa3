"""`--workload` and `--workloads`, `--kernel` and `--kernels`: a command that takes one takes the other."""

from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.scripted import ScriptedMachine

from ktrial.cli.app import COMMANDS, DeferredCommand
from ktrial.cli.command_line import as_this_command_says

PAIRS = (("--kernel", "--kernels"), ("--workload", "--workloads"))


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    command_line = CommandLine(monkeypatch, capsys)
    command_line.machine(ScriptedMachine())
    return command_line


def test_both_names_mean_the_same(cli: CommandLine) -> None:
    kernels = ("--kernels", "debian:6.1", "--kernels=debian:6.12")
    said = cli("compare", *kernels, "--workloads", "fork,pipe", "--no-html")
    assert (said.status, "debian:6.12" in said.output, "pipe" in said.output) == (0, True, True)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_takes_both_names_where_it_has_one(name: str) -> None:
    loaded = DeferredCommand(name, COMMANDS[name]).load()
    for command in getattr(loaded, "commands", {name: loaded}).values():
        known = {option for parameter in command.params for option in parameter.opts}
        for pair in PAIRS:
            if known.isdisjoint(pair):
                continue
            said = as_this_command_says([*pair, f"{pair[0]}=x", f"{pair[1]}=x"], command.params)
            assert {word.partition("=")[0] for word in said} <= known


def test_words_of_a_program_of_ones_own_stay_as_they_are() -> None:
    command = DeferredCommand("compare", COMMANDS["compare"]).load()
    said = as_this_command_says(["--kernels", "a", "--", "x", "--kernels", "--workloads=2"], command.params)
    assert said == ["--kernel", "a", "--", "x", "--kernels", "--workloads=2"]
