"""A series as GitHub-flavoured Markdown."""

from collections.abc import Sequence

from ktrial.format.sanitize import one_line
from ktrial.format.table import Cell as TableCell
from ktrial.format.table import Column, Kind, Row, RowKind, Table
from ktrial.report.markdown.markup import block, code, grid, prose
from ktrial.report.text import series as words
from ktrial.series.alone import Alone
from ktrial.series.result import Cell, SeriesResult
from ktrial.series.steps import Step


def as_markdown(result: SeriesResult, command: str, top: int = 3, alone: Sequence[Alone] = ()) -> str:
    """The whole report, with a line feed at its end."""
    parts = [
        f"### {prose(words.title(result))}",
        f"**{prose(words.exercised(result))}**",
        grid(_table(result)),
        *(_about(result, step, top) for step in result.steps[1:]),
        block("\n".join(words.alone_lines(result, alone))) if alone else "",
        prose(words.sums(result)),
        f"**{prose(words.answer(result))}**",
        block(command),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(result: SeriesResult) -> Table:
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
        texts = (words.cell_text(totals[name]) for name in names)
        sum_cells = (
            TableCell(),
            TableCell("", "base to tip"),
            TableCell(),
            *(_number(text) for text in texts),
        )
        rows.append(Row(sum_cells, RowKind.SUM))
    return Table(columns, tuple(rows))


def _row(result: SeriesResult, step: Step, names: list[str]) -> Row:
    assert step.patch is not None, "only the base has none"
    subject = one_line(step.patch.subject)
    state = "" if step.is_own else words.state_text(step)
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


def _about(result: SeriesResult, step: Step, top: int) -> str:
    assert step.patch is not None, "only the base has none"
    lines = []
    if step.state.is_broken:
        lines.append(f"- {step.state.value}: {prose(step.why)}")
    if step.options:
        lines.append("- options: " + ", ".join(code(str(one)) for one in step.options))
    cells = (result.cell(step.number, use.label) for use in result.how.workloads)
    for cell in cells:
        if cell and cell.is_told:
            lines.append(f"- {code(cell.workload)} {words.cell_text(cell)}: {_functions(cell, top)}")
    if not lines:
        return ""
    return f"**{step.number} {prose(step.patch.subject)}**\n\n" + "\n".join(lines)


def _functions(cell: Cell, top: int) -> str:
    parts = (
        f"{code(row.name)} {words.exact(part)}{' (changed by the patch)' if cell.is_changed(row) else ''}"
        for row, part in cell.functions(top)
    )
    return ", ".join(parts) or "no function tells more"
