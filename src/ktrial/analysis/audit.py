"""The audit: what about published numbers cannot be, or cannot carry what is concluded from it.

Each check is a function that yields warnings. They say what is there in the file; they do not say why.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise

import numpy as np

from ktrial.analysis.conditions import differing_conditions
from ktrial.analysis.runs_of_groups import odd_runs
from ktrial.model.imported import Family, Group, Imported, IndexRow, Score, Summary
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.program_outputs import is_by_clock, is_count
from ktrial.stats.independent_groups import moments, possible_runs, welch
from ktrial.stats.sequential.repeated_intervals import lag_one


def audit(files: Sequence[Imported]) -> tuple[DataWarning, ...]:
    """Everything that the checks find, in their order: differing conditions, then what importers noticed."""
    checks = (
        index_mismatches,
        copied_values,
        impossible_summaries,
        confounded_orders,
        disagreeing_repeats,
        small_samples,
        groups_alike,
        no_time_at_all,
        neighbours_alike,
        odd_runs,
    )
    noticed = [*differing_conditions(files), *(warning for file in files for warning in file.warnings)]
    return (*noticed, *(warning for check in checks for warning in check(files)))


# Printed numbers that do not agree with each other, or say too little: indices and scores that do not come
# out when they are recomputed; means, standard errors, standard deviations and run counts that cannot belong
# together; groups with so few runs that their spread is hardly known.

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
    if len(score.indices) != score.tests or min(index.value for index in score.indices.values()) <= 0:
        return
    least = geometric_mean(index.least for index in score.indices.values())
    most = geometric_mean(index.most for index in score.indices.values())
    if least <= score.score.most and score.score.least <= most:
        return
    mean = geometric_mean(index.value for index in score.indices.values())
    yield DataWarning(
        kind=WarningKind.INDEX_MISMATCH,
        text=f"{source}: {_who(score.group, score.run)}: the score is given as {score.score.value:g}, "
        f"but the geometric mean of its {score.tests} indices is {mean:.1f}",
        advice="the score and the indices are not of one run: go back to the log",
    )


def implied_rest(score: Score) -> float | None:
    """The geometric mean of the indices that were not shown, from the score and those that were."""
    missing = score.tests - len(score.indices)
    if not 0 < missing < score.tests or min(index.value for index in score.indices.values()) <= 0:
        return None
    shown = math.fsum(math.log(index.value) for index in score.indices.values())
    return math.exp((score.tests * math.log(score.score.value) - shown) / missing)


def _rest(file: Imported) -> Iterator[DataWarning]:
    """Runs of one group whose hidden tests would have to differ a lot."""
    groups: dict[str, list[tuple[Score, float]]] = defaultdict(list)
    for score in file.scores:
        hidden_mean = implied_rest(score)
        if hidden_mean is not None:
            groups[score.group].append((score, hidden_mean))
    for group, runs in groups.items():
        for score, hidden_mean in runs:
            rest_of_group = [mean for run, mean in runs if run is not score]
            if len(rest_of_group) < 2 or max(rest_of_group) > _APART * min(rest_of_group):
                continue
            if min(rest_of_group) / _APART <= hidden_mean <= max(rest_of_group) * _APART:
                continue
            hidden = score.tests - len(score.indices)
            in_words = " and ".join(f"{mean:.0f}" for mean in rest_of_group)
            yield DataWarning(
                kind=WarningKind.INDEX_MISMATCH,
                text=f"{file.source}: {_who(group, score.run)}: with the score {score.score.value:g}, the "
                f"{hidden} indices that are not shown have a geometric mean of {hidden_mean:.0f}; in the "
                f"other runs of {group} it is {in_words}",
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
    of_neighbours = [possible for label, possible in ranges.items() if label != group.label]
    least = ranges[group.label][0]
    usual = [most for _, most in of_neighbours if math.isfinite(most)]
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
        group_moments = [moments(group) for family in file.families for group in family.groups]
        uncounted = [group for group in group_moments if group.sd is not None and group.runs is None]
        if uncounted:
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=f"{file.source}: {len(uncounted)} of {len(group_moments)} groups have a mean and a "
                "standard deviation, and nothing says of how many runs",
                advice="a column `runs` says it; better, publish every run (hyperfine --export-json does)",
            )
        without = [group for group in group_moments if not group.testable and group not in uncounted]
        if without:
            text = f"{file.source}: {len(without)} of {len(group_moments)} groups have a mean and no spread"
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=text,
                advice="a number without its spread can be compared with nothing: publish every run",
            )
        runs = [group.runs for group in group_moments if group.testable and group.runs is not None]
        if runs and min(runs) < FEW:
            many = f"{min(runs)}" if min(runs) == max(runs) else f"{min(runs)} to {max(runs)}"
            yield DataWarning(
                kind=WarningKind.TOO_FEW_RUNS,
                text=f"{file.source}: {many} runs a group: the spread is known to within a factor of several",
                advice="ktrial timed plan says how many blocks an effect needs",
            )


# Values and measurements that occur twice: the same numbers in two groups, where every run should have
# numbers of its own, and one treatment measured several times, with results that contradict each other.

_FEWEST_DIGITS = 3
"""Numbers with fewer digits repeat by chance."""
_MOST_HOLDERS = 20
"""Of one value: more are no copies but a resolution."""
_MOST_REPEATS = 0.2
"""Above this share of repeated values the metric is printed too coarsely for a repeat to say anything."""
_Runs = tuple[str, str, str, str]
"""Group and run, other group and other run."""
_REPEATS_LEVEL = 0.01
_Key = tuple[str, str, str]
"""Metric, unit, and what the treatment is."""


def copied_values(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Runs of two groups that share values in two metrics or more; two groups that share all of theirs."""
    for file in files:
        yield from _shared_runs(file)
        for family in file.families:
            yield from _shared_groups(file.source, family)


def _shared_runs(file: Imported) -> Iterator[DataWarning]:
    shared: dict[_Runs, list[tuple[str, float]]] = defaultdict(list)
    for family in file.families:
        values = [value for group in family.groups for value in group.values]
        if len(values) - len(set(values)) > max(1.0, _MOST_REPEATS * len(values)):
            continue
        for pair, value in _equal_values(family):
            shared[pair].append((family.metric, value))
    for (first, run, second, second_run), repeated in shared.items():
        if len(repeated) < 2:
            continue
        named = ", ".join(f"{metric} {value:g}" for metric, value in repeated)
        yield DataWarning(
            kind=WarningKind.COPIED_VALUES,
            text=f"{file.source}: {second}, run {second_run} repeats numbers of {first}, run {run}: {named}",
            advice="independent runs do not agree to the last digit, twice: take one of the two as lost",
        )


def _equal_values(family: Family) -> Iterator[tuple[_Runs, float]]:
    cells: dict[float, list[tuple[str, str]]] = defaultdict(list)
    for group in family.groups:
        names = group.runs or tuple(map(str, range(1, len(group.values) + 1)))
        for run, value in zip(names, group.values, strict=True):
            digits = repr(value).replace(".", "").replace("-", "").strip("0")
            if len(digits) >= _FEWEST_DIGITS:
                cells[value].append((group.label, run))
    for value, holders in cells.items():
        for (label, run), (second, second_run) in combinations(holders[:_MOST_HOLDERS], 2):
            if label != second:
                yield (label, run, second, second_run), value


def _shared_groups(source: str, family: Family) -> Iterator[DataWarning]:
    """Two groups with the same values throughout, at least three of them."""
    for at, group in enumerate(family.groups):
        for later in family.groups[at + 1 :]:
            if len(set(group.values)) >= 3 and sorted(group.values) == sorted(later.values):
                yield DataWarning(
                    kind=WarningKind.COPIED_VALUES,
                    text=f"{source}: {family.metric}: {group.label} and {later.label} have the same values",
                    advice="one of the two is a copy: measure it again",
                )


def disagreeing_repeats(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """The default in several families, or one label in several files."""
    seen: dict[_Key, list[tuple[str, Group]]] = defaultdict(list)
    for file in files:
        for family in file.families:
            for group in family.groups:
                factors = " · ".join(f"{name}={level}" for name, level in sorted(group.factors.items()))
                treatment = "the default" if group.is_default else factors or group.label
                where = family.name if len(files) == 1 else f"{file.source}: {family.name}"
                seen[family.metric, family.unit, treatment].append((where, group))
    for (metric, unit, treatment), measurements in seen.items():
        if len(measurements) > 1:
            yield from _disagreement(metric, unit, treatment, measurements)


def _disagreement(
    metric: str, unit: str, treatment: str, measurements: list[tuple[str, Group]]
) -> Iterator[DataWarning]:
    measured = [(where, moments(group)) for where, group in measurements]
    means = [group.mean for _, group in measured]
    testable = [group for _, group in measured if group.testable and group.sd]
    # Beyond their own spread; where nothing tells that, by more than 5 %.
    apart = max(means) > 1.05 * min(means)
    if min(means) <= 0 or not (welch(testable).p < _REPEATS_LEVEL if len(testable) > 1 else apart):
        return
    times = max(means) / min(means)
    shown = ", ".join(f"{where} {group.mean:g}" for where, group in measured)
    yield DataWarning(
        kind=WarningKind.REPEATS_DISAGREE,
        text=f"{treatment} was measured {len(measurements)} times, with means {times:.2f}-fold apart, in "
        f"{unit or metric}: {shown}",
        advice="something else than the factors changed between the measurements, by this much: smaller "
        "effects show nothing",
    )


# Run order that goes together with the treatment, so that drift and effect cannot be told apart.

_FEWEST_LEVELS = 4
"""Below, an order that happens to be sorted says little."""
_FEWEST_MEANS = 5
_SUFFIXES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "": 1.0}
_NUMBER = re.compile(r"([-+]?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?) ?([a-zµ%]{0,2})", re.IGNORECASE)


def confounded_orders(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Levels in ascending or descending order, or means; groups that ran one after another."""
    for file in files:
        reported: set[tuple[str, ...]] = set()
        for family in file.families:
            labels = tuple(group.label for group in family.groups)
            if family.blocked or labels in reported:
                continue
            reported.add(labels)
            yield from list(_sorted_levels(file.source, family)) or _sorted_means(file.source, family)
            yield from _one_after_another(file.source, family)


def _sorted_levels(source: str, family: Family) -> Iterator[DataWarning]:
    levels = [_number(group.label) for group in family.groups]
    numbers = [level for level in levels if level is not None]
    if len(numbers) < _FEWEST_LEVELS or len(numbers) < len(levels):
        return
    rising, falling = numbers == sorted(numbers), numbers == sorted(numbers, reverse=True)
    if rising == falling:
        return
    way = "ascending" if rising else "descending"
    chance = math.factorial(len(numbers))
    first, last = family.groups[0].label, family.groups[-1].label
    yield DataWarning(
        kind=WarningKind.ORDER_CONFOUNDED,
        text=f"{source}: {family.name}: the {len(numbers)} levels stand in {way} order ({first} … {last}), "
        f"which a random order does once in {chance}: what changed with time looks like an effect",
        advice="run the levels in blocks, each once a block, in random order, and publish the run order",
    )


def _number(label: str) -> float | None:
    """The number in `0.10s`, `24ms`, `100000` or `latency_ns=6000000`; None where there is not just one."""
    match = _NUMBER.fullmatch(label.rpartition("=")[2].strip())
    if not match:
        return None
    unit = match[2].lower()
    return float(match[1]) * _SUFFIXES[unit] if unit in _SUFFIXES else None


def _sorted_means(source: str, family: Family) -> Iterator[DataWarning]:
    """Means that rise or fall from each row to the next, where the levels do not."""
    means = [moments(group).mean for group in family.groups]
    if len(means) < _FEWEST_MEANS or means not in (sorted(means), sorted(means, reverse=True)):
        return
    way = "rise" if means[0] < means[-1] else "fall"
    yield DataWarning(
        kind=WarningKind.ORDER_CONFOUNDED,
        text=f"{source}: {family.name}: the means {way} from every row to the next ({means[0]:g} … "
        f"{means[-1]:g}), which they do by chance once in {math.factorial(len(means)) // 2}: if the rows "
        "stand in run order, this is what a drift looks like",
        advice="a table that was sorted by its means says nothing here; else run the levels in blocks",
    )


def _one_after_another(source: str, family: Family) -> Iterator[DataWarning]:
    order = family.run_order
    changes = sum(before != after for before, after in pairwise(order))
    groups = len(set(order))
    if groups < 2 or len(order) == groups or changes > groups - 1:
        return
    yield DataWarning(
        kind=WarningKind.ORDER_CONFOUNDED,
        text=f"{source}: {family.name}: all runs of one group came before all of the next "
        f"({' … '.join(dict.fromkeys(order))}): whatever changed in between looks like an effect",
        advice="run the groups in blocks, each once a block, in random order",
    )


_MORE_DIGITS = "run more, or longer, or print more digits: five equal runs get no verdict"
_COUNTS_OR_MORE_RUNS = (
    "run more: five equal runs get no verdict, unless a unit says that they count (allocs, B)"
)


def groups_alike(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """A family at a time, with what is made of such groups. Families in blocks have a check of their own.

    Counts that are the same in every run have a rule of their own, and are no finding.
    """
    for file in files:
        for family in file.families:
            alike = [group for group in family.groups if (of := moments(group)).testable and not of.sd]
            values = [value for group in alike for value in group.values]
            whole = bool(values) and all(value.is_integer() for value in values)
            if not alike or family.blocked or (whole and is_count(family.unit)):
                continue
            where = ", ".join(dict.fromkeys(part for part in (family.name, family.metric) if part))
            labels = ", ".join(group.label for group in alike)
            yield DataWarning(
                kind=WarningKind.SPREAD_UNKNOWN,
                text=f"{file.source}: {where}: all runs are alike in {labels}: the resolution "
                "of the numbers hides how much they scatter; Welch's analysis of variance and Games and "
                "Howell's intervals are without them, Fisher's is with them",
                advice=_COUNTS_OR_MORE_RUNS if whole else _MORE_DIGITS,
            )


def no_time_at_all(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Times and rates of 0 among others: a program that did not run leaves such ones."""
    for file in files:
        for family in file.families:
            zeros = {group.label: group.values.count(0.0) for group in family.groups}
            values = [value for group in family.groups for value in group.values]
            if is_by_clock(family.unit) and any(zeros.values()) and any(values):
                where = ", ".join(f"{count} in {label}" for label, count in zeros.items() if count)
                yield DataWarning(
                    kind=WarningKind.FAILED_TRIALS,
                    text=f"{file.source}: {family.name}: of {len(values)} numbers are 0: {where}",
                    advice="a run that failed leaves a 0: look, and leave it out",
                )


# Runs that are like the run before: what lasted longer than one of them is in both, and in no interval.

_LEVEL = 0.01
"""Of a whole file."""
_FEWEST_RUNS = 8


def neighbours_alike(files: Sequence[Imported]) -> Iterator[DataWarning]:
    """Groups whose runs, in the file's order, are alike. Families in blocks have a check of their own."""
    for file in files:
        groups = [
            (family, group)
            for family in file.families
            for group in family.groups
            if not family.blocked and len(group.values) >= _FEWEST_RUNS
        ]
        for family, group in groups:
            correlation, p = lag_one(np.asarray(group.values, dtype=np.float64))
            if correlation > 0 and p < _LEVEL / len(groups):
                yield _warning(file.source, family, group, correlation)


def _warning(source: str, family: Family, group: Group, correlation: float) -> DataWarning:
    where = ", ".join(part for part in (family.name, group.label) if part)
    worth = max(1, round(len(group.values) * (1 - correlation) / (1 + correlation)))
    return DataWarning(
        kind=WarningKind.AUTOCORRELATION,
        text=f"{source}: {where}: neighbouring runs are alike (correlation {correlation:+.2f}): "
        f"{len(group.values)} of them are worth about {worth}, and the intervals do not know it",
        advice="measure in blocks, or take one number of each boot: no test can mend it afterwards",
    )
