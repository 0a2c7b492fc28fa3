"""Profiles and explanations of real kernels: complete, the same twice, and right about planted causes."""

import pytest
from tests.support.guests import versions

from ktrial.analysis.attribution.decomposition import explain
from ktrial.experiment.profile import profile
from ktrial.machines.exact import ExactMachine
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse

pytestmark = pytest.mark.guest

CLEARS_PAGES = {"clear_page_rep", "clear_page_erms"}
CLEARS_OBJECTS = {"memset", "memset_orig"}


def counted(kernel: str, workload: str, *boot: str) -> Profile:
    settings = MachineSettings(kernel=kernel, boot=boot)
    return profile(settings, WorkloadUse(name=workload), machine=ExactMachine())


@pytest.fixture(scope="module", params=versions("debian:5.10", "debian:6.1"))
def forks(request: pytest.FixtureRequest) -> tuple[Profile, Profile]:
    """Of an older kernel and of 6.12."""
    return counted(request.param, "fork"), counted("debian:6.12", "fork")


@pytest.mark.nightly  # tests/recorded has two kernels explained for each change
def test_the_functions_sum_to_the_measured_difference(forks: tuple[Profile, Profile]) -> None:
    explanation = explain(*forks)
    # From mark to mark, told apart from the counts by function.
    per_operation = [each.region.operations.total / each.operations for each in forks]
    summed = sum(explanation.difference(row) for row in explanation.rows)
    assert float(summed) == pytest.approx(per_operation[1] - per_operation[0], rel=0.001)
    assert explanation.unexplained == 0
    assert "page tables" in list(explanation.subsystems)[:5]


@pytest.mark.nightly
def test_the_same_again_is_the_same(forks: tuple[Profile, Profile]) -> None:
    assert counted("debian:6.12", "fork") == forks[1]


@pytest.mark.nightly  # for each change: init_on_alloc in tests/recorded/test_recorded_profiles.py
def test_clearing_memory_at_allocation_is_found() -> None:
    before, after = (counted("debian:6.12", "fork", f"init_on_alloc={on}") for on in (0, 1))
    explanation = explain(before, after)
    # Objects are cleared by memset, pages by clear_page: a string instruction each. That counts once, so that
    # the bytes weigh.
    objects, pages = sorted(explanation.rows[:2], key=lambda row: row.function, reverse=True)
    assert objects.function in CLEARS_OBJECTS
    assert pages.function in CLEARS_PAGES
    assert explanation.byte_difference(pages) == 3 * 4096
    assert explanation.weight(pages) > 3 * 4096 / 32


@pytest.mark.nightly
def test_checks_of_the_slab_allocator_are_found() -> None:
    before, after = counted("debian:6.12", "fork"), counted("debian:6.12", "fork", "slab_debug=FZ")
    explanation = explain(before, after)
    # Consistency checks: each object that is freed is looked for among those that are free already.
    assert explanation.rows[0].function == "on_freelist"
    assert next(iter(explanation.subsystems)) == "slab"
