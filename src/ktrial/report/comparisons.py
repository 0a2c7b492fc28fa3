"""The table of comparisons. A column that is added to `FIELDS` is on the terminal, in Markdown, on pages, in
CSV and in JSON.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.labels import metric_name
from ktrial.format.sanitize import shortened
from ktrial.format.table import (
    Cell,
    Column,
    Emphasis,
    Field,
    Kind,
    Output,
    Row,
    Table,
    change,
    interval,
    name,
    number,
    own,
    row,
    step,
    table,
    verdict,
)
from ktrial.model.comparison import Comparison, Interaction, Scatter, Variability
from ktrial.model.design import level_shown, told_apart
from ktrial.model.study import StudyRecord
from ktrial.model.workload import BESIDE_THE_OWN, short_labels
from ktrial.report.study_summary import TreatmentComparisons, row_names

# The table of comparisons. A column that is added to `FIELDS` is on the terminal, in Markdown, on pages, in
# CSV and in JSON.

Links = Mapping[tuple[str, str, str], str]
"""Workload, treatment and baseline → where a page says what the difference is made of."""


_NAME_COLUMNS = 60


@dataclass(frozen=True)
class ComparisonRow:
    """One comparison, and what a report knows beside it."""

    comparison: Comparison
    short_name: str = ""
    """The workload without what all workloads share, with what tells its rows apart."""
    scatter: str = ""
    """How its treatment scatters, in words, where that is otherwise than the baseline."""
    scatters: tuple[Scatter, ...] = ()
    why: str = ""
    """Where a page says what the difference is made of."""


FIELDS: tuple[Field[ComparisonRow], ...] = (
    Field(
        Column("name", "workload", outputs=Output.TERMINAL, wraps=True, columns=_NAME_COLUMNS),
        lambda it: name(it.short_name),
    ),
    Field(
        Column("workload", "workload", outputs=Output.DOCUMENT | Output.PROGRAMS, width=19),
        lambda it: name(it.comparison.workload),
    ),
    Field(
        Column("metric", "metric", outputs=Output.DOCUMENT | Output.PROGRAMS, width=16),
        lambda it: Cell(
            it.comparison.metric,
            metric_name(it.comparison.metric, it.comparison.unit),
            Kind.NAME,
            notes=(it.comparison.mode.value,),
        ),
    ),
    Field(Column("mode", "mode", outputs=Output.MARKDOWN), lambda it: own(it.comparison.mode.value)),
    Field(Column("unit", outputs=Output.PROGRAMS), lambda it: Cell(it.comparison.unit)),
    Field(Column("direction", outputs=Output.PROGRAMS), lambda it: Cell(it.comparison.direction)),
    Field(Column("baseline", outputs=Output.PROGRAMS), lambda it: Cell(it.comparison.baseline)),
    Field(
        Column("treatment", "treatment", outputs=Output.PROGRAMS, wraps=True),
        lambda it: Cell(
            it.comparison.treatment,
            told_apart(it.comparison.treatment, it.comparison.baseline),
            Kind.PROSE,
        ),
    ),
    Field(
        Column("baseline_value", "baseline", numeric=True, width=11),
        lambda it: number(it.comparison.baseline_value),
    ),
    Field(Column("value", "value", numeric=True, width=11), lambda it: number(it.comparison.value)),
    Field(
        Column("ratio", "change", numeric=True, width=11),
        lambda it: step(it.comparison.ratio, it.comparison.value, verdict=it.comparison.verdict),
    ),
    Field(
        Column("interval", "interval", "%", numeric=True, outputs=Output.PEOPLE, width=17.5),
        lambda it: interval(it.comparison.low, it.comparison.high),
    ),
    Field(Column("low", outputs=Output.PROGRAMS), lambda it: Cell(it.comparison.low)),
    Field(Column("high", outputs=Output.PROGRAMS), lambda it: Cell(it.comparison.high)),
    Field(
        Column("verdict", "verdict", width=14.5),
        lambda it: verdict(
            it.comparison.verdict,
            scatter=it.scatter,
            notes=(it.comparison.reason,) if it.comparison.reason else (),
            link=it.why,
        ),
    ),
    Field(Column("mode", outputs=Output.PROGRAMS), lambda it: Cell(it.comparison.mode)),
    Field(Column("reason", outputs=Output.PROGRAMS), lambda it: Cell(it.comparison.reason)),
    Field(Column("scatter", outputs=Output.CSV), lambda it: Cell(it.scatters)),
)


def of_all(record: StudyRecord) -> Table:
    """Every comparison of the record, for programs."""
    return _table(record, record.result.comparisons)


def of_group(record: StudyRecord, group: TreatmentComparisons, links: Links | None = None) -> Table:
    """One treatment against the baseline: a row a metric."""
    return _table(record, group.comparisons, links)


def side_by_side(record: StudyRecord, group: TreatmentComparisons) -> Table:
    """The same for the terminal, where the two treatments' names stand above their values."""
    made = of_group(record, group).adapted("baseline_value", heading=group.baseline, named=True)
    return made.adapted("value", heading=group.treatment, named=True)


def one_below_another(record: StudyRecord) -> Table:
    """Several treatments for the terminal: of each metric the baseline's value, then a row a treatment."""
    made = of_all(record).adapted("treatment", outputs=Output.TERMINAL)
    made = made.adapted("baseline_value", outputs=Output.PROGRAMS)
    by_name: dict[tuple[str, str], list[Row]] = {}
    baselines: dict[tuple[str, str], Comparison] = {}
    for one, its_row in zip(record.result.comparisons, made.rows, strict=True):
        place = (one.workload, one.metric)
        baselines.setdefault(place, one)
        by_name.setdefault(place, []).append(its_row)
    rows = [
        each
        for place, its_rows in by_name.items()
        for each in (_baseline(made, baselines[place], its_rows[0]), *map(_nameless, its_rows))
    ]
    return Table(made.columns, tuple(rows), made.name)


def _baseline(made: Table, one: Comparison, first: Row) -> Row:
    cells = {
        "name": first.cells[0],
        "treatment": Cell(text=one.baseline, kind=Kind.PROSE),
        "value": number(one.baseline_value),
        "verdict": own("baseline", emphasis=Emphasis.MUTED),
    }
    return row(made.columns, cells)


def _nameless(its_row: Row) -> Row:
    return Row((Cell(), *its_row.cells[1:]))


def _table(record: StudyRecord, comparisons: Sequence[Comparison], links: Links | None = None) -> Table:
    names = _short_names(comparisons)
    scatter, scatters = scatter_by_place(record), scatter_kinds(record)
    rows = (
        ComparisonRow(
            comparison=one,
            short_name=names[one.workload, one.metric],
            scatter=scatter.get(comparison_place(one), ""),
            scatters=scatters.get(comparison_place(one), ()),
            why=(links or {}).get((one.workload, one.treatment, one.baseline), ""),
        )
        for one in comparisons
    )
    return replace(table(FIELDS, rows, "comparisons"), stacks=True)


def _short_names(comparisons: Iterable[Comparison]) -> dict[tuple[str, str], str]:
    """Workload and metric → what the row is called: the workload, and what tells its rows apart."""
    units = {(one.workload, one.metric): one.unit for one in comparisons}
    others = {key: unit for key, unit in units.items() if key[1] not in BESIDE_THE_OWN}
    metrics = Counter(workload for workload, _ in others)
    same_unit = len(set(others.values())) == 1
    short = short_labels(workload for workload, _ in units)

    def named(workload: str, metric: str, unit: str) -> str:
        if metric in BESIDE_THE_OWN:
            return _short_name(short[workload], metric, unit)
        return _short_name(
            short[workload], metric if metrics[workload] > 1 else "", "" if same_unit else unit
        )

    return {(workload, metric): named(workload, metric, unit) for (workload, metric), unit in units.items()}


def _short_name(workload: str, metric: str, unit: str) -> str:
    # Spaces let long names go to the next line.
    parts = (workload.replace("(", " ("), metric, unit and f"[{unit}]")
    return shortened(" ".join(part for part in parts if part), _NAME_COLUMNS)


# Which treatments scatter otherwise than the baseline: what stands beside their verdicts.

_WORDS = {
    Scatter.WIDER: "scatters more",
    Scatter.NARROWER: "scatters less",
    Scatter.TWO_MODES: "two modes, the baseline one",
    Scatter.ONE_MODE: "one mode, the baseline two",
}


Place = tuple[str, str, str, str]
"""Workload, metric, treatment and baseline."""


def scatter_by_place(record: StudyRecord) -> dict[Place, str]:
    """What stands beside a verdict, in words; of two findings for one comparison both."""
    remarks: dict[Place, str] = {}
    for one in record.result.variability:
        place = (one.workload, one.metric, one.treatment, one.baseline)
        remarks[place] = "; ".join(filter(None, (remarks.get(place, ""), scatter_text(one))))
    return remarks


def comparison_place(one: Comparison) -> Place:
    """Where a comparison's findings are looked up."""
    return (one.workload, one.metric, one.treatment, one.baseline)


def scatter_text(one: Variability) -> str:
    """`scatters more: 5.2 %, the baseline 0.02 % (p 0.001)`."""
    chance = f"p {one.p:.2g}"
    if one.modes:
        values = " and ".join(
            f"{number_format.number(mode.value)} ({number_format.counted(mode.trials, 'trial')})"
            for mode in one.modes
        )
        return f"{_WORDS[one.scatter]}: about {values} ({chance})"
    baseline = number_format.percentage(one.baseline_spread)
    spreads = f"{number_format.percentage(one.spread)}, the baseline {baseline}"
    return f"{_WORDS[one.scatter]}: {spreads} ({chance})"


def scatter_kinds(record: StudyRecord) -> dict[Place, tuple[Scatter, ...]]:
    """How the treatments scatter that do so otherwise than the baseline."""
    kinds: dict[Place, tuple[Scatter, ...]] = {}
    for one in record.result.variability:
        place = (one.workload, one.metric, one.treatment, one.baseline)
        kinds[place] = (*kinds.get(place, ()), one.scatter)
    return kinds


# The tables of interactions: one for every two factors, each with one level besides its baseline.

INTERACTION_MEANING = (
    "What the first factor changes, while the second is at its baseline and while it is not; all else is as "
    "in the baseline. The interaction is the one divided by the other: 0 % where the two effects multiply."
)


class InteractionTable(NamedTuple):
    """What the first of two factors changes, beside each level of the second."""

    title: str
    """`scheduler=my.patch and SLAB=y`."""
    table: Table


class InteractionRow(NamedTuple):
    """One metric of one workload."""

    name: str
    interaction: Interaction


def interaction_tables(record: StudyRecord) -> tuple[InteractionTable, ...]:
    """One for every two levels, in the order of the factors."""
    by_levels: dict[tuple[object, ...], list[Interaction]] = {}
    for one in record.result.interactions:
        key = (one.first, one.first_levels, one.second, one.second_levels)
        by_levels.setdefault(key, []).append(one)
    return tuple(_of(interactions) for interactions in by_levels.values())


def _of(interactions: list[Interaction]) -> InteractionTable:
    first = interactions[0]
    changed = level_shown(first.first, first.first_levels[1])
    at, other = (level_shown(first.second, level) for level in first.second_levels)
    names = row_names([(one.workload, one.metric) for one in interactions])
    rows = [InteractionRow(*pair) for pair in zip(names, interactions, strict=True)]
    made = table(_fields(f"with {at}", f"with {other}"), rows, "matrix interactions")
    return InteractionTable(f"{changed} and {other}", replace(made, stacks=True))


def _fields(alone: str, with_other: str) -> tuple[Field[InteractionRow], ...]:
    return (
        Field(Column("workload", "workload", wraps=True), lambda it: name(it.name)),
        Field(
            Column("effect", alone, numeric=True, named=True),
            lambda it: change(it.interaction.effect),
        ),
        Field(
            Column("effect_beside", with_other, numeric=True, named=True),
            lambda it: change(it.interaction.effect_beside),
        ),
        Field(
            Column("ratio", "interaction", numeric=True),
            lambda it: change(it.interaction.ratio, verdict=it.interaction.verdict),
        ),
        Field(
            Column("interval", "interval", "%", numeric=True),
            lambda it: interval(it.interaction.low, it.interaction.high),
        ),
        Field(
            Column("verdict", "verdict"),
            lambda it: verdict(
                it.interaction.verdict,
                notes=(it.interaction.reason,) if it.interaction.reason else (),
            ),
        ),
    )
