"""`explain --lines`: a row of the ranking of functions, opened into source lines."""

from typing import TYPE_CHECKING

from ktrial.cli.console import print_json
from ktrial.cli.progress import progress
from ktrial.cli.render.explanation import headline_of, side_headings
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.cli.running.explanation import question_of, why
from ktrial.experiment.explain import Guests
from ktrial.experiment.source_lines import debug_files, difference_by_line
from ktrial.report.source_lines import (
    frames_table,
    lines_answer,
    lines_as_json,
    lines_notes,
    lines_summary,
    lines_table,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.cli.commands.explain import ExplainOptions
    from ktrial.model.attribution import Attribution
    from ktrial.model.source_lines import LineDifference


_FRAMES = 3
"""Functions that are shown where there is little room: it is for their lines."""


def lines_behind(options: "ExplainOptions", function: str) -> "tuple[Attribution, LineDifference]":
    """The explanation, and its row of that function by source line.

    Debugging information is looked for before anything is booted. Raises BadOption, ExplanationError,
    AnalysisUsageError, NoDebugInfo; and as `explanation.why`, and `difference_by_line`.
    """
    question = question_of(options)
    with progress() as observer:
        information = debug_files(question, Guests(observer=observer))
    attribution = why(options)[0]
    with progress() as observer:
        guests = Guests(observer=observer)
        return attribution, difference_by_line(question, attribution, function, information, guests)


def print_lines_behind(
    attribution: "Attribution", opened: "LineDifference", console: "Console", *, whole: bool, most: int | None
) -> None:
    """The frames, the lines of both sides, and the answer last; `most`: lines, None is all of them."""
    sides = side_headings(attribution.explanation)
    screen = Screen(console, whole=whole, more=same_command("-v"))
    screen.title(headline_of(attribution), lines_summary(opened))
    for table, noun in (
        (frames_table(opened, sides, None if whole else _FRAMES), "function"),
        (lines_table(opened, sides, most), "line"),
    ):
        count = len(table.rows)
        screen.rows(table, (count - 1, *range(count - 1)), noun)
    screen.lines(list(lines_notes(opened)), "note", least=2)
    screen.print(lines_answer(opened))


def print_lines_as_json(opened: "LineDifference") -> None:
    """The row by source line, and nothing else."""
    print_json(lines_as_json(opened))
