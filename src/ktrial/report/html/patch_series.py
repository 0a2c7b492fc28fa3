"""A series as one HTML page, which needs no network; without flame graphs it has no script either."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from ktrial.report.charts import flame_graph, flame_graph_data
from ktrial.report.charts.cumulative import HEIGHT, NARROW, picture
from ktrial.report.charts.flame_frames import frames
from ktrial.report.html.scripts import page_script
from ktrial.report.html.templating import environment, style_of
from ktrial.report.tables import patch_series as tables
from ktrial.report.text import series as words
from ktrial.report.text.call_tree import LaidStacks, laid_stacks
from ktrial.series.result import SeriesCell, SeriesResult
from ktrial.series.run import Alone

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


def page(result: SeriesResult, command: str, top: int = 3, alone: Sequence[Alone] = ()) -> str:
    """The page as text."""
    graphs = list(_graphs(result))
    return (
        environment()
        .get_template("patch_series_page.html.j2")
        .render(
            title=words.title(result),
            exercised=words.exercised(result),
            answer=words.answer(result),
            pictures=(picture(result), picture(result, "course-narrow", NARROW)),
            height=HEIGHT,
            table=tables.steps(result),
            text=words.as_text(result, command, top, alone),
            footer=_FOOTER[words.is_instructions(result)],
            graphs=graphs,
            flame_style=Markup(flame_graph.style()) if graphs else "",
            flame_outline=Markup(flame_graph.outline()) if graphs else "",
            script=page_script(flame_graphs=True) if graphs else None,
            style=style_of(),
        )
    )


def _graphs(result: SeriesResult) -> Iterator[Graph]:
    """One of each changed cell, in the order of the table; those from base to tip last."""
    cells = [one for one in (*result.cells, *result.totals) if one.is_told and one.profiles]
    most = min(_MOST_FRAMES, _FRAMES_OF_A_PAGE // max(1, len(cells)))
    for cell in cells:
        if laid := _laid(cell):
            title = f"{_patch(result, cell)}: {cell.workload} {words.cell_text(cell)}"
            drawn = frames(laid.old, laid.new, most=most)
            yield Graph(title, Markup(flame_graph_data.in_page(drawn, title)))


def _laid(cell: SeriesCell) -> LaidStacks | None:
    """The stacks of both sides; None where no calls were followed."""
    if cell.profiles is None or cell.explanation is None:
        return None
    followed = all(one.region.nodes is not None for one in cell.profiles)
    return laid_stacks(*cell.profiles, cell.explanation) if followed else None


def _patch(result: SeriesResult, cell: SeriesCell) -> str:
    step = next((one for one in result.steps if one.patch and one.number == cell.number), None)
    return f"{step.number} {step.patch.subject}" if step and step.patch else "base to tip"
