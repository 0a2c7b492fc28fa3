"""What the plugin tells by way into the kernel, by CPU mode and by task: what the workload is known to do.

For each change tests/recorded asks the same of a recorded guest.
"""

import pytest

from ktrial.analysis.attribution.subsystems import KernelEntry, kernel_entries
from ktrial.experiment.profile import profile
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings
from ktrial.model.workload import WorkloadUse

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

KERNELS = ("debian:5.10", "debian:6.12", "debian:7.2")
OUTSIDE = 0.02
"""How much of the kernel's part no entry has, at the most: tasks that went on where they had slept."""


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def counted(kernel: str, workload: str, **parameters: int) -> tuple[Profile, dict[str, KernelEntry]]:
    use = WorkloadUse(name=workload, parameters=parameters)
    kept = profile(MachineSettings(kernel=kernel), use)
    return kept, {entry.name: entry for entry in kernel_entries(kept.region)}


def test_system_calls_are_told_by_name(kernel: str) -> None:
    entries, ways = counted(kernel, "pipe")
    assert ways["system call"].entered == pytest.approx(2 * entries.operations, abs=10)
    for name in ("read", "write"):
        assert ways[name].entered == pytest.approx(entries.operations, abs=10)
    inclusive = {name: ways[name].inclusive or 0 for name in ("system call", "read", "write")}
    assert inclusive["read"] + inclusive["write"] < inclusive["system call"]
    assert inclusive["system call"] == pytest.approx(entries.region.kernel, rel=OUTSIDE)


def test_faults_are_told_from_system_calls(kernel: str) -> None:
    """Each page is touched once; mapping and unmapping are system calls."""
    entries, ways = counted(kernel, "mmap", operations=101)
    assert ways["exception page_fault"].entered == pytest.approx(16 * entries.operations, abs=10)
    assert ways["mmap"].entered == pytest.approx(entries.operations, abs=2)
    assert ways["munmap"].entered == pytest.approx(entries.operations, abs=2)
    together = (ways["exception page_fault"].inclusive or 0) + (ways["system call"].inclusive or 0)
    assert together == pytest.approx(entries.region.kernel, rel=OUTSIDE)


def test_interrupts_are_told_from_what_they_interrupt(kernel: str) -> None:
    """A program that only computes enters the kernel at the timer's ticks."""
    entries, ways = counted(kernel, "nqueens")
    ticks = [entry for name, entry in ways.items() if name.startswith("interrupt")]
    assert sum(entry.entered for entry in ticks) >= 1
    assert sum(entry.inclusive or 0 for entry in ticks) > 0.5 * entries.region.kernel
    assert entries.region.program > 0.9 * entries.region.instructions


def test_cpu_modes_and_tasks_add_up(kernel: str) -> None:
    entries, _ = counted(kernel, "context-switch", operations=101)
    region = entries.region
    assert region.kernel + region.program == region.instructions
    assert sum(task.program for task in region.tasks) == pytest.approx(region.program, rel=0.001)
    assert sum(task.kernel for task in region.tasks) == pytest.approx(region.kernel, rel=0.001)
    partners = [task for task in region.tasks if task.program > 0.2 * region.program]
    assert len(partners) == 2, "two processes hand a byte back and forth"
