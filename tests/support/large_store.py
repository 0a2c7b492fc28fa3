"""50 results of 25 workloads, all of them measured: for the test of `ktrial site`, and for its bench."""

from tests.support.real_profiles import real_profile
from tests.support.report_records import FIVE, FOUR_MORE, MORE, VALUES, a_record
from tests.support.report_whys import by_the_plugin

from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial

RESULTS = 50
WORKLOADS = (*VALUES, *MORE, *FOUR_MORE)
PROFILED = ("fork", "pipe")
EVERY = 10
"""One in so many results has profiles of PROFILED: a site is built again and again, and what changes of older
results are made of was kept when they were new."""


def fifty_results() -> list[StudyRecord]:
    """Each of two neighbouring kernels under three perturbations, counted by the plugin."""
    records = [
        by_the_plugin(a_record((FIVE[number % 5], FIVE[(number + 1) % 5]), WORKLOADS))
        for number in range(RESULTS)
    ]
    return [
        one if number % EVERY else with_real_profiles(one, PROFILED) for number, one in enumerate(records)
    ]


def with_real_profiles(record: StudyRecord, workloads: tuple[str, ...]) -> StudyRecord:
    """The baseline's trial without a perturbation has what 5.10 did, the treatment's what 6.12 did."""
    baseline = record.trials[0].planned.treatment.key

    def profiled(trial: Trial) -> Trial:
        if trial.planned.perturbation.number:
            return trial
        kernel = "5.10" if trial.planned.treatment.key == baseline else "6.12"
        profiles = tuple(real_profile(workload, kernel)[0] for workload in workloads)
        return trial.model_copy(update={"profiles": profiles})

    return record.model_copy(update={"trials": tuple(map(profiled, record.trials))})
