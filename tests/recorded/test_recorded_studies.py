"""Whole studies of recorded guests: trials, comparisons, explanations and reports."""

from pathlib import Path
from typing import cast

import pytest
from tests.support.golden_guests import played

from ktrial import report
from ktrial.analysis.store_queries import profile_of
from ktrial.experiment.explain import stored_explanations
from ktrial.model.comparison import Verdict
from ktrial.model.design import LevelValue, Treatment
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import Mode
from ktrial.report.attribution import whys
from ktrial.store.store import open_store


def study(name: str, directory: Path) -> StudyRecord:
    return cast("StudyRecord", played(name, directory))


def by_level(record: StudyRecord) -> dict[LevelValue, Trial]:
    return {trial.planned.treatment.levels["it"]: trial for trial in record.trials}


def test_a_setting_is_read_back_and_its_refusal_told_in_the_kernels_words(tmp_path: Path) -> None:
    record = study("settings", tmp_path)
    trials = by_level(record)
    assert trials[60].settings == {"vm.swappiness": "60"}
    assert trials[10].settings == {"vm.swappiness": "10"}
    assert trials[500].outcome is Outcome.REFUSED
    assert "vm.swappiness = 500 was refused: EINVAL" in trials[500].reason
    by_treatment = {one.treatment: one for one in record.result.comparisons}
    assert by_treatment["it=10"].verdict is Verdict.NOT_TESTED, "the guest has no swap"
    assert by_treatment["it=500"].verdict is Verdict.INCONCLUSIVE
    assert "EINVAL" in by_treatment["it=500"].reason


def test_a_kernel_without_its_init_is_an_outcome_with_its_console(tmp_path: Path) -> None:
    trials = by_level(study("without-init", tmp_path))
    assert trials[""].outcome is Outcome.COMPLETED
    assert trials["/none"].outcome in {Outcome.NO_INIT, Outcome.PANICKED}
    assert "panic" in trials["/none"].console


def test_a_workloads_parameter_is_a_factor_and_counters_are_kept(tmp_path: Path) -> None:
    record = study("parameters", tmp_path)
    # 64 times the pages: more instructions, and more bytes that are cleared.
    assert [(one.workload, one.verdict) for one in record.result.comparisons] == [("mmap", Verdict.WORSE)] * 2
    faults = {
        level: next(one.delta for one in trial.counters if one.name == "vmstat.pgfault")
        for level, trial in by_level(record).items()
    }
    assert faults[64] > 10 * faults[1]


def test_a_preemption_model_that_the_kernel_did_not_take_makes_the_trial_invalid(tmp_path: Path) -> None:
    trials = by_level(study("preemption", tmp_path))
    assert trials[""].settings == {"preempt": "voluntary"}
    assert trials["none"].settings == {"preempt": "none"}
    assert trials["none"].samples
    assert (trials["lazy"].outcome, trials["lazy"].samples) == (Outcome.REFUSED, ())
    assert "preempt=lazy was asked for" in trials["lazy"].reason
    assert "voluntary" in trials["lazy"].reason


def test_a_slow_disk_makes_a_writer_wait_that_may_keep_fewer_dirty_pages(tmp_path: Path) -> None:
    record = study("disk", tmp_path)
    assert {trial.outcome for trial in record.trials} == {Outcome.COMPLETED}
    by_metric = {one.metric: one for one in record.result.comparisons}
    rate = by_metric["rate before fsync"]
    assert rate.verdict is Verdict.WORSE
    assert rate.ratio is not None
    assert rate.ratio < 0.8


def test_a_study_keeps_what_each_function_had(tmp_path: Path) -> None:
    record = study("commands", tmp_path)
    assert [trial.outcome for trial in record.trials] == [Outcome.COMPLETED] * 2
    with open_store(tmp_path / "counted.db") as store:
        kept = {
            use.name: profile_of(store, record, Treatment(levels={"it": "a"}), use.label)
            for use in record.study.workloads
        }
    values = {(sample.workload, sample.metric): sample for sample in record.trials[0].samples}
    assert {sample.mode for sample in record.trials[0].samples} == {Mode.EXACT_PLUGIN}
    fork, listing = kept["fork"], kept["listing"]
    assert fork
    assert listing
    assert sum(each.instructions for each in fork.region.functions) == fork.region.kernel
    instructions = values["fork", "fork, exit, wait"].mean
    assert fork.region.operations.total / fork.operations == pytest.approx(instructions, rel=1e-3)
    assert values["fork", "string-bytes"].mean == fork.region.strings.bytes / fork.operations
    assert listing.operations == 1
    assert listing.region.instructions == values["listing", "wall time"].value


def test_two_kernels_are_compared_explained_and_shown(tmp_path: Path) -> None:
    record = study("upgrade", tmp_path)
    verdicts = {
        one.workload: one.verdict for one in record.result.comparisons if one.metric != "string-bytes"
    }
    assert verdicts["nqueens"] is Verdict.EQUIVALENT
    assert verdicts["fork"] is not Verdict.EQUIVALENT
    with open_store(tmp_path / "upgrade.db") as store:
        reasons = whys(store, record, stored_explanations)
    assert "fork" in {why.workload for why in reasons}
    for why in reasons:
        assert sum(part.difference for part in why.rows[:-1]) == pytest.approx(why.total.difference)
        assert why.unexplained == 0
    page = report.study_html(record, reasons)
    assert "copy_process" in page
    assert 'class="flame"' in page
