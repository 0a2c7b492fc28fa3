"""How `ktrial` starts and ends: its imports and what they cost, help, completion, and what the shell sees."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.support.command_line import CommandLine
from tests.support.places import ROOT
from tests.support.report_records import a_record
from tests.support.runs_of_tests import at_night, by_night
from tests.support.stored_results import a_store

import ktrial
from ktrial.cli.app import COMMANDS, GROUPS, CommandEntry, DeferredCommand
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
PLAIN = "from ktrial.cli.main import main; main()"
MOST_SECONDS = 0.45
"""Of CPU, on top of an empty program's: three times what it may be on an idle core, 0.15."""


@pytest.fixture(autouse=True)
def nothing_to_undo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command that starts reads the journal of what was changed: another test may have one just now."""
    monkeypatch.setenv("KTRIAL_JOURNAL", str(tmp_path / "journal"))


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(a_store(tmp_path / "store", a_record()))


def run(*arguments: str, program: str = PLAIN, shell: str = "", **environment: str) -> Any:
    command = [sys.executable, "-c", program, *arguments]
    if shell:
        command = ["bash", "-c", f'"$@" {shell}', "bash", *command]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, timeout=300, check=False
    )


def imported(*arguments: str, **environment: str) -> tuple[str, str]:
    """What the command line prints, and which of the heavy packages it imports."""
    ran = run(*arguments, program=PROGRAM, **environment)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def completion(words: str) -> dict[str, str]:
    return {"_KTRIAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


def test_the_help_fits_a_screen_and_names_every_command(cli: CommandLine) -> None:
    result = cli("--help")
    lines = result.output.splitlines()
    assert result.status == 0
    assert len(lines) <= 45
    assert max(len(line) for line in lines) <= 80
    assert "..." not in result.output.partition("Measure:")[2], "a summary is cut off"
    for heading, commands in GROUPS.items():
        section = result.output.partition(f"\n\n{heading}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines()] == list(commands)


@pytest.mark.parametrize(
    ("word", "command"),
    [
        ("sanity", "ktrial check OLD NEW"),
        ("baseline", "ktrial check baseline"),
        ("counters", "ktrial explain counters"),
        ("recommend", "ktrial matrix recommend"),
        ("systems", "ktrial matrix systems"),
        ("revalidate", "ktrial tune revalidate"),
        ("calibrate", "ktrial timed calibrate"),
        ("plan", "ktrial timed plan"),
        ("quiesce", "ktrial host quiesce"),
        ("restore", "ktrial host restore"),
        ("verify", "ktrial replicate STUDY"),
        ("version", "ktrial --version"),
    ],
)
def test_a_command_that_goes_by_another_name_is_told_by_that_also_where_it_is_mistyped(
    word: str, command: str, cli: CommandLine
) -> None:
    result = cli(word, "--store", "x")
    assert (result.status, result.output) == (2, "")
    assert result.messages.startswith(f"ktrial: error: There is no command {word}: use {command}\n")
    words = [part for part in command.split()[1:] if not part.isupper()]
    assert cli(*words, *(["--help"] if words != ["--version"] else [])).status == 0
    mistyped = word[:-2] + word[:-3:-1]
    assert f"did you mean {command}?" in cli(mistyped).messages


def entries(
    commands: Mapping[str, CommandEntry], *words: str
) -> Iterator[tuple[tuple[str, ...], CommandEntry]]:
    for name, entry in commands.items():
        yield (*words, name), entry
        yield from entries(entry.forms, *words, name)


ENTRIES = dict(entries(COMMANDS))


@pytest.mark.parametrize("words", ENTRIES, ids=" ".join)
def test_every_command_has_help_completes_without_checks_and_is_listed_with_its_summary(
    words: tuple[str, ...], cli: CommandLine
) -> None:
    entry = ENTRIES[words]
    stand_in = DeferredCommand(words[-1], entry)
    loaded = stand_in.load()
    assert " ".join(loaded.help.partition("\n\n")[0].split()) == entry.summary
    is_group = entry.function == "app"
    commands: dict[str, Any] = loaded.commands if is_group else {"": loaded}
    assert commands
    for subcommand, command in commands.items():
        assert isinstance(command, KtrialCommand), subcommand
        path = [*words, *([subcommand] if subcommand else [])]
        result = cli(*path, "--help")
        assert result.status == 0
        assert result.output.startswith(f"Usage: ktrial {' '.join(path)} ")
        assert max(len(line) for line in result.output.splitlines()) <= 80
        for word, form in entry.forms.items():
            assert f"ktrial {' '.join(words)} {word} " in result.output
            assert form.summary in " ".join(result.output.split())
    if is_group:
        assert "..." not in cli(*words, "--help").output.partition("Commands:")[2], "a summary is cut off"


def test_every_file_of_commands_is_in_the_list() -> None:
    files = {file.stem for file in (ROOT / "src/ktrial/cli/commands").glob("*.py")}
    assert files - {"__init__"} == {entry.module for entry in COMMANDS.values()}


def test_the_choices_of_a_direction_are_those_of_the_model() -> None:
    loaded = DeferredCommand("analyze", COMMANDS["analyze"]).load()
    (better,) = (parameter for parameter in loaded.params if parameter.name == "better")
    assert {*better.type_descriptor.choices} == {direction.value for direction in Direction}


def test_the_version_and_the_help_without_a_command(cli: CommandLine) -> None:
    assert cli("--version").output == f"ktrial {ktrial.__version__}\n"
    result = cli()
    assert (result.status, result.messages.startswith("Usage: ktrial ")) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("rnu",), "ktrial has no command rnu (did you mean run?).", "ktrial --help"),
        (
            ("run",),
            "Missing argument 'STUDY'",
            "name a file, or a study that comes with ktrial (ktrial run --list)",
        ),
        (
            ("run", "x.toml", "--jobs", "0"),
            "--jobs: '0' is not a whole number from 1 to 1024.",
            "ktrial run --help",
        ),
        (
            ("run", "x.toml", "--jobs", "many"),
            "--jobs: 'many' is not a whole number from 1 to 1024.",
            "ktrial run --help",
        ),
        (
            ("run", "x.toml", "--perturbations", "0"),
            "--perturbations: '0' is not a whole number from 1 to 1000.",
            "ktrial run --help",
        ),
        (
            ("show", "--jsno"),
            "ktrial show has no option --jsno (did you mean --json?).",
            "ktrial show --help",
        ),
        (
            ("list", "--sotre", "x"),
            "ktrial list has no option --sotre (did you mean --store?).",
            "ktrial list --help",
        ),
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
    result = cli(*arguments)
    assert (result.status, result.output) == (2, "")
    first, second = result.messages.splitlines()
    assert first.startswith("ktrial: error: ")
    assert message in first
    assert second == f"hint: {hint}"


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--version",), {}),
        at_night(("--help",), {}),
        (("run", "--help"), {}),
        at_night(("kernel", "--help"), {}),
        at_night(("kernel", "add", "--help"), {}),
        (("bisect", "knobs", "-h"), {}),
        at_night((), completion("ktrial re")),
        at_night((), completion("ktrial run --")),
        ((), completion("ktrial kernel sh")),
        ((), completion("ktrial bisect knobs --")),
    ],
    ids=str,
)
def test_help_commands_and_options_need_no_heavy_package(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    printed, packages = imported(*arguments, **environment)
    assert (bool(printed), packages) == (True, "")


def test_a_module_of_a_command_imports_no_heavy_package() -> None:
    modules = [f"ktrial.cli.commands.{entry.module}" for entry in COMMANDS.values()]
    program = f"import sys\nfor name in {modules}: __import__(name)\nprint({{*{HEAVY}}} & {{*sys.modules}})"
    assert run(program=program).stdout == "set()\n"


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        at_night(("--version",), {}),
        (("--help",), {}),
        at_night((), completion("ktrial re")),
        ((), completion("ktrial run --st")),
    ],
    ids=["--version", "--help", "a command completed", "an option completed"],
)
def test_starting_costs_little(arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    def cpu_seconds(program: str, *arguments: str) -> float:
        def once() -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run(*arguments, program=program, **environment)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        return median(once() for _ in range(by_night(5, 3)))

    assert cpu_seconds(PLAIN, *arguments) - cpu_seconds("pass") < MOST_SECONDS


def test_studies_are_listed_without_what_stores_and_computes(store: str) -> None:
    printed, packages = imported("list", KTRIAL_STORE=store)
    assert ("quick-0" in printed, packages) == (True, "pydantic rich")
    printed, packages = imported("list", "--json", KTRIAL_STORE=store)
    assert ("quick-0" in printed, packages) == (True, "pydantic")


@pytest.mark.parametrize(
    ("words", "packages"),
    [
        ("show quick-0", {"pydantic", "rich", "sqlalchemy"}),
        ("show quick-0 --json", {"pydantic", "sqlalchemy"}),
        ("report quick-0 --markdown", {"pydantic", "sqlalchemy"}),
    ],
)
def test_a_result_of_exact_numbers_is_shown_without_what_judges_real_time(
    words: str, packages: set[str], store: str
) -> None:
    assert set(imported(*words.split(), KTRIAL_STORE=store)[1].split()) == packages


def test_a_history_of_exact_numbers_is_shown_without_what_judges_real_time(store: str) -> None:
    _, packages = imported("history", "fork", "--store", store)
    assert set(packages.split()) == {"pydantic", "rich", "sqlalchemy"}


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ktrial ru", "run\n"),
        at_night("ktrial kernel a", "add\n"),
        ("ktrial run studies/q", "studies/quick.toml\n"),
        at_night("ktrial compare --workload pip", "pipe\npipe1\n"),
        ("ktrial compare --workload fork,fi", "fork,file-server\nfork,file-server1\nfork,fileio\nfork,fio\n"),
        ("ktrial knob show vm.swap", "vm.swappiness\n"),
        at_night("ktrial knob list --subsystem th", "thp\n"),
        at_night("ktrial bisect knobs --machine kv", "kvm\n"),
        at_night("ktrial bisect knobs --knob vm.swap", "vm.swappiness=\n"),
        ("ktrial bisect versions --metric wake-up", "wake-up latency p50\nwake-up latency p99\n"),
        ("ktrial check --workloads qui", "quick\n"),
        at_night("ktrial check ba", "baseline\n"),
        ("ktrial check baseline li", "list\n"),
        ("ktrial check 6.1 pip", "pipe\npipe1\n"),
        at_night("ktrial compare 6.1 6.12 fork,pip", "fork,pipe\nfork,pipe1\n"),
        at_night("ktrial explain 6.1 6.12 pip", "pipe\npipe1\n"),
        at_night("ktrial matrix systems a b --workloads fork,pip", "fork,pipe\nfork,pipe1\n"),
        ("ktrial workload capture --metrics fi", "fio-json\n"),
    ],
)
def test_what_catalogues_have_is_completed(
    words: str, completed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    printed, packages = imported(**completion(words))
    assert (printed, {"numpy", "scipy", "sqlalchemy"} & {*packages.split()}) == (completed, set())


@pytest.mark.parametrize(
    ("words", "completed", "packages"),
    [
        ("ktrial show qu", "quick-0\n", ""),
        ("ktrial show 7", "\n", ""),
        ("ktrial explain --from debian:6.", "debian:6.1\ndebian:6.12\n", "pydantic"),
        ("ktrial explain quick-0 --workload pi", "pipe\n", "pydantic"),
        ("ktrial explain qu", "quick-0\n", ""),
        ("ktrial explain quick-0 pi", "pipe\n", "pydantic"),
    ],
)
def test_what_is_stored_is_completed_without_what_stores_and_computes(
    words: str, completed: str, packages: str, store: str
) -> None:
    assert imported(KTRIAL_STORE=store, **completion(words)) == (completed, packages)


def test_kernels_are_completed_without_any_heavy_package(tmp_path: Path) -> None:
    names = tmp_path / "kernels" / "names"
    names.mkdir(parents=True)
    (names / "debian:6.1:cloud.json").write_text('{"name": "debian:6.1:cloud", "digest": "ab"}')
    (names / "damaged.json").write_text('{"name": ')
    words = completion("ktrial compare --kernel deb")
    assert imported(KTRIAL_CACHE=str(tmp_path), **words) == ("debian:6.1:cloud\n", "")


def test_completion_that_is_not_possible_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "letter.db").write_text("Dear reader, " * 100)
    ran = run(KTRIAL_STORE=str(tmp_path / "letter.db"), **completion("ktrial show "))
    assert (ran.stdout.strip(), ran.stderr) == ("", "")


@pytest.mark.parametrize(
    ("shell", "script", "answer"),
    [
        ("zsh", "compdef _ktrial_completion ktrial", '(("run":"'),
        ("fish", "complete --command ktrial", "run\t"),
    ],
)
def test_other_shells_complete_too(shell: str, script: str, answer: str, tmp_path: Path) -> None:
    """The script that is installed, and what it asks ktrial for; the shell reads it, where it is there."""
    installed = run(_KTRIAL_COMPLETE=f"source_{shell}").stdout
    assert script in installed
    words = {"_TYPER_COMPLETE_ARGS": "ktrial ru", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert answer in run(_KTRIAL_COMPLETE=f"complete_{shell}", **words).stdout
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(installed)
        subprocess.run([program, "-n", tmp_path / "script"], check=True)


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


@pytest.mark.parametrize("imports", [2, 5, 12, 45, *map(at_night, (3, 8, 17, 23, 30, 60, 90))])
def test_ctrl_c_while_it_starts_is_no_traceback(imports: int) -> None:
    """At an instant that depends on no clock: as the so-many-th module is looked for."""
    ran = run(str(imports), "list", "--store", "/nowhere", program=INTERRUPTED_AT)
    assert "Traceback" not in ran.stderr
    assert ran.returncode in (-signal.SIGINT, 130), ran.stderr


def test_who_ignores_ctrl_c_still_does() -> None:
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{INTERRUPTED_AT}"
    ran = run("12", "--version", program=ignoring)
    assert (ran.returncode, "ktrial" in ran.stdout) == (0, True)


def test_a_reader_that_goes_away_is_no_error() -> None:
    ran = run("workload", "list", "--json", shell="| true; echo ${PIPESTATUS[0]}")
    assert ran.stdout in {"0\n", "1\n"}
    assert ran.stderr == ""


def test_a_full_disk_under_standard_output_is_told() -> None:
    ran = run("--version", shell="> /dev/full")
    assert ran.returncode == 1
    assert ran.stderr == "ktrial: error: standard output cannot be written: its disk is full\n"


@pytest.mark.parametrize("arguments", [("list",), ("--version",), ("show", "nothing")])
def test_a_closed_standard_output_is_told_and_nothing_is_done(arguments: tuple[str, ...]) -> None:
    ran = run(*arguments, shell=">&-")
    assert ran.returncode == 1
    assert ran.stderr.startswith("ktrial: error: Standard output is closed")


def test_a_closed_standard_error_loses_its_messages_only() -> None:
    ran = run("list", "--no-such", shell="2>&-")
    assert (ran.returncode, ran.stdout) == (2, "")


def test_output_that_the_terminal_cannot_show_does_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "ü.toml").write_text("")
    ran = run("run", str(tmp_path / "ü.toml"), PYTHONIOENCODING="ascii")
    assert ran.returncode == 2
    assert "\\xfc.toml: the study is empty" in ran.stderr
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    ran = run("show", str(ROOT / "docs" / "notebooks" / "quick.zip"), **ascii_only)
    assert (ran.returncode, ran.stderr, "fork" in ran.stdout) == (0, "", True)
