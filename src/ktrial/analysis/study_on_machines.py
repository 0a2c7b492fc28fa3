"""One study that several machines have run: does each treatment do the same on all of them?"""

from collections.abc import Iterator, Sequence

from ktrial.analysis.history.series import PointOrder, line_of
from ktrial.analysis.history.study_numbers import StudyNumbers, numbers_of
from ktrial.analysis.machine_agreement import ALPHA, ChangeOnEach, VersionPair, judged
from ktrial.model.machine_agreement import Across
from ktrial.model.plan import treatments
from ktrial.model.study_record import StudyRecord


def on_machines(records: Sequence[StudyRecord], alpha: float = ALPHA) -> tuple[Across, ...]:
    """Each treatment against the baseline, in each metric that two of the machines at least have measured.

    `records`: of one study, apart from its name and its host; one a machine.
    """
    if len(records) < 2:
        return ()
    return judged(list(_rows(records)), records[0].study.margin, alpha)


def _rows(records: Sequence[StudyRecord]) -> Iterator[ChangeOnEach]:
    study = records[0].study
    baseline, *others = (one.label for one in treatments(study))
    for use in study.workloads:
        measured = [numbers_of(one.id, one.study, one.trials, use.label) for one in records]
        for metric in dict.fromkeys(name for one in measured for name in one.metrics):
            for other in others:
                both = (_pair(one, use.label, metric, (baseline, other)) for one in measured)
                pairs = [pair for pair in both if pair and pair.logs]
                if len(pairs) > 1:
                    yield ChangeOnEach(baseline, other, pairs)


def _pair(measured: StudyNumbers, workload: str, metric: str, both: tuple[str, str]) -> VersionPair | None:
    """None where one of the two treatments has no number there."""
    numbers = {one.treatment: one for one in measured.every if one.facts[0] == metric}
    if not numbers.keys() >= set(both):
        return None
    entries = [(measured, numbers[label]) for label in both]
    line = line_of(workload, numbers[both[0]].facts, entries, PointOrder(by_time=True))
    points = {point.treatment: point for point in line.points}
    return VersionPair(line, points[both[0]], points[both[1]])
