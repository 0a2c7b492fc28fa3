"""Indices and scores that do not come out when they are recomputed."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ktrial.model.imported import Imported, IndexRow, Score
from ktrial.model.warnings import DataWarning, WarningKind

_APART = 1.1
"""How far apart the tests that were not shown may be, between runs of one group, before it is told: 10 %."""


def find(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Indices against 10 · result / baseline; scores against the geometric mean of their indices."""
    for file in files:
        for row in file.index_rows:
            yield from _index(file.source, row)
        for score in file.scores:
            yield from _score(file.source, score)
        yield from _rest(file)


def geometric_mean(values: Iterable[float]) -> float:
    """Of values above zero."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs))


def recomputed(row: IndexRow) -> float:
    """10 · result / baseline."""
    return 10 * row.result.value / row.baseline.value


def _index(source: str, row: IndexRow) -> Iterator[DataWarning]:
    least, most = (10 * edge / row.baseline.value for edge in (row.result.least, row.result.most))
    if least <= row.index.most and row.index.least <= most:
        return
    yield DataWarning(
        kind=WarningKind.INDEX_MISMATCH,
        text=f"{source}: {_who(row.group, row.run)}, {row.test}: the index is given as {row.index.value:g}, "
        f"but 10 · {row.result.value:g} / {row.baseline.value:g} is {recomputed(row):.1f}",
        advice="one of the three was changed or misread after the run: go back to the log",
    )


def _score(source: str, score: Score) -> Iterator[DataWarning]:
    if len(score.indices) != score.tests or min(each.value for each in score.indices.values()) <= 0:
        return
    least = geometric_mean(each.least for each in score.indices.values())
    most = geometric_mean(each.most for each in score.indices.values())
    if least <= score.score.most and score.score.least <= most:
        return
    whole = geometric_mean(each.value for each in score.indices.values())
    yield DataWarning(
        kind=WarningKind.INDEX_MISMATCH,
        text=f"{source}: {_who(score.group, score.run)}: the score is given as {score.score.value:g}, "
        f"but the geometric mean of its {score.tests} indices is {whole:.1f}",
        advice="the score and the indices are not of one run: go back to the log",
    )


def implied_rest(score: Score) -> float | None:
    """The geometric mean of the indices that were not shown, from the score and those that were."""
    missing = score.tests - len(score.indices)
    if not 0 < missing < score.tests or min(each.value for each in score.indices.values()) <= 0:
        return None
    shown = math.fsum(math.log(each.value) for each in score.indices.values())
    return math.exp((score.tests * math.log(score.score.value) - shown) / missing)


def _rest(file: Imported) -> Iterator[DataWarning]:
    """Runs of one group whose hidden tests would have to differ a lot."""
    groups: dict[str, list[tuple[Score, float]]] = defaultdict(list)
    for score in file.scores:
        rest = implied_rest(score)
        if rest is not None:
            groups[score.group].append((score, rest))
    for group, runs in groups.items():
        for score, rest in runs:
            others = [other for one, other in runs if one is not score]
            if len(others) < 2 or max(others) > _APART * min(others):
                continue
            if min(others) / _APART <= rest <= max(others) * _APART:
                continue
            hidden = score.tests - len(score.indices)
            known = " and ".join(f"{other:.0f}" for other in others)
            yield DataWarning(
                kind=WarningKind.INDEX_MISMATCH,
                text=f"{file.source}: {_who(group, score.run)}: with the score {score.score.value:g}, the "
                f"{hidden} indices that are not shown have a geometric mean of {rest:.0f}; in the other runs "
                f"of {group} it is {known}",
                advice="some of the indices shown for this run are not this run's: go back to the log",
            )


def _who(group: str, run: str) -> str:
    return f"{group}, run {run}" if run else group
