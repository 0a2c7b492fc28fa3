"""Profiles of recorded guests: where planted causes are found, and how a workload enters the kernel."""

from pathlib import Path

import pytest
from tests.support.golden_guests import played
from tests.support.guests import PLANTED, SAME_MEAN, SAME_MEDIAN, WITHOUT_EFFECT, Planted
from tests.support.runs_of_tests import at_night

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.subsystems import KernelEntry, kernel_entries
from ktrial.model.profile import Profile
from ktrial.report.call_tree import call_tree

Pairs = dict[str, tuple[Profile, Profile]]
OUTSIDE = 0.02
"""How much of the kernel's part no entry has, at the most: tasks that went on where they had slept."""


@pytest.fixture(scope="module", params=[at_night("6.1"), "6.12"])
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    pairs: Pairs = played(f"planted-{request.param}", tmp_path_factory.mktemp("planted"))
    return pairs


@pytest.mark.parametrize("cause", PLANTED, ids=str)
def test_what_a_boot_parameter_does_is_found(cause: Planted, planted: Pairs) -> None:
    explanation = explain(*planted[str(cause)])
    assert explanation.rows[0].function in cause.functions
    assert explanation.unexplained == 0


@pytest.mark.parametrize("cause", PLANTED, ids=str)
def test_the_tree_of_calls_has_all_of_it_net(cause: Planted, planted: Pairs) -> None:
    explanation = explain(*planted[str(cause)])
    tree = call_tree(*planted[str(cause)], explanation)
    assert tree is not None
    assert sum(row.remainder for row in tree.rows) + tree.remainder == pytest.approx(float(explanation.total))


@pytest.mark.nightly
def test_what_cancels_between_two_kernels_is_collapsed(tmp_path: Path) -> None:
    """mmap on 6.1 and 6.12: the maple tree and the freeing of pages were rewritten."""
    name = "page_owner=on-mmap"
    old, new = (played(f"planted-{version}", tmp_path / version)[name][0] for version in ("6.1", "6.12"))
    tree = call_tree(old, new, explain(old, new))
    assert tree is not None
    assert tree.gross > 9 * (tree.after - tree.before), "by function most of it cancels"
    assert sum(abs(row.remainder) for row in tree.rows) < tree.gross / 3
    named = {name for row in tree.rows for name in row.functions}
    assert {"lru_gen_add_folio", "mas_store_gfp"} <= named, "the issue's causes: MGLRU, a dearer store"
    assert len(tree.rows) <= 20


@pytest.mark.parametrize("cause", WITHOUT_EFFECT, ids=str)
def test_a_parameter_that_does_nothing_explains_nothing(cause: Planted, planted: Pairs) -> None:
    explanation = explain(*planted[str(cause)])
    largest = max(abs(explanation.difference(row)) for row in explanation.rows)
    assert explanation.after.median == pytest.approx(explanation.before.median, rel=SAME_MEDIAN)
    assert abs(explanation.total) < SAME_MEAN * explanation.before.mean
    assert largest < SAME_MEAN * explanation.before.mean


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Profile, dict[str, KernelEntry]]]:
    profiles: dict[str, Profile] = played("ways", tmp_path_factory.mktemp("ways"))
    return {
        name: (each, {entry.name: entry for entry in kernel_entries(each.region)})
        for name, each in profiles.items()
    }


Ways = dict[str, tuple[Profile, dict[str, KernelEntry]]]


def test_system_calls_are_told_by_name(ways: Ways) -> None:
    profile, by_name = ways["pipe"]
    assert by_name["system call"].entered == pytest.approx(2 * profile.operations, abs=10)
    for name in ("read", "write"):
        assert by_name[name].entered == pytest.approx(profile.operations, abs=10)
    inclusive = {name: by_name[name].inclusive or 0 for name in ("system call", "read", "write")}
    assert inclusive["read"] + inclusive["write"] < inclusive["system call"]
    assert inclusive["system call"] == pytest.approx(profile.region.kernel, rel=OUTSIDE)


def test_faults_are_told_from_system_calls(ways: Ways) -> None:
    """Each page is touched once; mapping and unmapping are system calls."""
    profile, by_name = ways["mmap"]
    assert by_name["exception page_fault"].entered == pytest.approx(16 * profile.operations, abs=10)
    assert by_name["mmap"].entered == pytest.approx(profile.operations, abs=2)
    assert by_name["munmap"].entered == pytest.approx(profile.operations, abs=2)
    together = (by_name["exception page_fault"].inclusive or 0) + (by_name["system call"].inclusive or 0)
    assert together == pytest.approx(profile.region.kernel, rel=OUTSIDE)


def test_interrupts_are_told_from_what_they_interrupt(ways: Ways) -> None:
    """A program that only computes enters the kernel at the timer's ticks."""
    profile, by_name = ways["nqueens"]
    ticks = [entry for name, entry in by_name.items() if name.startswith("interrupt")]
    assert sum(entry.entered for entry in ticks) >= 1
    assert sum(entry.inclusive or 0 for entry in ticks) > 0.5 * profile.region.kernel
    assert profile.region.program > 0.9 * profile.region.instructions


def test_cpu_modes_and_tasks_add_up(ways: Ways) -> None:
    region = ways["context-switch"][0].region
    assert region.kernel + region.program == region.instructions
    assert sum(task.program for task in region.tasks) == region.program
    assert sum(task.kernel for task in region.tasks) == region.kernel
    partners = [task for task in region.tasks if task.program > 0.2 * region.program]
    assert len(partners) == 2, "two processes hand a byte back and forth"
