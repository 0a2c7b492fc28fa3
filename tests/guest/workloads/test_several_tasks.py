"""Workloads of one to many tasks on four CPUs: what shares nothing scales, one file's lock does not."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.guests import boot_of
from tests.support.parallel_qemus import needs_a_known_qemu

from ktrial import workloads
from ktrial.kernels import kernel_registry
from ktrial.machines.exact_parallel import ParallelMachine
from ktrial.model.design import Perturbation
from ktrial.model.workload import Mode, Sample, WorkloadUse
from ktrial.target import Push, StepResult, Target

pytestmark = [pytest.mark.guest, needs_a_known_qemu]

CPUS = 4
QUICK = {"operations": 200, "passes": 1}
NAMES = sorted(name for name, each in workloads.descriptions().items() if each.group == "several tasks")


@pytest.fixture(scope="module")
def guest(snapshots: Path) -> Iterator[Target]:
    with ParallelMachine(cache=snapshots).start(
        boot_of(kernel_registry.add("debian:6.12"), cpus=CPUS)
    ) as target:
        yield target


def performed(guest: Target, use: WorkloadUse) -> tuple[StepResult, ...]:
    """The program is handed over, not carried: so the guest is one that other tests have, too."""
    workload = workloads.find(use)
    (carried,) = workload.files(use)
    content = b64encode(carried.host.read_bytes()).decode()
    program = Push(path=carried.guest, base64=content, mode=carried.mode)
    steps = workload.steps(use, Mode.EXACT_PARALLEL, Perturbation(number=0))
    return guest.perform((program, *steps))[1:]


def samples(guest: Target, name: str, **parameters: int | str) -> dict[str, Sample]:
    use = WorkloadUse(name=name, parameters=QUICK | parameters)
    made = workloads.find(use).samples(use, Mode.EXACT_PARALLEL, performed(guest, use))
    return {sample.metric: sample for sample in made}


def speed_up(guest: Target, name: str) -> float:
    one, all_cpus = (samples(guest, name, tasks=tasks)["throughput"].value for tasks in (1, CPUS))
    return all_cpus / one


@pytest.mark.nightly
def test_loops_scale_and_appends_to_one_file_do_not(guest: Target) -> None:
    assert speed_up(guest, "loop1") >= 0.99 * CPUS
    assert speed_up(guest, "append2") < 0.6 * CPUS


@pytest.mark.nightly  # some 20 seconds of CPU time
def test_without_a_number_there_is_a_task_for_each_cpu(guest: Target) -> None:
    use = WorkloadUse(name="loop1", parameters=QUICK)
    (result,) = performed(guest, use)
    assert json.loads(result.stdout)["checks"] == CPUS * 200 * 2


@pytest.mark.nightly  # a minute of CPU time for all
@pytest.mark.parametrize("name", NAMES)
def test_every_one_runs_on_four_cpus_pinned_and_not(guest: Target, name: str) -> None:
    pinned, free = (samples(guest, name, pinned=pinned) for pinned in ("yes", "no"))
    for counted in (pinned, free):
        time, throughput, *_ = counted.values()
        assert time.unit == "ns"
        assert throughput.value == pytest.approx(CPUS * 1e9 / time.value, rel=0.01)
        assert counted["instructions"].value > 0


@pytest.mark.nightly
def test_two_runs_are_the_same_to_the_last_digit(guest: Target) -> None:
    assert samples(guest, "page-fault1", kind="threads") == samples(guest, "page-fault1", kind="threads")
