"""What differs between two kernels, on the terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.model.kernel_diff import KernelDifference
from ktrial.report.tables.kernel_diff import facts
from ktrial.report.text.kernel_diff import KernelChange, Listing, OptionLine, shown

_MORE = 20
"""So many times as many names are shown of a list that matters."""
_LEGEND = "+ set in the second only, − in the first only; indented: what follows from it"


def print_kernel_difference(difference: KernelDifference, console: Console, *, most: int | None) -> None:
    """All that differs; at most so many options of a menu and names of a list, the rest counted."""
    change = shown(difference)
    console.print(Text(breakable(change.sentence), style="bold"))
    parts = [rendered(facts(change), heading_style="dim")] if not difference.same_content else []
    for part in (*parts, *_options(change, most), *_listings(change, most), *_notes(change)):
        console.print(part)


def _options(change: KernelChange, most: int | None) -> Iterator[RenderableType]:
    if not change.groups:
        return
    yield from _title("options, by menu")
    for group in change.groups:
        yield Text(group.title, style="underline")
        few = group.lines if most is None else group.lines[:most]
        for line in few:
            yield from _line(line, most)
        if left := len(group.lines) - len(few):
            yield f"  and {left} more (--all)"
    yield Text(_LEGEND, style="dim")


def _line(line: OptionLine, most: int | None) -> Iterator[RenderableType]:
    text = Text(line.text)
    if line.prompt:
        text.append(f"  {line.prompt}", style="dim")
    yield Padding(text, (0, 0, 0, 2))
    if line.followers:
        yield Padding(Text(_names(line.followers, most), style="dim"), (0, 0, 0, 6))


def _listings(change: KernelChange, most: int | None) -> Iterator[RenderableType]:
    for title, listings in (
        ("patches", change.patches),
        ("other options", change.folded),
        ("modules", change.modules),
    ):
        if listings:
            yield from _title(title)
        for listing in listings:
            yield _counted(listing)
            if listing.names:
                more = most * _MORE if most and listing.matters else most
                yield Padding(_names(listing.names, more), (0, 0, 0, 2))


def _counted(listing: Listing) -> str:
    return f"{len(listing.names)} {listing.title}" if len(listing.names) > 1 else listing.title


def _names(names: Sequence[str], most: int | None) -> str:
    few = names if most is None else names[:most]
    left = len(names) - len(few)
    return ", ".join(few) + (f" and {left} more (--all)" if left else "")


def _notes(change: KernelChange) -> Iterator[RenderableType]:
    if change.unknown:
        yield from _title("not known")
        yield from change.unknown
    yield Text("default values of settings: ktrial knob diff", style="dim")


def _title(text: str) -> Iterator[RenderableType]:
    yield ""
    yield Text(text, style="bold")
