"""What is shown of real kernels' profiles: entries, caches, pictures, files for other tools, a 'why'."""

import json
import re
from pathlib import Path

import pytest

from ktrial import report
from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.subsystems import kernel_entries
from ktrial.experiment.explain import stored_explanations
from ktrial.experiment.profile import profile
from ktrial.experiment.session import run
from ktrial.machines.exact import ExactMachine
from ktrial.machines.qemu.plugin import CacheShape, CacheShapes
from ktrial.model.design import Factor, FactorKind
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings, Study
from ktrial.model.workload import WorkloadUse
from ktrial.report.call_tree import aligned, stacks, stacks_of_both
from ktrial.report.exports import exports
from ktrial.report.flame_graph import FlameFrame, flame_frames
from ktrial.store.store import open_store

pytestmark = pytest.mark.guest

SMALL = CacheShapes(l1d=CacheShape(4 << 10, 2), llc=CacheShape(256 << 10, 8))
AS_COUNTED = 0.005
"""The tree of calls differs by so little from the counters (docs/architecture/plugin.md)."""


def counted(kernel: str, workload: str, caches: CacheShapes | None = None) -> Profile:
    settings = MachineSettings(kernel=kernel)
    return profile(settings, WorkloadUse(name=workload), machine=ExactMachine(), caches=caches)


@pytest.fixture(scope="module")
def forks() -> tuple[Profile, Profile]:
    return counted("debian:5.10", "fork"), counted("debian:6.12", "fork")


@pytest.mark.nightly
def test_a_fork_is_three_system_calls(forks: tuple[Profile, Profile]) -> None:
    for each in forks:
        entered = {one.name: one.entered for one in kernel_entries(each.region)}
        assert entered["system call"] == 3 * each.operations
        assert entered["fork"] == entered["exit_group"] == entered["wait4"] == each.operations
        assert entered["exception page_fault"] >= each.operations


@pytest.mark.nightly
def test_the_ways_into_the_kernel_are_nearly_all_that_it_does(forks: tuple[Profile, Profile]) -> None:
    for each in forks:
        ways = sum(one.inclusive or 0 for one in kernel_entries(each.region) if not one.system_call)
        assert 0.95 * each.region.kernel < ways <= each.region.kernel * (1 + AS_COUNTED)


@pytest.mark.nightly
def test_the_tree_that_is_drawn_is_what_was_counted(forks: tuple[Profile, Profile]) -> None:
    for each in forks:
        drawn = float(sum(stacks(each).values()))
        assert drawn == pytest.approx(each.region.instructions / each.operations, rel=AS_COUNTED)


@pytest.mark.nightly
def test_what_both_kernels_run_is_one_frame_however_it_is_called(forks: tuple[Profile, Profile]) -> None:
    before, after = stacks_of_both(*forks, explain(*forks))
    drawn = flame_frames(aligned(before, after), after).frames
    # x64_sys_call stands between do_syscall_64 and every system call of 6.12, and is not in 5.10.
    (process,) = (
        one for one in drawn if path(drawn, one)[-3:] == ["__x64_sys_fork", "kernel_clone", "copy_process"]
    )
    assert "x64_sys_call" in path(drawn, process)
    assert process.inclusive.before > 10_000
    assert process.inclusive.after > 10_000
    apart = flame_frames(before, after).frames
    assert all(0 in one.inclusive for one in apart if one.name == "copy_process")


def path(drawn: tuple[FlameFrame, ...], frame: FlameFrame) -> list[str]:
    names = [frame.name]
    while frame.parent >= 0:
        frame = drawn[frame.parent]
        names.insert(0, frame.name)
    return names


@pytest.mark.nightly
def test_every_export_has_the_whole_profile(forks: tuple[Profile, Profile]) -> None:
    known, _ = exports()
    each = forks[1]
    tree = int(sum(stacks(each).values()) * each.operations)
    folded = known["folded"].text(each).splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded) == tree
    (scope,) = json.loads(known["speedscope"].text(each))["profiles"]
    assert sum(scope["weights"]) == scope["endValue"] == tree
    script = known["perf-script"].text(each)
    assert 9_000 < len(re.findall(r"^\S.* instructions: $", script, re.MULTILINE)) < 11_000
    vector = [float(line) for line in known["vector"].text(each).splitlines()]
    assert sum(vector) / len(vector) == pytest.approx(each.region.operations.total / each.operations)


def test_smaller_caches_miss_more_and_change_no_count() -> None:
    plain, usual, small = (counted("debian:6.12", "pipe", caches) for caches in (None, CacheShapes(), SMALL))
    assert usual.region.instructions == small.region.instructions
    # The plugin is told more, QEMU's guest is not.
    assert usual.region.instructions == pytest.approx(plain.region.instructions, rel=0.0001)
    misses = [
        sum(one.caches.data_misses for one in each.region.functions if one.caches) for each in (usual, small)
    ]
    assert 0 < misses[0] * 10 < misses[1]
    assert all(one.caches is None for one in plain.region.functions)


@pytest.mark.nightly
def test_the_report_says_why_with_what_the_trials_kept(tmp_path: Path) -> None:
    kernels = ("debian:5.10", "debian:6.12")
    study = Study(
        name="why",
        machine=MachineSettings(),
        factors=(Factor(name="kernel", kind=FactorKind.KERNEL, levels=kernels, baseline=kernels[0]),),
        workloads=(WorkloadUse(name="syscall"), WorkloadUse(name="nqueens")),
        perturbations=2,
    )
    with open_store(tmp_path / "trials.db") as store:
        record = run(study, store=store)
        (why,) = report.whys(store, record, stored_explanations)
    assert why.workload == "syscall"
    assert sum(part.difference for part in why.rows[:-1]) == pytest.approx(why.total.difference)
    assert why.unexplained == 0
    assert why.frames
    assert {
        "Levels",
        "Suspected, not measured: options of the configuration that own these functions by their names",
    } & {section.title for section in why.around}
    page = report.study_html(record, (why,))
    assert "x64_sys_call" in page
    assert 'class="flame"' in page
