"""How numbers are written: thin spaces or commas between thousands, a true minus, percents, tables, prose."""

import textwrap
from collections.abc import Callable, Iterable, Sequence

THIN = "\u202f"
"""Between thousands; a line is never broken there."""
MINUS = "\u2212"
_WIDTH = 118
_TO_THE_RIGHT = "--:"


def count(value: float, separator: str = THIN) -> str:
    """A whole number: `101 086`, or with a comma `101,086`."""
    return f"{value:,.0f}".replace(",", separator).replace("-", MINUS)


def with_commas(value: float) -> str:
    """A whole number as `101,086`."""
    return count(value, ",")


def signed(value: float, separator: str = THIN) -> str:
    """A whole number with its sign: `+23 985`, `−1670`; `0` has none."""
    text = count(abs(value), separator)
    return text if text == "0" else ("+" if value > 0 else MINUS) + text


def percent(ratio: float, digits: int = 1) -> str:
    """What a ratio is more or less than 1, in percent, with its sign: `+14.2`; `0.0` has none."""
    text = f"{abs(ratio - 1) * 100:.{digits}f}"
    return text if not float(text) else ("+" if ratio > 1 else MINUS) + text


def decimal(value: float, digits: int) -> str:
    """A number with so many digits behind the point: `13.3`."""
    return f"{value:.{digits}f}".replace("-", MINUS)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = False) -> str:
    """A table in Markdown. `right`: all columns but the first are aligned on the right."""
    aligned = _TO_THE_RIGHT if right else "---"
    rule = ["---", *(aligned for _ in heads[1:])]
    return "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in (heads, rule, *rows))


class Lookup:
    """A value of a template that depends on words: `{at[fork 6.12]}` is `make("fork", "6.12")`."""

    def __init__(self, make: Callable[..., str]) -> None:
        self._make = make

    def __getitem__(self, words: str) -> str:
        return self._make(*words.split())


def prose(template: str, **values: str | Lookup) -> str:
    """Running text with its values put in, in lines of the pages' width.

    Items of lists begin with `- `; between paragraphs stands an empty line. Headings and rows of tables stay
    as they are.
    """
    pieces: list[str] = []
    for line in map(str.strip, template.strip("\n").splitlines()):
        alone = not line or line.startswith(("#", "|", "- "))
        if alone or not pieces or not pieces[-1] or pieces[-1].startswith(("#", "|")):
            pieces.append(line)
        else:
            pieces[-1] += f" {line}"
    return "\n".join(_wrapped(piece.format(**values)) for piece in pieces) + "\n"


def _wrapped(text: str) -> str:
    if text.startswith(("#", "|")):
        return text
    indent = "  " if text.startswith("- ") else ""
    lines = textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)
