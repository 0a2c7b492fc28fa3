"""Ranges of commits: along first parents, each as it was at the start; what is no range says why."""

from pathlib import Path

import pytest
from tests.support.fake_builds import git

from ktrial.kernels.errors import KernelUsageError
from ktrial.kernels.patch_series import series_in_git, undoing
from ktrial.model.kernel import Build


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """v1, a, b (a merge of side), c on main; v1, side on side."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    _commit(tree, "a.c", "v1")
    git(tree, "tag", "v1")
    git(tree, "checkout", "-qb", "side")
    _commit(tree, "side.c", "side")
    git(tree, "checkout", "-q", "main")
    _commit(tree, "a.c", "a")
    git(tree, "merge", "-q", "--no-ff", "-m", "b", "side")
    _commit(tree, "c.c", "c")
    return tree


def _commit(tree: Path, name: str, text: str) -> None:
    (tree / name).write_text(f"{text}\n")
    git(tree, "add", name)
    git(tree, "commit", "-qm", text)


def test_each_first_parent_is_a_step_and_a_merge_is_one_too(tree: Path) -> None:
    series = series_in_git(tree, "v1..main")
    assert [patch.subject for patch in series.patches] == ["a", "b", "c"]
    assert [patch.merge for patch in series.patches] == [False, True, False]
    assert [patch.paths for patch in series.patches] == [("a.c",), ("side.c",), ("c.c",)]
    assert series.base == f"git:{tree}@{git(tree, 'rev-parse', 'v1')}"
    assert series.notes == ("1 step is a merge: such a step contains all that the merge brings",)


def test_what_a_rebase_moves_meanwhile_stays_as_it_was(tree: Path) -> None:
    series = series_in_git(tree, "v1..")
    tip = git(tree, "rev-parse", "HEAD")
    git(tree, "reset", "-q", "--hard", "v1")
    build = series.source(Build(source=series.base), 3)
    assert build.source == f"git:{tree}@{tip}"
    assert series.source(Build(source=series.base), 0).source == series.base


def test_a_commit_that_is_left_out_is_undone_in_those_after_it(tree: Path) -> None:
    series = series_in_git(tree, "v1..main")
    patches = tuple(patch.model_copy(update={"undo": undoing(tree, patch)}) for patch in series.patches)
    series = series.model_copy(update={"patches": patches})
    build = series.source(Build(source=series.base), 3, frozenset({1}))
    assert build.source.endswith(patches[2].commit)
    (undone,) = build.patches
    assert Path(undone.path).read_text().endswith("-a\n+v1\n")
    # Those that stand last are simply not reached.
    last = series.source(Build(source=series.base), 3, frozenset({2, 3}))
    assert (last.source.endswith(patches[0].commit), last.patches) == (True, ())


def test_a_dirty_tree_is_told_and_not_measured(tree: Path) -> None:
    (tree / "a.c").write_text("dirty\n")
    assert series_in_git(tree, "HEAD~1..HEAD").notes == (
        "1 changed file of the work tree is in no commit: left out",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v1", "it is not BASE..TIP"),
        ("v1...main", "it is not BASE..TIP"),
        ("..main", "it is not BASE..TIP"),
        ("v1..v1", "both ends are the same commit"),
        ("nothing..main", "there is no commit 'nothing'"),
        ("--all..main", "there is no commit '--all'"),
        ("main..v1", "its base is not an ancestor of its tip"),
        ("side..main", "side does not lie on the line of first parents"),
    ],
)
def test_what_is_no_range_says_why(text: str, message: str, tree: Path) -> None:
    with pytest.raises(KernelUsageError, match=message) as refused:
        series_in_git(tree, text)
    assert refused.value.advice


def test_a_shallow_clone_says_how_to_deepen_it(tree: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "2", f"file://{tree}", "shallow")
    shallow = tmp_path / "shallow"
    assert len(series_in_git(shallow, "HEAD~1..HEAD").patches) == 1
    with pytest.raises(KernelUsageError, match="a shallow clone") as refused:
        series_in_git(shallow, f"{git(tree, 'rev-parse', 'v1')}..HEAD")
    assert "--unshallow" in refused.value.advice


def test_a_directory_without_git_says_so(tmp_path: Path) -> None:
    with pytest.raises(KernelUsageError, match="not a git repository"):
        series_in_git(tmp_path, "a..b")
