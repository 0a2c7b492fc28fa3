"""The scripts in docs/series.md, run as they stand there; `ktrial` and `b4` are two that note their calls."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.fake_builds import git

PAGE = Path(__file__).parents[2] / "docs" / "series.md"
SHELL = re.compile(r"```sh\n(#!/bin/sh\n.*?)```", re.DOTALL)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the two are; what they end with is in the file `status`, what they were told in `called`."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("ktrial", "b4"):
        noted = f'echo {name} "$@" >>{tmp_path}/called\n'
        ends = f"exit $(cat {tmp_path}/status)\n" if name == "ktrial" else "echo From x\n"
        script(place / name, f"#!/bin/sh\n{noted}{ends}")
    (tmp_path / "status").write_text("0")
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    return tmp_path


def script(place: Path, text: str) -> Path:
    place.write_text(text)
    place.chmod(0o755)
    return place


def on_page(word: str) -> str:
    (recipe,) = [text for text in SHELL.findall(PAGE.read_text()) if word in text]
    return str(recipe)


@pytest.fixture
def tree(programs: Path) -> Path:
    """A tree with one commit that was pushed and one that was not, and the hook."""
    git(programs, "init", "-q", "--bare", "r.git")
    git(programs, "init", "-q", "-b", "main", "tree")
    tree = programs / "tree"
    git(tree, "commit", "-q", "--allow-empty", "-m", "base")
    git(tree, "remote", "add", "origin", "../r.git")
    git(tree, "push", "-q", "origin", "main")
    git(tree, "remote", "set-head", "origin", "main")
    git(tree, "commit", "-q", "--allow-empty", "-m", "more")
    script(tree / ".git" / "hooks" / "pre-push", on_page("hash-object"))
    return tree


def pushes(tree: Path, *words: str) -> bool:
    command: list[str | Path] = ["git", "-C", tree, "push", "-q", "origin", *words]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("status", "passes"), [(0, True), (1, False), (2, True), (125, True), (128, True)])
def test_the_hook_stops_a_push_beyond_the_limit_and_no_other(status: int, passes: bool, tree: Path) -> None:
    (tree.parent / "status").write_text(str(status))
    assert pushes(tree, "main") is passes
    base, tip = (git(tree, "rev-parse", name) for name in ("HEAD~1", "HEAD"))
    assert (tree.parent / "called").read_text() == f"ktrial series {base}..{tip} --max +0.5%\n"


def test_the_hook_measures_a_new_branch_from_where_it_left_the_remotes_own(tree: Path) -> None:
    assert pushes(tree, "HEAD:refs/heads/new")
    base = git(tree, "rev-parse", "HEAD~1")
    assert f"series {base}.." in (tree.parent / "called").read_text()


def test_the_hook_measures_a_rebased_branch_from_where_it_left_the_pushed_one(tree: Path) -> None:
    assert pushes(tree, "HEAD:refs/heads/new")
    git(tree, "commit", "-q", "--amend", "--allow-empty", "-m", "more, again")
    (tree.parent / "status").write_text("1")
    assert not pushes(tree, "--force", "HEAD:refs/heads/new")
    base, tip = (git(tree, "rev-parse", name) for name in ("HEAD~1", "HEAD"))
    assert f"series {base}..{tip} " in (tree.parent / "called").read_text()


def test_the_hook_measures_nothing_where_a_branch_is_deleted(tree: Path) -> None:
    assert pushes(tree, "HEAD:refs/heads/new")
    (tree.parent / "called").unlink()
    assert pushes(tree, "--delete", "new")
    assert not (tree.parent / "called").exists()


def a_mail(place: Path, name: str, subject: str) -> None:
    (place / "new").mkdir(parents=True, exist_ok=True)
    text = f"From: a@b\nSubject: {subject}\nMessage-ID: <{name}/1@x>\n\nSubject: [PATCH 0/9] not this\n"
    (place / "new" / name).write_text(text)


def test_each_series_of_a_maildir_is_measured_once(programs: Path) -> None:
    box, reports = programs / "box", programs / "reports"
    subjects = (
        "[PATCH v2 0/3] mm: three",
        "[PATCH v2 1/3] mm: one",
        "Re: [PATCH 0/2] x",
        "[PATCH] mm: alone",
    )
    for number, subject in enumerate(subjects):
        a_mail(box, f"m{number}", subject)
    watch = script(programs / "bin" / "measure-list", on_page("b4 -q am"))
    for _ in range(2):
        subprocess.run([watch, box, reports], check=True)
    asked = [line for line in (programs / "called").read_text().splitlines() if line.startswith("b4")]
    assert asked == ["b4 -q am -o - m0/1@x", "b4 -q am -o - m3/1@x"]
    ran = [line for line in (programs / "called").read_text().splitlines() if line.startswith("ktrial")]
    assert len(ran) == 2
    assert f"--mbox {reports}/m0_1@x.mbx --onto debian:linux-source-6.1" in ran[0]
    assert len(list((box / "cur").iterdir())) == len(subjects)
    assert not list((box / "new").iterdir())


def test_what_fails_is_noted_and_the_next_mail_is_looked_at(programs: Path) -> None:
    (programs / "status").write_text("125")
    for name in ("a", "b"):
        a_mail(programs / "box", name, "[PATCH] mm: x")
    watch = script(programs / "bin" / "measure-list", on_page("b4 -q am"))
    subprocess.run([watch, programs / "box", programs / "reports"], check=True)
    noted = (programs / "reports" / "problems").read_text().splitlines()
    assert noted == ["a/1@x: status 125", "b/1@x: status 125"]


def test_the_jobs_are_whole_yaml_and_ask_for_all_of_the_history() -> None:
    github, gitlab = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    steps = yaml.safe_load(github)["jobs"]["series"]["steps"]
    assert steps[0]["with"] == {"fetch-depth": 0}
    assert "ktrial series origin/" in steps[-1]["run"]
    job = yaml.safe_load(gitlab)["series"]
    assert job["variables"]["GIT_DEPTH"] == "0"
    assert "ktrial series" in job["script"][-1]
