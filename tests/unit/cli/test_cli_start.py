"""How `ktrial` starts: what it imports, and what that costs."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import typer
from tests.support.places import ROOT
from tests.support.report_records import a_record
from tests.support.stored_results import a_store

from ktrial.cli.app import COMMANDS, DeferredCommand, app
from ktrial.cli.command_line import KtrialCommand
from ktrial.model.workload import Direction

HEAVY = ("altair", "numpy", "pydantic", "rich", "scipy", "sqlalchemy")
PROGRAM = f"""\
import sys
from ktrial.cli.main import main
try:
    main()
finally:
    sys.stderr.write(" ".join(name for name in {HEAVY} if name in sys.modules))
"""
MOST_SECONDS = 0.45
"""Of CPU, on top of an empty program's: three times what it may be on an idle core, 0.15."""
GROUPS = [name for name, entry in COMMANDS.items() if entry.function == "app"]


@pytest.fixture(autouse=True)
def nothing_to_undo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command that starts reads the journal of what was changed: another test may have one just now."""
    monkeypatch.setenv("KTRIAL_JOURNAL", str(tmp_path / "journal"))


def completion(words: str) -> dict[str, str]:
    return {"_KTRIAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


def asked(*arguments: str, **environment: str) -> tuple[str, str]:
    """What the command line prints, and which of the heavy packages it imports."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, timeout=120, check=True
    )
    return done.stdout, done.stderr


def imported(*arguments: str, **environment: str) -> str:
    """Which of the heavy packages the command line imports."""
    printed, packages = asked(*arguments, **environment)
    assert printed
    return packages


def cpu_seconds(*command: str, **environment: str) -> float:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, env=os.environ | environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return median(once() for _ in range(5))


INTERRUPTED_AT = """\
import os, signal, sys
left = int(sys.argv.pop(1))
def import_seen(event, _):
    global left
    if event == "import":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(import_seen)
from ktrial_launcher import main
main()
"""


@pytest.mark.parametrize("imports", [2, 3, 5, 8, 12, 17, 23, 30, 45, 60, 90])
def test_ctrl_c_while_it_starts_is_no_traceback(imports: int) -> None:
    """At an instant that depends on no clock: as the so-many-th module is looked for."""
    command = [sys.executable, "-c", INTERRUPTED_AT, str(imports), "list", "--store", "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode in (-signal.SIGINT, 130), done.stderr


def test_who_ignores_ctrl_c_still_does() -> None:
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{INTERRUPTED_AT}"
    done = subprocess.run(
        [sys.executable, "-c", ignoring, "12", "--version"], capture_output=True, text=True, check=True
    )
    assert "ktrial" in done.stdout


def test_the_version_is_told_without_any_heavy_package() -> None:
    assert imported("--version") == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("run", "--help"),
        ("kernel", "--help"),
        ("kernel", "add", "--help"),
        ("bisect", "knobs", "-h"),
    ],
    ids=" ".join,
)
def test_help_is_shown_without_any_heavy_package(arguments: tuple[str, ...]) -> None:
    assert imported(*arguments) == ""


@pytest.mark.parametrize(
    "words", ["ktrial re", "ktrial run --", "ktrial kernel sh", "ktrial bisect knobs --"]
)
def test_commands_and_options_are_completed_without_any_heavy_package(words: str) -> None:
    assert imported(**completion(f"ktrial {words}")) == ""


def test_kernels_are_completed_without_any_heavy_package(tmp_path: Path) -> None:
    names = tmp_path / "kernels" / "names"
    names.mkdir(parents=True)
    (names / "debian:6.1:cloud.json").write_text('{"name": "debian:6.1:cloud", "digest": "ab"}')
    (names / "damaged.json").write_text('{"name": ')
    asked = completion("ktrial compare --kernel deb")
    assert imported(KTRIAL_CACHE=str(tmp_path), **asked) == ""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=os.environ | asked | {"KTRIAL_CACHE": str(tmp_path)},
        check=True,
    )
    assert done.stdout == "debian:6.1:cloud\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ktrial compare --workload pip", "pipe\npipe1\n"),
        ("ktrial compare --workload fork,fi", "fork,file-server\nfork,file-server1\nfork,fileio\nfork,fio\n"),
        ("ktrial knob show vm.swap", "vm.swappiness\n"),
        ("ktrial knob list --subsystem th", "thp\n"),
        ("ktrial bisect knobs --machine kv", "kvm\n"),
        ("ktrial bisect knobs --knob vm.swap", "vm.swappiness=\n"),
        ("ktrial bisect versions --metric wake-up", "wake-up latency p50\nwake-up latency p99\n"),
        ("ktrial sanity --workloads qui", "quick\n"),
        ("ktrial systems a b --workloads fork,pip", "fork,pipe\nfork,pipe1\n"),
        ("ktrial workload capture --metrics fi", "fio-json\n"),
    ],
)
def test_what_catalogues_have_is_completed_without_any_heavy_package_the_second_time(
    words: str, completed: str, tmp_path: Path
) -> None:
    said = [asked(KTRIAL_CACHE=str(tmp_path), **completion(words)) for _ in range(2)]
    assert [names for names, _ in said] == [completed, completed]
    assert ["pydantic" in packages for _, packages in said] == [True, False]
    assert said[1] == (completed, "")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(a_store(tmp_path / "store", a_record()))


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ktrial show qu", "quick-0\n"),
        ("ktrial show 7", "\n"),
        ("ktrial explain --from debian:6.", "debian:6.1\ndebian:6.12\n"),
        ("ktrial explain quick-0 --workload pi", "pipe\n"),
    ],
)
def test_what_is_stored_is_completed_without_any_heavy_package(
    words: str, completed: str, store: str
) -> None:
    assert asked(KTRIAL_STORE=store, **completion(words)) == (completed, "")


def test_studies_are_listed_without_what_stores_and_computes(store: str) -> None:
    printed, packages = asked("list", KTRIAL_STORE=store)
    assert ("quick-0" in printed, packages) == (True, "pydantic rich")
    printed, packages = asked("list", "--json", KTRIAL_STORE=store)
    assert ("quick-0" in printed, packages) == (True, "pydantic")


def test_a_history_of_exact_numbers_is_shown_without_what_judges_real_time(store: str) -> None:
    assert set(imported("history", "fork", "--store", store).split()) == {"pydantic", "rich", "sqlalchemy"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_help_of_each_begins_with(name: str) -> None:
    stand_in = typer.main.get_group(app).commands[name]
    assert isinstance(stand_in, DeferredCommand)
    help_text = stand_in.load().help
    assert help_text is not None
    assert " ".join(help_text.partition("\n\n")[0].split()) == COMMANDS[name].summary


def test_every_file_of_a_command_is_in_the_list_or_belongs_to_a_group() -> None:
    files = {file.stem for file in (ROOT / "src/ktrial/cli/commands").glob("*.py")}
    listed = {entry.module for entry in COMMANDS.values()}
    assert {one for one in files - listed - {"__init__"} if one.partition("_")[0] not in GROUPS} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_completed_without_checking_what_was_typed(name: str) -> None:
    loaded = DeferredCommand(name, COMMANDS[name]).load()
    commands: dict[str, Any] = loaded.commands if name in GROUPS else {name: loaded}
    assert commands
    for called, command in commands.items():
        assert isinstance(command, KtrialCommand), called


def test_the_choices_of_a_direction_are_those_of_the_model() -> None:
    loaded = DeferredCommand("analyze", COMMANDS["analyze"]).load()
    (better,) = (one for one in loaded.params if one.name == "better")
    assert {*better.type_descriptor.choices} == {one.value for one in Direction}


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--version",), {}),
        (("--help",), {}),
        ((), completion("ktrial re")),
        ((), completion("ktrial run --st")),
    ],
    ids=["--version", "--help", "a command completed", "an option completed"],
)
def test_starting_costs_little(arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    program = "from ktrial.cli.main import main; main()"
    empty = cpu_seconds(sys.executable, "-c", "pass")
    assert cpu_seconds(sys.executable, "-c", program, *arguments, **environment) - empty < MOST_SECONDS


def test_a_module_of_a_command_imports_no_heavy_package() -> None:
    modules = [f"ktrial.cli.commands.{entry.module}" for entry in COMMANDS.values()]
    program = f"import sys\nfor name in {modules}: __import__(name)\nprint({{*{HEAVY}}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("arguments", [("list",), ("--version",), ("show", "nothing")])
def test_a_closed_standard_output_is_told_and_nothing_is_done(arguments: tuple[str, ...]) -> None:
    program = "from ktrial.cli.main import main; main()"
    ran = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-c", program, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.startswith("ktrial: error: Standard output is closed")


def test_a_closed_standard_error_loses_its_messages_only() -> None:
    program = "from ktrial.cli.main import main; main()"
    ran = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", program, "list", "--no-such"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
