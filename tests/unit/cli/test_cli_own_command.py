"""`ktrial workload capture`, and commands of one's own behind `--`."""

import json
import tomllib
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import has_what_builds_need

from ktrial.cli.studies import registry
from ktrial.studyfile.workloads import workload_from_file

KERNELS = ("--kernel", "debian:6.1", "--kernel", "debian:6.12")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "data").write_text("x")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_a_capture_is_a_file_that_is_read_as_it_was_captured(place: Path, cli: CommandLine) -> None:
    done = cli("workload", "capture", "--name", "mine", "--", "cat", "data")
    assert done.status == 0
    assert done.output.startswith("mine.toml: ")
    assert "--workload ./mine.toml" in done.output
    use = workload_from_file(place / "mine.toml", registry())
    assert use.command is not None
    assert use.command.argv[1:] == (str(place / "data"),) or use.command.argv[1:] == ("data",)
    assert str(place / "data") in use.command.files


def test_a_capture_may_say_what_its_program_prints(place: Path, cli: CommandLine) -> None:
    done = cli("workload", "capture", "--name", "mine", "--metrics", "fio-json", "--", "cat", "data")
    assert done.status == 0
    assert tomllib.loads((place / "mine.toml").read_text())["workload"]["metrics"] == "fio-json"
    use = workload_from_file(place / "mine.toml", registry())
    assert use.command is not None
    assert [rule.format for rule in use.command.metrics] == ["fio-json"]


def test_its_json_has_the_workload_and_what_is_otherwise_in_a_guest(place: Path, cli: CommandLine) -> None:
    done = cli("workload", "capture", "--json", "-o", "mine.toml", "--", "sh", "-c", "echo x >made")
    told = json.loads(done.output)
    assert told["workload"] == tomllib.loads((place / "mine.toml").read_text())["workload"]
    assert "it made 1" in told["notes"][0]["text"]
    assert told["workload"]["notes"] == [told["notes"][0]["text"]]
    assert told["memory_mib"] == 512


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--name", "fork", "--", "true"), "--name: fork is a workload of ktrial's own"),
        (("--name", "a b", "--", "true"), "--name: 'a b': letters, digits"),
        (("-o", "data", "--", "true"), "--output: data is there already"),
        (("--limit", "soon", "--", "true"), "--limit: soon is no time"),
        (("--metrics", "fio-josn", "--", "true"), "no format of metrics fio-josn (did you mean fio-json?)"),
        (("--", "no-such-program"), "there is no program no-such-program on this host"),
        (("--", "false"), "the command exited with status 1 when it was run here"),
        ((), "COMMAND"),
    ],
)
def test_a_capture_that_cannot_be_is_one_message(
    place: Path, cli: CommandLine, words: tuple[str, ...], problem: str
) -> None:
    done = cli("workload", "capture", *words)
    assert done.status != 0
    assert problem in done.messages
    assert [path.name for path in place.iterdir()] == ["data"]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", *KERNELS, "--"),
        ("profile", *KERNELS[:2], "--"),
        ("explain", *KERNELS, "--"),
        ("counters", *KERNELS, "--"),
    ],
)
def test_a_command_is_to_follow_the_dashes(place: Path, cli: CommandLine, words: tuple[str, ...]) -> None:
    done = cli(*words)
    assert done.status == 2
    assert "--: a command is to follow" in done.messages


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("profile", *KERNELS[:2], "--workload", "fork", "--", "true"), "there is a command too"),
        (("explain", "study", "--", "true"), "-- COMMAND: goes with --kernel"),
        (("counters", "study", "--", "true"), "--: a command goes with --kernel"),
        (("compare", *KERNELS, "--workload", "gone.toml"), "gone.toml"),
        (("profile", *KERNELS[:2], "--workload", "gone.toml"), "gone.toml"),
        (("compare", *KERNELS, "--metrics", "wrk", "--workload", "fork"), "--metrics: it is for a command"),
        (("compare", *KERNELS, "--metrics", "wrkk", "--", "true"), "did you mean wrk?"),
        (("compare", *KERNELS, "--", "false"), "exited with status 1 when it was run here"),
    ],
)
def test_what_does_not_go_together_is_told_before_anything_boots(
    place: Path, cli: CommandLine, words: tuple[str, ...], problem: str
) -> None:
    done = cli(*words)
    assert done.status != 0
    assert problem in done.messages


@pytest.mark.parametrize("command", ["compare", "profile", "explain", "check", "counters"])
def test_help_shows_where_a_command_goes(cli: CommandLine, command: str) -> None:
    assert "[-- COMMAND…]" in cli(command, "--help").output
