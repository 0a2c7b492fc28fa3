"""How long tasks waited for a CPU, as the monitor of several CPUs in simulated time tells it."""

import json

import pytest
from tests.support.making import a_study, planned
from tests.support.scripted import ScriptedMachine, a_kernel, number_of, scripted_resources

from ktrial.experiment import monitoring
from ktrial.experiment.jobs import jobs_of
from ktrial.experiment.trial import run_trial
from ktrial.machines.guest_programs import TASKS_IN_GUEST
from ktrial.model.machine import Boot
from ktrial.model.parallel import RUN_DELAY
from ktrial.model.study import MachineSettings
from ktrial.model.trial import Outcome, Trial
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Mode
from ktrial.target import Push, Run, StepResult
from ktrial.target.errors import MonitorFailed

TOLD = {"tasks": 41, "ran": 90, "waited": 4200, "median": 100.0, "p99": 300.0, "largest": 800.0}
METRICS = {"run delay, median": 100.0, "run delay, p99": 300.0, "run delay, largest": 800.0}


def watched(run: Run) -> bool:
    return run.argv[:2] == (TASKS_IN_GUEST, "delays")


def answer(boot: Boot, run: Run) -> StepResult:
    """The program, and behind what it says itself what its tasks waited."""
    alone = number_of(boot, run.model_copy(update={"argv": run.argv[2:]}) if watched(run) else run)
    output = {"stderr": f"something of its own\n{json.dumps(TOLD)}\n"}
    return alone.model_copy(update=output) if watched(run) else alone


def trial_of(machine: ScriptedMachine) -> Trial:
    settings = MachineSettings(kind="exact-parallel", monitors=(RUN_DELAY,))
    study = a_study(machine=settings, workloads=("fork",))
    plan = planned()
    return run_trial(machine, plan, jobs_of(study, plan.treatment, a_kernel(), scripted_resources()))


def test_run_delays_are_metrics_beside_those_of_a_run_without_the_monitor() -> None:
    machine = ScriptedMachine(answer)
    trial = trial_of(machine)
    assert trial.outcome is Outcome.COMPLETED
    own, *delays = trial.samples
    assert own.metric == "instructions"
    assert {delay.metric: delay.value for delay in delays} == METRICS
    assert {(delay.unit, delay.workload) for delay in delays} == {("ns", "fork")}
    counted = {counter.name: counter.delta for counter in trial.counters}
    assert [counted[f"run-delay.{name}"] for name in ("tasks", "ran", "waited")] == [41, 90, 4200]
    alone, again = ([step for step in steps if isinstance(step, Run)] for _, steps in machine.programs)
    assert not any(map(watched, alone))
    assert all(map(watched, again))


def test_the_program_that_tells_is_put_there_for_the_watched_run_only() -> None:
    machine = ScriptedMachine(answer)
    trial_of(machine)
    pushed = [[step.path for step in steps if isinstance(step, Push)] for _, steps in machine.programs]
    assert pushed == [[], [TASKS_IN_GUEST]]


def test_a_kernel_that_tells_nothing_is_a_warning_and_the_trial_keeps_its_numbers() -> None:
    def silent(boot: Boot, run: Run) -> StepResult:
        return answer(boot, run).model_copy(update={"stderr": "this kernel has no TASKSTATS"})

    trial = trial_of(ScriptedMachine(silent))
    assert trial.outcome is Outcome.COMPLETED
    assert [sample.metric for sample in trial.samples] == ["instructions"]
    (warning,) = trial.warnings
    assert warning.kind is WarningKind.COUNTERS_MISSING
    assert "run-delay counted nothing of fork" in warning.text
    assert "no TASKSTATS" in warning.text


def test_of_several_programs_the_values_are_means() -> None:
    delays = [monitoring.Delays(**(TOLD | {"largest": largest})) for largest in (700.0, 900.0)]
    values = {
        delay_sample.metric: delay_sample.value
        for delay_sample in monitoring.delay_samples("fork", Mode.EXACT_PARALLEL, delays)
    }
    assert values == METRICS
    assert monitoring.delay_counters(delays)[0] == ("run-delay.tasks", 82.0)


def test_nothing_told_is_an_error() -> None:
    with pytest.raises(MonitorFailed, match="told no run delays"):
        monitoring.run_delays([StepResult(step=0, do="run", exit=0, stderr="")])
