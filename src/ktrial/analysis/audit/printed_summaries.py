"""Printed numbers that do not agree with each other, or say too little.

Indices and scores that do not come out when they are recomputed; means, standard errors, standard deviations
and run counts that cannot belong together; groups with so few runs that their spread is hardly known.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ktrial.model.imported import Family, Group, Imported, IndexRow, Score, Summary
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.stats.independent import moments, possible_runs

_APART = 1.1
"""How far apart the tests that were not shown may be, between runs of one group, before it is told: 10 %."""


FEW = 6
"""With fewer, the smallest p that a comparison by ranks or by permutation can give is above 0.2 %."""


def index_mismatches(files: Sequence[Imported]) -> Iterator[DataWarning]:
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
    if not score.indices:
        yield DataWarning(
            kind=WarningKind.INDEX_MISMATCH,
            text=f"{source}: {_who(score.group, score.run)}: the score is given as {score.score.value:g}, "
            "and none of the indices that it is made of is there",
            advice="the log was cut or damaged: go back to the whole one",
        )
        return
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


def impossible_summaries(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Rows for which no run count fits, or only one that none of the other rows could have."""
    for file in files:
        for family in file.families:
            ranges = {
                group.label: possible
                for group in family.groups
                if group.summary is not None and (possible := possible_runs(group.summary)) is not None
            }
            for group in family.groups:
                if group.label in ranges and group.summary is not None:
                    yield from _impossible(file.source, family, group, group.summary)
                    yield from _unlike_the_others(file.source, family, group, ranges)


def _impossible(source: str, family: Family, group: Group, summary: Summary) -> Iterator[DataWarning]:
    possible = possible_runs(summary)
    if possible is None:
        return
    least, most = possible
    if summary.runs is not None and not least <= summary.runs <= most:
        problem = f"the run count is given as {summary.runs}"
    elif summary.runs is None and (most < 2 or math.ceil(least) > math.floor(most)):
        problem = "no run count fits"
    else:
        return
    yield DataWarning(
        kind=WarningKind.IMPOSSIBLE_SUMMARY,
        text=f"{_where(source, family, group)}: {problem}, but SD and standard error together say "
        f"{least:.2f} to {most:.2f} runs",
        advice="one of the numbers is misprinted: leave the row out, or go back to the runs",
    )


def _unlike_the_others(
    source: str, family: Family, group: Group, ranges: dict[str, tuple[float, float]]
) -> Iterator[DataWarning]:
    """At least four other rows, and this one's run count lies above twice what any of them allows."""
    others = [possible for label, possible in ranges.items() if label != group.label]
    least = ranges[group.label][0]
    usual = [most for _, most in others if math.isfinite(most)]
    if len(usual) < 4 or least <= 2 * max(usual):
        return
    yield DataWarning(
        kind=WarningKind.IMPOSSIBLE_SUMMARY,
        text=f"{_where(source, family, group)}: SD and standard error say {math.ceil(least)} runs or more, "
        f"where no other row can have more than {math.floor(max(usual))}",
        advice="the two numbers of this row may have been exchanged, or misprinted: go back to the runs",
    )


def _where(source: str, family: Family, group: Group) -> str:
    return ", ".join(part for part in (f"{source}: {family.name}", group.label) if part)


def small_samples(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """A file at a time: how many groups have no spread, and what the fewest runs are."""
    for file in files:
        known = [moments(group) for family in file.families for group in family.groups]
        uncounted = [each for each in known if each.sd is not None and each.runs is None]
        if uncounted:
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=f"{file.source}: {len(uncounted)} of {len(known)} groups have a mean and a standard "
                "deviation, and nothing says of how many runs",
                advice="a column `runs` says it; better, publish every run (hyperfine --export-json does)",
            )
        without = [each for each in known if not each.testable and each not in uncounted]
        if without:
            text = f"{file.source}: {len(without)} of {len(known)} groups have a mean and no spread"
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=text,
                advice="a number without its spread can be compared with nothing: publish every run",
            )
        runs = [each.runs for each in known if each.testable and each.runs is not None]
        if runs and min(runs) < FEW:
            many = f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=f"{file.source}: {many} runs a group: the spread is known to within a factor of several",
                advice="ktrial plan says how many blocks an effect needs",
            )
