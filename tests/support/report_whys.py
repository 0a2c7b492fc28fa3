"""A study by the plugin, with what its differences are made of, for tests of the report."""

from tests.support.profiles import with_calls
from tests.support.report_records import FIVE, MORE, VALUES, a_record
from tests.unit.report.test_flame_graph import AFTER, BEFORE

from ktrial.analysis.attribution.decomposition import explain
from ktrial.model.attribution import (
    Attribution,
    CounterDifference,
    Differences,
    LevelDifference,
    OptionDifference,
    ValueDifference,
)
from ktrial.model.profile import Profile
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Mode
from ktrial.report import study_summary as summary
from ktrial.report.attribution import Why, explained


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


def explained_by(before: Profile, after: Profile) -> Attribution:
    """An explanation with one difference of each kind around it."""
    around = Differences(
        levels=(LevelDifference(factor="kernel", before=before.kernel, after=after.kernel),),
        boot_after=("init_on_alloc=1",),
        options=(
            OptionDifference(option="CONFIG_LRU_GEN", before=None, after="y", owners=("mm",)),
            OptionDifference(option="CONFIG_HZ", before="250", after="1000", owners=("timers",)),
            OptionDifference(option="CONFIG_UNRELATED", before=None, after="y"),
        ),
        values=(
            ValueDifference(path="/sys/block/ram0/queue/read_ahead_kb", before="128", after="8192"),
            ValueDifference(path="/proc/sys/vm/new", before=None, after="1"),
        ),
        counters=(CounterDifference(counter="vmstat.pgfault", before=4.5, after=5.25),),
        unknown=("settings: those of debian:6.1 were not read",),
    )
    return Attribution(before=before, after=after, explanation=explain(before, after), differences=around)


def whys_for(record: StudyRecord) -> tuple[Why, ...]:
    """A reason for each comparison, whatever its verdict: the same two small profiles for all."""
    before, after = with_calls(BEFORE, kernel="debian:6.1"), with_calls(AFTER, kernel="debian:6.12")
    why = explained_by(before, after)
    return tuple(explained([one], why) for group in summary.groups(record) for one in group.comparisons)
