"""Histories of kernels that are commits of a real git tree: in the tree's order, by whatever name."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.commit_trees import a_tree
from tests.support.fake_builds import a_buildable_source, git
from tests.support.report_records import FIVE, a_record
from tests.support.stored_results import a_store

from ktrial.kernels.build.builds import build
from ktrial.kernels.build.requests import requested
from ktrial.kernels.providers.git import commit_places, pinned, unordered_trees
from ktrial.model.study import StudyRecord


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    repository = a_tree(tmp_path / "linux", "base", "one", "two", "three")
    git(repository, "branch", "topic")
    return repository


def measured(tmp_path: Path, *names: str) -> str:
    """A store with `fork` on kernels of one version, which cost 10 % more each, in this order."""
    text = a_record(FIVE[: len(names)], ("fork",)).model_dump_json()
    for kernel, name in zip(FIVE, names, strict=False):
        text = text.replace(f'"{kernel}"', f'"{name}"')
    record = StudyRecord.model_validate_json(text)
    trials = tuple(
        trial.model_copy(
            update={"provenance": trial.provenance.model_copy(update={"kernel_release": "6.1.0-g12"})}
        )
        for trial in record.trials
    )
    return str(a_store(tmp_path, record.model_copy(update={"trials": trials})))


def shown(cli: CommandLine, store: str, *options: str) -> tuple[list[str], list[str]]:
    """The kernels of the history, in its order, and the verdicts of its changes."""
    result = json.loads(cli("history", "fork", "--json", "--store", store, *options).output)
    (line,) = result["lines"]
    assert result["missing"] == []
    return [point["version"] for point in line["points"]], [point["verdict"] for point in line["changes"]]


def test_a_child_that_was_measured_first_stands_behind_its_parent(
    tree: Path, tmp_path: Path, cli: CommandLine
) -> None:
    child, parent, oldest = (pinned(f"git:{tree}@topic{back}") for back in ("", "~1", "~3"))
    store = measured(tmp_path, child, parent, oldest)
    assert shown(cli, store) == ([oldest, parent, child], ["better", "better"])
    assert shown(cli, store, "--by-time")[0] == [child, parent, oldest]


def test_commits_are_named_by_branch_and_keep_the_order_that_is_asked_for(
    tree: Path, tmp_path: Path, cli: CommandLine
) -> None:
    child, parent = (pinned(f"git:{tree}@topic{back}") for back in ("", "~1"))
    store = measured(tmp_path, parent, child)
    assert shown(cli, store, "--kernels", "git:linux@topic~1,git:linux@topic") == ([parent, child], ["worse"])
    assert shown(cli, store, "--kernels", "git:linux@topic,git:linux@topic~1") == (
        [child, parent],
        ["better"],
    )


def test_builds_of_commits_stand_as_their_commits_do(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ktrial kernel build git:linux@topic`, whose name tells no commit; the branch has moved since."""
    for check in ("check_tools", "check_tools_of"):
        monkeypatch.setattr(f"ktrial.kernels.build.builds.{check}", lambda *_, **__: None)
    source = a_buildable_source(tmp_path / "source")
    git(source, "init", "--quiet", "--initial-branch", "topic")
    names = {}
    for commit in ("parent", "child", "later"):
        (source / "kernel/fork.c").write_text(f"int {commit};\n")
        git(source, "add", ".")
        git(source, "commit", "--quiet", "--message", commit)
        git(source, "tag", "-a", "-m", commit, commit)
    for commit in ("child", "parent"):
        git(source, "branch", "--force", "moving", commit)
        options = ("HZ_1000=y",) if commit == "child" else ()
        names[commit] = build(requested(f"git:{source}@moving", options=options, directory=tmp_path)).name
    git(source, "branch", "--force", "moving", "later")
    store = measured(tmp_path, names["child"], names["parent"])
    assert shown(cli, store) == ([names["parent"], names["child"]], ["better"])
    expected = f"{names['child']},{names['parent']}"
    assert shown(cli, store, "--kernels", expected) == ([names["child"], names["parent"]], ["worse"])


def test_commits_of_a_tree_that_is_gone_stand_as_they_were_measured(
    tree: Path, tmp_path: Path, cli: CommandLine
) -> None:
    child, parent = (pinned(f"git:{tree}@topic{back}") for back in ("", "~1"))
    store = measured(tmp_path, child, parent)
    untold = f"warning: {tree} does not tell the order of its commits"
    assert untold not in cli("history", "fork", "--store", store).messages
    tree.rename(tmp_path / "elsewhere")
    assert shown(cli, store)[0] == [child, parent]
    assert untold in cli("history", "fork", "--store", store).messages
    result = cli("history", "fork", "--kernels", f"{parent},{child}", "--store", store)
    assert untold not in result.messages, "the order is asked for"
    assert untold not in cli("history", "fork", "--by-time", "--store", store).messages


def test_only_several_commits_of_one_release_need_their_tree(tmp_path: Path) -> None:
    point, second = (f"git:{tmp_path}@{letter * 12}" for letter in "ab")
    assert unordered_trees({point: "6.1.0", second: "6.1.0", "debian:6.1": "6.1.0"}, {}) == (tmp_path,)
    assert unordered_trees({point: "6.1.0", second: "6.1.0"}, {point: 0}) == (tmp_path,)
    assert unordered_trees({point: "6.1.0", second: "6.1.0"}, {point: 1, second: 0}) == ()
    assert unordered_trees({point: "6.1.0-g1", second: "6.1.0-g2"}, {}) == (tmp_path,)
    assert unordered_trees({point: "6.1.0", second: "6.2.0"}, {}) == ()
    assert unordered_trees({point: "6.1.0", "build:x": "6.1.0"}, {}) == ()


def test_commits_of_branches_stand_behind_what_they_were_made_from(tree: Path) -> None:
    git(tree, "checkout", "--quiet", "-b", "side", "topic~2")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "side")
    names = [f"git:{tree}@{revision}" for revision in ("side", "topic", "topic~2", "nowhere")]
    places = commit_places([*names, "debian:6.1", "build:x"])
    assert set(places) == set(names[:3])
    assert places[names[2]] == min(places.values())
    assert commit_places([names[0]]) == {}, "what is alone has no place"
