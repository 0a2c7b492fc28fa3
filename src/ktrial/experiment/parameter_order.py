"""A study's parameters in the order in which the store has them.

A workload's parameters are its program's arguments in the order of the study file, and in another order the
program takes other instructions before its work (0.02 % of a short workload). The study's digest does not
tell orders apart: so a store that has trials of the study goes on in the order of those, and says so.
"""

from ktrial.experiment.observer import Observer
from ktrial.model.study import Study
from ktrial.model.workload import WorkloadUse


def in_stored_order(study: Study, stored: Study, observer: Observer) -> Study:
    """The study with its parameters in the order of the stored one of the same digest; what moves is told."""
    pairs = list(zip(_ordered(study), _ordered(stored), strict=True))
    moved = [own.label for own, kept in pairs if list(own.parameters) != list(kept.parameters)]
    if not moved:
        return study
    more = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
    observer.notice(
        f"the parameters of {moved[0]}{more} stand in another order than in the stored study: its order is "
        "kept, since a program's digits depend on the order of its arguments"
    )
    kept_of = {own.label: kept for own, kept in pairs}
    uses = (_as(use, kept_of[use.label]) for use in study.workloads)
    return study.model_copy(update={"workloads": tuple(uses)})


def _ordered(study: Study) -> list[WorkloadUse]:
    return sorted(study.workloads, key=lambda use: use.label)


def _as(use: WorkloadUse, stored: WorkloadUse) -> WorkloadUse:
    return use.model_copy(update={"parameters": {name: use.parameters[name] for name in stored.parameters}})
