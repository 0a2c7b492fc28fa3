"""A series as tables and pages: a row a patch, a picture of the courses, HTML, and Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from markupsafe import Markup

from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.format.table import Cell as TableCell
from ktrial.format.table import Column, Kind, Row, RowKind, Table
from ktrial.model.series_result import Alone, SeriesCell, SeriesResult, Step
from ktrial.report import flame_graph
from ktrial.report.call_tree import laid_stacks
from ktrial.report.flame_graph import frames_of
from ktrial.report.markdown import block, code, grid, prose
from ktrial.report.patch_series import (
    alone_lines,
    answer,
    as_text,
    beside,
    built_again,
    cell_text,
    changed_workloads,
    exact,
    exercised,
    is_instructions,
    on_several,
    open_text,
    quiet_text,
    state_text,
    sums,
    title,
    with_quoted_lines,
)
from ktrial.report.stack_tree import LaidStacks
from ktrial.report.templating import environment, page_script, style_of
from ktrial.text_lines import lines_of

# The table of a series: a row a patch, a column for each workload that has something to tell.


def steps(result: SeriesResult) -> Table:
    """Every patch, and from base to tip."""
    names = changed_workloads(result)
    columns = (
        Column("number", "#"),
        Column("patch", "patch", wraps=True),
        Column("state", "state"),
        *(Column(f"workload-{place}", name, numeric=True, named=True) for place, name in enumerate(names)),
    )
    rows = [_table_row(result, step, names) for step in result.steps[1:]]
    if names:
        totals = {cell.workload: cell for cell in result.totals}
        sums = (_number(cell_text(totals[name])) for name in names)
        rows.append(Row((TableCell(), TableCell("", "base to tip"), TableCell(), *sums), RowKind.SUM))
    return Table(columns, tuple(rows), "patch-series")


def _table_row(result: SeriesResult, step: Step, names: list[str]) -> Row:
    assert step.patch is not None, "only the base has none"
    subject = one_line(step.patch.subject)
    measured = [cell for cell in result.cells if cell.number == step.number]
    if step.is_own and not step.only_moves:
        says_nothing = not names or all(cell.is_idle for cell in measured)
        state = quiet_text(measured) if says_nothing else ""
    else:
        state = state_text(step)
    cells = (result.cell(step.number, name) for name in names)
    return Row(
        (
            TableCell(step.number, str(step.number)),
            TableCell(subject, subject, Kind.PROSE),
            TableCell(state, state, Kind.PROSE),
            *(_cell(cell) for cell in cells),
        )
    )


def _cell(cell: SeriesCell | None) -> TableCell:
    idle = bool(cell and cell.is_told and cell.is_idle)
    notes = (_IDLE,) if idle else tuple(on_several(cell)) if cell else ()
    return replace(_number(cell_text(cell) if cell else ""), notes=notes)


def _number(text: str) -> TableCell:
    return TableCell(text, text)


_IDLE = "nothing of the patch ran here: layout or order of scheduling"


# A series as a picture: how far each workload is from the base after each patch, in per cent.

WIDTH, HEIGHT = 720.0, 240.0
NARROW = 340.0
"""The width on a telephone: a wider picture would be scrolled, and its step not seen."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 8.0, 166.0, 16.0, 36.0
_LINE = 14.0
"""Between the names of two courses."""


class Course(NamedTuple):
    """One workload."""

    name: str
    path: str
    """A step at each patch."""
    y: float
    """Where its name stands, at the right."""
    change: str


class CumulativePicture(NamedTuple):
    """All that the template draws."""

    name: str
    width: float
    courses: tuple[Course, ...]
    zero: float
    """The base's height."""
    end: float
    """Where its line ends."""
    names: float
    """Where the courses' names begin."""
    ticks: tuple[tuple[float, str], ...]
    """Places along the bottom, and the numbers of patches there."""
    description: str


def picture(result: SeriesResult, name: str = "course-wide", width: float = WIDTH) -> CumulativePicture:
    """Of the workloads that changed; without courses where none did."""
    names = changed_workloads(result)
    count = len(result.series.patches)
    courses = {name: _course(result, name) for name in names}
    values = [0.0, *(value for course in courses.values() for value in course)]
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or 1.0

    def x(place: float) -> float:
        return round(_LEFT + place * (width - _LEFT - _RIGHT) / max(1, count), 1)

    def y(value: float) -> float:
        share = (value - low + room) / (high - low + 2 * room)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    drawn = []
    places = apart([y(course[-1] if course else 0.0) for course in courses.values()])
    for (workload, course), place in zip(courses.items(), places, strict=True):
        path = f"M{x(0)},{y(0.0)}" + "".join(
            f"H{x(at)}V{y(value)}" for at, value in enumerate(course, start=1)
        )
        end = course[-1] if course else 0.0
        change = number_format.change(1 + end, percent=False)
        drawn.append(Course(workload, f"{path}H{x(count) + 8}", place, f"{change}%"))
    every = max(1, count // (12 if width == WIDTH else 6))
    ticks = tuple((x(place), str(place)) for place in range(every, count + 1, every))
    description = "; ".join(f"{course.name} {course.change}" for course in drawn) or "nothing changed"
    description = f"Change from the base after each patch: {description}"
    return CumulativePicture(
        name, width, tuple(drawn), y(0.0), x(count) + 8, x(count) + 16, ticks, description
    )


def apart(heights: list[float]) -> list[float]:
    """The same, from the top moved down as far as no two names stand on each other."""
    places, lowest = dict[int, float](), float("-inf")
    for number in sorted(range(len(heights)), key=heights.__getitem__):
        lowest = places[number] = max(heights[number], lowest + _LINE)
    beyond = max(0.0, lowest - (HEIGHT - _BOTTOM))
    return [places[number] - beyond for number in range(len(heights))]


def _course(result: SeriesResult, name: str) -> list[float]:
    """The relative difference from the base after each patch; a patch without a number changes nothing."""
    base = next((cell.before for cell in result.totals if cell.workload == name), None)
    total, course = 0.0, list[float]()
    for patch in result.series.patches:
        cell = result.cell(patch.number, name)
        if cell and base:
            total += float(cell.difference / base)
        course.append(total)
    return course


# A series as one HTML page, which needs no network; without flame graphs it has no script either.

_MOST_FRAMES, _FRAMES_OF_A_PAGE = 2000, 16_000
"""Of one graph, and of all: some 50 bytes each, and a page stays below a megabyte."""

_FOOTER = {
    True: "Instructions are counted, not time.",
    False: "Guest time is simulated: it is not real time.",
}


class Graph(NamedTuple):
    """The differential flame graph of one changed cell."""

    title: str
    drawing: Markup


def series_page(result: SeriesResult, command: str, top: int = 3, alone: Sequence[Alone] = ()) -> str:
    """The page as text."""
    graphs = list(_graphs(result))
    return (
        environment()
        .get_template("patch_series_page.html.j2")
        .render(
            title=title(result),
            exercised=exercised(result),
            built_again=built_again(result),
            answer=answer(result),
            pictures=(picture(result), picture(result, "course-narrow", NARROW)),
            height=HEIGHT,
            table=steps(result),
            text=as_text(result, command, top, alone),
            footer=_FOOTER[is_instructions(result)],
            graphs=graphs,
            flame_style=Markup(flame_graph.style()) if graphs else "",
            flame_outline=Markup(flame_graph.outline()) if graphs else "",
            script=page_script(flame_graphs=True) if graphs else None,
            style=style_of(),
        )
    )


def _graphs(result: SeriesResult) -> Iterator[Graph]:
    """One of each changed cell, in the order of the table; those from base to tip last."""
    cells = [cell for cell in (*result.cells, *result.totals) if cell.is_told and cell.profiles]
    most = min(_MOST_FRAMES, _FRAMES_OF_A_PAGE // max(1, len(cells)))
    for cell in cells:
        if laid := _laid(cell):
            title = f"{_patch(result, cell)}: {cell.workload} {cell_text(cell)}"
            drawn = frames_of(laid, most=most)
            yield Graph(title, Markup(flame_graph.frames_in_page(drawn, title)))


def _laid(cell: SeriesCell) -> LaidStacks | None:
    """The stacks of both sides; None where no calls were followed."""
    if cell.profiles is None or cell.explanation is None:
        return None
    followed = all(profile.region.nodes is not None for profile in cell.profiles)
    return laid_stacks(*cell.profiles, cell.explanation) if followed else None


def _patch(result: SeriesResult, cell: SeriesCell) -> str:
    step = next((step for step in result.steps if step.patch and step.number == cell.number), None)
    return f"{step.number} {step.patch.subject}" if step and step.patch else "base to tip"


# A series as GitHub-flavoured Markdown.


def as_markdown(result: SeriesResult, command: str, top: int = 3, alone: Sequence[Alone] = ()) -> str:
    """The whole report, with a line feed at its end."""
    parts = [
        f"### {prose(title(result))}",
        f"**{prose(exercised(result))}**",
        grid(steps(result)),
        *(_patch_in_markdown(result, step, top) for step in result.steps[1:]),
        block("\n".join(alone_lines(result, alone))) if alone else "",
        prose(sums(result)),
        prose(built_again(result)),
        f"**{prose(answer(result))}**",
        block(command),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _patch_in_markdown(result: SeriesResult, step: Step, top: int) -> str:
    assert step.patch is not None, "only the base has none"
    lines = []
    if step.state.is_broken:
        why, quoted = with_quoted_lines(step.why)
        lines.append(f"- {step.state.value}: {prose(why)}")
        lines += [f"  {line}" for line in lines_of(block("\n".join(quoted)))] if quoted else []
    if step.options:
        lines.append("- options: " + ", ".join(code(str(option)) for option in step.options))
    cells = (result.cell(step.number, use.label) for use in result.measurement.workloads)
    for cell in cells:
        if cell and cell.is_told:
            is_open = (open_text(cell),) if cell.is_open else ()
            text = "; ".join((*map(prose, (*is_open, *beside(cell))), _functions_in_markdown(cell, top)))
            lines.append(f"- {code(cell.workload)} {cell_text(cell)}: {text}")
    if not lines:
        return ""
    return f"**{step.number} {prose(step.patch.subject)}**\n\n" + "\n".join(lines)


def _functions_in_markdown(cell: SeriesCell, top: int) -> str:
    parts = (
        f"{code(row.name)} {exact(part)}{' (changed by the patch)' if cell.is_changed(row) else ''}"
        for row, part in cell.functions(top)
    )
    return ", ".join(parts) or "no function tells more"
