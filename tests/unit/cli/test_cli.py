"""The command line itself: help, speed of starting, completion, and what the shell sees."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.places import ROOT

import ktrial
from ktrial.workloads import DEFAULT, WHOLE_BENCHMARKS

COMMANDS = (
    "run",
    "compare",
    "tune",
    "explain",
    "profile",
    "show",
    "report",
    "list",
    "doctor",
    "kernel",
    "workload",
)
SUBCOMMANDS = (
    *(("kernel", "add"), ("kernel", "list"), ("workload", "list"), ("workload", "show")),
    *(("bisect", name) for name in ("config", "patches", "versions", "knobs")),
)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


def _ktrial(*arguments: str, shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from ktrial.cli.main import main; main()", *arguments]
    if shell:
        command = ["bash", "-c", f'"$@" {shell}', "bash", *command]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, timeout=300, check=False
    )


def test_the_help_fits_a_screen_and_names_every_command(cli: CommandLine) -> None:
    said = cli("--help")
    lines = said.output.splitlines()
    assert said.status == 0
    assert len(lines) <= 45
    assert max(len(line) for line in lines) <= 80
    for command in COMMANDS:
        assert any(line.split()[:1] == [command] for line in lines)
    assert "..." not in said.output.partition("Commands:")[2], "a summary is cut off"


@pytest.mark.parametrize("group", ["kernel", "workload", "knob", "bisect", "baseline"])
def test_no_summary_of_a_subcommand_is_cut_off(cli: CommandLine, group: str) -> None:
    listed = cli(group, "--help").output.partition("Commands:")[2]
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize("command", [*((name,) for name in COMMANDS), *SUBCOMMANDS], ids=" ".join)
def test_every_command_has_help(cli: CommandLine, command: tuple[str, ...]) -> None:
    said = cli(*command, "--help")
    assert said.status == 0
    assert said.output.startswith(f"Usage: ktrial {' '.join(command)} ")
    assert max(len(line) for line in said.output.splitlines()) <= 80


def test_help_starts_without_what_only_some_commands_need() -> None:
    program = (
        "import sys\nfrom ktrial.cli.app import app\nimport typer\n"
        "typer.main.get_command(app).main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'scipy', 'altair', 'sqlalchemy', 'pandas', 'narwhals', 'vl_convert', 'jinja2'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("LOADED []\n")


def test_the_version_is_the_packages(cli: CommandLine) -> None:
    assert cli("--version").output == f"ktrial {ktrial.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("rnu",), "No such command 'rnu'", "ktrial --help"),
        (
            ("run",),
            "Missing argument 'STUDY'",
            "name a file, or a study that comes with ktrial (ktrial run --list)",
        ),
        (("run", "x.toml", "--jobs", "0"), "--jobs", "ktrial run --help"),
        (("run", "x.toml", "--jobs", "many"), "--jobs", "ktrial run --help"),
        (("run", "x.toml", "--perturbations", "0"), "--perturbations", "ktrial run --help"),
        (("show", "--jsno"), "No such option: --jsno", "ktrial show --help"),
        (("list", "--sotre", "x"), "No such option: --sotre", "ktrial list --help"),
        (
            ("compare", "--kernel", "debian:6.1"),
            "--workload: which workload, or which command?",
            "ktrial workload list names them; a command of your own stands at the end: -- CMD ARGS",
        ),
    ],
)
def test_wrong_usage_is_one_message_and_a_hint(
    cli: CommandLine, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    said = cli(*arguments)
    assert (said.status, said.output) == (2, "")
    first, second = said.messages.splitlines()
    assert first.startswith("ktrial: error: ")
    assert message in first
    assert second == f"hint: {hint}"


def test_an_unknown_workload_is_told_with_the_nearest_name(cli: CommandLine) -> None:
    said = cli("workload", "show", "frok")
    assert (said.status, said.output) == (2, "")
    assert said.messages.startswith("ktrial: error: There is no workload frok (did you mean fork")


def test_a_workload_is_shown_with_all_that_it_can_be_told(cli: CommandLine) -> None:
    text = " ".join(cli("workload", "show", "hackbench").output.split())
    assert "parameter groups: groups of senders and receivers (from 1 to 100, else 1)" in text
    assert "parameter workers: what senders and receivers are (processes or threads, else processes)" in text
    data = json.loads(cli("workload", "show", "hackbench", "--json").output)
    assert data["name"] == "hackbench"


def test_every_workload_is_listed(cli: CommandLine) -> None:
    names = [one["name"] for one in json.loads(cli("workload", "list", "--json").output)]
    assert {*DEFAULT, *WHOLE_BENCHMARKS, "fio", "pgbench"} < set(names)
    listed = [line.split()[0] for line in cli("workload", "list").output.splitlines() if line[:1].strip()]
    heads = {"built-in", "every", "installed", "several"}
    assert sorted(word for word in listed if word not in heads) == sorted(names)


def test_without_a_command_the_help_is_shown(cli: CommandLine) -> None:
    said = cli()
    assert said.status == 2
    assert said.messages.startswith("Usage: ktrial ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = _ktrial("workload", "list", "--json", shell="| true; echo ${PIPESTATUS[0]}")
    assert done.stdout in {"0\n", "1\n"}
    assert done.stderr == ""


def test_ctrl_c_while_it_starts_is_no_traceback() -> None:
    program = (
        "import signal, threading, os, sys, time\n"
        "from ktrial.cli.main import main\n"
        "threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "sys.argv = ['ktrial', 'list']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "ktrial: error: Interrupted\n"


def test_a_full_disk_under_standard_output_is_told() -> None:
    done = _ktrial("--version", shell="> /dev/full")
    assert done.returncode == 1
    assert done.stderr == "ktrial: error: standard output cannot be written: its disk is full\n"


def test_output_that_the_terminal_cannot_show_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "ü.toml").write_text("")
    done = _ktrial("run", str(tmp_path / "ü.toml"), PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "\\xfc.toml: the study is empty" in done.stderr


def test_a_locale_of_ascii_alone_does_not_stop_it() -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = _ktrial("show", str(ROOT / "docs" / "notebooks" / "quick.zip"), **plain)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fork" in done.stdout


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ktrial ru", "run"),
        ("ktrial kernel a", "add"),
        ("ktrial workload show sys", "syscall"),
        ("ktrial compare --workload fork,sys", "fork,syscall"),
        ("ktrial run studies/q", "studies/quick.toml"),
    ],
)
def test_the_shell_completes(words: str, completed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = _ktrial(_KTRIAL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
    assert completed in done.stdout.split()


@pytest.mark.parametrize(
    ("shell", "script", "answer"),
    [
        ("zsh", "compdef _ktrial_completion ktrial", '(("run":"'),
        ("fish", "complete --command ktrial", "run\t"),
    ],
)
def test_other_shells_complete_too(shell: str, script: str, answer: str, tmp_path: Path) -> None:
    """The script that is installed, and what it asks ktrial for; the shell reads it, where it is there."""
    told = _ktrial(_KTRIAL_COMPLETE=f"source_{shell}").stdout
    assert script in told
    asked = {"_TYPER_COMPLETE_ARGS": "ktrial ru", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert answer in _ktrial(_KTRIAL_COMPLETE=f"complete_{shell}", **asked).stdout
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(told)
        subprocess.run([program, "-n", tmp_path / "script"], check=True)


def test_completion_that_is_not_possible_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "letter.db").write_text("Dear reader, " * 100)
    store = str(tmp_path / "letter.db")
    done = _ktrial(
        _KTRIAL_COMPLETE="complete_bash", COMP_WORDS="ktrial show ", COMP_CWORD="2", KTRIAL_STORE=store
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
