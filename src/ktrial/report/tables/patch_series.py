"""The table of a series: a row a patch, a column for each workload that has something to tell."""

from ktrial.format.sanitize import one_line
from ktrial.format.table import Cell as TableCell
from ktrial.format.table import Column, Kind, Row, RowKind, Table
from ktrial.report.text import series as words
from ktrial.series.result import SeriesResult, Step


def steps(result: SeriesResult) -> Table:
    """Every patch, and from base to tip."""
    names = words.changed_workloads(result)
    columns = (
        Column("number", "#"),
        Column("patch", "patch", wraps=True),
        Column("state", "state"),
        *(Column(f"workload-{place}", name, numeric=True, named=True) for place, name in enumerate(names)),
    )
    rows = [_row(result, step, names) for step in result.steps[1:]]
    if names:
        totals = {one.workload: one for one in result.totals}
        sums = (_number(words.cell_text(totals[name])) for name in names)
        rows.append(Row((TableCell(), TableCell("", "base to tip"), TableCell(), *sums), RowKind.SUM))
    return Table(columns, tuple(rows), "patch-series")


def _row(result: SeriesResult, step: Step, names: list[str]) -> Row:
    assert step.patch is not None, "only the base has none"
    subject = one_line(step.patch.subject)
    state = "" if step.is_own and not step.only_moves else words.state_text(step)
    cells = (result.cell(step.number, name) for name in names)
    return Row(
        (
            TableCell(step.number, str(step.number)),
            TableCell(subject, subject, Kind.PROSE),
            TableCell(state, state, Kind.PROSE),
            *(_number(words.cell_text(one) if one else "") for one in cells),
        )
    )


def _number(text: str) -> TableCell:
    return TableCell(text, text)
