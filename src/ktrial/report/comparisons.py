"""The table of comparisons. A column that is added to `FIELDS` is on the terminal, in Markdown, on pages, in
CSV and in JSON.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from ktrial.analysis.answer import geometric_mean
from ktrial.format import number_format
from ktrial.format.labels import VERDICTS, metric_name
from ktrial.format.number_format import is_time
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
    own,
    quantity,
    row,
    step,
    table,
    verdict,
)
from ktrial.model.comparison import Comparison, Interaction, Scatter, Variability, Verdict
from ktrial.model.design import level_shown, told_apart
from ktrial.model.study import StudyRecord
from ktrial.model.workload import BESIDE_THE_OWN, short_labels
from ktrial.report.study_summary import (
    TreatmentComparisons,
    own_rows,
    row_names,
    sides,
    string_byte_notes,
)

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
    note: str = ""
    """What else is to be known of its workload."""


FIELDS: tuple[Field[ComparisonRow], ...] = (
    Field(
        Column("name", "workload", outputs=Output.TERMINAL, wraps=True, columns=_NAME_COLUMNS),
        lambda row_: name(row_.short_name),
    ),
    Field(
        Column("workload", "workload", outputs=Output.DOCUMENT | Output.PROGRAMS, width=19),
        lambda row_: name(row_.comparison.workload),
    ),
    Field(
        Column("metric", "metric", outputs=Output.DOCUMENT | Output.PROGRAMS, width=16),
        lambda row_: Cell(
            row_.comparison.metric,
            metric_name(row_.comparison.metric, row_.comparison.unit),
            Kind.NAME,
            notes=tuple(filter(None, (row_.comparison.mode.value, row_.note))),
        ),
    ),
    Field(Column("mode", "mode", outputs=Output.MARKDOWN), lambda row_: own(row_.comparison.mode.value)),
    Field(Column("unit", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.unit)),
    Field(Column("direction", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.direction)),
    Field(Column("baseline", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.baseline)),
    Field(
        Column("treatment", "treatment", outputs=Output.PROGRAMS, wraps=True),
        lambda row_: Cell(
            row_.comparison.treatment,
            told_apart(row_.comparison.treatment, row_.comparison.baseline),
            Kind.PROSE,
        ),
    ),
    Field(
        Column("baseline_value", "baseline", numeric=True, width=11),
        lambda row_: quantity(row_.comparison.baseline_value, row_.comparison.unit),
    ),
    Field(
        Column("value", "value", numeric=True, width=11),
        lambda row_: quantity(row_.comparison.value, row_.comparison.unit),
    ),
    Field(
        Column("ratio", "change", numeric=True, width=11),
        lambda row_: step(
            row_.comparison.ratio,
            row_.comparison.value,
            row_.comparison.unit,
            verdict=row_.comparison.verdict,
        ),
    ),
    Field(
        Column("interval", "interval", "%", numeric=True, outputs=Output.PEOPLE, width=17.5),
        lambda row_: interval(row_.comparison.low, row_.comparison.high, row_.comparison.no_interval),
    ),
    Field(Column("low", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.low)),
    Field(Column("high", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.high)),
    Field(
        Column("verdict", "verdict", width=14.5),
        lambda row_: verdict(
            row_.comparison.verdict,
            scatter=row_.scatter,
            notes=tuple(
                filter(None, (row_.comparison.reason, row_.comparison.beside, row_.comparison.bound))
            ),
            link=row_.why,
        ),
    ),
    Field(Column("mode", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.mode)),
    Field(Column("reason", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.reason)),
    Field(Column("estimand", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.estimand)),
    Field(Column("beside", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.beside)),
    Field(Column("blocks", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.blocks)),
    Field(Column("unseen", outputs=Output.PROGRAMS), lambda row_: Cell(row_.comparison.unseen)),
    Field(Column("scatter", outputs=Output.CSV), lambda row_: Cell(row_.scatters)),
)


def of_all(record: StudyRecord) -> Table:
    """Every comparison of the record, for programs."""
    return _table(record, record.result.comparisons)


def of_group(record: StudyRecord, group: TreatmentComparisons, links: Links | None = None) -> Table:
    """One treatment against the baseline: a row a metric; what bytes of string instructions say stands in the
    row of their workload's instructions.
    """
    return _table(record, own_rows(group.comparisons), links, string_byte_notes(group.comparisons))


def side_by_side(record: StudyRecord, group: TreatmentComparisons) -> Table:
    """The same for the terminal, where the two treatments' names stand above their values."""
    every_row = _table(record, group.comparisons)
    shown_table = every_row.adapted("baseline_value", heading=group.baseline, named=True)
    return shown_table.adapted("value", heading=group.treatment, named=True)


def one_below_another(record: StudyRecord) -> Table:
    """Several treatments for the terminal: of each metric the baseline's value, then a row a treatment."""
    every_row = of_all(record).adapted("treatment", outputs=Output.TERMINAL)
    every_row = every_row.adapted("baseline_value", outputs=Output.PROGRAMS)
    by_name: dict[tuple[str, str], list[Row]] = {}
    baselines: dict[tuple[str, str], Comparison] = {}
    for comparison, its_row in zip(record.result.comparisons, every_row.rows, strict=True):
        place = (comparison.workload, comparison.metric)
        baselines.setdefault(place, comparison)
        by_name.setdefault(place, []).append(its_row)
    rows = [
        shown_row
        for place, its_rows in by_name.items()
        for shown_row in (
            row(
                every_row.columns,
                {
                    "name": its_rows[0].cells[0],
                    "treatment": Cell(text=baselines[place].baseline, kind=Kind.PROSE),
                    "value": quantity(baselines[place].baseline_value, baselines[place].unit),
                    "verdict": own("baseline", emphasis=Emphasis.MUTED),
                },
            ),
            *(Row((Cell(), *its_row.cells[1:])) for its_row in its_rows),
        )
    ]
    return Table(every_row.columns, tuple(rows), every_row.name)


def treatments_table(groups: Sequence[TreatmentComparisons]) -> Table:
    """A row a treatment: the geometric mean of its rows, what changed most, and how many of each verdict."""
    return table(_TREATMENT_FIELDS, groups, "treatments")


def _mean(group: TreatmentComparisons) -> Cell:
    mean = geometric_mean(group.comparisons)
    return Cell(mean, number_format.change(mean))


def _largest(group: TreatmentComparisons, verdict_: Verdict) -> Cell:
    """`fork +14.26 %`."""
    changed = [row_ for row_ in group.comparisons if row_.verdict is verdict_]
    if not changed:
        return own(number_format.NONE)
    first = max(changed, key=lambda row_: abs((row_.ratio or math.inf) - 1))
    names_ = _short_names(group.comparisons)
    text = (
        f"{names_[first.workload, first.metric]} {number_format.step(first.ratio, first.value, first.unit)}"
    )
    return Cell(text, text, Kind.PROSE)


def _counts(group: TreatmentComparisons) -> Cell:
    """`✗ 3 ✓ 1 ≈ 2`."""
    counts = Counter(row_.verdict for row_ in group.comparisons)
    return own(" ".join(f"{VERDICTS[kind].symbol} {counts[kind]}" for kind in VERDICTS if counts[kind]))


_TREATMENT_FIELDS: tuple[Field[TreatmentComparisons], ...] = (
    Field(
        Column("treatment", "treatment", wraps=True, columns=_NAME_COLUMNS),
        lambda group: name(told_apart(group.treatment, group.baseline)),
    ),
    Field(Column("mean", "geometric mean", numeric=True), _mean),
    Field(Column("worst", "most worse", wraps=True), lambda group: _largest(group, Verdict.WORSE)),
    Field(Column("best", "most better", wraps=True), lambda group: _largest(group, Verdict.BETTER)),
    Field(Column("counts", "verdicts"), _counts),
)


def _table(
    record: StudyRecord,
    comparisons: Sequence[Comparison],
    links: Links | None = None,
    notes: Mapping[tuple[str, str, str], str] = MappingProxyType({}),
) -> Table:
    """`notes`: workload, treatment and baseline → what is said below the workload's first metric."""
    names, left = _short_names(comparisons), dict(notes)
    scatter, scatters = scatter_by_place(record), scatter_kinds(record)
    rows = (
        ComparisonRow(
            comparison=comparison,
            short_name=names[comparison.workload, comparison.metric],
            scatter=scatter.get(comparison_place(comparison), ""),
            scatters=scatters.get(comparison_place(comparison), ()),
            why=(links or {}).get(sides(comparison), ""),
            note=left.pop(sides(comparison), "") if comparison.metric not in BESIDE_THE_OWN else "",
        )
        for comparison in comparisons
    )
    return replace(table(FIELDS, rows, "comparisons"), stacks=True)


def _short_names(comparisons: Iterable[Comparison]) -> dict[tuple[str, str], str]:
    """Workload and metric → what the row is called: the workload, and what tells its rows apart."""
    units = {(comparison.workload, comparison.metric): comparison.unit for comparison in comparisons}
    main_units = {key: unit for key, unit in units.items() if key[1] not in BESIDE_THE_OWN}
    metrics = Counter(workload for workload, _ in main_units)
    same_unit = len(set(main_units.values())) == 1
    short = short_labels(workload for workload, _ in units)

    def named(workload: str, metric: str, unit: str) -> str:
        # Spaces let long names go to the next line.
        parts = [short[workload].replace("(", " (")]
        if metric in BESIDE_THE_OWN or metrics[workload] > 1:
            parts.append(metric)
        if unit and not is_time(unit) and (metric in BESIDE_THE_OWN or not same_unit):
            parts.append(f"[{unit}]")
        return shortened(" ".join(filter(None, parts)), _NAME_COLUMNS)

    return {(workload, metric): named(workload, metric, unit) for (workload, metric), unit in units.items()}


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
    for finding in record.result.variability:
        place = (finding.workload, finding.metric, finding.treatment, finding.baseline)
        remarks[place] = "; ".join(filter(None, (remarks.get(place, ""), scatter_text(finding))))
    return remarks


def comparison_place(comparison: Comparison) -> Place:
    """Where a comparison's findings are looked up."""
    return (comparison.workload, comparison.metric, comparison.treatment, comparison.baseline)


def scatter_text(finding: Variability) -> str:
    """`scatters more: 5.2 %, the baseline 0.02 % (p 0.001)`."""
    chance = f"p {finding.p:.2g}"
    if finding.modes:
        trials = (number_format.counted(mode.trials, "trial") for mode in finding.modes)
        values = " and ".join(
            f"{number_format.quantity(mode.value, finding.unit)} ({count})"
            for mode, count in zip(finding.modes, trials, strict=True)
        )
        return f"{_WORDS[finding.scatter]}: about {values} ({chance})"
    baseline = number_format.percentage(finding.baseline_spread)
    spreads = f"{number_format.percentage(finding.spread)}, the baseline {baseline}"
    return f"{_WORDS[finding.scatter]}: {spreads} ({chance})"


def scatter_kinds(record: StudyRecord) -> dict[Place, tuple[Scatter, ...]]:
    """How the treatments scatter that do so otherwise than the baseline."""
    kinds: dict[Place, tuple[Scatter, ...]] = {}
    for finding in record.result.variability:
        place = (finding.workload, finding.metric, finding.treatment, finding.baseline)
        kinds[place] = (*kinds.get(place, ()), finding.scatter)
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
    for interaction in record.result.interactions:
        key = (interaction.first, interaction.first_levels, interaction.second, interaction.second_levels)
        by_levels.setdefault(key, []).append(interaction)
    return tuple(_of(interactions) for interactions in by_levels.values())


def _of(interactions: list[Interaction]) -> InteractionTable:
    first = interactions[0]
    changed = level_shown(first.first, first.first_levels[1])
    at, beside = (level_shown(first.second, level) for level in first.second_levels)
    names = row_names([(interaction.workload, interaction.metric) for interaction in interactions])
    rows = [InteractionRow(*pair) for pair in zip(names, interactions, strict=True)]
    shown_table = table(_fields(f"with {at}", f"with {beside}"), rows, "matrix interactions")
    return InteractionTable(f"{changed} and {beside}", replace(shown_table, stacks=True))


def _fields(alone: str, with_other: str) -> tuple[Field[InteractionRow], ...]:
    return (
        Field(Column("workload", "workload", wraps=True), lambda row_: name(row_.name)),
        Field(
            Column("effect", alone, numeric=True, named=True),
            lambda row_: change(row_.interaction.effect),
        ),
        Field(
            Column("effect_beside", with_other, numeric=True, named=True),
            lambda row_: change(row_.interaction.effect_beside),
        ),
        Field(
            Column("ratio", "interaction", numeric=True),
            lambda row_: change(row_.interaction.ratio, verdict=row_.interaction.verdict),
        ),
        Field(
            Column("interval", "interval", "%", numeric=True),
            lambda row_: interval(row_.interaction.low, row_.interaction.high, row_.interaction.no_interval),
        ),
        Field(
            Column("verdict", "verdict"),
            lambda row_: verdict(
                row_.interaction.verdict,
                notes=(row_.interaction.reason,) if row_.interaction.reason else (),
            ),
        ),
    )
