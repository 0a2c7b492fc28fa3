"""Built-in workloads: the command line they make, and what they make of the program's output."""

import json
from typing import Any

import pytest

from ktrial.model.design import Perturbation
from ktrial.model.workload import Direction, Mode, Sample, WorkloadUse
from ktrial.target import Failure, Run, StepResult
from ktrial.workloads import find
from ktrial.workloads.errors import BadOutput, WorkloadError

FORK = WorkloadUse(name="fork", parameters={"operations": 51})

# What `work fork --operations 51 --clock tsc` printed in a guest (6.1, exact).
GOLDEN = (
    '{"checks":204,"clock":"tsc","metrics":[{"direction":"lower","mean":115119.58169934641,"median":114380.0,'
    '"minimum":114258.0,"name":"fork, exit, wait","operations":153,"unit":"instructions"}],"overhead":10,'
    '"workload":"fork"}'
)


def run(use: WorkloadUse, mode: Mode = Mode.EXACT_CLOCK, **perturbed: int) -> Run:
    (step,) = find(use).steps(use, mode, Perturbation(number=0, **perturbed))
    assert isinstance(step, Run)
    return step


def samples(*results: StepResult, mode: Mode = Mode.EXACT_CLOCK) -> tuple[Sample, ...]:
    return find(FORK).samples(FORK, mode, results)


def result(**facts: Any) -> StepResult:
    return StepResult.model_validate({"step": 0, "do": "run", "exit": 0} | facts)


def changed(**changes: Any) -> str:
    return json.dumps(json.loads(GOLDEN) | changes)


@pytest.mark.parametrize(
    ("mode", "clock"),
    [
        (Mode.EXACT_CLOCK, "tsc"),
        (Mode.EXACT_PLUGIN, "tsc"),
        (Mode.TIMED, "monotonic"),
        (Mode.EMULATED_TIME, "monotonic"),
    ],
)
def test_the_mode_chooses_the_clock(mode: Mode, clock: str) -> None:
    assert run(FORK, mode).argv == ("/ktrial/work", "fork", "--operations", "51", "--clock", clock)


def test_perturbation_number_0_changes_nothing() -> None:
    step = run(FORK)
    assert (step.environment, step.layout_seed, step.start_offset_ns) == ({}, 0, 0)


def test_a_perturbation_reaches_the_program() -> None:
    step = run(FORK, environment_bytes=77, layout_seed=5, start_offset=1234)
    assert [len(value) for value in step.environment.values()] == [77]
    assert (step.layout_seed, step.start_offset_ns) == (5, 1234)


def test_nothing_is_carried_for_the_machine_brings_the_program() -> None:
    assert find(FORK).files(FORK) == ()


def test_the_median_is_the_value() -> None:
    assert samples(result(stdout=GOLDEN)) == (
        Sample(
            workload="fork(operations=51)",
            metric="fork, exit, wait",
            unit="instructions",
            direction=Direction.LOWER,
            mode=Mode.EXACT_CLOCK,
            value=114380.0,
            operations=153,
            minimum=114258.0,
            median=114380.0,
            mean=115119.58169934641,
        ),
    )


@pytest.mark.parametrize(
    ("ended", "error", "message"),
    [
        (result(exit=1, stderr="work: fork: a child exited with 3, not 42\n"), WorkloadError,
         "fork(operations=51) exited with status 1: work: fork: a child exited with 3, not 42"),
        (result(exit=None, signal=9), WorkloadError, "killed by signal 9: it said nothing"),
        (result(exit=None, signal=9, timed_out=True), WorkloadError, "did not end within"),
        (result(exit=None, failure=Failure(errno=2, name="ENOENT", text="/ktrial/work: no such file")),
         WorkloadError, "could not be run: /ktrial/work: no such file"),
        (result(exit=1, stderr="x" * 5000), WorkloadError, ": …xxx"),
    ],
)  # fmt: skip
def test_a_run_that_failed_is_no_sample(ended: StepResult, error: type[WorkloadError], message: str) -> None:
    with pytest.raises(error) as caught:
        samples(ended)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_run_that_was_never_reached_is_an_error() -> None:
    with pytest.raises(WorkloadError, match="only 0 of its 1 runs were reached"):
        samples()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "the whole: Invalid JSON"),
        (GOLDEN[:100], "the whole: Invalid JSON"),
        (changed(metrics=[{"name": "fork, exit, wait"}]), "metrics.0.unit: Field required"),
        (changed(workload="vfork"), "workload 'vfork' instead of 'fork'"),
        (changed(clock="monotonic"), "clock 'monotonic' instead of 'tsc'"),
        (changed(metrics=[]), "metrics: Tuple should have at least 1 item"),
        (changed(checks=152), "it checked less than it measured"),
    ],
)
def test_output_that_is_not_the_report_asked_for_is_an_error(output: str, message: str) -> None:
    with pytest.raises(BadOutput) as caught:
        samples(result(stdout=output))
    assert message in str(caught.value)
