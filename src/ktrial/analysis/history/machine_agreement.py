"""The same two versions on several machines: is the change general, or does it depend on the machine?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

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
from ktrial.stats.sequential import holm
from ktrial.stats.verdict_rules import interval

# The same two versions on several machines: is the change general, or does it depend on the machine?

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
        pairs = [(before[each], after[each]) for each in before if each in after]
        return [float(np.log(new / old)) for old, new in pairs if old > 0 and new > 0]

    def on_system(self) -> OnSystem:
        """What the change comes to there."""
        logs = self.logs
        low, high = float(np.exp(min(logs))), float(np.exp(max(logs)))
        if self.line.mode in EXACT:
            low, high = interval(self.before.by_perturbation, self.after.by_perturbation)
        return OnSystem(
            system=self.line.system,
            study_id=self.after.study_id,
            ratio=float(np.exp(np.mean(logs))),
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
    rows = [row for workload in workloads for row in _rows(stored, workload, before, after)]
    return judged([ChangeOnEach(before, after, row) for row in rows], margin, alpha)


def judged(rows: Sequence[ChangeOnEach], margin: float, alpha: float = ALPHA) -> tuple[Across, ...]:
    """Each row with its test, which is adjusted for all of them (Holm)."""
    every = [row.pairs for row in rows]
    p = [None if row[0].line.mode in EXACT else interaction_p([one.logs for one in row]) for row in every]
    tested = [place for place, one in enumerate(p) if one is not None]
    adjusted = dict(zip(tested, holm([p[place] or 0.0 for place in tested]), strict=True)) if tested else {}
    return tuple(
        _across(row.pairs, row.before, row.after, margin, alpha, adjusted.get(place))
        for place, row in enumerate(rows)
    )


def _rows(stored: HasNumbers, workload: str, before: str, after: str) -> Iterator[list[VersionPair]]:
    alike: dict[tuple[str, str, str], dict[SystemIdentity, VersionPair]] = {}
    for line in history(stored, workload, by_time=True).lines:
        for pair in _pairs(line, before, after):
            key = (line.metric, line.mode.value, line.system.settings)
            alike.setdefault(key, {})[line.system] = pair
    for systems in alike.values():
        if len(systems) > 1:
            yield list(systems.values())


def _pairs(line: Line, before: str, after: str) -> Iterator[VersionPair]:
    """By study, the latest last."""
    olds = {point.study_id: point for point in line.points if point.version == before}
    for point in line.points:
        old = olds.get(point.study_id)
        if point.version == after and old and min((*old.values, *point.values), default=0.0) > 0:
            yield VersionPair(line, old, point)


def _across(
    row: list[VersionPair], before: str, after: str, margin: float, alpha: float, p: float | None
) -> Across:
    first = row[0].line
    systems = tuple(pair.on_system() for pair in row)
    if first.mode in EXACT:
        agreement = exact_agreement([(one.low, one.high) for one in systems], margin)
    else:
        agreement = timed_agreement(p, [pair.logs for pair in row], alpha, margin)
    reason = _other_kernels(row)
    if reason:
        agreement = Agreement.UNDECIDED
    elif agreement is Agreement.UNDECIDED:
        reason = (
            "the spread reaches across the margin" if first.mode in EXACT else "too few blocks, or too noisy"
        )
    return Across(
        workload=first.workload,
        metric=first.metric,
        mode=first.mode,
        direction=first.direction,
        before=before,
        after=after,
        systems=systems,
        agreement=agreement,
        p=p,
        reason=reason,
        over_machines=None if first.mode in EXACT or _other_kernels(row) else _over_machines(row, alpha),
    )


def _over_machines(row: list[VersionPair], alpha: float) -> OverMachines | None:
    over = over_all([pair.logs for pair in row], alpha)
    if over is None:
        return None
    ratio, low, high, between = (float(np.exp(one)) for one in over)
    return OverMachines(ratio=ratio, low=low, high=high, between=between)


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
    asked: dict[tuple[str, str], list[History]] = {}
    for one in past:
        shared = _shared(one.lines)
        if len(shared) > 1:
            asked.setdefault((shared[0], shared[-1]), []).append(one)
    return tuple(
        row
        for (before, after), histories in asked.items()
        for row in across(stored, [one.workload for one in histories], before, after, histories[0].margin)
    )


def _shared(lines: Sequence[Line]) -> list[str]:
    """Versions of the first line that another machine has too, in its order."""
    if not lines:
        return []
    first, *others = lines
    elsewhere = {
        point.version
        for line in others
        if line.system != first.system and (line.metric, line.mode) == (first.metric, first.mode)
        for point in line.points
        if point.value is not None
    }
    return list(dict.fromkeys(point.version for point in first.points if point.version in elsewhere))


# One study that several machines have run: does each treatment do the same on all of them?


def on_machines(records: Sequence[StudyRecord], alpha: float = ALPHA) -> tuple[Across, ...]:
    """Each treatment against the baseline, in each metric that two of the machines at least have measured.

    `records`: of one study, apart from its name and its host; one a machine.
    """
    if len(records) < 2:
        return ()
    return judged(list(_study_on_machines_rows(records)), records[0].study.margin, alpha)


def _study_on_machines_rows(records: Sequence[StudyRecord]) -> Iterator[ChangeOnEach]:
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
