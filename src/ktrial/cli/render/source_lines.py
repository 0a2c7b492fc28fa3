"""A function by source line, as tables for the terminal."""

from rich.console import Console
from rich.text import Text

from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import of_texts
from ktrial.model.source_lines import FunctionLines, SourceLine

_COLUMNS = 60
_UNKNOWN = "(no line is known)"


def print_lines(lines: FunctionLines, top: int, console: Console) -> None:
    """What was inlined into the function, and its lines with the most instructions."""
    total = number_format.number(lines.per_operation(lines.instructions))
    headline = f"{lines.function} in {lines.workload} on {lines.kernel}: {total} instructions per operation"
    console.print(Text(one_line(headline), style="bold"))
    if not lines.instructions:
        console.print("It did not run.")
        return
    inlined = lines.by_inlined()
    if inlined:
        console.print(
            f"{number_format.share(lines.own / (lines.instructions or 1))} % are of the function itself, "
            f"the others of {number_format.counted(len(inlined), 'function')} that were inlined into it."
        )
        named = [(f"{lines.function} itself", lines.own), *inlined]
        rows = [
            (shortened(one_line(name), _COLUMNS), *_of_whole(lines, count)) for name, count in named[:top]
        ]
        console.print()
        console.print(rendered(of_texts(("inlined function", "instructions", "%"), rows)))
    rows = [
        (shortened(_where(line), _COLUMNS), *_of_whole(lines, line.instructions))
        for line in lines.lines[:top]
    ]
    hidden = lines.lines[top:]
    if hidden:
        name = number_format.counted(len(hidden), "other line")
        rows.append((name, *_of_whole(lines, sum(line.instructions for line in hidden))))
    rows.append(("the sum", *_of_whole(lines, lines.instructions)))
    console.print()
    console.print(rendered(of_texts(("source line", "instructions", "%"), rows)))


def _where(line: SourceLine) -> str:
    place = f"{line.file}:{line.line}" if line.file else _UNKNOWN
    return one_line(f"{place} ({' › '.join(line.inlined)})" if line.inlined else place)


def _of_whole(lines: FunctionLines, count: int) -> tuple[str, str]:
    share = count / (lines.instructions or 1)
    return number_format.number(lines.per_operation(count)), number_format.share(share)
