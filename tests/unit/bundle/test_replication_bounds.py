"""What another QEMU may count otherwise: instructions within stated bounds, and all else is told apart."""

from collections.abc import Callable

import pytest
from tests.support.report_records import a_record

from ktrial.analysis.replication import compared, has_bound, ratio_bound, workloads_on_disk
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.replication import Agreement, Outcome, Replication, Word
from ktrial.model.study import Disk, StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.workload import Sample, WorkloadUse

KERNELS = ("debian:6.1", "debian:6.12")
LATENCY = {"metric": "latency p99", "unit": "µs"}
Change = Callable[[Sample], Sample]


def with_latencies(record: StudyRecord) -> StudyRecord:
    """The study with a second metric of each workload, which no plugin counts."""

    def more(trial: Trial) -> Trial:
        beside = tuple(sample.model_copy(update=LATENCY) for sample in trial.samples)
        return trial.model_copy(update={"samples": trial.samples + beside})

    pairs = tuple(pair.model_copy(update=LATENCY) for pair in record.result.comparisons)
    result = record.result.model_copy(update={"comparisons": record.result.comparisons + pairs})
    return record.model_copy(update={"trials": tuple(map(more, record.trials)), "result": result})


def by_qemu(record: StudyRecord, version: str, change: Change, ratio: float = 1.0) -> StudyRecord:
    """Run again by another QEMU: samples are changed, and ratios of metrics that are none of instructions."""

    def run(trial: Trial) -> Trial:
        noted = trial.provenance.model_copy(update={"qemu": version})
        samples = tuple(map(change, trial.samples))
        return trial.model_copy(update={"provenance": noted, "samples": samples})

    def judged(pair: Comparison) -> Comparison:
        if pair.unit != "µs":
            return pair
        moved = {"ratio": 1 / ratio, "low": 1 / ratio, "high": 1 / ratio, "verdict": Verdict.BETTER}
        return pair.model_copy(update=moved)

    result = record.result.model_copy(update={"comparisons": tuple(map(judged, record.result.comparisons))})
    return record.model_copy(update={"trials": tuple(map(run, record.trials)), "result": result})


def times(instructions: float, others: float) -> Change:
    def changed(sample: Sample) -> Sample:
        factor = instructions if sample.unit != "µs" else others
        return sample.model_copy(update={"value": sample.value * factor})

    return changed


def replicated(instructions: float, others: float, ratio: float = 1.0) -> Replication:
    record = with_latencies(a_record(KERNELS, ("fork",)))
    return compared(record, by_qemu(record, "10.0.13", times(instructions, others), ratio))


def test_latencies_that_another_qemu_moves_are_told_and_contradict_nothing() -> None:
    again = replicated(instructions=1.01, others=3.0, ratio=2.0)
    assert again.outcome is Outcome.WITHIN
    assert {number.agreement for number in again.numbers if number.unit != "µs"} == {Agreement.WITHIN}
    assert {number.agreement for number in again.numbers if number.unit == "µs"} == {Agreement.UNBOUNDED}
    words = {(pair.before.metric == "latency p99"): pair.word for pair in again.verdicts}
    assert words == {False: Word.CONSISTENT, True: Word.UNBOUNDED}
    assert "6 within 2% of what another QEMU counted, 6 differ for which no bound is stated" in again.said


def test_instructions_beyond_the_bound_are_contradicted_all_the_same() -> None:
    again = replicated(instructions=1.03, others=1.0)
    assert again.outcome is Outcome.CONTRADICTED


def test_with_the_same_qemu_a_latency_is_a_digit_like_any_other() -> None:
    record = with_latencies(a_record(KERNELS, ("fork",)))
    changed = times(instructions=1.0, others=1.001)
    again = compared(record, by_qemu(record, record.trials[0].provenance.qemu, changed))
    assert again.outcome is Outcome.CONTRADICTED
    assert {number.agreement for number in again.numbers if number.unit == "µs"} == {Agreement.DIFFERENT}


@pytest.mark.parametrize(
    ("own_program", "outcome"),
    [(False, Outcome.WITHIN), (True, Outcome.CONSISTENT)],
    ids=["no file of the host is measured", "a program of the host is measured"],
)
def test_what_makes_the_disk_may_be_another_where_no_file_of_the_host_is_measured(
    own_program: bool, outcome: Outcome
) -> None:
    record = a_record(KERNELS, ("fork",))
    if own_program:
        study = record.study.model_copy(
            update={"machine": record.study.machine.model_copy(update={"files": ("/bin/sh",)})}
        )
        record = record.model_copy(update={"study": study})

    def made_by(trial: Trial, qemu: str, digest: str) -> Trial:
        noted = {"qemu": qemu, "programs": {"mke2fs": digest}, "executed": {"initial RAM disk": digest}}
        return trial.model_copy(update={"provenance": trial.provenance.model_copy(update=noted)})

    def run(qemu: str, digest: str) -> StudyRecord:
        return record.model_copy(
            update={"trials": tuple(made_by(trial, qemu, digest) for trial in record.trials)}
        )

    first, again = run("7.2.22", "sha256:aa"), run("10.0.13", "sha256:bb")
    moved = by_qemu(again, "10.0.13", times(instructions=1.001, others=1.0))
    assert compared(first, moved).outcome is outcome


def test_a_ratio_on_the_disk_may_differ_by_more() -> None:
    record = a_record(KERNELS, ("fork",))
    disk = Disk(path="/mnt")
    uses = (
        WorkloadUse(name="fork"),
        WorkloadUse(name="metadata", parameters={"path": "/mnt/a"}),
        WorkloadUse(name="seq-read", parameters={"path": "/mntx"}),
    )
    machine = record.study.machine.model_copy(update={"disk": disk})
    on_disk = workloads_on_disk(record.study.model_copy(update={"machine": machine, "workloads": uses}))
    assert on_disk == {"metadata(path=/mnt/a)"}
    assert workloads_on_disk(record.study) == frozenset()
    (some,) = record.result.comparisons
    there = some.model_copy(update={"workload": "metadata(path=/mnt/a)"})
    assert (ratio_bound(some, on_disk), ratio_bound(there, on_disk)) == (0.005, 0.02)


@pytest.mark.parametrize(
    ("metric", "unit", "bounded"),
    [
        ("clone", "instructions", True),
        ("clone", "instructions/operation", True),
        ("string-bytes", "bytes", True),
        ("read", "KiB", False),
    ],
)
def test_a_bound_is_stated_for_what_is_counted(metric: str, unit: str, bounded: bool) -> None:
    assert has_bound(metric, unit) is bounded
