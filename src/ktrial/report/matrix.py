"""The table of versions by workloads: flat in a study's report, by workload with colours as a heat map."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ktrial.analysis.errors import NoMatrix
from ktrial.format import labels, number_format
from ktrial.format.labels import OUTCOMES
from ktrial.format.number_format import is_time
from ktrial.format.table import Cell as TableCell
from ktrial.format.table import (
    Column,
    Emphasis,
    Field,
    Kind,
    Output,
    Row,
    RowKind,
    Table,
    name,
    quantity,
    table,
)
from ktrial.model.comparison import Comparison, Matrix, MatrixCell, MatrixRow, Scatter, Verdict
from ktrial.model.study import StudyRecord
from ktrial.model.workload import BESIDE_THE_OWN, STRING_BYTES, Mode, short_labels
from ktrial.report import attribution, comparisons
from ktrial.report import study_summary as summary
from ktrial.report.attribution import Why
from ktrial.report.comparisons import FIELDS, ComparisonRow
from ktrial.report.history import Crumbs, site_environment, style

if TYPE_CHECKING:
    from jinja2 import Environment

Places = Mapping[tuple[str, str], str]
"""Workload and treatment → where the reasons of a change stand."""
_Scatters = Mapping[comparisons.Place, tuple[Scatter, ...]]
_CHANGED = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.INCONCLUSIVE})
_WHOLE_COLOUR = 0.5
"""The relative change from which a cell has its full colour."""
_STRONG = 0.1
"""From this change on a cell is set in reverse on the terminal."""
_NAME_COLUMNS, _HEADING_COLUMNS = 40, 18


def matrix(record: StudyRecord, *, all_metrics: bool = False) -> Matrix:
    """The record as a table of versions by workloads. Raises NoMatrix where there is nothing to compare.

    `all_metrics`: with the bytes of string instructions, and with counts that are zero everywhere, which
    else only other programs get.
    """
    groups = summary.groups(record)
    if not groups:
        raise NoMatrix(study=record.study.name)
    rows = [row for row in summary.matrix(record) if any(row.comparisons)]
    scatters = comparisons.scatter_kinds(record)
    shown = [_row(record, row, scatters) for row in rows if all_metrics or _tells_something(row.comparisons)]
    return Matrix(
        study_id=record.id,
        study=record.study.name,
        baseline=groups[0].baseline,
        columns=tuple(group.treatment for group in groups),
        rows=tuple(shown),
        answer=record.result.answer,
        margin=record.study.margin,
        trials=len(record.trials),
        problems=tuple(_problems(record)),
    )


def _tells_something(comparisons: Sequence[Comparison | None]) -> bool:
    present = [comparison for comparison in comparisons if comparison is not None]
    if any(comparison.metric == STRING_BYTES.name for comparison in present):
        return False
    numbers = [
        number
        for comparison in present
        for number in (comparison.baseline_value, comparison.value)
        if number is not None
    ]
    return any(numbers) or not numbers


def _row(record: StudyRecord, row: summary.MatrixRow, scatters: _Scatters) -> MatrixRow:
    first = next(comparison for comparison in row.comparisons if comparison is not None)
    return MatrixRow(
        name=row.name,
        workload=first.workload,
        metric=first.metric,
        unit=first.unit,
        baseline=row.baseline_value,
        cells=tuple(_cell(record, comparison, scatters) for comparison in row.comparisons),
    )


def _cell(record: StudyRecord, comparison: Comparison | None, scatters: _Scatters) -> MatrixCell:
    scatter = scatters.get(comparisons.comparison_place(comparison), ()) if comparison else ()
    return MatrixCell(comparison=comparison, why=_why(record, comparison), scatter=scatter)


def _why(record: StudyRecord, comparison: Comparison | None) -> str:
    if (
        comparison is None
        or comparison.mode is not Mode.EXACT_PLUGIN
        or comparison.verdict not in _CHANGED
        or comparison.value is None
    ):
        return ""
    difference = ["--workload", comparison.workload, "--to", comparison.treatment]
    return shlex.join(["ktrial", "explain", str(record.id), *difference])


def _problems(record: StudyRecord) -> list[str]:
    problems = []
    for trial in summary.failed_trials(record):
        reason = f": {trial.reason}" if trial.reason else ""
        problems.append(f"{trial.planned.treatment.label}: {OUTCOMES[trial.outcome].sentence}{reason}")
    return list(dict.fromkeys(problems))


def trials_of(shown: Matrix) -> str:
    """Which trials the numbers are from."""
    trials = number_format.counted(shown.trials, "trial")
    return f"{trials} of study {shown.study_id} ({shown.study})"


def usual_unit(shown: Matrix) -> str:
    """The unit of the first row: rows with another one say theirs, and times say theirs with each value."""
    return shown.rows[0].unit if shown.rows and not is_time(shown.rows[0].unit) else ""


def _heat(comparison: Comparison) -> int:
    """How strongly a cell is coloured, in %: by the logarithm of the change, full from half or twice."""
    if comparison.ratio is None or comparison.ratio <= 0:
        return 60
    change = max(comparison.ratio, 1 / comparison.ratio) - 1
    return round(8 + 52 * math.sqrt(min(1.0, change / _WHOLE_COLOUR)))


def for_programs(shown: Matrix) -> Table:
    """A row for each comparison, as the table of comparisons has it, without the direction."""
    rows = (
        ComparisonRow(cell.comparison, scatters=cell.scatter)
        for row in shown.rows
        for cell in row.cells
        if cell.comparison is not None
    )
    return table(FIELDS, rows, "comparisons").adapted("direction", outputs=Output.JSON)


def flat(shown: Matrix) -> Table:
    """A row a metric: what a study's report shows of all treatments. Bytes of string instructions are part of
    their workload's row: what each treatment's table says of them is not said here.
    """
    counted = {row.workload for row in shown.rows if row.metric not in BESIDE_THE_OWN}
    rows = [row for row in shown.rows if row.metric != STRING_BYTES.name or row.workload not in counted]
    return table(_fields(shown), rows, "matrix")


def heat_map(shown: Matrix, reasons: Places, histories: Mapping[str, str]) -> Table:
    """By workload, its metrics below its name, in colours. `histories`: workload → its page."""
    short = short_labels(workload for workload, _ in shown.by_workload)
    fields = _fields(shown, reasons)
    rows = [
        row
        for workload, its_rows in shown.by_workload
        for row in _of_workload(workload, its_rows, short[workload], histories.get(workload, ""), fields)
    ]
    return Table(tuple(field.column for field in fields), tuple(rows), "matrix heat")


def _of_workload(
    workload: str,
    its_rows: Sequence[MatrixRow],
    short: str,
    history: str,
    fields: Sequence[Field[MatrixRow]],
) -> Iterator[Row]:
    several = len(its_rows) > 1
    if several:
        title = workload if short != workload else ""
        yield Row((name(short, link=history, title=title),), RowKind.HEADING)
    for metric_row in its_rows:
        first_cell, *following = (field.cell(metric_row) for field in fields)
        title = metric_row.metric if several else metric_row.name.replace(workload, short, 1)
        first = name(title, link="" if several else history, notes=first_cell.notes)
        cells = (first, *following)
        yield Row(cells, RowKind.PART if several else RowKind.PLAIN)


def _unit(row: MatrixRow, usual: str) -> tuple[str, ...]:
    return (row.unit,) if row.unit and row.unit != usual and not is_time(row.unit) else ()


def _fields(shown: Matrix, reasons: Places | None = None) -> tuple[Field[MatrixRow], ...]:
    """`reasons`: with colours and links, as on a heat map."""
    usual = usual_unit(shown)
    return (
        Field(
            Column("workload", "workload", wraps=True, columns=_NAME_COLUMNS),
            lambda row: name(row.name, notes=_unit(row, usual)),
        ),
        Field(
            Column(
                "baseline",
                shown.baseline,
                numeric=True,
                named=True,
                heading_columns=_HEADING_COLUMNS,
            ),
            lambda row: quantity(row.baseline, row.unit, emphasis=Emphasis.MUTED),
        ),
        *(
            Field(
                Column(
                    f"treatment-{place}",
                    treatment,
                    numeric=True,
                    named=True,
                    heading_columns=_HEADING_COLUMNS,
                ),
                partial(_change, place=place, reasons=reasons),
            )
            for place, treatment in enumerate(shown.columns)
        ),
    )


def _change(row: MatrixRow, place: int, reasons: Places | None) -> TableCell:
    cell = row.cells[place]
    comparison = cell.comparison
    if comparison is None:
        return TableCell(text=number_format.NONE)
    strong = comparison.ratio is not None and abs(comparison.ratio - 1) >= _STRONG
    decided = comparison.verdict is not Verdict.INCONCLUSIVE
    link = (reasons or {}).get((comparison.workload, comparison.treatment), "")
    return TableCell(
        comparison.ratio,
        number_format.step(comparison.ratio, comparison.value, comparison.unit),
        Kind.CHANGE,
        comparison.verdict,
        Emphasis.STRONG if strong and decided else Emphasis.PLAIN,
        scatter=f"{labels.SCATTER_MEANING}: {', '.join(cell.scatter)}" if cell.scatter else "",
        link=link if comparison.verdict in _CHANGED else "",
        heat=_heat(comparison) if reasons is not None else None,
    )


# A study's comparisons as a heat map: the page.


def matrix_page(
    shown: Matrix,
    reasons: Sequence[Why] = (),
    *,
    histories: Mapping[str, str] | None = None,
    result: str = "",
    why_places: Places | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    templates: "Environment | None" = None,
) -> str:
    """The page as text. `histories`: workload → its page; `result`: the study's page; `why_places`: workload
    and treatment → where the reasons stand, else those given in `reasons` stand in this page.
    """
    places = {(why.workload, why.treatment): f"#why-{place}" for place, why in enumerate(reasons, start=1)}
    facts: dict[str, Any] = {
        "json": "matrix.json" if sheet else "",
        "title": shown.study,
        "eyebrow": "ktrial matrix",
        "question": "",
        "matrix": shown,
        "unit": usual_unit(shown),
        "table": heat_map(shown, why_places if why_places is not None else places, histories or {}),
        "whys": [(why, attribution.functions_of_page(why)) for why in reasons],
        "notices": attribution.notices(reasons),
        "graphs": [None] * len(reasons),
        "result": result,
        "crumbs": crumbs,
        "sheet": sheet,
        "style": "" if sheet else style(),
        "foot": trials_of(shown),
    }
    return (templates or site_environment()).get_template("matrix.html.j2").render(**facts)
