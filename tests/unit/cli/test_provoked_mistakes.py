"""Mistakes that newcomers make: one line says what is wrong and what is allowed, another what to do next.

Each is a command line, a message and a hint; nothing is booted, and the exit code is not 0.
"""

from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.scripted import ScriptedMachine

from ktrial.kernels.errors import CacheUnusable
from ktrial.kernels.files import file_system_errors

PAIR = ("--kernel", "debian:6.1", "--kernel", "debian:6.12")
COMPARE = ("compare", *PAIR, "--workload", "fork")
COMMITS = (
    "git finds a commit itself: git bisect run ktrial check --source . --against BASELINE (ktrial help check)"
)
FOR_SHOW = "for example: ktrial show (ktrial show --help lists all options)"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, capsys)


MISTAKES = {
    "a command of another program": (
        ("kernel", "rm", "debian:9"),
        "ktrial kernel has no command rm (did you mean remove?); "
        "there are: add, list, show, remove, build, diff, verify.",
        "ktrial kernel --help",
    ),
    "commits are bisected by git": (
        ("bisect", "commits"),
        "ktrial bisect has no command commits; there are: config, patches, versions, knobs.",
        COMMITS,
    ),
    "a value is missing": (
        ("compare", "--margin"),
        "--margin: its value is missing: the smallest change that matters; else 1%.",
        "ktrial compare --help",
    ),
    "a word too much": (
        ("show", "quick", "slow"),
        "ktrial show takes no more than STUDY; not understood: slow.",
        FOR_SHOW,
    ),
    "a word for a number": (
        (*COMPARE, "--perturbations", "two"),
        "--perturbations: 'two' is not a whole number from 1 to 1000.",
        "ktrial compare --help",
    ),
    "a number with a fraction": (
        (*COMPARE, "--jobs", "1.5"),
        "--jobs: '1.5' is not a whole number from 1 to 1024.",
        "ktrial compare --help",
    ),
    "a choice that is none": (
        (*COMPARE, "--count", "all"),
        "--count: 'all' is not plugin or clock.",
        "ktrial compare --help",
    ),
    "an option of another command": (
        ("show", "--margin", "1%"),
        "ktrial show has no option --margin.",
        "ktrial show --help",
    ),
    "a wrong unit": (
        (*COMPARE, "--margin", "2x"),
        '--margin: found "2x": a margin is a percentage: "1 %"',
        "ktrial compare --help",
    ),
    "an unknown workload": (
        ("compare", *PAIR, "--workload", "frok"),
        '--workload: there is no workload "frok"; did you mean "fork"? '
        "There are: syscall, fork, pipe, hackbench",
        "ktrial compare --help",
    ),
    "a kernel that is not there cannot be removed": (
        ("kernel", "remove", "debian:9"),
        "There is no kernel debian:9 in the cache.",
        "what there is: ktrial kernel list",
    ),
    "a baseline that is not there cannot be removed": (
        ("check", "baseline", "remove", "before"),
        "There is no baseline before in store STORE, and no kernel of that name.",
        "ktrial check baseline list shows them",
    ),
    "a workload's file that is not there": (
        ("compare", *PAIR, "--workload", "mine.toml"),
        "The file of a workload PLACE/mine.toml cannot be read: No such file or directory.",
        "ktrial workload capture -- COMMAND writes one",
    ),
    "several mistakes": (
        (*COMPARE, "--margin", "2x", "--memory", "lots"),
        "2 mistakes on the command line:\n"
        '  --margin: found "2x": a margin is a percentage: "1 %"\n'
        '  --memory: found "lots": a memory size is a whole number with M or G: 512M, 1G',
        "ktrial compare --help",
    ),
    "a report's place that is a directory": (
        (*COMPARE, "--html", "."),
        ". cannot be written: it is a directory",
        "name a file: --html FILE",
    ),
    "a report's place below a file": (
        (*COMPARE, "--html", "notes.txt/report.html"),
        "notes.txt/report.html cannot be written: PLACE/notes.txt is not a directory",
        "name another place: --html FILE",
    ),
    "a release for two": (
        ("bisect", "versions"),
        "ktrial bisect versions needs A..B[:FLAVOUR]: two releases: 5.10..6.12.",
        "for example: ktrial bisect versions 6.1..7.2:cloud fork --dry-run "
        "(ktrial bisect versions --help lists all options)",
    ),
    "a guest without a kernel": (
        ("tune", "--machine", "exact", "--knobs", "vm", "--", "true"),
        "--kernel: the machine exact boots a kernel: name one",
        "ktrial tune --help",
    ),
    "two workloads for one": (
        ("profile", "--kernel", "debian:6.12", "--workload", "fork,pipe"),
        "--workload: fork,pipe: one workload at a time: fork or pipe",
        "ktrial profile --help",
    ),
    "two reports at once": (
        ("report", "--markdown", "--csv", "x"),
        "--markdown and --csv: give one of them: one report at a time",
        "ktrial report --help",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_what_is_allowed_and_what_to_do_next(
    cli: CommandLine, mistake: str, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("milk\n")
    words, message, hint = MISTAKES[mistake]
    result = cli(*words)
    assert result.status != 0
    messages = result.messages.replace(str(tmp_path / "ktrial.db"), "STORE").replace(str(tmp_path), "PLACE")
    assert (result.output, messages) == ("", f"ktrial: error: {message}\nhint: {hint}\n")


def test_a_missing_option_is_told_with_its_meaning_and_an_example(cli: CommandLine) -> None:
    message, hint = cli("kernel", "remove").messages.splitlines()
    assert message == (
        "ktrial: error: ktrial kernel remove needs NAME: a kernel's name, or the start of its digest."
    )
    assert hint == (
        "hint: for example: ktrial kernel remove debian:6.1 (ktrial kernel remove --help lists all options)"
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("notes.txt", "is not a kernel image: it is a text file (it starts 'milk')"),
        ("empty", "is not a kernel image: it is an empty file"),
        ("directory", "is not a kernel image: it is a directory"),
        ("absent", "there is no file"),
    ],
)
def test_a_file_that_is_no_kernel_is_told_once_and_before_a_study_is_stored(
    cli: CommandLine, tmp_path: Path, name: str, problem: str
) -> None:
    (tmp_path / "notes.txt").write_text("milk\n")
    (tmp_path / "empty").touch()
    (tmp_path / "directory").mkdir()
    cli.machine(machine := ScriptedMachine())
    result = cli("compare", "--kernel", f"path:{name}", "--kernel", "debian:6.1", "--workload", "fork")
    assert (result.status, result.messages.count(problem), result.messages.count("\n")) == (2, 1, 2)
    assert result.messages.startswith("ktrial: error: --kernel: found ")
    assert not machine.prepared
    assert not (tmp_path / "ktrial.db").exists()


def test_a_cache_below_a_place_where_nothing_can_be_made_is_told() -> None:
    cache = Path("/proc/cache/kernels")
    with pytest.raises(CacheUnusable, match="/proc/cache: No such file"), file_system_errors(cache):
        cache.mkdir(parents=True)


def test_a_study_that_is_called_nearly_so_is_named(cli: CommandLine, tmp_path: Path) -> None:
    cli.machine(ScriptedMachine())
    cli(*COMPARE, "--no-html")
    for command in ("report", "show"):
        message, hint = cli(command, "compair").messages.splitlines()
        assert message.endswith("has no study compair (did you mean compare?).")
        assert hint == "hint: ktrial list shows the studies"
    assert cli("show", "quick").messages.endswith("hint: it was not run yet: ktrial run quick\n")
    (tmp_path / "notes.txt").write_text("milk\n")
    assert cli("show", "notes.txt").messages.endswith(
        "hint: the file notes.txt is neither a study's (NAME.toml) nor a bundle\n"
    )
