"""Schedulers on four CPUs: who is preempted, and how long tasks wait for a CPU, as the kernel tells it."""

from pathlib import Path

import pytest
from tests.support.guests import boot_of, wrong_pair_flags
from tests.support.parallel_qemus import needs_a_known_qemu

from ktrial import workloads
from ktrial.experiment import monitoring
from ktrial.experiment.profile import profile
from ktrial.kernels import kernel_registry
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.model.design import Perturbation
from ktrial.model.study import MachineSettings
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.target import Target

pytestmark = [
    pytest.mark.guest,
    pytest.mark.nightly,
    needs_a_known_qemu,
]  # five to twenty seconds of CPU time each

CPUS = 4
OWN = {"operations": 20_000, "passes": 1}
"""A pass takes more than ten of a scheduler's time slices."""


def waited(target: Target, tasks: int) -> monitoring.Delays:
    use = WorkloadUse(name="loop1", parameters=OWN | {"tasks": tasks})
    steps = workloads.find(use).steps(use, Mode.EXACT_PARALLEL, Perturbation(number=0))
    results = target.perform((monitoring.program(), *monitoring.watching(steps)))
    (delays,) = monitoring.run_delays(results[1:])
    return delays


@pytest.mark.parametrize("kernel", ["debian:5.10", "debian:6.12", "debian:7.2"])
def test_tasks_wait_where_there_are_more_of_them_than_cpus(kernel: str, snapshots: Path) -> None:
    with ParallelMachine(cache=snapshots).start(boot_of(kernel_registry.add(kernel), cpus=CPUS)) as target:
        alone, crowded = waited(target, CPUS), waited(target, 3 * CPUS)
    assert (alone.tasks, crowded.tasks) == (CPUS + 1, 3 * CPUS + 1)
    # Each works for 16 ms or more; of three on one CPU, each waits for the two others.
    assert alone.median < 2e6
    assert crowded.median > 20e6
    assert crowded.median <= crowded.p99 <= crowded.largest
    assert crowded.waited > crowded.median * 2 * CPUS


def test_a_kernel_is_preempted_where_it_is_preemptible() -> None:
    """CONFIG_PREEMPT: by an interrupt, or at an unlock, where another task has to run; else where it asks."""
    full, none = entered("debian:6.1", "full"), entered("debian:6.1", "none")
    assert full["preempt_schedule_irq"] > 0
    assert full["preempt_schedule"] > 0
    assert full.get("__cond_resched", 0) == 0
    assert none["__cond_resched"] > 0
    assert none.get("preempt_schedule_irq", 0) == 0
    assert none.get("preempt_schedule", 0) == 0


def entered(kernel: str, model: str) -> dict[str, int]:
    """How often each function of the kernel was entered."""
    settings = MachineSettings(kind="exact-parallel", kernel=kernel, cpus=CPUS, boot=(f"preempt={model}",))
    use = WorkloadUse(name="hackbench", parameters={"fds": 4, "loops": 20, "passes": 2})
    return {each.symbol: each.entered for each in profile(settings, use).region.functions}


def test_flags_behind_an_exchange_of_a_pair_are_the_processors(snapshots: Path, tmp_path: Path) -> None:
    """QEMU 7.2 has an address in them, where nothing goes round that (docs/exact-mode.md)."""
    with ParallelMachine(cache=snapshots).start(
        boot_of(kernel_registry.add("debian:6.12"), cpus=CPUS)
    ) as target:
        assert wrong_pair_flags(target, tmp_path) == 0
