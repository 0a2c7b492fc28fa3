"""What is to be explained: a workload of a study, and two of its treatments, found by what the user says."""

from dataclasses import dataclass

from ktrial.analysis.errors import ExplanationError, HistoryUsageError
from ktrial.kernels.kernel_registry import canonical_name
from ktrial.model.design import Treatment, parts, told_apart
from ktrial.model.notation import nearest
from ktrial.model.study import Study, treatments
from ktrial.model.workload import WorkloadUse

# What is to be explained: a workload of a study, and two of its treatments, found by what the user says.

FROM, TO = "--from", "--to"


@dataclass(frozen=True)
class AttributionQuestion:
    """Why is `workload` another one under `after` than under `before`?"""

    study: Study
    use: WorkloadUse
    before: Treatment
    after: Treatment
    labels: tuple[str, str] | None = None
    """What the two are called, where that is not their treatments' labels."""

    @property
    def workload(self) -> str:
        """What the study calls the workload."""
        return self.use.label


def question(
    study: Study, workload: str | None = None, before: str | None = None, after: str | None = None
) -> AttributionQuestion:
    """The question; what is not said is the only workload, the baseline, the only other treatment.

    Treatments are told by their labels, by what `ktrial show` prints of them, or by a level of only one.
    Raises UnknownTreatment, AmbiguousTreatment, TreatmentNotSaid, SameTreatmentTwice, WorkloadNotInStudy,
    WorkloadAmbiguous, WorkloadNotSaid.
    """
    known = treatments(study)
    use = _use(study, workload)
    first = _treatment(study, known, before) if before else known[0]
    second = _treatment(study, known, after) if after else _other(study, known, first)
    check_differ(study, first, second)
    return AttributionQuestion(study, use, first, second)


def check_differ(study: Study, before: Treatment, after: Treatment) -> None:
    """Raise SameTreatmentTwice where the two are one."""
    if before.key == after.key:
        others = [one.label for one in treatments(study) if one.key != before.key]
        advice = f"other treatments are {_listed(others)}" if others else "give another one"
        raise ExplanationError(
            f"{FROM} and {TO} are both {before.label}: there is no difference to explain.", hint=str(advice)
        )


def _use(study: Study, workload: str | None) -> WorkloadUse:
    labels = [use.label for use in study.workloads]
    if workload is None:
        if len(study.workloads) == 1:
            return study.workloads[0]
        raise ExplanationError(
            f"{study.name} has {len(labels)} workloads; --workload has to say which one is explained.",
            hint=f"its workloads are {_listed(labels)}",
        )
    same = [use for use in study.workloads if use.label == workload]
    named = same or [use for use in study.workloads if use.name == workload]
    if len(named) == 1:
        return named[0]
    if named:
        several = _listed([use.label for use in named])
        raise HistoryUsageError(
            f"{len(named)} workloads are called {workload}: {several}.",
            hint="give one as it is written there, in quotes",
        )
    similar = nearest(workload, dict.fromkeys(use.name for use in study.workloads))
    raise ExplanationError(
        f"{study.name} has no workload {workload}{similar}.", hint=f"its workloads are {_listed(labels)}"
    )


def _treatment(study: Study, known: tuple[Treatment, ...], wanted: str) -> Treatment:
    """By the whole label, else by one level of it, else by a kernel's name in another form."""
    if whole := [one for one in known if one.label == wanted]:
        return whole[0]  # as reports ask, many times: other forms of a name are looked up in every provider
    ways = (wanted, canonical_name(wanted))
    labels = [one for one in known if one.label in ways or _as_shown(one.label, known[0].label, wanted)]
    matching = labels or [one for one in known if set(ways) & set(parts(one.label))]
    if len(matching) == 1:
        return matching[0]
    all_labels = [one.label for one in known]
    if matching:
        several = _listed([one.label for one in matching])
        raise ExplanationError(
            f"{study.name} has several treatments {wanted}: {several}.",
            hint="give the whole name, as ktrial show prints it",
        )
    raise ExplanationError(
        f"{study.name} has no treatment {wanted}{nearest(wanted, all_labels)}.",
        hint=f"its treatments are {_listed(all_labels)}",
    )


def _as_shown(label: str, baseline: str, wanted: str) -> bool:
    """Whether tables show the treatment so: by what the baseline has not, a long name without its middle."""
    head, cut, tail = wanted.partition("…")
    shown = (label, told_apart(label, baseline))
    if not cut:
        return wanted in shown
    return any(len(one) >= len(wanted) and one.startswith(head) and one.endswith(tail) for one in shown)


def _other(study: Study, known: tuple[Treatment, ...], first: Treatment) -> Treatment:
    """The only one beside the first; the baseline where another one was named."""
    others = [one for one in known if one.key != first.key]
    if first.key != known[0].key:
        return known[0]
    if len(others) == 1:
        return others[0]
    labels = _listed([one.label for one in known])
    raise ExplanationError(
        f"{study.name} has {len(known)} treatments; {TO} has to say which one is explained.",
        hint=f"its treatments are {labels}",
    )


def _listed(names: list[str]) -> str:
    return ("; " if any(", " in name for name in names) else ", ").join(names)
