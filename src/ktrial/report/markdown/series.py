"""A series as GitHub-flavoured Markdown."""

from collections.abc import Sequence

from ktrial.report.markdown.markup import block, code, grid, prose
from ktrial.report.tables import patch_series as tables
from ktrial.report.text import series as words
from ktrial.series.result import SeriesCell, SeriesResult, Step
from ktrial.series.run import Alone


def as_markdown(result: SeriesResult, command: str, top: int = 3, alone: Sequence[Alone] = ()) -> str:
    """The whole report, with a line feed at its end."""
    parts = [
        f"### {prose(words.title(result))}",
        f"**{prose(words.exercised(result))}**",
        grid(tables.steps(result)),
        *(_about(result, step, top) for step in result.steps[1:]),
        block("\n".join(words.alone_lines(result, alone))) if alone else "",
        prose(words.sums(result)),
        f"**{prose(words.answer(result))}**",
        block(command),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


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
            is_open = (words.open_text(cell),) if cell.is_open else ()
            said = "; ".join((*map(prose, (*is_open, *words.beside(cell))), _functions(cell, top)))
            lines.append(f"- {code(cell.workload)} {words.cell_text(cell)}: {said}")
    if not lines:
        return ""
    return f"**{step.number} {prose(step.patch.subject)}**\n\n" + "\n".join(lines)


def _functions(cell: SeriesCell, top: int) -> str:
    parts = (
        f"{code(row.name)} {words.exact(part)}{' (changed by the patch)' if cell.is_changed(row) else ''}"
        for row, part in cell.functions(top)
    )
    return ", ".join(parts) or "no function tells more"
