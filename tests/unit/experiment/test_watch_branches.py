"""`ktrial watch git:DIRECTORY@BRANCH`: what is fetched, built and said; and `--fetch` of versions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import CommandLine
from tests.support.fake_builds import FakeBuilder, git, has_what_builds_need
from tests.support.scripted import ScriptedMachine, a_kernel, scripted_resources

from ktrial.analysis.errors import AnalysisError, NothingToWatch
from ktrial.experiment import kernel_choice, watch
from ktrial.experiment.observer import Observer
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.errors import BuildFailed, KernelError
from ktrial.kernels.kernel_cache import Cache
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel
from ktrial.model.machine import Boot
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

BROKEN = "does not compile"
Commits = dict[str, str]
"""Commit → its subject."""


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """Another's tree, in which two branches grow."""
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    git(upstream, "init", "--quiet", "--initial-branch", "master")
    commit(upstream, "costs 1000")
    git(upstream, "branch", "linux-6.12.y")
    return upstream


@pytest.fixture
def tree(tmp_path: Path, upstream: Path) -> Path:
    """Ours, that follows it."""
    git(tmp_path, "clone", "--quiet", str(upstream), "linux")
    return tmp_path / "linux"


def commit(directory: Path, subject: str) -> str:
    git(directory, "commit", "--quiet", "--allow-empty", "--message", subject)
    return git(directory, "rev-parse", "HEAD")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tree: Path) -> list[str]:
    """Sources that were built, in order: each commit's subject says what the kernel costs."""
    commits: list[str] = []

    def requested(source: str, *, directory: Path, **_: Mapping[str, str]) -> Build:
        return Build(source=source)

    def runs(store: Store, _observer: Observer, _jobs: int | None) -> Runs:
        builder = replace(FakeBuilder().builder, build=build)
        return Runs(store, machine=ScriptedMachine(_answer), resources=scripted_resources(builder=builder))

    def build(request: Build, progress: Progress) -> Kernel:
        commits.append(request.source)
        progress("building", 1, 2)
        subject = git(tree, "log", "-1", "--format=%s", request.source.rpartition("@")[2])
        if subject == BROKEN:
            raise BuildFailed(directory=tree, problem="error: expected ';'", log="build.log")
        release = f"6.12-{subject.rpartition(' ')[2]}"
        return a_kernel(request.name, release=release, digest=digest(request.source))

    monkeypatch.setattr(watch, "requested", requested)
    monkeypatch.setattr(watch, "build", build)
    monkeypatch.setattr("ktrial.series.commit_ranges.requested", requested)
    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)
    return commits


def _answer(boot: Boot, _run: Run) -> StepResult:
    return StepResult(step=0, do="run", exit=0, stdout=boot.kernel.release.rpartition("-")[2])


def nothing(what: str, done: int = 0, total: int = 0) -> None:
    """Nobody watches."""


@dataclass
class Telling:
    """Writes down what a build says."""

    messages: list[str]

    def __call__(self, what: str, done: int = 0, total: int = 0) -> None:
        self.messages.append(what)


def test_a_branch_is_fetched_and_its_newest_commit_built(
    upstream: Path, tree: Path, built: list[str]
) -> None:
    first = git(upstream, "rev-parse", "HEAD")
    messages: list[str] = []
    watch.branch_kernel(tree, "origin/master", Telling(messages))
    second = commit(upstream, "costs 1100")
    watch.branch_kernel(tree, "origin/master", nothing)
    watch.branch_kernel(tree, "origin/linux-6.12.y", nothing)
    assert built == [f"git:{tree}@{commit}" for commit in (first, second, first)]
    assert messages[0] == "fetching what is new"


def test_a_tree_of_ones_own_needs_no_remote(upstream: Path, tree: Path, built: list[str]) -> None:
    messages: list[str] = []
    watch.branch_kernel(upstream, "master", Telling(messages))
    assert built == [f"git:{upstream}@{git(upstream, 'rev-parse', 'HEAD')}"]
    assert messages == ["building"]
    with pytest.raises(NothingToWatch, match="git knows no nowhere"):
        watch.branch_kernel(upstream, "nowhere", nothing)


def test_remotes_that_do_not_answer_are_no_verdict(tree: Path, built: list[str]) -> None:
    git(tree, "remote", "set-url", "origin", str(tree / "gone"))
    with pytest.raises(KernelError, match="git fetch"):
        watch.branch_kernel(tree, "origin/master", nothing)
    assert built == []


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return CommandLine(monkeypatch, capsys)


@pytest.mark.usefixtures("built")
def test_watching_a_branch_from_its_first_commit_to_one_that_does_not_compile(
    cli: CommandLine, upstream: Path, tree: Path, tmp_path: Path
) -> None:
    target, summary = f"git:{tree}@origin/master", tmp_path / "summary.md"
    once = ("watch", target, "--once", "--workloads", "fork", "--summary", summary)
    first = cli(*once)
    assert (first.status, "first look, 6.12-1000" in _on_one_line(first.output)) == (0, True)
    assert "nothing new" in _on_one_line(cli(*once).output)
    commit(upstream, "costs 1001")
    within = cli(*once, "--json")
    assert within.status == 0
    assert _told(within.output) == ("new", "within")
    commit(upstream, "costs 1100")
    beyond = cli(*once, "--json")
    assert beyond.status == 1
    assert _told(beyond.output) == ("new", "beyond")
    commit(upstream, BROKEN)
    broken = cli(*once, "--json")
    assert broken.status == 125
    assert _told(broken.output) == ("not-had", "not-run")
    assert _commits(within.output) is None
    commits = _commits(beyond.output)
    assert commits
    assert [entry["subject"] for entry in commits["series"]["patches"]] == ["[1] costs 1100"]
    assert (commits["problem"], commits["series"]["decision"]) == ("", "beyond")
    text = summary.read_text()
    assert "### ktrial series: 1 patch, costs 1100" in text
    assert [text.count(f"ktrial watch: {word}") for word in ("within", "beyond", "not-run")] == [3, 1, 1]
    assert "1100" in text


def _on_one_line(output: str) -> str:
    return " ".join(output.split())


def _told(output: str) -> tuple[str, str]:
    (target,) = json.loads(output)["targets"]
    return target["news"], target["decision"]


def _commits(output: str) -> dict[str, Any] | None:
    (target,) = json.loads(output)["targets"]
    commits: dict[str, Any] | None = target["commits"]
    return commits


@pytest.mark.usefixtures("built")
def test_the_commits_are_printed_or_why_nobody_looked_for_them(
    cli: CommandLine, upstream: Path, tree: Path
) -> None:
    once = ("watch", f"git:{tree}@origin/master", "--once", "--workloads", "fork")
    cli(*once)
    commit(upstream, "costs 1000")
    commit(upstream, "costs 1200")
    without = cli(*once, "--no-commits")
    assert (without.status, "ktrial series" in without.output) == (1, False)
    commit(upstream, "costs 1400")
    named = cli(*once)
    assert (named.status, "ktrial series: 1 patch, costs 1400" in named.output) == (1, True)
    git(upstream, "commit", "--quiet", "--amend", "--allow-empty", "--message", "costs 1600")
    rebased = cli(*once)
    assert "commits between were not measured: its base is not an ancestor of its tip." in rebased.output


def test_a_branch_that_is_not_there_is_no_verdict_either(cli: CommandLine, tree: Path) -> None:
    result = cli("watch", f"git:{tree}@origin/nowhere", "--once", "--workloads", "fork")
    assert result.status not in (0, 1)
    assert "git knows no origin/nowhere" in _on_one_line(result.messages)


def test_fetch_adds_what_debian_has_to_what_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def available(name: str, lists: Path, *_: object) -> list[Kernel]:
        names.append(name)
        assert lists == Cache().root / "providers" / "debian", (
            "where kernels are fetched, lists are read once"
        )
        return [
            a_kernel(f"debian:{version}", release=f"{version}.0-1-amd64")
            for version in ("6.1", "6.12", "7.2")
        ]

    monkeypatch.setattr(kernel_choice, "available", available)
    monkeypatch.setattr("ktrial.kernels.kernel_registry.all_kernels", lambda: [a_kernel("debian:5.10")])
    kernels = kernel_choice.expanded(["5.10..6.12"], str, nothing)
    fetched = kernel_choice.expanded(["5.10..6.12"], str, nothing, fetch=True)
    assert (kernels, fetched) == (("debian:5.10",), ("debian:5.10", "debian:6.1", "debian:6.12"))
    assert names == ["debian:5.10..6.12"]
    with pytest.raises(AnalysisError, match="holds no kernel in this range"):
        kernel_choice.expanded(["6.13..6.14"], str, nothing, fetch=True)
