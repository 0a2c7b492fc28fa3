"""What is to be explained: a workload of a study, and two of its treatments, found by what the user says."""

from dataclasses import dataclass

from ktrial.analysis.errors import AnalysisUsageError, ExplanationError
from ktrial.kernels.kernel_registry import canonical_name
from ktrial.model.design import Treatment, parts, told_apart
from ktrial.model.notation import nearest
from ktrial.model.study import Study, treatments
from ktrial.model.workload import WorkloadUse

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
    Raises ExplanationError, AnalysisUsageError.
    """
    of_study = treatments(study)
    use = _use(study, workload)
    first = _treatment(study, of_study, before) if before else of_study[0]
    second = _treatment(study, of_study, after) if after else _other(study, of_study, first)
    check_differ(study, first, second)
    return AttributionQuestion(study, use, first, second)


def check_differ(study: Study, before: Treatment, after: Treatment) -> None:
    """Raise ExplanationError where the two are one."""
    if before.key == after.key:
        alternatives = [treatment.label for treatment in treatments(study) if treatment.key != before.key]
        advice = f"other treatments are {_listed(alternatives)}" if alternatives else "give another one"
        same = f"{FROM} and {TO} are both {before.label}: there is no difference to explain."
        raise ExplanationError(same, hint=advice)


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
        raise AnalysisUsageError(
            f"{len(named)} workloads are called {workload}: {several}.",
            hint="give one as it is written there, in quotes",
        )
    similar = nearest(workload, dict.fromkeys(use.name for use in study.workloads))
    raise ExplanationError(
        f"{study.name} has no workload {workload}{similar}.", hint=f"its workloads are {_listed(labels)}"
    )


def _treatment(study: Study, of_study: tuple[Treatment, ...], name: str) -> Treatment:
    """By the whole label, else by one level of it, else by a kernel's name in another form."""
    labels = [treatment.label for treatment in of_study]
    # The whole label, as reports ask many times: other forms of a name are looked up in every provider.
    if name in labels:
        return of_study[labels.index(name)]
    ways = (name, canonical_name(name))
    shown = [
        treatment
        for treatment in of_study
        if treatment.label in ways or _as_shown(treatment.label, labels[0], name)
    ]
    matching = shown or [treatment for treatment in of_study if set(ways) & set(parts(treatment.label))]
    if len(matching) == 1:
        return matching[0]
    if matching:
        several = _listed([treatment.label for treatment in matching])
        raise ExplanationError(
            f"{study.name} has several treatments {name}: {several}.",
            hint="give the whole name, as ktrial show prints it",
        )
    raise ExplanationError(
        f"{study.name} has no treatment {name}{nearest(name, labels)}.",
        hint=f"its treatments are {_listed(labels)}",
    )


def _as_shown(label: str, baseline: str, name: str) -> bool:
    """Whether tables show the treatment so: by what the baseline has not, a long name without its middle."""
    head, cut, tail = name.partition("…")
    shown = (label, told_apart(label, baseline))
    if not cut:
        return name in shown
    return any(len(text) >= len(name) and text.startswith(head) and text.endswith(tail) for text in shown)


def _other(study: Study, of_study: tuple[Treatment, ...], first: Treatment) -> Treatment:
    """The only one beside the first; the baseline where another one was named."""
    if first.key != of_study[0].key:
        return of_study[0]
    if len(of_study) == 2:
        return of_study[1]
    raise ExplanationError(
        f"{study.name} has {len(of_study)} treatments; {TO} has to say which one is explained.",
        hint=f"its treatments are {_listed([treatment.label for treatment in of_study])}",
    )


def _listed(names: list[str]) -> str:
    return ("; " if any(", " in name for name in names) else ", ").join(names)
