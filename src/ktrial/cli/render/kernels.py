"""Kernels of the cache, for people and for programs."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import natural_width, rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Field, facts, table, text_field
from ktrial.kernels import kernel_registry
from ktrial.kernels.cache_repair import KernelCheck
from ktrial.kernels.config import config_of, scheduling
from ktrial.kernels.errors import SymbolsUnknown
from ktrial.kernels.files import shown
from ktrial.kernels.modules import builtin_names, module_names
from ktrial.kernels.symbols import symbols_in
from ktrial.model.kernel import Kernel, KernelDifference, Origin, options_named, options_shown
from ktrial.report.kernel_diff import KernelChange, Listing, MenuGroup, OptionLine
from ktrial.report.kernel_diff import facts_table as kernel_facts
from ktrial.report.kernel_diff import shown as change_shown

SHORT_DIGEST = 12
"""How many digits of a digest are shown."""
_GAP, _SHORTEST_NAME = 2, 24
"""Columns between two columns of a table; what a name has at least."""
_TELLING_OPTIONS = (
    "CONFIG_HZ",
    "CONFIG_NR_CPUS",
    "CONFIG_PREEMPT_NONE",
    "CONFIG_PREEMPT_VOLUNTARY",
    "CONFIG_PREEMPT",
    "CONFIG_PREEMPT_LAZY",
    "CONFIG_PREEMPT_RT",
    "CONFIG_PREEMPT_DYNAMIC",
    "CONFIG_SLUB",
    "CONFIG_SLAB",
    "CONFIG_TRANSPARENT_HUGEPAGE_ALWAYS",
    "CONFIG_TRANSPARENT_HUGEPAGE_MADVISE",
    "CONFIG_MITIGATION_PAGE_TABLE_ISOLATION",
    "CONFIG_PAGE_TABLE_ISOLATION",
    "CONFIG_INIT_ON_ALLOC_DEFAULT_ON",
    "CONFIG_PVH",
)
"""Options of the configuration that move many workloads at once."""


def kernels_table(cached: tuple[Kernel, ...], console: Console) -> RichTable:
    """All kernels. Names are shortened in the middle: of a built one the key at its end says which it is.

    Where a row does not fit, its name and release stand above the others: nothing else is cut or broken.
    """
    fields: tuple[Field[Kernel], ...] = (
        text_field("release", lambda kernel: kernel.release, wraps=False),
        text_field("flavour", lambda kernel: kernel.flavour, wraps=False),
        text_field("size", lambda kernel: shown(kernel.size), wraps=False),
        text_field(
            "added", lambda kernel: f"{kernel_registry.record(kernel.name).added:%Y-%m-%d}", wraps=False
        ),
        text_field("digest", lambda kernel: kernel.digest[:SHORT_DIGEST], wraps=False),
    )
    left = console.width - _GAP - natural_width(table(fields, cached), console)
    longest = max((len(kernel.name) for kernel in cached), default=0)
    if left >= min(longest, _SHORTEST_NAME):
        name: Field[Kernel] = text_field("name", lambda kernel: shortened(kernel.name, left))
        return rendered(table((name, *fields), cached), heading_style="")
    left = console.width - 2 * _GAP - natural_width(table(fields[1:], cached), console)
    releases = max((len(kernel.release) for kernel in cached), default=0)
    beside = left >= releases + _GAP
    between, columns = ("\n  ", left) if beside else ("  ", console.width - _GAP)
    both: Field[Kernel] = text_field(
        "name, release", lambda kernel: f"{shortened(kernel.name, columns)}{between}{kernel.release}"
    )
    return rendered(table((both, *fields[1:]), cached), heading_style="")


def verification_table(checks: Iterable[KernelCheck]) -> RichTable:
    """What became of looking through kernels; the damaged files by their paths."""
    fields: tuple[Field[KernelCheck], ...] = (
        text_field("name", lambda check: check.name),
        text_field("digest", lambda check: check.digest[:SHORT_DIGEST]),
        text_field("files", lambda check: str(check.files)),
        text_field(
            "damaged",
            lambda check: "\n".join(str(check.directory / path) for path in check.damaged) or "none",
        ),
    )
    return rendered(table(fields, checks), heading_style="")


def kernel_table(kernel: Kernel) -> RichTable:
    """All that is known about one kernel."""
    return rendered(facts(_facts(kernel)))


def _facts(kernel: Kernel) -> dict[str, str]:
    origin = kernel.origin
    return {
        "name": kernel.name,
        "release": kernel.release,
        "flavour": kernel.flavour or "-",
        "architecture": kernel.architecture,
        "from": " ".join(filter(None, (origin.provider, origin.source, origin.version, origin.suite))),
        **(_recipe(origin) if origin.build else {"packages": "\n".join(origin.packages) or "-"}),
        "added": f"{kernel_registry.record(kernel.name).added:%Y-%m-%d %H:%M} UTC",
        "size": shown(kernel.size),
        "digest": kernel.digest,
        "directory": str(kernel.image.parent),
        "vmlinux": "extracted" if kernel.vmlinux else f"none: {kernel.vmlinux_reason}",
        "modules": _modules(kernel),
        "symbols": _symbols(kernel),
        "scheduler": str(scheduling(kernel)),
        "config": _config(kernel),
    }


def _recipe(origin: Origin) -> dict[str, str]:
    """What a kernel was built from, beside the source."""
    build = origin.build
    if build is None:
        return {}
    set_over = " ".join(f"{name.removeprefix('CONFIG_')}={value}" for name, value in build.options.items())
    return {
        "built with": f"configuration {build.config}{f'; {set_over}' if set_over else ''}",
        "patches": "\n".join(f"{patch.path}, sha256 {patch.digest[:SHORT_DIGEST]}" for patch in build.patches)
        or "-",
        **({"new options": options_shown(origin.new_options)} if origin.new_options else {}),
        **({"not held": options_named(origin.not_held)} if origin.not_held else {}),
        "flags": " ".join(f"{name}={value}" for name, value in build.make.items()) or "-",
        "compiler": origin.compiler or "not known",
    }


def _modules(kernel: Kernel) -> str:
    if kernel.modules is None:
        return "none were given"
    files, builtin = len(module_names(kernel)), len(builtin_names(kernel))
    return f"{files} files, {builtin} built in"


def _symbols(kernel: Kernel) -> str:
    try:
        symbols = symbols_in(kernel)
    except SymbolsUnknown as error:
        return f"unknown: {error.advice}"
    return f"{len(symbols.all)} from {symbols.source}"


def _config(kernel: Kernel) -> str:
    options = config_of(kernel)
    if not options:
        return "not known"
    built_in, modules = (sum(value == kind for value in options.values()) for kind in "ym")
    telling = ", ".join(f"{name[7:]}={options[name]}" for name in _TELLING_OPTIONS if name in options)
    return f"{built_in} built in, {modules} modules, digest {kernel.config_digest[:SHORT_DIGEST]}\n{telling}"


def kernel_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel for programs."""
    return {
        **kernel.model_dump(mode="json"),
        "added": kernel_registry.record(kernel.name).added.isoformat(),
        "module_count": len(module_names(kernel)),
        "scheduling": asdict(scheduling(kernel)),
    }


# What differs between two kernels, on the terminal.

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

    def groups(self, every: Sequence[MenuGroup]) -> tuple[list[MenuGroup], list[MenuGroup]]:
        """Those that are shown, and those of which only the number is."""
        if self._everything or self._lines_fit:
            return list(every), []
        folded = [group for group in every if not group.matters]
        self.left_out += sum(len(group.lines) for group in folded)
        return [group for group in every if group.matters], folded

    def lines(self, group: MenuGroup) -> tuple[OptionLine, ...]:
        if self._everything or self._lines_fit:
            return group.lines
        minor = [line for line in group.lines if not line.matters]
        hidden = minor[_FEW:] if len(minor) > _FEW + 1 else []
        self.left_out += len(hidden)
        return tuple(line for line in group.lines if line not in hidden)

    def names(self, names: Sequence[str], *, matter: bool = False) -> str:
        all_fit = self._everything or matter or len(names) <= _CUT_NAMES
        few = names if all_fit else names[:_FEW]
        left = len(names) - len(few)
        self.left_out += left
        return ", ".join(few) + (f" and {left:,} more (--all)" if left else "")


def print_kernel_difference(
    difference: KernelDifference, console: Console, *, everything: bool = False
) -> None:
    """All that differs; of long lists of drivers and modules only the first, unless `everything` is asked."""
    change = change_shown(difference)
    some = _Shown(change, everything=everything)
    console.print(Text(breakable(change.sentence), style="bold"))
    parts = [rendered(kernel_facts(change), heading_style="dim")] if not difference.same_content else []
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
    shown, folded = some.groups(change.groups)
    for group in shown:
        yield Text(group.title, style="underline")
        lines = some.lines(group)
        for line in lines:
            yield from _line(line, some)
        if left := len(group.lines) - len(lines):
            yield f"  and {left:,} more (--all)"
    if folded:
        count = sum(len(group.lines) for group in folded)
        menus = number_format.counted(len(folded), "menu")
        yield f"{count:,} options of {_CUT}, in {menus} (--all)"
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
