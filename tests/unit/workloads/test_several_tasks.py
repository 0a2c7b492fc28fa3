"""Workloads of one to many tasks: what is carried, executed, and made of what the program reports."""

import json
import stat
from typing import Any

import pytest

from ktrial import workloads
from ktrial.model.design import Perturbation
from ktrial.model.parallel import ParallelCounts
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.target import Run, StepResult
from ktrial.workloads.errors import BadOutput, BadWorkload, WorkloadError

USE = WorkloadUse(name="getppid1", parameters={"tasks": 4})
METRIC = {"operations": 3, "minimum": 290.0, "median": 300.0, "mean": 310.0}
REPORT: dict[str, Any] = {
    "workload": "getppid1",
    "clock": "tsc",
    "overhead": 0,
    "done": 2400,
    "metrics": [
        {"name": "call", "unit": "instructions", "direction": "lower", **METRIC},
        {"name": "throughput", "unit": "ops/s", "direction": "higher", **METRIC},
    ],
    "checks": 3200,
}


def ended(report: dict[str, Any], status: int = 0) -> StepResult:
    """What the program printed, and what the plugin counted between its marks."""
    counts = ParallelCounts(
        regions=3,
        instructions=720_100,
        operations=3,
        sum=720_000,
        middle=(230_000, 230_000),
        cpus=(1,),
        idle=(0,),
        clock=1,
        rounds=1,
        fingerprint="",
    )
    stdout = "" if status else json.dumps(report)
    return StepResult(step=0, do="run", exit=status, stdout=stdout, parallel=counts)


def samples(report: dict[str, Any], status: int = 0) -> dict[str, tuple[float, str]]:
    made = workloads.find(USE).samples(USE, Mode.EXACT_PARALLEL, (ended(report, status),))
    return {sample.metric: (sample.value, sample.unit) for sample in made}


def test_the_program_is_carried_and_executed() -> None:
    workload = workloads.find(USE)
    (carried,) = workload.files(USE)
    assert carried.host.name == "tasks"
    assert carried.mode & stat.S_IXUSR
    (run,) = workload.steps(USE, Mode.EXACT_PARALLEL, Perturbation(number=0))
    assert isinstance(run, Run)
    assert run.argv == (carried.guest, "getppid1", "--tasks", "4", "--clock", "tsc")


def test_what_single_tasks_do_is_carried_by_no_file() -> None:
    use = WorkloadUse(name="syscall")
    assert workloads.find(use).files(use) == ()


def test_time_throughput_and_the_work_of_all_tasks_operations() -> None:
    assert samples(REPORT) == {
        "call": (300.0, "ns"),
        "throughput": (300.0, "ops/s"),
        # Those done while others finished theirs are work, too.
        "instructions": (720_000 / 2400, "instructions"),
    }


def test_an_operation_that_did_nothing_is_no_number() -> None:
    with pytest.raises(WorkloadError):
        samples(REPORT, status=1)
    with pytest.raises(BadOutput, match="checked less than it measured"):
        samples(REPORT | {"checks": 2})


@pytest.mark.parametrize(
    ("parameters", "allowed"),
    [
        ({"tasks": 257}, "from 0 to 256"),
        ({"kind": "fibres"}, "processes or threads"),
        ({"pinned": 1}, "yes or no"),
    ],
)
def test_bad_values_are_refused(parameters: dict[str, int | str], allowed: str) -> None:
    with pytest.raises(BadWorkload, match=allowed):
        workloads.check(WorkloadUse(name="open1", parameters=parameters))


def test_what_belongs_to_a_process_has_no_threads() -> None:
    with pytest.raises(BadWorkload, match="processes"):
        workloads.check(WorkloadUse(name="brk1", parameters={"kind": "threads"}))
