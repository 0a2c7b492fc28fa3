"""Settings that reached nothing: the counters of trials tell, and the verdict is 'not tested'."""

import pytest
from tests.support.making import a_sample, a_study, a_trial

from ktrial.analysis.counters import compared
from ktrial.analysis.result import result
from ktrial.format.labels import verdict_text
from ktrial.model.comparison import Result, Verdict
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import MachineSettings, Study, plan
from ktrial.model.trial import CounterDelta, Trial
from ktrial.model.warnings import WarningKind

SWAP_AND_FILES = {"vmstat.pswpout": 9.0, "vmstat.pgsteal_file": 5.0}
ZEROS_AND_FILES = {"vmstat.swpout_zero": 9.0, "vmstat.pgsteal_file": 5.0}
NOTHING = {"vmstat.pgfault": 100.0, "vmstat.pswpout": 0.0}


def a_setting(name: str, *levels: int) -> Factor:
    return Factor(name=name, kind=FactorKind.SETTING, levels=levels, baseline=levels[0], target=name)


def study_of(*factors: Factor, machine: MachineSettings | None = None) -> Study:
    machine = machine or MachineSettings(kernel="debian:6.12", swap_mib=64)
    plain = a_study(workloads=("fork",), factors=factors)
    factors = tuple(factor for factor in plain.factors if factor.kind is FactorKind.SETTING)
    return plain.model_copy(update={"factors": factors, "machine": machine})


def trials_of(study: Study, counters: dict[str, dict[str, float]], value: float = 1000.0) -> list[Trial]:
    """`counters`: of each treatment by its label, else of all by an empty one."""

    def deltas(label: str) -> tuple[CounterDelta, ...]:
        of_treatment = counters.get(label, counters.get("", {}))
        return tuple(CounterDelta(workload="fork", name=name, delta=d) for name, d in of_treatment.items())

    return [
        a_trial(trial, samples=(a_sample(value=value),), counters=deltas(trial.treatment.label))
        for trial in plan(study).trials
    ]


SWAPPINESS = study_of(a_setting("vm.swappiness", 60, 10))


def answered(counters: dict[str, float], study: Study = SWAPPINESS) -> Result:
    return result(study, trials_of(study, {"": counters}), described=lambda use: ())


def verdicts(answer: Result) -> list[Verdict]:
    return [comparison.verdict for comparison in answer.comparisons]


def test_where_nothing_was_swapped_swappiness_is_not_tested() -> None:
    answer = answered(NOTHING)
    assert verdicts(answer) == [Verdict.NOT_TESTED]
    assert verdict_text(Verdict.NOT_TESTED) == "∅ not tested"
    assert answer.answer == (
        "fork is not tested from vm.swappiness=60 to vm.swappiness=10. "
        "Nothing was swapped: vm.swappiness had nothing to act on."
    )
    (warning,) = [warning for warning in answer.warnings if warning.kind is WarningKind.NOT_TESTED]
    assert warning.text == "nothing was swapped: vm.swappiness had nothing to act on"
    assert "less memory than the workload needs, now 512 MiB" in warning.advice
    assert "--swap" not in warning.advice, "the guest has some"


@pytest.mark.parametrize(
    ("counters", "verdict"),
    [
        (SWAP_AND_FILES, Verdict.EQUIVALENT),
        (ZEROS_AND_FILES, Verdict.EQUIVALENT),
        ({"vmstat.pswpout": 9.0}, Verdict.NOT_TESTED),
        ({"vmstat.pswpout": 9e4, "vmstat.pgsteal_anon": 9e4, "vmstat.pgsteal_file": 1.0}, Verdict.NOT_TESTED),
        ({"vmstat.pswpout": 9e4, "vmstat.pgsteal_anon": 9e4, "vmstat.pgsteal_file": 1e3}, Verdict.EQUIVALENT),
        ({"vmstat.pgsteal_file": 9.0}, Verdict.NOT_TESTED),
        (NOTHING, Verdict.NOT_TESTED),
        ({}, Verdict.EQUIVALENT),
        ({"stat.ctxt": 5.0}, Verdict.EQUIVALENT),
    ],
)
def test_swappiness_chooses_between_swap_and_files_where_both_are_reclaimed(
    counters: dict[str, float], verdict: Verdict
) -> None:
    """What read no counters of memory says nothing."""
    assert verdicts(answered(counters)) == [verdict]


def test_one_side_that_swaps_is_enough() -> None:
    counters = {"vm.swappiness=60": SWAP_AND_FILES, "vm.swappiness=10": NOTHING}
    answer = result(SWAPPINESS, trials_of(SWAPPINESS, counters), described=lambda use: ())
    assert verdicts(answer) == [Verdict.EQUIVALENT]


def test_a_change_that_shows_is_a_change_whatever_the_counters_say() -> None:
    study = SWAPPINESS
    faster, slower = (trials_of(study, {"": NOTHING}, value) for value in (1000.0, 2000.0))
    mixed = [
        slow if slow.planned.treatment.label == "vm.swappiness=10" else fast
        for fast, slow in zip(faster, slower, strict=True)
    ]
    assert verdicts(result(study, mixed, described=lambda use: ())) == [Verdict.WORSE]


def test_beside_another_change_equivalent_is_of_that() -> None:
    """Of the two alone and both together, only that which is nothing but swappiness is not tested."""
    study = study_of(a_setting("vm.swappiness", 60, 10), a_setting("vm.stat_interval", 1, 5))
    by_treatment = {row.treatment: row.verdict for row in answered(NOTHING, study).comparisons}
    assert {name: verdict is Verdict.NOT_TESTED for name, verdict in by_treatment.items()} == {
        "vm.swappiness=10 · vm.stat_interval=1": True,
        "vm.swappiness=60 · vm.stat_interval=5": False,
        "vm.swappiness=10 · vm.stat_interval=5": False,
    }


@pytest.mark.parametrize(
    ("knob", "acts", "sentence"),
    [
        ("vm.vfs_cache_pressure", "vmstat.slabs_scanned", "No memory was reclaimed"),
        ("vm.page-cluster", "vmstat.pswpin", "Nothing was swapped"),
        ("vm.dirty_ratio", "vmstat.nr_dirtied", "Nothing was written to a disk"),
    ],
)
def test_each_knob_is_shown_by_what_it_decides_about(knob: str, acts: str, sentence: str) -> None:
    study = study_of(a_setting(knob, 20, 10))
    assert answered(NOTHING, study).answer.endswith(f"{sentence}: {knob} had nothing to act on.")
    assert verdicts(answered({**NOTHING, acts: 1.0}, study)) == [Verdict.EQUIVALENT]


def test_several_levels_that_reached_nothing_are_told_together() -> None:
    answer = answered(NOTHING, study_of(a_setting("vm.swappiness", 60, 10, 0, 100)))
    assert answer.answer == (
        "against vm.swappiness=60, fork is not tested with vm.swappiness=10, vm.swappiness=0 and "
        "vm.swappiness=100. Nothing was swapped: vm.swappiness had nothing to act on."
    )


def test_counters_of_a_setting_that_reached_nothing_are_compared_all_the_same() -> None:
    rows = compared(SWAPPINESS, trials_of(SWAPPINESS, {"": NOTHING}))
    assert {row.comparison.verdict for row in rows} == {Verdict.EQUIVALENT}


def test_on_a_real_machine_the_advice_is_about_the_workload() -> None:
    study = study_of(a_setting("vm.swappiness", 60, 10), machine=MachineSettings(kind="host"))
    (warning,) = [item for item in answered(NOTHING, study).warnings if item.kind is WarningKind.NOT_TESTED]
    assert warning.advice == "measure a workload that needs more memory than there is"
