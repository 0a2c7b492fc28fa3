"""The same two versions on several machines: is the change general, or does it depend on the machine?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ktrial.analysis.history.change_points import paired
from ktrial.analysis.history.series import EXACT, HasNumbers, PointOrder, history, line_of
from ktrial.analysis.history.stored_numbers import StudyNumbers, numbers_of
from ktrial.model.history import (
    Across,
    Agreement,
    History,
    Line,
    OnSystem,
    OverMachines,
    Point,
    SystemIdentity,
)
from ktrial.model.study import StudyRecord, treatments
from ktrial.stats.interactions import exact_agreement, interaction_p, over_all, timed_agreement
from ktrial.stats.sequential.familywise import holm
from ktrial.stats.verdict_rules import interval

ALPHA = 0.05


@dataclass(frozen=True)
class VersionPair:
    """Both versions (or treatments), measured in one study of one machine."""

    line: Line
    before: Point
    after: Point

    @property
    def logs(self) -> list[float]:
        """The log ratio of each block that has both."""
        before, after = self.before.by_perturbation, self.after.by_perturbation
        pairs = [
            (before[perturbation], after[perturbation]) for perturbation in before if perturbation in after
        ]
        return [float(np.log(new / old)) for old, new in pairs if old > 0 and new > 0]

    @property
    def ratio(self) -> float | None:
        """As the study has it; None where the two cannot be paired."""
        return paired(self.before, self.after, self.line.mode)

    def on_system(self) -> OnSystem:
        """What the change comes to there, where the two are paired."""
        logs, ratio = self.logs, self.ratio
        assert ratio is not None, "others are left out"
        low, high = float(np.exp(min(logs))), float(np.exp(max(logs)))
        if self.line.mode in EXACT:
            low, high = interval(self.before.by_perturbation, self.after.by_perturbation)
        return OnSystem(
            system=self.line.system,
            study_id=self.after.study_id,
            ratio=ratio,
            low=low,
            high=high,
            blocks=len(logs),
        )


@dataclass(frozen=True)
class ChangeOnEach:
    """A change from one version (or treatment) to another, on each machine that has measured both."""

    before: str
    after: str
    pairs: list[VersionPair]


def across(
    stored: HasNumbers,
    workloads: Iterable[str],
    before: str,
    after: str,
    margin: float,
    alpha: float = ALPHA,
) -> tuple[Across, ...]:
    """One row a workload, mode and setting in which two machines at least have measured both versions.

    Versions are paired within one study of a machine, block by block; of several studies the latest counts.
    """
    rows: list[ChangeOnEach] = []
    for workload in workloads:
        alike: dict[tuple[str, str, str], dict[SystemIdentity, VersionPair]] = {}
        for line in history(stored, workload, by_time=True).lines:
            by_system = alike.setdefault((line.metric, line.mode.value, line.system.settings), {})
            olds = {point.study_id: point for point in line.points if point.version == before}
            for point in line.points:
                old = olds.get(point.study_id)
                if point.version != after or not old or min((*old.values, *point.values)) <= 0:
                    continue
                pair, known = VersionPair(line, old, point), by_system.get(line.system)
                if pair.ratio is not None and (known is None or known.after.study_id <= point.study_id):
                    by_system[line.system] = pair
        rows += [
            ChangeOnEach(before, after, list(systems.values()))
            for systems in alike.values()
            if len(systems) > 1
        ]
    return judged(rows, margin, alpha)


def judged(rows: Sequence[ChangeOnEach], margin: float, alpha: float = ALPHA) -> tuple[Across, ...]:
    """Each row with its test, which is adjusted for all of them (Holm)."""
    p_values = {
        place: p
        for place, row in enumerate(rows)
        if row.pairs[0].line.mode not in EXACT
        and (p := interaction_p([pair.logs for pair in row.pairs])) is not None
    }
    adjusted = dict(zip(p_values, holm(list(p_values.values())).tolist(), strict=True)) if p_values else {}
    return tuple(_across(row, margin, alpha, adjusted.get(place)) for place, row in enumerate(rows))


def _across(change: ChangeOnEach, margin: float, alpha: float, p: float | None) -> Across:
    pairs, first = change.pairs, change.pairs[0].line
    exact = first.mode in EXACT
    systems = tuple(pair.on_system() for pair in pairs)
    logs = [pair.logs for pair in pairs]
    if exact:
        agreement = exact_agreement([(system.low, system.high) for system in systems], margin)
    else:
        agreement = timed_agreement(p, logs, alpha, margin)
    over_machines = None
    reason = _other_kernels(pairs)
    if reason:
        agreement = Agreement.UNDECIDED
    elif agreement is Agreement.UNDECIDED:
        reason = "the spread reaches across the margin" if exact else "too few blocks, or too noisy"
    if not exact and not _other_kernels(pairs) and (over := over_all(logs, alpha)):
        ratio, low, high, between = (float(np.exp(log)) for log in over)
        over_machines = OverMachines(ratio=ratio, low=low, high=high, between=between)
    return Across(
        workload=first.workload,
        metric=first.metric,
        mode=first.mode,
        direction=first.direction,
        before=change.before,
        after=change.after,
        systems=systems,
        agreement=agreement,
        p=p,
        reason=reason,
        over_machines=over_machines,
    )


def _other_kernels(row: list[VersionPair]) -> str:
    """Names may stand for other kernels on another machine, or on another day.

    Where the kernel is the same before and after, it is a part of the machine.
    """
    if all(pair.before.digest == pair.after.digest for pair in row):
        return ""
    for side in ("before", "after"):
        points = [pair.before if side == "before" else pair.after for pair in row]
        if len({point.digest for point in points if point.digest}) > 1:
            releases = " and ".join(sorted({point.release for point in points}))
            return f"{points[0].version} is another kernel on each machine: {releases}"
    return ""


def on_several_machines(stored: HasNumbers, past: Sequence[History]) -> tuple[Across, ...]:
    """For each workload that several machines have measured: from the first version that two of them have to
    the last. None is averaged over machines.
    """
    by_versions: dict[tuple[str, str], list[History]] = {}
    for history_ in past:
        shared = _shared(history_.lines)
        if len(shared) > 1:
            by_versions.setdefault((shared[0], shared[-1]), []).append(history_)
    return tuple(
        row
        for (before, after), histories in by_versions.items()
        for row in across(
            stored, [history_.workload for history_ in histories], before, after, histories[0].margin
        )
    )


def _shared(lines: Sequence[Line]) -> list[str]:
    """Versions of the first line that another machine has too, in its order."""
    if not lines:
        return []
    first, *rest_of_lines = lines
    elsewhere = {
        point.version
        for line in rest_of_lines
        if line.system != first.system and (line.metric, line.mode) == (first.metric, first.mode)
        for point in line.points
        if point.value is not None
    }
    return list(dict.fromkeys(point.version for point in first.points if point.version in elsewhere))


# One study that several machines have run: does each treatment do the same on all of them?


def on_machines(records: Sequence[StudyRecord], alpha: float = ALPHA) -> tuple[Across, ...]:
    """One study that several machines have run: does each treatment do the same on all of them?

    Each treatment against the baseline, in each metric that two of the machines at least have measured.
    `records`: of one study, apart from its name and its host; one a machine.
    """
    if len(records) < 2:
        return ()
    study, changes = records[0].study, []
    baseline, *labels = (treatment.label for treatment in treatments(study))
    for use in study.workloads:
        measured = [numbers_of(record.id, record.study, record.trials, use.label) for record in records]
        for metric in dict.fromkeys(name for numbers in measured for name in numbers.metrics):
            for label in labels:
                both = (_pair(numbers, use.label, metric, (baseline, label)) for numbers in measured)
                pairs = [pair for pair in both if pair and pair.ratio is not None]
                if len(pairs) > 1:
                    changes.append(ChangeOnEach(baseline, label, pairs))
    return judged(changes, study.margin, alpha)


def _pair(measured: StudyNumbers, workload: str, metric: str, both: tuple[str, str]) -> VersionPair | None:
    """None where one of the two treatments has no number there."""
    numbers = {numbers_.treatment: numbers_ for numbers_ in measured.every if numbers_.facts[0] == metric}
    if not numbers.keys() >= set(both):
        return None
    entries = [(measured, numbers[label]) for label in both]
    line = line_of(workload, entries, PointOrder(by_time=True))
    points = {point.treatment: point for point in line.points}
    return VersionPair(line, points[both[0]], points[both[1]])
