"""Files that `profile` and `explain` write beside what they print."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadOption
from ktrial.cli.files import write_text
from ktrial.model.suggestions import nearest

if TYPE_CHECKING:
    from ktrial.model.attribution import Explanation
    from ktrial.model.profile import Profile
    from ktrial.report.exports import ProfileExport


def formats() -> list[tuple[str, str]]:
    """What `--export` takes, with what reads it, for the shell."""
    from ktrial.report.exports import exports

    return [(f"{name}:", export.summary) for name, export in exports()[0].items()]


Folded = Annotated[Path | None, typer.Option(metavar="FILE", help="Write call stacks there, one a line.")]
FlameGraph = Annotated[
    Path | None, typer.Option("--flame-graph", metavar="FILE", help="Write a flame graph there (SVG).")
]


class WidthOf(StrEnum):
    """Which of two kernels a differential flame graph's frames are as wide as."""

    FROM = "from"
    TO = "to"


FlameWidth = Annotated[
    WidthOf,
    typer.Option("--width", help="A flame graph's frames are as wide as this kernel's instructions."),
]
Exports = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        metavar="FORMAT:FILE",
        help="Write it in another format: speedscope, perf-script, folded, flame-graph, vector.",
        autocompletion=formats,
    ),
]


def wanted(texts: Sequence[str], shorthands: Mapping[str, Path | None]) -> "list[tuple[ProfileExport, Path]]":
    """What `--export FORMAT:FILE` and the options for single formats ask for. Raises BadOption."""
    from ktrial.report.exports import exports

    known, warnings = exports()
    asked = [(known[name], path) for name, path in shorthands.items() if path]
    for text in texts:
        name, colon, file = text.partition(":")
        if name not in known:
            allowed = ", ".join(known)
            broken = "".join(f"; {warning.text}" for warning in warnings)
            problem = f"there is no format {name}{nearest(name, known)}; there are {allowed}{broken}"
            raise BadOption(option="--export", problem=problem)
        if not colon or not file:
            raise BadOption(option="--export", problem=f"{text} names no file: --export {name}:FILE")
        asked.append((known[name], Path(file)))
    return asked


def write_difference(
    before: "Profile",
    after: "Profile",
    explanation: "Explanation",
    *,
    folded: Path | None,
    flame_graph: Path | None,
    width: WidthOf = WidthOf.TO,
) -> None:
    """Write the files of a difference that were asked for. Raises FileNotWritten."""
    from ktrial.report.charts import call_stacks
    from ktrial.report.charts.call_stacks import aligned
    from ktrial.report.charts.flame_graph import Width, of_difference

    if folded:
        old, new = call_stacks.stacks_of_both(before, after, explanation)
        lines = call_stacks.folded_pair(aligned(old, new), new, after.operations)
        write_text(folded, "".join(f"{line}\n" for line in lines))
    if flame_graph:
        side = Width.BEFORE if width is WidthOf.FROM else Width.AFTER
        write_text(flame_graph, of_difference(before, after, explanation, side))
