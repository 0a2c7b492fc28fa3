"""A study by the plugin, with what its differences are made of, for tests of the report."""

from tests.unit.profiles import with_calls
from tests.unit.report_records import FIVE, MORE, VALUES, a_record
from tests.unit.test_flame_graph import AFTER, BEFORE

from ktrial.model.record import StudyRecord
from ktrial.model.workload import Mode
from ktrial.report import summary
from ktrial.report.why import Why, explained


def by_the_plugin(record: StudyRecord) -> StudyRecord:
    """The same study, counted by the plugin."""
    counted = {"mode": Mode.EXACT_PLUGIN}
    trials = tuple(
        trial.model_copy(
            update={"samples": tuple(sample.model_copy(update=counted) for sample in trial.samples)}
        )
        for trial in record.trials
    )
    comparisons = tuple(one.model_copy(update=counted) for one in record.result.comparisons)
    result = record.result.model_copy(update={"comparisons": comparisons})
    return record.model_copy(update={"trials": trials, "result": result})


def a_counted_record() -> StudyRecord:
    return by_the_plugin(a_record())


def a_counted_matrix() -> StudyRecord:
    return by_the_plugin(a_record(FIVE, (*VALUES, *MORE)))


def whys_for(record: StudyRecord) -> tuple[Why, ...]:
    """A reason for each comparison, whatever its verdict: the same two small profiles for all."""
    before, after = with_calls(BEFORE, kernel="debian:6.1"), with_calls(AFTER, kernel="debian:6.12")
    return tuple(
        explained([one], before, after) for group in summary.groups(record) for one in group.comparisons
    )
