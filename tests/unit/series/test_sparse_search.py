"""Long ranges: few kernels where little changes, and every change in the end one patch's."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.fake_builds import git
from tests.support.series import SeriesBuilder, a_series, runs

from ktrial.kernels.build.patches import paths_in, text_of
from ktrial.kernels.patch_series import series_in_git, series_in_quilt, undoing
from ktrial.model.kernel import Build
from ktrial.model.series_result import SeriesResult
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.series.commit_ranges import every, in_stretches, run_sparsely
from ktrial.series.run import SeriesRun
from ktrial.store.store import open_store

SOURCE = "debian:linux-source-6.1"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


def found(place: Path, names: list[str], step: int, *, thorough: bool = False) -> tuple[SeriesResult, int]:
    """The result, and how many kernels were built."""
    builder = SeriesBuilder()
    series = series_in_quilt(a_series(place / "q", *names), SOURCE)
    with open_store(str(place / "x.db")) as store:
        measurement = Measurement((WorkloadUse(name="fork"),), perturbations=1)
        series_run = SeriesRun(
            series, Build(source=SOURCE), measurement, runs(store, builder), lambda _: None
        )
        result = run_sparsely(
            series,
            step,
            lambda stretches: replace(series_run, series=stretches).run(),
            series_run.tell,
            thorough=thorough,
        )
    return result, len({build.key for build in builder.built})


def test_one_change_among_many_is_found_with_few_kernels(tmp_path: Path) -> None:
    names = [f"cost-pipe-{number}" for number in range(31)]
    names.insert(17, "cost-fork-100")
    result, built = found(tmp_path, names, 8)
    (changed,) = [cell for cell in result.cells if cell.is_told]
    step = result.steps[changed.number]
    assert step.patch
    assert (step.patch.subject, int(changed.difference)) == ("[18] mm: cost-fork-100", 100)
    steps = [cell.difference for cell in result.cells]
    assert sum(steps) == result.totals[0].difference
    assert built <= 5 + 2 * 3


@pytest.mark.nightly
def test_changes_that_cancel_each_other_are_seen_thoroughly_and_not_otherwise(tmp_path: Path) -> None:
    names = [f"cost-pipe-0-{number}" for number in range(8)]
    names[2:6] = ["cost-fork-100", "doc", "doc2", "cost-fork--100"]
    names += ["doc3", "doc4", "doc5"]
    (tmp_path / "not").mkdir()
    result, _ = found(tmp_path / "not", names, 8)
    assert not [cell for cell in result.cells if cell.is_told]
    result, _ = found(tmp_path, names, 8, thorough=True)
    changed = {cell.number: int(cell.difference) for cell in result.cells if cell.is_told}
    subjects = [step.patch.subject for step in result.steps if step.patch and step.number in changed]
    assert subjects == ["[3] mm: cost-fork-100", "[6] mm: cost-fork--100"]
    assert list(changed.values()) == [100, -100]
    last = result.steps[-1].patch
    assert last
    assert last.subject.startswith("[9–11] 3 patches")  # nothing of it is compiled: it is left whole


def test_what_breaks_in_a_stretch_is_found_as_well(tmp_path: Path) -> None:
    names = [f"cost-pipe-{number}" for number in range(15)]
    names.insert(9, "broken")
    result, _ = found(tmp_path, names, 8)
    (step,) = result.broken
    assert step.patch
    assert step.patch.subject == "[10] mm: broken"


def test_stretches_hold_all_patches_in_order(tmp_path: Path) -> None:
    series = series_in_quilt(a_series(tmp_path / "q", *"abcdefg"), SOURCE)
    assert every(series, 3) == (3, 6, 7)
    together = in_stretches(series, (3, 6, 7))
    assert [patch.subject for patch in together.patches] == [
        "[1–3] 3 patches, to: mm: c",
        "[4–6] 3 patches, to: mm: f",
        "[7] mm: g",
    ]
    assert together.patches[0].paths == ("mm/a.c", "mm/b.c", "mm/c.c")
    plain = Build(source=SOURCE)
    assert together.source(plain, 2) == series.source(plain, 6)


def test_a_stretch_of_commits_is_undone_as_a_whole(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "tree")
    tree = tmp_path / "tree"
    for number in range(5):
        (tree / f"{number}.c").write_text("a\n")
        git(tree, "add", ".")
        git(tree, "commit", "-qm", str(number))
    series = in_stretches(series_in_git(tree, "HEAD~4..HEAD"), (3, 4))
    stretch = series.patches[0]
    assert stretch.commit == git(tree, "rev-parse", "HEAD~1")
    patch = undoing(tree, stretch)
    assert paths_in(patch.path, text_of(patch)) == ("1.c", "2.c", "3.c")
