"""Event counters, compared: per operation, changed ones first, in both modes, from the command line too."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.making import a_sample, a_study, a_trial, planned
from tests.support.scripted import ScriptedMachine, scripted_resources

from ktrial.analysis.counters import CounterRow, compared
from ktrial.experiment.observer import Observer
from ktrial.experiment.single_kernel import Runs
from ktrial.model.study import Study, Timing
from ktrial.model.trial import CounterDelta, Outcome, Trial
from ktrial.model.workload import Mode
from ktrial.store.store import Store

OLD, NEW = "debian:6.1", "debian:6.12"


def a_counted_trial(
    kernel: str,
    number: int,
    deltas: dict[str, float],
    mode: Mode = Mode.EXACT_PLUGIN,
    block: int = -1,
) -> Trial:
    counters = tuple(CounterDelta(workload="fork", name=name, delta=delta) for name, delta in deltas.items())
    plan = planned(kernel, number, number)
    if block >= 0:
        plan = plan.model_copy(update={"block": block})
    return a_trial(plan, samples=(a_sample(mode=mode),), counters=counters)


def rows(old: dict[str, float], new: dict[str, float], pattern: str = "*") -> dict[str, CounterRow]:
    sides = ((OLD, old), (NEW, new))
    trials = [a_counted_trial(name, number, deltas) for number in range(3) for name, deltas in sides]
    comparisons = compared(a_study(workloads=("fork",)), trials, pattern)
    return {row.comparison.metric: row for row in comparisons}


def test_what_changed_comes_first_and_the_most_changed_before_the_others() -> None:
    changes = rows(
        {"vmstat.pgfault": 1000, "stat.ctxt": 50, "stat.intr": 7, "vmstat.pgfree": 400},
        {"vmstat.pgfault": 1500, "stat.ctxt": 500, "stat.intr": 7, "vmstat.pgfree": 401},
    )
    assert list(changes) == ["stat.ctxt", "vmstat.pgfault", "vmstat.pgfree", "stat.intr"]
    assert [row.changed for row in changes.values()] == [True, True, False, False]
    assert changes["stat.ctxt"].comparison.ratio == 10


def test_a_counter_that_one_side_lacks_did_not_rise_there() -> None:
    changes = rows(
        {"vmstat.pgfault": 9, "vmstat.pgmajfault": 3}, {"vmstat.pgfault": 9, "vmstat.thp_fault": 2}
    )
    values = {name: (row.comparison.baseline_value, row.comparison.value) for name, row in changes.items()}
    assert values["vmstat.pgmajfault"] == (3, 0)
    assert values["vmstat.thp_fault"] == (0, 2)
    assert [name for name, row in changes.items() if row.changed] == ["vmstat.pgmajfault", "vmstat.thp_fault"]


def test_counts_are_per_operation_where_the_workload_says_how_many_there_were() -> None:
    changes = rows(
        {"vmstat.pgfault": 1000, "workload.operations": 100},
        {"vmstat.pgfault": 2000, "workload.operations": 200},
    )
    (row,) = changes.values()
    comparison = row.comparison
    assert (comparison.baseline_value, comparison.value, comparison.unit, row.changed) == (
        10,
        10,
        "per operation",
        False,
    )
    (plain,) = rows({"vmstat.pgfault": 1000}, {"vmstat.pgfault": 2000}).values()
    assert (plain.comparison.value, plain.comparison.unit) == (2000, "per run")


def test_a_glob_chooses_counters() -> None:
    both = {"vmstat.pgfault": 1.0, "vmstat.pgfree": 1.0, "stat.ctxt": 1.0}
    assert set(rows(both, both, "vmstat.pg*")) == {"vmstat.pgfault", "vmstat.pgfree"}
    assert rows(both, both, "nothing.*") == {}


def test_a_trial_that_failed_has_no_counters_and_the_others_do_not_decide() -> None:
    trials = [a_counted_trial(name, n, {"stat.ctxt": n + 1.0}) for n in range(3) for name in (OLD, NEW)]
    trials[-1] = trials[-1].model_copy(update={"outcome": Outcome.PANICKED})
    (row,) = compared(a_study(workloads=("fork",)), trials)
    assert not row.changed


def test_timed_trials_are_compared_by_the_timed_rule() -> None:
    study = Study.model_validate(
        a_study(workloads=("fork",), perturbations=1).model_dump() | {"timing": Timing(blocks=6)}
    )
    trials = []
    for block in range(6):
        for name, faults, major in ((OLD, 1000 + block, 0.0), (NEW, 1100 + block, 5.0)):
            deltas = {"vmstat.pgfault": faults, "vmstat.pgmajfault": major}
            trials.append(a_counted_trial(name, 0, deltas, Mode.TIMED, block))
    by_metric = {row.comparison.metric: row for row in compared(study, trials)}
    assert {name: row.changed for name, row in by_metric.items()} == {
        "vmstat.pgmajfault": True,
        "vmstat.pgfault": True,
    }
    comparison = by_metric["vmstat.pgfault"].comparison
    assert comparison.low is not None
    assert comparison.high is not None
    assert 1.09 < comparison.low < 1.0998 < comparison.high < 1.11
    assert by_metric["vmstat.pgmajfault"].comparison.value == 5


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("COLUMNS", "110")
    machine = ScriptedMachine()

    def runs(store: Store, observer: Observer, jobs: int | None) -> Runs:
        return Runs(store, observer, jobs, machine, scripted_resources())

    monkeypatch.setattr("ktrial.cli.options.kernel_measurement.runs", runs)
    return CommandLine(monkeypatch, capsys)


def test_two_kernels_are_measured_now_or_a_stored_study_is_read(cli: CommandLine) -> None:
    result = cli("explain", "counters", "--kernel", OLD, "--kernel", NEW, "--workload", "fork", "--all")
    assert result.status == 0
    assert "fork: debian:6.12:cloud against debian:6.1:cloud, per run" in result.output
    assert "vmstat.pgfault" in result.output
    again = cli("explain", "counters", "counters", "--glob", "vmstat.*", "--json")
    data = json.loads(again.output)
    assert [row["counter"] for row in data["counters"]] == ["vmstat.pgfault"]
    assert (data["counters"][0]["change"], data["counters"][0]["changed"]) == ("same", False)


@pytest.mark.parametrize(
    "mistake",
    [
        ("--kernel", OLD, "--workload", "fork"),
        ("--kernel", OLD, "--kernel", NEW),
        ("study", "--kernel", OLD, "--kernel", NEW, "--workload", "fork"),
    ],
)
def test_a_mistake_ends_with_2(mistake: tuple[str, ...], cli: CommandLine) -> None:
    assert cli("explain", "counters", *mistake).status == 2
