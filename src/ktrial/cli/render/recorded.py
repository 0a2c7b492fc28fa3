"""Printing that is recorded first: what is printed now is what will be printed from the record."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial.cli.console import without_columns

if TYPE_CHECKING:
    from ktrial.model.study import StudyRecord
    from ktrial.report.attribution import Why


class Recorder(Console):
    """Takes lines and tables (`render.table.rendered`) as a console does, and prints nothing."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False, highlight=False)
        self._parts: list[dict[str, Any]] = []

    def print(self, *objects: Any, **_options: Any) -> None:
        """Record it. Raises TypeError for what is neither a line nor a table."""
        (thing,) = objects or ("",)
        match thing:
            case str() | Text():
                self._parts.append({"line": _pieces(thing)})
            case Table():
                self._parts.append(_recorded_table(thing))
            case _:
                raise TypeError(f"a {type(thing).__name__} cannot be recorded")

    def text(self) -> str:
        """What was recorded, as `replay` reads it."""
        return json.dumps(self._parts, ensure_ascii=False)


def recorded(record: "StudyRecord", whys: "Sequence[Why]") -> str:
    """What `ktrial show` prints of a result, as `replay` reads it."""
    from ktrial.cli.render.study_result import MOST_WORKLOADS, print_result, print_whys

    recorder = Recorder()
    print_result(record, recorder)
    print_whys(whys[: MOST_WORKLOADS + 1], recorder)
    return recorder.text()


def replay(recorded: str, console: Console) -> None:
    """Print what was recorded. Raises ValueError, LookupError where it is no record."""
    for part in json.loads(recorded):
        console.print(_text(part["line"]) if "line" in part else _table(part))


def _pieces(text: Any) -> Any:
    """A plain text as it is; else the text, its style, and the styles of parts of it."""
    if isinstance(text, str):
        return text
    return [text.plain, str(text.style), [[span.start, span.end, str(span.style)] for span in text.spans]]


def _text(pieces: Any) -> str | Text:
    if isinstance(pieces, str):
        return pieces
    plain, style, spans = pieces
    text = Text(plain, style)
    for start, end, of_part in spans:
        text.stylize(of_part, start, end)
    return text


def _recorded_table(table: Table) -> dict[str, Any]:
    columns = [
        {
            "heading": _pieces(column.header),
            "justify": column.justify,
            "no_wrap": column.no_wrap,
            "overflow": column.overflow,
            "cells": [_pieces(cell) for cell in column.cells],
        }
        for column in table.columns
    ]
    rows = [str(row.style or "") for row in table.rows]
    return {"columns": columns, "rows": rows, "heading_style": str(table.header_style)}


def _table(recorded: dict[str, Any]) -> Table:
    columns = recorded["columns"]
    drawn = without_columns(recorded["heading_style"])
    drawn.show_header = any(_text(column["heading"]) for column in columns)
    for column in columns:
        drawn.add_column(
            _text(column["heading"]),
            justify=column["justify"],
            no_wrap=column["no_wrap"],
            overflow=column["overflow"],
        )
    for place, style in enumerate(recorded["rows"]):
        drawn.add_row(*(_text(column["cells"][place]) for column in columns), style=style)
    return drawn
