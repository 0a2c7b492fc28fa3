"""What differs between two kernels, on the terminal."""

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format.sanitize import one_line
from ktrial.model.kernel_diff import KernelDifference
from ktrial.report.tables.kernel_diff import facts
from ktrial.report.text.kernel_diff import KernelChange, Listing, MenuGroup, OptionLine, shown

_FEW = 8
"""Lines of a menu, and names of a list, that are shown of what is cut."""
_CUT_NAMES = 40
"""Names of a list of which nothing is cut, whatever it lists."""
_CUT_LINES = 100
"""Lines of options, in all menus together, of which nothing is cut."""
_CUT = "drivers, file systems, modules and the like"
_LEGEND = "+ set in the second only, − in the first only; indented: what follows from it"


class _Shown:
    """What of lines and names is shown, and how much was left out.

    What is about the kernel itself is always shown; long lists of drivers, ciphers, file systems and modules
    are cut.
    """

    def __init__(self, change: KernelChange, *, everything: bool) -> None:
        self._everything = everything
        self._lines_fit = sum(len(group.lines) for group in change.groups) <= _CUT_LINES
        self.left_out = 0

    def lines(self, group: MenuGroup) -> tuple[OptionLine, ...]:
        if self._everything or self._lines_fit:
            return group.lines
        others = [line for line in group.lines if not line.matters]
        hidden = others[_FEW:] if len(others) > _FEW + 1 else []
        self.left_out += len(hidden)
        return tuple(line for line in group.lines if line not in hidden)

    def names(self, names: Sequence[str], *, matter: bool = False) -> str:
        whole = self._everything or matter or len(names) <= _CUT_NAMES
        few = names if whole else names[:_FEW]
        left = len(names) - len(few)
        self.left_out += left
        return ", ".join(few) + (f" and {left:,} more (--all)" if left else "")


def print_kernel_difference(
    difference: KernelDifference, console: Console, *, everything: bool = False
) -> None:
    """All that differs; of long lists of drivers and modules only the first, unless `everything` is asked."""
    change = shown(difference)
    some = _Shown(change, everything=everything)
    console.print(Text(breakable(change.sentence), style="bold"))
    parts = [rendered(facts(change), heading_style="dim")] if not difference.same_content else []
    for part in (*parts, *_options(change, some), *_listings(change, some), *_notes(change)):
        console.print(part)
    if some.left_out:
        command = ["ktrial", "kernel", "diff", *map(one_line, (change.before, change.after)), "--all"]
        console.print(Text(f"{some.left_out:,} names are left out above ({_CUT}); all of them:"))
        console.print(Text(f"  {shlex.join(command)}"), soft_wrap=True)


def _options(change: KernelChange, some: _Shown) -> Iterator[RenderableType]:
    if not change.groups:
        return
    yield from _title("options, by menu")
    for group in change.groups:
        yield Text(group.title, style="underline")
        lines = some.lines(group)
        for line in lines:
            yield from _line(line, some)
        if left := len(group.lines) - len(lines):
            yield f"  and {left:,} more (--all)"
    yield Text(_LEGEND, style="dim")


def _line(line: OptionLine, some: _Shown) -> Iterator[RenderableType]:
    text = Text(line.text)
    if line.prompt:
        text.append(f"  {line.prompt}", style="dim")
    yield Padding(text, (0, 0, 0, 2))
    if line.followers:
        yield Padding(Text(some.names(line.followers), style="dim"), (0, 0, 0, 6))


def _listings(change: KernelChange, some: _Shown) -> Iterator[RenderableType]:
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
                yield Padding(some.names(listing.names, matter=listing.matters), (0, 0, 0, 2))


def _counted(listing: Listing) -> str:
    return f"{len(listing.names)} {listing.title}" if len(listing.names) > 1 else listing.title


def _notes(change: KernelChange) -> Iterator[RenderableType]:
    if change.unknown:
        yield from _title("not known")
        yield from change.unknown
    yield Text("default values of settings: ktrial knob diff", style="dim")


def _title(text: str) -> Iterator[RenderableType]:
    yield ""
    yield Text(text, style="bold")
