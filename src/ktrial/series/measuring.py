"""The numbers of a series: the profiles of its base, whether a kernel boots, and the trials of each step."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ktrial.analysis.missing_data import failures
from ktrial.analysis.store_queries import profile_of
from ktrial.experiment.single_kernel import Measurement, Runs, failed, measure
from ktrial.model.kernel import Kernel
from ktrial.model.profile import Profile
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Outcome
from ktrial.model.workload import WorkloadUse
from ktrial.series.building import Boots

NAME, BOOT, COVERAGE = "series", "series-boot", "series-coverage"
"""What the studies of a series are called in the store."""
QUESTION = "What does this step of a series cost?"
_NULL_CONTROL = "nqueens"
NULL_CONTROL = WorkloadUse(name=_NULL_CONTROL)
"""It does no kernel work: where it changes, something other than the patch has changed."""


def boots_in(how: Measurement, runs: Runs) -> Boots:
    """What tells whether a kernel boots: one trial of the null control. Its boot serves later trials too."""
    once = replace(how, workloads=(NULL_CONTROL,), perturbations=1)

    def boots(kernel: Kernel) -> str:
        record = measure(BOOT, QUESTION, kernel, once, runs)
        wrong = [one for one in failed(record) if one.outcome is not Outcome.WORKLOAD_FAILED]
        return failures(wrong, record.planned) if wrong else ""

    return boots


@dataclass(frozen=True)
class Coverage:
    """What workloads execute on the base."""

    profiles: tuple[tuple[WorkloadUse, Profile], ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Workloads that do not run on this kernel, by their labels, and why."""


def coverage(base: Kernel, uses: Iterable[WorkloadUse], how: Measurement, runs: Runs) -> Coverage:
    """The profiles of these workloads on the base, one trial each, from the store where they are there."""
    profiles: list[tuple[WorkloadUse, Profile]] = []
    not_run: dict[str, str] = {}
    for use in uses:
        alone = replace(how, workloads=(use,), perturbations=1)
        record = measure(COVERAGE, QUESTION, base, alone, runs)
        if wrong := failed(record):
            not_run[use.label] = failures(wrong, record.planned)
        elif profile := profile_in(record, use.label, runs):
            profiles.append((use, profile))
    return Coverage(tuple(profiles), not_run)


def counted_by_function(how: Measurement) -> Measurement:
    """The same on the machine on which trials have profiles: one CPU, whatever the steps are measured on."""
    plain = {"kind": "exact", "cpus": 1, "model": None}
    return replace(how, settings=how.settings.model_copy(update=plain))


def profile_in(record: StudyRecord, label: str, runs: Runs) -> Profile | None:
    """The profile of a workload in a study of one kernel: that of the first perturbation, which changes
    nothing.
    """
    if not record.trials:
        return None
    return profile_of(runs.store, record, record.trials[0].planned.treatment, label)


def trials_of(kernel: Kernel, how: Measurement, runs: Runs) -> StudyRecord:
    """The trials of one step's kernel, in the store; run where they are not there."""
    return measure(NAME, QUESTION, kernel, how, runs)
