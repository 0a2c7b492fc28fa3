"""A history's answer in sentences: what changed, from which version to which, by how much.

Made once, with the history: the terminal, the page and `--json` show the same words.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ktrial.analysis.answer import measure_of
from ktrial.format import number_format
from ktrial.format.number_format import MINUS, SPACE, counted, short_change, short_interval, short_percent
from ktrial.model.comparison import ONE_PERTURBATION, Verdict
from ktrial.model.history import ChangeKind, ChangePoint, History, Line, Point
from ktrial.model.workload import EXACT_MODES, short_labels
from ktrial.stats.verdict_rules import shown_interval

LEAST_TO_JUDGE = 16
"""Numbers in real time that a test needs."""
_MOST_CHANGES = 3
"""Of more, the sentence counts them and names the largest."""
_COMMIT = re.compile(r"([0-9a-f]{12}) .*")
"""A commit is called by its digest in a sentence; the table has its subject."""
_WORDS = {Verdict.WORSE: "worse", Verdict.BETTER: "better"}


def with_answer(history: History, metric: str | None = None) -> History:
    """The history with its lines' answers and its own. `metric`: the one that was chosen, if one was."""
    named = metric is not None or len({line.metric for line in history.lines}) > 1
    lines = tuple(
        line.model_copy(update={"answer": _Sentence(line, history, named=named).text})
        for line in history.lines
    )
    return history.model_copy(update={"lines": lines, "answer": _of_lines(lines)})


def _of_lines(lines: Sequence[Line]) -> str:
    """The first line's, and how many others there are, which no sentence may mix with it."""
    if not lines:
        return "There are no numbers yet."
    first, *others = lines
    if not others:
        return first.answer
    changed = sum(bool(line.changes) for line in others)
    verb = "stands" if len(others) == 1 else "stand"
    count = _plain(counted(len(others), "more line"))
    shown = f"{changed} of them with changes" if changed else "without changes"
    return f"{first.answer} {count} {verb} apart, {shown}."


@dataclass(frozen=True)
class _Sentence:
    """What one line says."""

    line: Line
    history: History
    named: bool
    """Whether the metric is named."""

    @property
    def text(self) -> str:
        """The sentence, with its full stop."""
        none = f"; {ONE_PERTURBATION}" if self._has_no_interval else ""
        return f"{measure_of({self.line.mode}, {self.line.unit})}{self._said()}{none}."

    @property
    def _has_no_interval(self) -> bool:
        """Whether exact numbers that are compared are of one perturbation."""
        single = self.line.mode in EXACT_MODES and any(len(point.values) == 1 for point in self._measured)
        return single and self.line.ratio is not None and self.line.ratio != 1

    @property
    def _measured(self) -> list[Point]:
        return [point for point in self.line.points if point.value is not None]

    @property
    def _subject(self) -> str:
        name = short_labels([self.line.workload])[self.line.workload]
        return f"{name} ({self.line.metric})" if self.named else name

    def _said(self) -> str:
        measured, changes = self._measured, self.line.changes
        if len(measured) < 2:
            only = f" of {_name(measured[0].version)} alone" if measured else ""
            return f"{self._subject} has a number{only}: there is nothing to compare it with yet"
        if unjudged := self._unjudged():
            return unjudged
        if not changes:
            return f"{self._without_changes()}{self._in_all(' in all')}"
        if len(changes) > _MOST_CHANGES:
            return f"{self._of_many()}{self._in_all()}"
        *clauses, last = map(self._clause, changes)
        joined = f"{', '.join(clauses)} and {last}" if clauses else last
        return f"{self._subject} got {joined}{self._in_all()}"

    def _unjudged(self) -> str:
        """Why numbers in real time are not judged: they are too few, or wander; else empty."""
        if self.line.mode in EXACT_MODES or self.line.changes:
            return ""
        if self.line.wanders:
            return (
                f"whether {self._subject} changed is not judged: its numbers wander like a random walk, "
                "without a level; measure versions side by side in one study"
            )
        points = self.line.points
        numbers = max(len(points), sum(len(point.values) for point in points))
        if numbers >= LEAST_TO_JUDGE:
            return ""
        return (
            f"whether {self._subject} changed is not judged: {numbers} numbers are too few for a test, "
            f"{LEAST_TO_JUDGE} are needed"
        )

    def _without_changes(self) -> str:
        first, last = self._measured[0], self._measured[-1]
        versions = f"from {_name(first.version)} to {_name(last.version)}"
        if self.line.mode in EXACT_MODES:
            beyond = f" beyond {_plain(number_format.percentage(self.history.margin))}"
        else:
            beyond = ""
        return f"no change of {self._subject}{beyond} is shown {versions} ({len(self._measured)} versions)"

    def _in_all(self, words: str = "") -> str:
        """From the first version to the last; empty where that is the one change, or cannot be paired."""
        first, last = self._measured[0], self._measured[-1]
        ratio = self.line.ratio
        ends = (first.version, last.version)
        if ratio is None or [(change.since, change.version) for change in self.line.changes] == [ends]:
            return ""
        low = high = None
        if self.line.mode in EXACT_MODES:
            low, high = shown_interval(first.by_perturbation, last.by_perturbation)
        places = f" from {_name(ends[0])} to {_name(ends[1])} in all" if self.line.changes else words
        joint = ";" if self.line.changes else ","
        return f"{joint}{places} {short_change(ratio)}{short_interval(ratio, low, high)}"

    def _clause(self, change: ChangePoint) -> str:
        """`6.9 % worse from debian:6.12 to debian:6.18 (+6.8 … +7.0)`."""
        way = _WORDS[change.verdict]
        if change.ratio is None:
            before, after = (
                _plain(number_format.quantity(value, self.line.unit))
                for value in (change.before, change.after)
            )
            return f"{way} {_ends(change)}, from {before} to {after}"
        return f"{_size(change.ratio)} {way} {_ends(change)}{_evidence(change)}"

    def _of_many(self) -> str:
        """How often it changed, and where most."""
        changes, counts, largest = self.line.changes, [], []
        for verdict, word in _WORDS.items():
            of_verdict = [change for change in changes if change.verdict is verdict]
            if of_verdict:
                times = "once" if len(of_verdict) == 1 else f"{len(of_verdict)} times"
                counts.append(f"{word} {times}")
                most = max(of_verdict, key=magnitude)
                more = f" {word}" if len({change.verdict for change in changes}) > 1 else ""
                by = "" if most.ratio is None else f"{_size(most.ratio)} "
                largest.append(f"most{more}: {by}{_ends(most)}{_evidence(most)}")
        versions = f"in {len(self._measured)} versions"
        return f"{self._subject} got {' and '.join(counts)} {versions}; {'; '.join(largest)}"


def magnitude(change: ChangePoint) -> float:
    """How large it is, whichever way: from nothing to something it is beyond all others."""
    return math.inf if not change.ratio else abs(math.log(change.ratio))


def _ends(change: ChangePoint) -> str:
    return f"from {_name(change.since)} to {_name(change.version)}"


def _name(version: str) -> str:
    match = _COMMIT.fullmatch(version)
    return match[1] if match else version


def _size(ratio: float) -> str:
    return f"{short_percent(ratio).lstrip(f'+{MINUS}')} %"


def _evidence(change: ChangePoint) -> str:
    """The interval, or the chance of such a change without a cause; and what kind of change it is."""
    ends = short_interval(change.ratio, change.low, change.high).strip(" ()")
    remarks = [ends] if ends else []
    remarks += ["in small steps"] * (change.kind is ChangeKind.CREEP)
    remarks += ["between levels of unpaired trials"] * (not change.is_paired)
    remarks += [f"p {change.p:.2g}"] if change.p is not None else []
    return f" ({', '.join(remarks)})" if remarks else ""


def _plain(text: str) -> str:
    return text.replace(SPACE, " ")
