"""Workloads that programs watch: their numbers come from runs without, and the cost is told."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats
from tests.support.making import a_study, a_trial, planned
from tests.support.scripted import ScriptedMachine, a_kernel, number_of, scripted_resources

from ktrial import monitors
from ktrial.analysis.comparability import machine_difference
from ktrial.analysis.data_quality import monitor_costs, warnings_of
from ktrial.experiment import monitoring
from ktrial.experiment.jobs import jobs_of
from ktrial.experiment.provenance import provenance
from ktrial.experiment.session import run
from ktrial.experiment.stored_trials import differences
from ktrial.experiment.trial import run_trial
from ktrial.machines.errors import MachineStopped
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.study import MachineSettings
from ktrial.model.trial import Monitored, Outcome, Provenance, Trial
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Direction, Mode
from ktrial.store.store import open_store
from ktrial.target import Run, StepResult, TracerProgram
from ktrial.target.errors import MonitorFailed, MonitorUnusable

NOTE = DataWarning(kind=WarningKind.EVENTS_LEFT_OUT, text="it does not count everything")


class Counting:
    """A monitor whose program prints a number."""

    name = "counting"
    summary = "numbers"

    def __init__(self, problem: str = "") -> None:
        self._problem = problem

    def prepare(self) -> monitors.Prepared:
        if self._problem:
            raise MonitorUnusable(monitor=self.name, problem=self._problem, remedy="buy one")
        return monitors.Prepared(
            TracerProgram(name=self.name, argv=("count",), ready="ready"), "counting 1.0", (NOTE,)
        )

    def counted(self, printed: str) -> dict[str, float]:
        return {"counting.events": float(printed)}


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitors, "installed_tracers", lambda: {"counting": Counting()})


def answer(boot: Boot, run: Run) -> StepResult:
    """Programs that are watched take a tenth longer, and have something counted."""
    result = number_of(boot, run)
    if not run.tracers:
        return result
    slower = str(float(result.stdout) * 1.1)
    return result.model_copy(update={"stdout": slower, "tracer_output": {"counting": "500"}})


def trial_of(machine: ScriptedMachine, block: int = 0) -> Trial:
    study = a_study(machine=MachineSettings(kind="host", monitors=("counting",)), workloads=("fork",))
    plan = planned(number=block)
    return run_trial(machine, plan, jobs_of(study, plan.treatment, a_kernel(), scripted_resources()))


def test_a_watched_trial_keeps_the_numbers_of_the_run_without_and_the_counts_of_that_with(
    counting: None,
) -> None:
    trial = trial_of(ScriptedMachine(answer))
    alone = trial_of(ScriptedMachine(number_of))
    assert trial.outcome is Outcome.COMPLETED
    assert trial.samples == alone.samples
    assert {counter.name: counter.delta for counter in trial.counters}["counting.events"] == 500
    (cost,) = trial.provenance.monitored
    assert (cost.monitor, cost.workload, cost.metric) == ("counting", "fork", "instructions")
    assert cost.slowdown == pytest.approx(1.1)
    assert trial.provenance.programs == {"counting": "counting 1.0"}
    assert NOTE in trial.warnings


@pytest.mark.parametrize(("block", "order"), [(0, [False, True]), (1, [True, False]), (2, [False, True])])
def test_the_watched_run_comes_first_in_every_other_block(
    counting: None, block: int, order: list[bool]
) -> None:
    machine = ScriptedMachine(answer)
    trial_of(machine, block)
    watched = [any(step.tracers for step in steps if isinstance(step, Run)) for _, steps in machine.programs]
    assert watched == order


@pytest.mark.parametrize(
    "error", [MonitorFailed(monitor="counting", problem="fell over"), ValueError("it printed nothing")]
)
def test_a_monitor_that_fails_is_a_warning_and_the_trial_keeps_its_numbers(
    counting: None, error: Exception
) -> None:
    def fails(boot: Boot, run: Run) -> StepResult:
        if run.tracers:
            raise error
        return number_of(boot, run)

    trial = trial_of(ScriptedMachine(fails))
    assert trial.outcome is Outcome.COMPLETED
    assert trial.samples
    assert trial.provenance.monitored == ()
    (warning,) = trial.warnings
    assert warning.kind is WarningKind.COUNTERS_MISSING
    assert "counting counted nothing of fork" in warning.text


def test_a_watched_workload_that_ends_badly_is_a_warning_too(counting: None) -> None:
    def ends_badly(boot: Boot, run: Run) -> StepResult:
        result = answer(boot, run)
        return result.model_copy(update={"exit": 1}) if run.tracers else result

    trial = trial_of(ScriptedMachine(ends_badly))
    assert trial.outcome is Outcome.COMPLETED
    assert "it ended with 1" in trial.warnings[0].text


def test_the_end_of_the_machine_is_no_monitor_s_doing(counting: None) -> None:
    def stopped(boot: Boot, run: Run) -> StepResult:
        if run.tracers:
            raise MachineStopped(machine="host")
        return number_of(boot, run)

    with pytest.raises(MachineStopped):
        trial_of(ScriptedMachine(stopped))


class OneMore:
    """Another package's monitor, which counts what is in one more file."""

    name, summary, files = "one-more", "softirqs", ("/proc/softirqs",)

    def counters(self, watched: monitors.Watched, rusage: Mapping[str, float]) -> dict[str, float]:
        return {}


def test_a_monitor_that_is_installed_is_told_and_what_was_counted_without_it_is_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To read one more file moves exact counts in the last digits (`fork` on 6.1: 14 of 100,290)."""

    def noted(machine: str, mode: Mode) -> Trial:
        identity = MachineIdentity(machine=machine, mode=mode, qemu="7.2.22", cpu_model="max")
        return a_trial(provenance=provenance(a_kernel(), identity))

    before, before_in_time = noted("exact", Mode.EXACT_PLUGIN), noted("host", Mode.TIMED)
    usual, warnings = monitors.installed()
    monkeypatch.setattr(monitors, "installed", lambda: ({**usual, "one-more": OneMore()}, warnings))
    after = noted("exact", Mode.EXACT_PLUGIN)
    assert "set of files read around the programs" in machine_difference([before], [after])
    (difference,) = differences(before, after)
    assert difference.fact == "executed: watched files"
    assert not machine_difference([before_in_time], [noted("host", Mode.TIMED)]), "its noise is larger"


def test_a_monitor_that_cannot_watch_here_ends_the_study_before_anything_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(monitors, "installed_tracers", lambda: {"counting": Counting("it is broken")})
    study = a_study(machine=MachineSettings(kind="host", monitors=("counting",)))
    machine = ScriptedMachine(answer)
    with (
        open_store(f"{tmp_path}/x.db") as store,
        pytest.raises(MonitorUnusable, match="it is broken") as caught,
    ):
        run(study, store=store, machine=machine, resources=scripted_resources())
    assert machine.programs == []
    assert "buy one; or leave it out" in caught.value.advice


def test_counts_of_a_watched_run_are_for_as_many_operations_as_the_other_run_did() -> None:
    watched = monitoring.Watched("counting", counters=(("counting.events", 300.0),), operations=100)
    assert watched.deltas(200.0) == {"counting.events": 600.0}
    assert watched.deltas(0.0) == {"counting.events": 300.0}
    assert replace(watched, operations=0).deltas(200.0) == {"counting.events": 300.0}


def cost(alone: float, watched: float, direction: Direction = Direction.LOWER) -> Monitored:
    return Monitored(
        monitor="off-cpu",
        workload="fork",
        metric="latency",
        direction=direction,
        alone=alone,
        watched=watched,
    )


@pytest.mark.parametrize(
    ("alone", "watched", "direction", "slowdown"),
    [
        (100, 102, Direction.LOWER, 1.02),
        (102, 100, Direction.HIGHER, 1.02),
        (0, 5, Direction.LOWER, 0),
        (5, 0, Direction.HIGHER, 0),
        (-1, 5, Direction.LOWER, 0),
    ],
)
def test_slower_is_more_whatever_the_metric(
    alone: float, watched: float, direction: Direction, slowdown: float
) -> None:
    assert cost(alone, watched, direction).slowdown == pytest.approx(slowdown)


def with_costs(*session: Monitored) -> list[Trial]:
    return [
        a_trial(planned(number=n), provenance=Provenance(monitored=(cost_,)))
        for n, cost_ in enumerate(session)
    ]


def test_the_cost_is_the_mean_of_the_logarithms_with_student_s_interval() -> None:
    (note,) = monitor_costs(with_costs(cost(100, 101), cost(100, 103), cost(100, 105)))
    logs = [math.log(1.01), math.log(1.03), math.log(1.05)]
    low, high = stats.t.interval(0.95, 2, loc=stats.tmean(logs), scale=stats.sem(logs))
    assert note.kind is WarningKind.MONITOR_COST
    assert note.is_note
    assert note.text == (
        f"off-cpu costs fork +3.0 % (latency; 95 % interval −{-math.expm1(low) * 100:.1f} % to "
        f"+{math.expm1(high) * 100:.1f} %; 3 pairs of runs)"
    )


def test_the_cost_from_one_pair_has_no_interval_nor_has_that_of_equal_pairs() -> None:
    (monitor_cost,) = monitor_costs(with_costs(cost(100, 101)))
    assert monitor_cost.text == "off-cpu costs fork +1.0 % (latency; 1 pair of runs)"
    (equal,) = monitor_costs(with_costs(cost(100, 101), cost(100, 101)))
    assert equal.text == "off-cpu costs fork +1.0 % (latency; 2 pairs of runs)"
    assert monitor_costs(with_costs(cost(0, 1))) == ()
    assert monitor_costs([a_trial()]) == ()


def test_a_monitor_s_cost_is_one_note_with_all_workloads() -> None:
    pipe_cost = cost(100, 99).model_copy(update={"workload": "pipe"})
    (note,) = monitor_costs(with_costs(cost(100, 101), pipe_cost))
    assert "costs fork +1.0 % (latency; 1 pair of runs), pipe −1.0 % (latency" in note.text
    assert "of each pair one had it" in note.advice


def test_the_cost_is_among_the_result_s_notes_and_survives_the_store(tmp_path: Path) -> None:
    study = a_study()
    (trial,) = with_costs(cost(100, 101))
    with open_store(f"{tmp_path}/x.db") as store:
        study_id = store.study(study)
        store.add_trial(study_id, trial)
        (stored,) = store.trials(study_id)
    assert stored.provenance.monitored == trial.provenance.monitored
    warnings = warnings_of(study, {"debian:6.1": [stored], "debian:6.12": []}, ())
    assert "off-cpu costs fork +1.0 %" in " ".join(warning.text for warning in warnings)
