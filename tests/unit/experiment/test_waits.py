"""Where CPUs wait: from counts by function to counters of trials, and what is said of them."""

from pathlib import Path

import pytest
from tests.support.crates import SPIN, profile
from tests.support.making import a_study, a_trial, planned
from tests.support.scripted import ScriptedMachine, a_kernel, number_of, scripted_resources

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.analysis.scaling import waits
from ktrial.experiment import monitoring
from ktrial.experiment.jobs import jobs_of
from ktrial.experiment.monitoring import waits_counters
from ktrial.experiment.trial import run_trial
from ktrial.model.design import Factor, FactorKind, PlannedTrial, Treatment
from ktrial.model.parallel import RUN_DELAY, WAITS
from ktrial.model.study import MachineSettings, StudyRecord, perturbation
from ktrial.model.trial import CounterDelta, Outcome
from ktrial.model.warnings import WarningKind
from ktrial.report.csv_and_json import record_as_json
from ktrial.store.store import open_store

MACHINE = MachineSettings(kind="exact-parallel", monitors=(WAITS, RUN_DELAY))
KERNELS = ("debian:6.1", "debian:6.12")


def test_counters_are_the_parts_and_their_first_places() -> None:
    counters = dict(waits_counters(profile()))
    parts = {name: counters[f"waits.{name}"] for name in ("work", "waiting", "cache lines", "idle")}
    assert parts == {"work": 920 / 4, "waiting": 640 / 4, "cache lines": 60 / 4, "idle": 2380 / 4}
    assert sum(parts.values()) == 4000 / 4
    assert counters[f"waits.waiting in {SPIN} ← ext4_write [ext4]"] == 580 / 4
    assert counters["waits.cache lines in asm_sysvec_reschedule_ipi"] == 60 / 4
    assert counters["waits.idle in [before a task was seen]"] == 1192 / 4


def test_they_are_counted_under_the_first_perturbation_alone() -> None:
    plan = planned()
    (job,) = jobs_of(
        a_study(machine=MACHINE, workloads=("fork",)), plan.treatment, a_kernel(), scripted_resources()
    )
    assert monitoring.of_trial(job, 0) == (WAITS, RUN_DELAY)
    assert monitoring.of_trial(job, 1) == (RUN_DELAY,)


def test_a_machine_that_cannot_count_them_is_a_warning_and_the_trial_keeps_its_numbers() -> None:
    study = a_study(machine=MachineSettings(kind="exact-parallel", monitors=(WAITS,)), workloads=("fork",))
    plan = planned()
    trial = run_trial(
        ScriptedMachine(number_of), plan, jobs_of(study, plan.treatment, a_kernel(), scripted_resources())
    )
    assert trial.outcome is Outcome.COMPLETED
    (warning,) = trial.warnings
    assert warning.kind is WarningKind.COUNTERS_MISSING
    assert "waits counted nothing of fork" in warning.text


def a_record(directory: Path, monitors: tuple[str, ...] = (WAITS,), lines: float = 0.0) -> StudyRecord:
    """Two kernels on two and four CPUs; what waits doubles with the CPUs."""
    cpus = Factor(name="cpus", kind=FactorKind.CPUS, levels=(2, 4), baseline=2)
    machine = MachineSettings(kind="exact-parallel", monitors=monitors)
    study = a_study(machine=machine, workloads=("fork",), factors=(cpus,), perturbations=1)
    with open_store(directory / "s.db") as store:
        number = store.study(study)
        for order, (kernel, count) in enumerate((kernel, count) for count in (4, 2) for kernel in KERNELS):
            plan = PlannedTrial(
                order=order,
                block=0,
                treatment=Treatment(levels={"kernel": kernel, "cpus": count}),
                perturbation=perturbation(1, 0),
            )
            spent = {
                "waits.work": 1000.0 - 100 * count,
                "waits.waiting": 100.0 * count,
                f"waits.waiting in {SPIN} ← finish_fault": 60.0 * count,
                "waits.waiting in osq_lock ← do_mmap": 40.0 * count,
                "vmstat.pgfault": 7.0,
                "waits.cache lines": lines,
                "waits.cache lines in [program]": lines,
            }
            rows = tuple(
                CounterDelta(workload="fork", name=name, delta=delta) for name, delta in spent.items()
            )
            store.add_trial(number, a_trial(plan).model_copy(update={"counters": rows}))
        return load_record(store, number)


def test_waits_are_shares_by_treatment_and_cpus_with_the_first_place(tmp_path: Path) -> None:
    shares = waits(a_record(tmp_path))
    assert [(share.treatment, share.cpus) for share in shares] == [
        (kernel, count) for kernel in KERNELS for count in (2, 4)
    ]
    assert [share.waiting for share in shares] == pytest.approx([0.2, 0.4, 0.2, 0.4])
    assert {share.waiting_in for share in shares} == {f"{SPIN} ← finish_fault"}
    assert {(share.idle, share.asleep_in) for share in shares} == {(0.0, "")}


def test_where_most_of_it_is_for_cache_lines_these_are_named(tmp_path: Path) -> None:
    shares = waits(a_record(tmp_path, lines=1000.0))
    assert shares[0].waiting == pytest.approx(1200 / 2000)
    assert {share.waiting_in for share in shares} == {"cache lines in [program]"}


def test_the_page_markdown_and_json_have_them(tmp_path: Path) -> None:
    record_ = a_record(tmp_path)
    place = f"{SPIN} ← finish_fault"
    page, markdown = report.study_html(record_), report.study_markdown(record_)
    assert "Where the CPUs wait" in page
    for text in (page, markdown):
        assert SPIN in text
        assert "finish_fault" in text
    rows = record_as_json(record_, "s.db")["waits"]
    assert [(row["cpus"], row["waiting_in"]) for row in rows] == [(2, place), (4, place)] * 2


def test_without_the_monitor_nothing_is_said(tmp_path: Path) -> None:
    record_ = a_record(tmp_path, monitors=())
    assert waits(record_) == ()
    assert "Where the CPUs wait" not in report.study_html(record_)
