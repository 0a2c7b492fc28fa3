"""Histories over commits, and the commits of a watched branch: a real tree, whose kernels are fakes."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.commit_trees import CommitBuilder, a_tree, commit, runs
from tests.support.fake_builds import git, requested

from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.experiment.watch import look
from ktrial.kernels import Progress
from ktrial.kernels.build.recipes import Recipe, keep
from ktrial.kernels.patch_series import series_in_git
from ktrial.model.kernel import Build, Kernel, Patch
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.series import commit_ranges
from ktrial.series.commit_ranges import (
    CommitHistory,
    CommitsBetween,
    commit_history,
    commits_between,
    numbers_of,
    run_sparsely,
)
from ktrial.series.run import SeriesRun
from ktrial.store.store import Store, open_store

FORK = WorkloadUse(name="fork")
HOW = Measurement((FORK,), perturbations=1)
COSTS = ("base 1000", "a 1000", "b 1000", "c 1000", "slower 1100", "d 1100", "e 1100", "f 1100", "g 1100")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(commit_ranges, "requested", requested)
    return a_tree(tmp_path / "linux", *COSTS)


def sparsely(tree: Path, store: Store, every: int) -> CommitBuilder:
    """Measure the whole range, as `ktrial series --every` does."""
    builder = CommitBuilder(tree)
    series = series_in_git(tree, "HEAD~8..HEAD")
    series_run = SeriesRun(series, Build(source=series.base), HOW, runs(store, builder), lambda _: None)
    run_sparsely(
        series, every, lambda stretches: replace(series_run, series=stretches).run(), series_run.tell
    )
    return builder


def drawn(tree: Path, store: Store, text: str = "HEAD~8..HEAD", **changes: object) -> CommitHistory:
    series = series_in_git(tree, text)
    plain = Build(source=series.base).model_copy(update=changes)
    return commit_history(stored_numbers(store), "fork", series, plain)


@pytest.mark.nightly
def test_what_was_measured_sparsely_stands_in_the_order_of_its_commits(tree: Path, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        builder = sparsely(tree, store, 8)
        drawing = drawn(tree, store)
    assert len(set(builder.built)) == drawing.measured == 5
    assert drawing.commits == 9
    (line,) = drawing.history.lines
    assert [point.version.partition(" ")[2] for point in line.points] == [
        "(base)",
        "b 1000 [2 commits]",
        "c 1000",
        "slower 1100",
        "g 1100 [4 commits]",
    ]
    (change,) = line.changes
    assert change.version == line.points[3].version
    ends = [git(tree, "rev-parse", name)[:12] for name in ("HEAD~5", "HEAD~4")]
    assert change.why == f"ktrial series {'..'.join(ends)} --git {tree} --workload 'fork'"


def test_what_one_of_several_commits_changed_is_looked_for_by_the_command(tree: Path, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        series = series_in_git(tree, "HEAD~8..HEAD")
        series_run = SeriesRun(
            series, Build(source=series.base), HOW, runs(store, CommitBuilder(tree)), print
        )
        ends = series.model_copy(
            update={"patches": (series.patches[7].model_copy(update={"number": 1, "parent": ""}),)}
        )
        replace(series_run, series=ends).run()
        (change,) = drawn(tree, store).history.lines[0].changes
    assert change.version.endswith("g 1100 [8 commits]")
    assert change.why.endswith("--workload 'fork' --every 8")


@pytest.mark.nightly
def test_commits_of_another_configuration_are_not_mixed_in(tree: Path, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "x.db")) as store:
        sparsely(tree, store, 8)
        assert drawn(tree, store, config="defconfig").history.lines == ()
        assert drawn(tree, store, "HEAD~4..HEAD").measured == 2


def test_documentation_between_two_commits_is_not_counted(tree: Path, tmp_path: Path) -> None:
    commit(tree, "words 1100", "Documentation/mm/slub.rst")
    commit(tree, "h 1200", "mm/h.c")
    with open_store(str(tmp_path / "x.db")) as store:
        series = series_in_git(tree, "HEAD~2..HEAD")
        series_run = SeriesRun(
            series, Build(source=series.base), HOW, runs(store, CommitBuilder(tree)), print
        )
        series_run.run()
        (line,) = drawn(tree, store, "HEAD~2..HEAD").history.lines
    assert [point.version.partition(" ")[2] for point in line.points] == ["(base)", "h 1200"]


def test_a_commit_that_was_built_without_one_before_it_is_still_that_commit(
    tree: Path, tmp_path: Path
) -> None:
    series = series_in_git(tree, "HEAD~8..HEAD")
    plain = Build(source=series.base)
    undo = Patch(path=str(tmp_path / "0002-undo-broken.patch"), digest="0" * 64)
    without = series.source(plain.model_copy(update={"patches": (undo,)}), 5)
    skipped = series.source(
        plain.model_copy(update={"patches": (undo.model_copy(update={"path": "/x.patch"}),)}), 6
    )
    for build in (without, skipped):
        keep(Recipe(build=build, fingerprint="", content=""))
    names = [without.name, skipped.name, series.source(plain, 2).name, "debian:6.1"]
    assert numbers_of(series, plain, names) == {names[2]: 2, names[0]: 5}
    assert numbers_of(series, plain.model_copy(update={"make": {"KCFLAGS": "-O3"}}), names) == {}


def watched(tree: Path, store: Store, builder: CommitBuilder) -> CommitsBetween | None:
    """A look at the branch, and what its commits made."""

    def obtain(_target: str, progress: Progress) -> Kernel:
        source = f"git:{tree}@{git(tree, 'rev-parse', 'master')}"
        return builder.build(requested(source, directory=tree), progress)

    history_runs, limits = runs(store, builder), {"fork": 0.01}
    seen = look(f"git:{tree}@master", HOW, limits, history_runs, obtain)
    return commits_between(seen, HOW, limits, history_runs, lambda _: None)


def test_a_watched_branch_names_the_commit_that_made_the_difference(tree: Path, tmp_path: Path) -> None:
    git(tree, "tag", "tip")
    git(tree, "reset", "-q", "--hard", "HEAD~8")
    builder = CommitBuilder(tree)
    with open_store(str(tmp_path / "x.db")) as store:
        assert watched(tree, store, builder) is None  # the first look
        git(tree, "merge", "-q", "--ff-only", "tip")
        page = watched(tree, store, builder)
        assert page
        assert page.result
        assert page.command.endswith("--workload 'fork' --every 8")
        (cell_told,) = [cell for cell in page.result.cells if cell.is_told]
        patch = page.result.steps[cell_told.number].patch
        assert patch
        assert (patch.subject, int(cell_told.difference)) == ("[4] slower 1100", 100)
        assert len(set(builder.built)) == 5
        commit(tree, "nothing 1100", "mm/z.c")
        assert watched(tree, store, builder) is None  # nothing changed: no commit is looked for


def test_a_branch_that_was_rebased_says_why_its_commits_are_not_known(tree: Path, tmp_path: Path) -> None:
    builder = CommitBuilder(tree)
    with open_store(str(tmp_path / "x.db")) as store:
        watched(tree, store, builder)
        git(tree, "reset", "-q", "--hard", "HEAD~6")
        commit(tree, "another 1300", "mm/y.c")
        page = watched(tree, store, builder)
    assert page
    assert (page.result, page.problem) == (None, "its base is not an ancestor of its tip")
