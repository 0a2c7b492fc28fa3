"""What differs around an explanation, as tables: levels, options, boot parameters, settings, counters."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.functions import side_headings
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Column, Row, Table, facts, own
from ktrial.model.attribution import Explanation
from ktrial.model.conditions_diff import Attribution, Differences, OptionDifference, ValueDifference
from ktrial.report.text.conditions_diff import CAUSES, causes
from ktrial.report.text.kconfig_option import followers_of, option_change

_NAME_COLUMNS = 50
_VALUE_COLUMNS = 24
_OPTIONS_A_LINE = 6
_MOST_VALUES = 15
_MOST_COUNTERS = 8
_LEGEND = f"+ set in the second only, {number_format.MINUS} in the first only"
_SYSCTL = "/proc/sys/"
_LIST = 6
"""A value of that many words is a list: only the words that differ are shown."""


def print_differences(why: Attribution, console: Console, *, everything: bool = False) -> None:
    """Everything that differs; without `everything` the rest is counted."""
    differences = why.differences
    sections: list[tuple[str, Iterable[RichTable | Text | str]]] = [
        (CAUSES[0].lower() + CAUSES[1:], map(breakable, causes(differences))),
        ("what the treatments differ in", _levels(differences)),
        (
            "suspected, not measured: options of the configuration that own these functions by their names",
            _options(differences, everything),
        ),
        ("boot parameters", _boot(differences)),
        ("settings, as the kernels boot", _values(why, everything)),
        ("counters, an operation, with the pass that is not measured", _counters(why, everything)),
        ("not compared", map(one_line, differences.unknown)),
    ]
    for title, parts in sections:
        shown = list(parts)
        if shown:
            console.print()
            console.print(Text(title, style="bold"))
        for part in shown:
            console.print(part)


def _levels(differences: Differences) -> Iterable[str]:
    for one in differences.levels:
        yield one_line(f"{one.factor}: {one.before} → {one.after}")


def _options(differences: Differences, everything: bool) -> Iterable[RichTable | Text | str]:
    owned = [one for one in differences.options if one.owners]
    others = [one for one in differences.options if not one.owners]
    grouped: dict[str, list[OptionDifference]] = {}
    for one in owned:
        grouped.setdefault(one.owners[0], []).append(one)
    if grouped:
        yield _grouped(grouped, everything)
        yield Text(_LEGEND, style="dim")
    if others and everything:
        yield "others:"
        yield from (f"  {option_change(one)}{followers_of(one)}" for one in others)
    elif others:
        total = breakable(number_format.counted(len(others), "other option"))
        yield f"{total} differ{'s' if len(others) == 1 else ''}; --all shows them."


def _grouped(grouped: dict[str, list[OptionDifference]], everything: bool) -> RichTable:
    """A row a subsystem, with its options."""
    by_owner: dict[str, str] = {}
    for owner, options in grouped.items():
        shown = options if everything else options[:_OPTIONS_A_LINE]
        left = len(options) - len(shown)
        texts = [f"{option_change(one)}{followers_of(one)}" for one in shown] + (
            [f"and {left} more"] if left else []
        )
        by_owner[owner] = ("\n" if everything else ", ").join(texts)
    return rendered(facts(by_owner))


def _boot(differences: Differences) -> Iterable[str]:
    for side, parameters in (("first", differences.boot_before), ("second", differences.boot_after)):
        if parameters:
            yield one_line(f"the {side} only: {' '.join(parameters)}")


def _values(why: Attribution, everything: bool) -> Iterable[RichTable | str]:
    differences = why.differences
    both = [one for one in differences.values if None not in (one.before, one.after)]
    single = [one for one in differences.values if None in (one.before, one.after)]
    groups = _alike(both)
    shown = groups if everything else groups[:_MOST_VALUES]
    if shown:
        yield _sides("setting", why.explanation, ((_path(alike), *_texts(alike[0])) for alike in shown))
    if everything and single:
        paths = ((shortened(_name(one.path), _NAME_COLUMNS), *_texts(one)) for one in single)
        yield _sides("in one of the two only", why.explanation, paths)
        return
    left = sum(len(alike) for alike in groups[len(shown) :])
    if left or single:
        parts = [f"{left} more differ"] if left else []
        parts += [f"{len(single)} are in one of the two only"] if single else []
        yield f"{' and '.join(parts)}; --all shows them."


def _alike(values: Sequence[ValueDifference]) -> list[list[ValueDifference]]:
    """Values of one name that differ in the same way: `net.ipv6.conf.all` and `.default`; in order."""
    groups: dict[tuple[str, str | None, str | None], list[ValueDifference]] = {}
    for one in values:
        groups.setdefault((one.path.rpartition("/")[2], one.before, one.after), []).append(one)
    return list(groups.values())


def _path(alike: list[ValueDifference]) -> str:
    more = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
    return shortened(_name(alike[0].path), _NAME_COLUMNS) + more


def _name(path: str) -> str:
    """A sysctl by its name, as sysctl(8) has it; anything else by its path."""
    if not path.startswith(_SYSCTL):
        return path
    return path.removeprefix(_SYSCTL).translate(str.maketrans("./", "/."))


def _texts(one: ValueDifference) -> tuple[str, str]:
    """The two values; of two lists, the words that only one of them has."""
    words, others = ((value or "").split() for value in (one.before, one.after))
    if min(len(words), len(others)) >= _LIST:
        old = " ".join(f"-{word}" for word in words if word not in others)
        new = " ".join(f"+{word}" for word in others if word not in words)
        if old or new:
            return old or number_format.NONE, new or number_format.NONE
    old, new = (
        number_format.NONE if value is None else shortened(value, _VALUE_COLUMNS) or '""'
        for value in (one.before, one.after)
    )
    return old, new


def _counters(why: Attribution, everything: bool) -> Iterable[RichTable | str]:
    differences = why.differences
    shown = differences.counters if everything else differences.counters[:_MOST_COUNTERS]
    if shown:
        number = number_format.number
        rows = ((one.counter, number(one.before), number(one.after)) for one in shown)
        yield _sides("counter", why.explanation, rows)
    if left := len(differences.counters) - len(shown):
        more = breakable(number_format.counted(left, "more counter"))
        yield f"{more} differ by 1 % or more; --all shows them."


def _sides(heading: str, explanation: Explanation, rows: Iterable[tuple[str, str, str]]) -> RichTable:
    """A row a thing, with what it is on either side."""
    before, after = side_headings(explanation)
    columns = (
        Column("name", heading),
        Column("before", before, numeric=True, wraps=True),
        Column("after", after, numeric=True, wraps=True),
    )
    return rendered(Table(columns, tuple(Row(tuple(map(own, texts))) for texts in rows)), heading_style="dim")
