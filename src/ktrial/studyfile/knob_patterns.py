"""What `--knobs` and a study's `knobs` say: subsystems, patterns, names, ranges and lists of values."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ktrial.knobs import catalogue
from ktrial.knobs.errors import UnknownKnob
from ktrial.knobs.names import reference
from ktrial.model.knob import Knob
from ktrial.model.references import ALL
from ktrial.model.suggestions import nearest
from ktrial.studyfile.errors import BadKnobSpace

BOOT, OPTION, KERNEL = "boot:", "kconfig:", "kernel"
"""How names of boot parameters and configuration options begin; the name of the kernel itself."""
_UNITS_OF_ONE = ("_ratio", "_kbytes", "_bytes")
"""Endings of knobs that say the same in two ways: writing one makes the kernel forget the other."""
_RANGE = re.compile(r"(?P<low>-?[0-9]+)\.\.(?P<high>-?[0-9]+)")
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class SearchedKnob:
    """One thing to search."""

    name: str
    """`vm.swappiness`, `queue/nr_requests@vda`, a path, `boot:nohz`, `kconfig:HZ`, `kernel`."""
    knob: Knob | None = None
    """As the catalogue has it; None where it does not."""
    values: tuple[str, ...] = ()
    """The choices that were given."""
    low: int | None = None
    high: int | None = None
    """The range that was given."""
    by_itself: bool = True
    """It was named, not only its subsystem or a pattern."""


def searched_knobs(texts: Iterable[str]) -> tuple[SearchedKnob, ...]:
    """What the texts name, each thing once: what is named by itself goes before its subsystem.

    Commas separate names; after `NAME=` they separate values. Raises BadKnobSpace, UnknownKnob, BadKnobName.
    """
    named = [knob for text in texts for item in _items(text) for knob in _one(item)]
    single = {each.name: each for each in named if each.by_itself}
    if twice := next((each for each in named if each.by_itself and single[each.name] != each), None):
        raise BadKnobSpace(text=twice.name, problem="it is here twice, with different values")
    return tuple({each.name: single.get(each.name, each) for each in named}.values())


def stem(name: str) -> str:
    """`vm.dirty` of `vm.dirty_ratio` and `vm.dirty_bytes`, which say the same; empty for others."""
    ending = next((each for each in _UNITS_OF_ONE if name.endswith(each)), "")
    return name.removesuffix(ending) if ending else ""


def in_another_unit(knob: Knob | None) -> str:
    """The knob that says the same as this one, and is forgotten with it: `vm.dirty_ratio` of
    `vm.dirty_bytes`; empty where there is none.
    """
    names = knob.coupled if knob and stem(knob.name) else ()
    return next((name for name in names if knob and stem(name) == stem(knob.name)), "")


def _items(text: str) -> list[str]:
    """`vm,vm.swappiness=10,60` → `vm`, `vm.swappiness=10,60`."""
    items: list[str] = []
    for part in text.split(","):
        last = items[-1] if items else ""
        is_value = "=" not in part and "=" in last and not _RANGE.search(last)
        if is_value:
            items[-1] = f"{last},{part}"
        else:
            items.append(part.strip())
    return [item for item in items if item]


def _one(item: str) -> list[SearchedKnob]:
    name, equals, values = (part.strip() for part in item.partition("="))
    if equals and not values:
        raise BadKnobSpace(text=item, problem="there are no values behind the =")
    # Without values, `kernel` is the subsystem of that name.
    if (name == KERNEL and equals) or name.startswith((BOOT, OPTION)):
        return [_elsewhere(item, name, values)]
    if not equals and (group := _several(name)):
        return group
    if _PATTERN.search(name) and not name.endswith(f"@{ALL}"):
        raise BadKnobSpace(text=item, problem="no knob that ktrial knows is called so")
    knob = _known(name)
    searched = SearchedKnob(knob.name + name[len(name.partition("@")[0]) :] if knob else name, knob)
    return [_with_values(item, searched, values) if values else searched]


def _several(name: str) -> list[SearchedKnob]:
    """All knobs of a subsystem, or all whose names match."""
    if name in catalogue.subsystems():
        knobs = [knob for knob in catalogue.all_knobs() if knob.subsystem == name]
    elif _PATTERN.search(name) and not name.endswith(f"@{ALL}"):
        knobs = [knob for knob in catalogue.all_knobs() if fnmatchcase(knob.name, name)]
    else:
        return []
    return [SearchedKnob(_prefixed(knob), knob, by_itself=False) for knob in knobs]


def _prefixed(knob: Knob) -> str:
    return f"{BOOT}{knob.name}" if knob.needs_reboot else knob.name


def _known(name: str) -> Knob | None:
    """The catalogue's; None for a path or a sysctl that it does not have. Raises UnknownKnob, BadKnobName."""
    try:
        named = reference(name)
        return None if name.startswith("/") else named.knob
    except UnknownKnob:
        names = (*(each.name for each in catalogue.all_knobs()), *catalogue.subsystems())
        raise UnknownKnob(knob=name, similar=nearest(name, names)) from None


def _elsewhere(item: str, name: str, values: str) -> SearchedKnob:
    """A boot parameter, an option, the kernel: what is chosen before the kernel runs."""
    bare = name.removeprefix(BOOT).removeprefix(OPTION)
    if not bare:
        raise BadKnobSpace(text=item, problem="a name is missing behind the colon")
    knob = catalogue.known(bare) if name.startswith(BOOT) else None
    if name.startswith(OPTION):
        name = f"{OPTION}{bare.removeprefix('CONFIG_')}"
    searched = SearchedKnob(name, knob)
    if values:
        return _with_values(item, searched, values)
    if knob is None:
        raise BadKnobSpace(text=item, problem=f"ktrial knows no values of it: write {name}=VALUE,VALUE")
    return searched


def _with_values(item: str, wanted: SearchedKnob, values: str) -> SearchedKnob:
    if match := _RANGE.fullmatch(values):
        low, high = int(match["low"]), int(match["high"])
        if low >= high:
            raise BadKnobSpace(text=item, problem="a range runs from a lower to a higher number")
        return SearchedKnob(wanted.name, wanted.knob, low=low, high=high)
    if ".." in values:
        raise BadKnobSpace(text=item, problem="a range is two whole numbers with .. between them")
    chosen = tuple(dict.fromkeys(value.strip() for value in values.split(",")))
    if not all(chosen) and not wanted.name.startswith(BOOT):
        raise BadKnobSpace(text=item, problem="one of its values is empty")
    return SearchedKnob(wanted.name, wanted.knob, values=chosen)
