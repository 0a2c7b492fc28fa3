"""A series as one HTML page, which needs no network and has no script."""

from collections.abc import Sequence

from ktrial.report.charts.cumulative import HEIGHT, WIDTH, picture
from ktrial.report.html.templating import environment, style_of
from ktrial.report.tables import patch_series as tables
from ktrial.report.text import series as words
from ktrial.series.alone import Alone
from ktrial.series.result import SeriesResult


def page(result: SeriesResult, command: str, top: int = 3, alone: Sequence[Alone] = ()) -> str:
    """The page as text."""
    return (
        environment()
        .get_template("patch_series_page.html.j2")
        .render(
            title=words.title(result),
            exercised=words.exercised(result),
            answer=words.answer(result),
            picture=picture(result),
            width=WIDTH,
            height=HEIGHT,
            table=tables.steps(result),
            text=words.as_text(result, command, top, alone),
            style=style_of(),
        )
    )
