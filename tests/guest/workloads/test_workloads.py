"""Every built-in workload on real kernels: it runs, it repeats, and what does not matter does not move it."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.support.guests import ALL, EACH_CHANGE, newest_for_each_change
from tests.support.runs_of_tests import is_night

from ktrial import workloads
from ktrial.kernels import kernel_registry
from ktrial.machines import CountingTarget
from ktrial.machines.exact import ExactMachine
from ktrial.model.design import Perturbation
from ktrial.model.machine import Boot
from ktrial.model.workload import Command, CountedBy, MetricRule, Mode, Sample, WorkloadUse
from ktrial.target import Step, StepResult

pytestmark = pytest.mark.guest

AS_IT_IS = Perturbation(number=0)

AT_A_TIME = 5
"""One system for all would run for so long that the machine looks whether it hangs, and may disturb it."""

ALLOWED = 0.005
"""How far a median may move."""

CHAOTIC = {"hackbench": 0.5}
"""Those that cannot keep to that; what docs/workloads.md says of them, with room for the bytes."""


@pytest.fixture(scope="module")
def machine(snapshots: Path) -> ExactMachine:
    """Counts by the plugin, as studies do."""
    return ExactMachine(cache=snapshots, count=CountedBy.PLUGIN)


def boot_of(kernel: str, **changes: object) -> Boot:
    return Boot(kernel=kernel_registry.add(kernel)).model_copy(update=changes)


def samples(
    machine: ExactMachine, boot: Boot, perturbation: Perturbation = AS_IT_IS
) -> dict[str, tuple[Sample, ...]]:
    """Of all workloads, run one after another in one system."""
    uses = [workloads.check(WorkloadUse(name=name)) for name in workloads.DEFAULT]
    steps = [step for use in uses for step in workloads.find(use).steps(use, machine.mode, perturbation)]
    results = counted(machine, boot, *steps)
    return {
        use.name: workloads.find(use).samples(use, machine.mode, (result,))
        for use, result in zip(uses, results, strict=True)
    }


@cache
def as_it_is(machine: ExactMachine, kernel: str) -> dict[str, tuple[Sample, ...]]:
    """With nothing perturbed."""
    return samples(machine, boot_of(kernel))


def counted(machine: ExactMachine, boot: Boot, *steps: Step) -> tuple[StepResult, ...]:
    """Start, do the steps, end; without symbols, which nothing here asks for."""
    with machine.start(boot) as target:
        return target.counted(steps) if isinstance(target, CountingTarget) else target.perform(steps)


@pytest.mark.nightly
def test_by_the_clock_every_workload_runs_and_repeats_too(snapshots: Path) -> None:
    machine = ExactMachine(cache=snapshots, count=CountedBy.CLOCK)
    first, again = (samples(machine, boot_of("debian:6.12")) for _ in range(2))
    assert set(first) == set(workloads.DEFAULT)
    assert again == first
    assert {sample.mode for each in first.values() for sample in each} == {Mode.EXACT_CLOCK}


@pytest.mark.parametrize("kernel", newest_for_each_change(*ALL))
def test_every_workload_runs_on_every_kernel_and_repeats_to_the_last_digit(
    machine: ExactMachine, kernel: str
) -> None:
    first = as_it_is(machine, kernel)
    assert set(first) == set(workloads.DEFAULT)
    # For each change test_must_hold.py runs a workload twelve times.
    assert not is_night() or samples(machine, boot_of(kernel)) == first
    for instructions, *others in first.values():
        assert instructions.unit == "instructions"
        assert instructions.mode is Mode.EXACT_PLUGIN
        assert instructions.minimum is not None
        assert 0 < instructions.minimum <= instructions.value
        assert [other.metric for other in others] == ["string-bytes"]


WITHOUT_WEIGHT: dict[str, tuple[dict[str, object], Perturbation]] = {
    "a larger initial RAM disk": ({"initrd_padding": 5_000_000}, AS_IT_IS),
    "half the memory": ({"memory_mib": 256}, AS_IT_IS),
    "twice the memory": ({"memory_mib": 1024}, AS_IT_IS),
    "a longer command line": ({"parameters": ("padding=" + "x" * 500,)}, AS_IT_IS),
    "another log level": ({"parameters": ("loglevel=3",)}, AS_IT_IS),
    "a random layout": ({}, Perturbation(number=1, layout_seed=12345)),
    "more environment": ({}, Perturbation(number=2, environment_bytes=4000)),
    "a later start": ({}, Perturbation(number=3, start_offset=3_456_789)),
}
"""What does not matter: the boot's changes, and the trial's."""


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", EACH_CHANGE)
@pytest.mark.parametrize("what", WITHOUT_WEIGHT)
def test_what_does_not_matter_does_not_move_a_median(machine: ExactMachine, kernel: str, what: str) -> None:
    plain = as_it_is(machine, kernel)
    changes, perturbation = WITHOUT_WEIGHT[what]
    perturbed = samples(machine, boot_of(kernel, **changes), perturbation)
    moved = [
        f"{name} from {before.value} to {after.value}"
        for name in plain
        for before, after in zip(plain[name], perturbed[name], strict=True)
        if abs(after.value - before.value) >= CHAOTIC.get(name, ALLOWED) * before.value + (before.value == 0)
    ]
    assert moved == []


@pytest.mark.parametrize(
    "names", [EACH_CHANGE, pytest.param(ALL, marks=pytest.mark.nightly)], ids=["two", "all"]
)
def test_the_null_control_is_the_same_on_every_kernel(names: tuple[str, ...], machine: ExactMachine) -> None:
    use = WorkloadUse(name="nqueens")
    workload = workloads.find(use)
    steps = workload.steps(use, machine.mode, AS_IT_IS)
    values = {
        workload.samples(use, machine.mode, counted(machine, boot_of(kernel), *steps))[0].value
        for kernel in names
    }
    assert len(values) == 1


@pytest.fixture
def directory() -> Iterator[Path]:
    """Not below /tmp, over which the guest mounts a file system of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


def test_a_command_of_the_hosts_runs_with_what_it_needs(machine: ExactMachine, directory: Path) -> None:
    script = directory / "count.sh"
    script.write_text("#!/bin/bash\nfor ((i = 0; i < 100; i++)); do :; done\necho turns=$i\n")
    script.chmod(0o755)
    metrics = (MetricRule.model_validate({"name": "turns", "regex": r"turns=(\d+)"}), MetricRule(name="time"))
    command = Command(argv=(str(script),), metrics=metrics, repeats=2)
    use = workloads.check(WorkloadUse(name="mine", command=command))
    workload = workloads.find(use)
    boot = boot_of("debian:6.1", files=workload.files(use))
    results = counted(machine, boot, *workload.steps(use, machine.mode, AS_IT_IS))
    turns, time = workload.samples(use, machine.mode, results)
    assert (turns.value, turns.operations) == (100, 2)
    assert time.unit == "instructions"
    assert time.value > 100_000
    assert time.value < results[-1].wall_ns, "idle time is no work"


@pytest.mark.nightly
def test_a_command_is_counted_from_its_start_to_its_end(machine: ExactMachine) -> None:
    """Where it sleeps nothing is counted, and the clock goes on."""
    use = workloads.check(WorkloadUse(name="mine", command=Command(argv=("/bin/sleep", "3"), repeats=1)))
    workload = workloads.find(use)
    boot = boot_of("debian:6.1", files=workload.files(use))
    results = counted(machine, boot, *workload.steps(use, machine.mode, AS_IT_IS))
    again = counted(machine, boot, *workload.steps(use, machine.mode, AS_IT_IS))
    assert again == results
    wall, moved = workload.samples(use, machine.mode, results)
    assert 100_000 < wall.value < 50_000_000
    assert results[-1].wall_ns > 3_000_000_000
    assert moved.value > 0
    assert results[-1].region
    kernel, program = results[-1].region.kernel, results[-1].region.program
    assert kernel + program == wall.value
    assert min(kernel, program) > 0
