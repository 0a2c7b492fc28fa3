"""Which workload of a store is meant by a name: studies may have it with parameters, and with others too."""

from collections.abc import Iterable, Sequence

from ktrial.analysis.history.errors import WorkloadAmbiguous
from ktrial.model.study import Study
from ktrial.model.workload import WorkloadUse


def label_of(studies: Iterable[Study], wanted: str) -> str:
    """The label of the workload that is meant: just this one, else the only one with this name.

    `seq-read` stands for `seq-read(path=/mnt, size=8)` where no study has another one. What no study has is
    returned as it is. Raises WorkloadAmbiguous.
    """
    uses = [use for study in studies for use in study.workloads]
    labels = _labels(uses, wanted)
    if len(labels) > 1:
        raise WorkloadAmbiguous(workload=wanted, count=len(labels), found="; ".join(labels))
    return labels[0] if labels else wanted


def labels_of(studies: Sequence[Study], wanted: Iterable[str]) -> list[str]:
    """`label_of` each, every label once. Raises WorkloadAmbiguous."""
    return list(dict.fromkeys(label_of(studies, one) for one in wanted))


def _labels(uses: Iterable[WorkloadUse], wanted: str) -> list[str]:
    named = dict.fromkeys(use.label for use in uses if wanted in (use.label, use.name))
    return [wanted] if wanted in named else list(named)
