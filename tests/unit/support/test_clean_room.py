"""The clean room follows hints as a reader would, says what the host lacks, and goes on where it was."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.clean_room import __main__ as clean_room
from tests.clean_room.__main__ import Result
from tests.clean_room.room import hint_in, problem


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (
            "hint: as root: apt-get update && apt-get install -y --no-install-recommends cpio kmod\n",
            "apt-get install -y --no-install-recommends cpio kmod",
        ),
        (
            "hint: sudo apt-get update && sudo apt-get install --no-install-recommends patch; or --trust\n",
            "apt-get install -y --no-install-recommends patch",
        ),
        ("hint: sudo apt-get install patch\n", ""),
        ("make: *** [Makefile:34: demo] Error 1\n", ""),
    ],
)
def test_a_hint_is_followed_where_it_is_one_whole_line(text: str, command: str) -> None:
    assert hint_in(text) == command


def test_what_the_host_lacks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "mmdebstrap is not installed" in problem()
    assert hint_in(problem())


def test_what_passed_with_this_commit_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clean_room, "WORK", tmp_path)
    monkeypatch.setattr(clean_room, "problem", lambda: "")
    commit = clean_room.commit()
    before = [
        Result(commit, "trixie", "root", "demo", passed=True),
        Result("another", "trixie", "newcomer", "demo", passed=True),
        Result(commit, "bookworm", "root", "demo", passed=False, error="make demo: exit status 2"),
    ]
    lines = "".join(json.dumps(asdict(result)) + "\n" for result in before)
    (tmp_path / "results.jsonl").write_text(lines)
    words = ["--part", "demo", "--system", "bookworm", "trixie"]
    assert clean_room.main([*words, "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Debian 12, newcomer, demo: left",
        "Debian 12, root, demo: left",
        "Debian 13, newcomer, demo: left",
        "Debian 13, root, demo: passed before",
    ]


def test_a_part_that_fails_is_kept_and_fails_the_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clean_room, "WORK", tmp_path)
    monkeypatch.setattr(clean_room, "problem", lambda: "")

    def attempt(system: str, user: str, part: str) -> Result:
        error = "make demo: exit status 2" if user == "root" else ""
        return Result(clean_room.commit(), system, user, part, passed=not error, error=error, cpu_seconds=7)

    monkeypatch.setattr(clean_room, "attempt", attempt)
    words = ["--part", "demo", "--system", "trixie"]
    assert clean_room.main(words) == 1
    printed = capsys.readouterr().out
    assert "Debian 13, root, demo: FAILED: make demo: exit status 2 (7 s of CPU" in printed
    assert clean_room.main([*words, "--table"]) == 0
    assert "| Debian 13 | root | demo | failed: make demo: exit status 2 | 7 |" in capsys.readouterr().out
    assert clean_room.main([*words, "--user", "newcomer"]) == 0
    assert "passed before" in capsys.readouterr().out
