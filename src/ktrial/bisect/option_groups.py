"""Options that differ between two configurations, in groups that Kconfig accepts one after another.

A group is what cannot be chosen apart: the options of one choice, and options that require each other.
Options without a prompt are in no group: nobody sets them, they follow. The order is such that a group comes
after all that it requires, so that every prefix is a configuration that Kconfig accepts.

Which requires which, by what Kconfig's language says of `depends on` and `select`:
an option that B turns on requires the options in its condition that differ; an option that B turns off is
required by them (they could not be off, or on, beside it); who selects an option requires it where B turns it
on, and is required by it where B turns it off. Negations and alternatives are taken for requirements too: a
group that is larger than need be costs a line in the report, one that Kconfig refuses costs a build.
"""

import heapq
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ktrial.bisect.plan import Items
from ktrial.model.kconfig import MenuOption, Menus

Config = Mapping[str, str]
"""Option → value, `CONFIG_SMP` → `y`; an option that is off is not in it."""

OFF = "n"
_PREFIX = "CONFIG_"
_NAME = re.compile(r"\w+")


@dataclass(frozen=True)
class Grouped:
    """The groups, and what follows from them."""

    groups: tuple[tuple[str, ...], ...]
    """Options that go together, by name; in the order of the search."""
    items: Items
    """One for each group."""
    followers: tuple[str, ...]
    """Options that differ, and that nobody sets."""

    @property
    def options(self) -> tuple[str, ...]:
        """All options that can be set."""
        return tuple(option for group in self.groups for option in group)


def differing(before: Config, after: Config) -> tuple[str, ...]:
    """The options that are not the same, by name."""
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if before.get(name, OFF) != after.get(name, OFF))


def grouped(before: Config, after: Config, menus: Menus) -> Grouped:
    """The groups of what differs. Without menus each option is a group, and none requires another."""
    names = differing(before, after)
    settable = [name for name in names if _is_asked_for(menus.options.get(name))]
    edges = _edges(settable, before, after, menus)
    label_of = _together(settable, edges, menus)
    groups: dict[int, list[str]] = {}
    for name in settable:
        groups.setdefault(label_of[name], []).append(name)
    requires: dict[int, set[int]] = {label: set() for label in groups}
    for one, other in edges:
        if label_of[one] != label_of[other]:
            requires[label_of[one]].add(label_of[other])
    order = _in_order(groups, requires, menus)
    place = {label: at for at, label in enumerate(order)}
    return Grouped(
        groups=tuple(tuple(groups[label]) for label in order),
        items=Items(
            len(order),
            {place[label]: frozenset(place[one] for one in needed) for label, needed in requires.items()},
        ),
        followers=tuple(name for name in names if name not in label_of),
    )


def _is_asked_for(option: MenuOption | None) -> bool:
    """What the menus do not know is tried: Kconfig will tell."""
    return option is None or bool(option.prompt)


def _edges(settable: Iterable[str], before: Config, after: Config, menus: Menus) -> list[tuple[str, str]]:
    """Pairs of an option and one that it requires."""
    known = set(settable)

    def is_on(name: str, config: Config) -> bool:
        return config.get(name, OFF) != OFF

    def choice_appears(option: MenuOption) -> bool:
        """Whether the option belongs to a choice that one of the two has not at all."""
        members = [_PREFIX + one.removeprefix(_PREFIX) for one in option.choice]
        return bool(members) and not all(
            any(is_on(one, config) for one in members) for config in (before, after)
        )

    edges = []
    for name in known:
        option = menus.options.get(name)
        if option is None:
            continue
        turned_on = is_on(name, after) and not is_on(name, before)
        turned_off = is_on(name, before) and not is_on(name, after)
        for other in _names(option.depends) & known - {name}:
            other_goes = is_on(other, before) and not is_on(other, after)
            backwards = turned_off or (not turned_on and other_goes)
            edges.append((other, name) if backwards else (name, other))
            if choice_appears(option):
                # One of it is on as soon as it may be: nobody can leave it out.
                edges += [(other, name), (name, other)]
        for text in option.selected_by:
            for selecting in _names(text.partition(" if ")[0]) & known - {name}:
                edges.append((name, selecting) if turned_off else (selecting, name))
    return edges


def _names(text: str) -> set[str]:
    return {name if name.startswith(_PREFIX) else _PREFIX + name for name in _NAME.findall(text)}


def _together(names: list[str], edges: list[tuple[str, str]], menus: Menus) -> dict[str, int]:
    """Option → number of its group: strongly connected by edges, where a choice connects both ways."""
    if not names:
        return {}
    at = {name: place for place, name in enumerate(names)}
    both = list(edges)
    for name in names:
        option = menus.options.get(name)
        for other in (_PREFIX + one.removeprefix(_PREFIX) for one in (option.choice if option else ())):
            if other in at and other != name:
                both += [(name, other), (other, name)]
    rows, columns = [at[one] for one, _ in both], [at[other] for _, other in both]
    graph = csr_array((np.ones(len(both), dtype=np.int8), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(graph, directed=True, connection="strong")
    return {name: int(labels[place]) for name, place in at.items()}


def _in_order(groups: Mapping[int, list[str]], requires: Mapping[int, set[int]], menus: Menus) -> list[int]:
    """What is required first; else as the menus have it, so that neighbours are related (Kahn 1962)."""
    waiting = {label: len(needed) for label, needed in requires.items()}
    dependents: dict[int, list[int]] = {label: [] for label in groups}
    for label, needed in requires.items():
        for one in needed:
            dependents[one].append(label)

    def rank(label: int) -> tuple[tuple[str, ...], str, int]:
        first = groups[label][0]
        option = menus.options.get(first)
        return (option.menu if option else (), first, label)

    ready = [rank(label) for label, count in waiting.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        label = heapq.heappop(ready)[2]
        order.append(label)
        for dependent in dependents[label]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heapq.heappush(ready, rank(dependent))
    return order
