"""Sequential verdicts on what a schedule moves: hackbench on four CPUs, each seed measured once."""

import math
from pathlib import Path

import pytest
from tests.support.noise_models import verdicts
from tests.support.parallel_qemus import needs_a_known_qemu

from ktrial import workloads
from ktrial.kernels import kernel_registry
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.model.comparison import Verdict
from ktrial.model.design import Perturbation
from ktrial.model.machine import Boot
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.target import Run

pytestmark = [pytest.mark.guest, pytest.mark.nightly, needs_a_known_qemu]

SEEDS = 120
STUDIES = 200
MARGIN = 0.01
ALPHA = 0.05
"""What a study without an effect claims one in; of so many studies the share is off by 1.5 % by chance."""
CLAIMS = (Verdict.BETTER, Verdict.WORSE)


@pytest.fixture(scope="module")
def values(snapshots: Path) -> list[float]:
    """Guest time per operation under each seed; about 120 CPU seconds."""
    use = WorkloadUse(name="hackbench", parameters={"fds": 10, "loops": 3})
    workload, mode = workloads.find(use), Mode.EXACT_PARALLEL
    (step,) = workload.steps(use, mode, Perturbation(number=0))
    assert isinstance(step, Run)
    boot = Boot(kernel=kernel_registry.add("debian:6.12"), cpus=4)
    with ParallelMachine(cache=snapshots).start(boot) as target:
        runs = (step.model_copy(update={"layout_seed": seed + 1}) for seed in range(SEEDS))
        return [workload.samples(use, mode, target.perform((run,)))[0].value for run in runs]


def test_nothing_is_claimed_where_nothing_differs(values: list[float]) -> None:
    counts = verdicts(values, effect=0.0, margin=MARGIN, studies=STUDIES)
    by_chance = 2 * math.sqrt(ALPHA * (1 - ALPHA) * STUDIES)
    assert sum(counts[claim] for claim in CLAIMS) <= ALPHA * STUDIES + by_chance


def test_five_percent_are_found(values: list[float]) -> None:
    counts = verdicts(values, effect=0.05, margin=MARGIN, studies=STUDIES)
    assert counts[Verdict.WORSE] >= 0.9 * STUDIES
