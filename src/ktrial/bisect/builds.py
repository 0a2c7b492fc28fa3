"""Two configurations of one source: what is searched by `ktrial bisect config`."""

import hashlib
import heapq
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ktrial.bisect.errors import BadBisection, BadSeries
from ktrial.bisect.knobs import subset_label
from ktrial.bisect.measurement import Setup
from ktrial.bisect.search import NOTHING, Items, Subset
from ktrial.experiment.resources import Builder
from ktrial.installation import cache_directory
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.patches import paths_in, text_of
from ktrial.kernels.errors import KernelError, PatchNotApplied
from ktrial.kernels.files import write_atomically
from ktrial.model.base import digest
from ktrial.model.bisection import FoundItem
from ktrial.model.kernel import Build, Kernel, MenuOption, Menus, Patch
from ktrial.text_lines import lines_of

_PREFIX = "CONFIG_"
_NUMBER = re.compile(r"-?[0-9]+|0x[0-9a-fA-F]+")
_SWITCHES = {"bool", "tristate"}
_TRISTATE = {"y", "m", "n"}
_COMPILES = "building"
"""The step of a build in which the compiler runs."""
_MOST_IN_A_NAME = 3


def built(builder: Builder, request: Build, progress: Progress) -> tuple[Kernel, bool]:
    """The kernel, and whether the compiler had to run for it. Raises KernelError."""
    steps: set[str] = set()

    def listening(what: str, done: int = 0, total: int = 0) -> None:
        steps.add(what.partition(":")[0])
        progress(what, done, total)

    return builder.build(request, listening), _COMPILES in steps


# Options that differ between two configurations, in groups that Kconfig accepts one after another.
#
# A group is what cannot be chosen apart: the options of one choice, and options that require each other.
# Options without a prompt are in no group: nobody sets them, they follow. The order is such that a group
# comes after all that it requires, so that every prefix is a configuration that Kconfig accepts.
#
# Which requires which, by what Kconfig's language says of `depends on` and `select`: an option that B turns
# on requires the options in its condition that differ; an option that B turns off is required by them (they
# could not be off, or on, beside it); who selects an option requires it where B turns it on, and is
# required by it where B turns it off. Negations and alternatives are taken for requirements too: a group
# that is larger than need be costs a line in the report, one that Kconfig refuses costs a build.

Config = Mapping[str, str]
"""Option → value, `CONFIG_SMP` → `y`; an option that is off is not in it."""


@dataclass(frozen=True)
class Grouped:
    """The groups, and what follows from them."""

    groups: tuple[tuple[str, ...], ...]
    """Options that go together, by name; in the order of the search."""
    items: Items
    """One for each group."""
    followers: tuple[str, ...]
    """Options that differ, and that nobody sets."""
    unloaded: tuple[str, ...] = ()
    """Options that modules alone use which the guest never loads: the last group; empty where there is none.
    """

    @property
    def options(self) -> tuple[str, ...]:
        """All options that can be set."""
        return tuple(option for group in self.groups for option in group)


OFF = "n"
_NAME = re.compile(r"\w+")


def _edges(settable: Iterable[str], before: Config, after: Config, menus: Menus) -> list[tuple[str, str]]:
    """Pairs of an option and one that it requires."""
    settable_set = set(settable)

    def is_on(name: str, config: Config) -> bool:
        return config.get(name, OFF) != OFF

    def choice_appears(option: MenuOption) -> bool:
        """Whether the option belongs to a choice that one of the two has not at all."""
        members = _members(option)
        return bool(members) and not all(
            any(is_on(member, config) for member in members) for config in (before, after)
        )

    edges = []
    for name in settable_set:
        option = menus.options.get(name)
        if option is None:
            continue
        turned_on = is_on(name, after) and not is_on(name, before)
        turned_off = is_on(name, before) and not is_on(name, after)
        for required in _names(option.depends) & settable_set - {name}:
            other_goes = is_on(required, before) and not is_on(required, after)
            backwards = turned_off or (not turned_on and other_goes)
            edges.append((required, name) if backwards else (name, required))
            if choice_appears(option):
                # One of it is on as soon as it may be: nobody can leave it out.
                edges += [(required, name), (name, required)]
        for text in option.selected_by:
            for selecting in _names(text.partition(" if ")[0]) & settable_set - {name}:
                edges.append((name, selecting) if turned_off else (selecting, name))
    return edges


def _in_order(groups: Mapping[int, list[str]], requires: Mapping[int, set[int]], menus: Menus) -> list[int]:
    """What is required first; else as the menus have it, so that neighbours are related (Kahn 1962)."""
    waiting = {label: len(needed) for label, needed in requires.items()}
    dependents: dict[int, list[int]] = {label: [] for label in groups}
    for label, needed in requires.items():
        for dependency in needed:
            dependents[dependency].append(label)

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


def _members(option: MenuOption) -> list[str]:
    """Of its choice."""
    return [_PREFIX + member.removeprefix(_PREFIX) for member in option.choice]


def _names(text: str) -> set[str]:
    return {_PREFIX + name.removeprefix(_PREFIX) for name in _NAME.findall(text)}


def _together(names: list[str], edges: list[tuple[str, str]], menus: Menus) -> dict[str, int]:
    """Option → number of its group: strongly connected by edges, where a choice connects both ways."""
    if not names:
        return {}
    at = {name: place for place, name in enumerate(names)}
    both = list(edges)
    for name in names:
        option = menus.options.get(name)
        for required in _members(option) if option else ():
            if required in at and required != name:
                both += [(name, required), (required, name)]
    rows, columns = [at[option] for option, _ in both], [at[required] for _, required in both]
    graph = csr_array((np.ones(len(both), dtype=np.int8), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(graph, directed=True, connection="strong")
    return {name: int(labels[place]) for name, place in at.items()}


def differing(before: Config, after: Config) -> tuple[str, ...]:
    """The options that are not the same, by name."""
    names = sorted(before.keys() | after.keys())
    return tuple(name for name in names if before.get(name, OFF) != after.get(name, OFF))


def grouped(before: Config, after: Config, menus: Menus) -> Grouped:
    """The groups of what differs. Without menus each option is a group, and none requires another."""
    names = differing(before, after)
    # What the menus do not know is tried: Kconfig will tell.
    settable = [name for name in names if (menu := menus.options.get(name)) is None or menu.prompt]
    edges = _edges(settable, before, after, menus)
    label_of = _together(settable, edges, menus)
    groups: dict[int, list[str]] = {}
    for name in settable:
        groups.setdefault(label_of[name], []).append(name)
    requires: dict[int, set[int]] = {label: set() for label in groups}
    for option, required in edges:
        if label_of[option] != label_of[required]:
            requires[label_of[option]].add(label_of[required])
    order = _in_order(groups, requires, menus)
    place = {label: at for at, label in enumerate(order)}
    return Grouped(
        groups=tuple(tuple(groups[label]) for label in order),
        items=Items(
            len(order),
            {
                place[label]: frozenset(place[dependency] for dependency in needed)
                for label, needed in requires.items()
            },
        ),
        followers=tuple(name for name in names if name not in label_of),
    )


def without_unloaded(
    groups: Grouped, before: Config, after: Config, menus: Menus, loaded: Iterable[str]
) -> Grouped:
    """The same with all that nobody can have run as one group, the last: modules that are not loaded.

    `loaded`: modules that the guest loads, by name. A module that is built or not changes nothing that runs,
    but for code that asks for it by name (IS_ENABLED): so its options stay a candidate, all of them together.
    With them go the options that depend on them.
    """
    ends = tuple(_PREFIX + _OPTION_OF.get(name, name.replace("-", "_").upper()) for name in loaded)

    def is_loaded(option: str) -> bool:
        return any(option == end or option.endswith(f"_{end.removeprefix(_PREFIX)}") for end in ends)

    def is_module(option: str) -> bool:
        known = menus.options.get(option)
        values = {before.get(option, OFF), after.get(option, OFF)}
        return known is not None and known.kind == "tristate" and values <= {OFF, "m"}

    numbered = range(groups.items.count)
    kept = groups.items.closed(at for at in numbered if any(map(is_loaded, groups.groups[at])))
    apart: set[int] = set()
    for at in numbered:  # what a group requires comes before it
        needs_one = bool(groups.items.requires.get(at, NOTHING) & apart)
        if at not in kept and (needs_one or all(map(is_module, groups.groups[at]))):
            apart.add(at)
    if len(apart) < 2:
        return groups
    order = [at for at in numbered if at not in apart]
    place = {at: number for number, at in enumerate(order)}
    requires = {place[at]: frozenset(place[one] for one in groups.items.requires.get(at, ())) for at in order}
    of_modules = {one for at in apart for one in groups.items.requires.get(at, ()) if one not in apart}
    requires[len(order)] = frozenset(place[one] for one in of_modules)
    unloaded = tuple(option for at in sorted(apart) for option in groups.groups[at])
    return Grouped(
        (*(groups.groups[at] for at in order), unloaded),
        Items(len(order) + 1, requires),
        groups.followers,
        unloaded,
    )


_OPTION_OF = {"brd": "BLK_DEV_RAM", "crc32c": "CRYPTO_CRC32C"}
"""Of modules whose option has another name."""


@dataclass
class ConfigGround:
    """Subsets of groups of options that are as in B, in kernels of one source."""

    before: Build
    after: Build
    old: Config
    """A's final configuration."""
    new: Config
    grouped: Grouped
    menus: Menus
    builder: Builder
    progress: Progress = silent
    compiled: int = 0
    """How often the compiler had to run."""
    notes: list[str] = field(default_factory=list)

    @property
    def items(self) -> Items:
        """One for each group."""
        return self.grouped.items

    @property
    def names(self) -> list[str]:
        """What the groups are called."""
        return [self._name(item) for item in range(self.items.count)]

    def setup(self, candidate: Subset) -> Setup:
        """See Ground."""
        kernel, compiled = built(self.builder, self.build_of(candidate), self.progress)
        self.compiled += compiled
        return Setup(kernel)

    def build_of(self, candidate: Subset) -> Build:
        """What is built for the candidate: A's configuration, with some groups as in B.

        Options that the candidate does not set stay as in A where Kconfig leaves them so; what follows from
        others follows. Candidates that Kconfig makes the same are one kernel, which is built once.
        """
        if not candidate:
            return self.before
        if candidate == self.items.everything:
            return self.after
        chosen = {option for item in candidate for option in self.grouped.groups[item]}
        values = {name: self.old.get(name, OFF) for name in self.grouped.options}
        values |= {name: self.new.get(name, OFF) for name in chosen}
        if not self.menus.options:
            # Nobody knows what else could be on by default: all of it has to take.
            quoted = {name: self._written(name, value) for name, value in values.items()}
            return self.before.model_copy(update={"options": {**self.before.options, **quoted}})
        # An option that a file does not name has its default, which is not always what it is in A.
        off = {
            name: OFF
            for name, option in self.menus.options.items()
            if option.prompt and option.kind in _SWITCHES
        }
        text = "".join(
            f"# {name} is not set\n" if value == OFF else f"{name}={self._written(name, value)}\n"
            for name, value in sorted((off | dict(self.old) | values).items())
        )
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = cache_directory() / "bisect" / f"{digest[:32]}.config"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text)
        # The options of A and B are in the configuration.
        return self.before.model_copy(update={"config": str(path), "config_digest": digest, "options": {}})

    def label(self, candidate: Subset) -> str:
        """See Ground."""
        return subset_label(candidate, self.items.count, "group", self.names)

    def described(self, item: int) -> tuple[FoundItem, ...]:
        """The group's options; those of modules that are not loaded as one."""
        if self._is_of_unloaded(item):
            return (FoundItem(name=self._name(item)),)
        return tuple(self._described(option) for option in self.grouped.groups[item])

    def _described(self, option: str) -> FoundItem:
        known = self.menus.options.get(option)
        return FoundItem(
            name=option.removeprefix(_PREFIX),
            before=self.old.get(option, OFF),
            after=self.new.get(option, OFF),
            note=" › ".join((*known.menu, known.prompt)) if known else "",
        )

    def _is_of_unloaded(self, item: int) -> bool:
        return bool(self.grouped.unloaded) and item == self.items.count - 1

    def _name(self, item: int) -> str:
        if self._is_of_unloaded(item):
            return f"{len(self.grouped.unloaded):,} options of modules that are not loaded"
        names = [option.removeprefix(_PREFIX) for option in self.grouped.groups[item]]
        more = [f"{len(names) - _MOST_IN_A_NAME} more"] if len(names) > _MOST_IN_A_NAME else []
        return "+".join([*names[:_MOST_IN_A_NAME], *more])

    def _written(self, name: str, value: str) -> str:
        """As a configuration has it: texts in quotes."""
        option = self.menus.options.get(name)
        is_text = option.kind == "string" if option else not (value in _TRISTATE or _NUMBER.fullmatch(value))
        if not is_text:
            return value
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


def config_ground(
    before: Build,
    after: Build,
    names: tuple[str, str],
    builder: Builder,
    progress: Progress = silent,
    loaded: Iterable[str] = (),
) -> ConfigGround:
    """The options in which two configurations of one source differ.

    `names`: what A and B are called. `loaded`: modules that the guest loads. Raises BadBisection, and what
    configuring raises.
    """
    check_one_source(before, after, names)
    old, new = (builder.configured(build, progress) for build in (before, after))
    menus = builder.menus(before, progress)
    groups = without_unloaded(grouped(old, new, menus), old, new, menus, loaded)
    if not groups.groups:
        advice = "both have the same configuration, or only what the compiler decides is another"
        raise BadBisection(
            f"{names[0]} and {names[1]} do not differ in any option: there is nothing to search.", hint=advice
        )
    notes = []
    if menus.problem:
        notes.append(f"which options go together is not known ({menus.problem}): each is tried by itself")
    return ConfigGround(before, after, old, new, groups, menus, builder, progress, notes=notes)


def check_one_source(before: Build, after: Build, names: tuple[str, str]) -> None:
    """Raise BadBisection where more than the configuration differs."""
    pairs = {
        "source": (before.source, after.source),
        "patches": tuple([patch.digest for patch in build.patches] for build in (before, after)),
        "make's variables": (before.make, after.make),
    }
    for part, (old, new) in pairs.items():
        if old != new:
            problem = f"they have different {part}" if part != "source" else f"one is of {old}, one of {new}"
            raise BadBisection(
                f"{names[0]} and {names[1]} are not two configurations of one source: {problem}.",
                hint="ktrial kernel diff shows all that differs; ktrial bisect versions searches releases",
            )


# A series of patches over one source: what is searched by `ktrial bisect patches`.
#
# Prefixes of the series are the candidates first, as in git bisect. A patch that does not apply alone
# requires the earlier ones that touch the same files; one that applies alone but does not compile is found
# to need others by the search.

_SUFFIXES = {".patch", ".diff"}
_SERIES = "series"


@dataclass
class PatchGround:
    """Subsets of a series, applied in its order over one source."""

    source: Build
    """Without the series: A."""
    series: tuple[Patch, ...]
    builder: Builder
    progress: Progress = silent
    fuzz: int = 0
    """How many lines at the edges of a patch's hunk may differ from the source's."""
    compiled: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The patches' file names."""
        return [Path(patch.path).name for patch in self.series]

    @cached_property
    def items(self) -> Items:
        """One for each patch. Raises BadPatch, and what looking at the source raises."""
        files = [set(paths_in(patch.path, text_of(patch))) for patch in self.series]
        requires: dict[int, Subset] = {}
        for item in range(len(self.series)):
            if not self._applies(frozenset({item})):
                same = frozenset(earlier for earlier in range(item) if files[earlier] & files[item])
                closed = Items(item + 1, {**requires, item: same}).closed({item})
                requires[item] = same if self._applies(closed) else frozenset(range(item))
        return Items(len(self.series), requires)

    def setup(self, candidate: Subset) -> Setup:
        """See Ground."""
        kernel, compiled = built(self.builder, self.build_of(candidate), self.progress)
        self.compiled += compiled
        new = (note for note in kernel.origin.inexact_patches if note not in self.notes)
        self.notes.extend(new)
        return Setup(kernel)

    def build_of(self, candidate: Subset) -> Build:
        """What is built for the candidate."""
        chosen = tuple(patch for at, patch in enumerate(self.series) if at in candidate)
        # The source as it is stays the build that it is without fuzz.
        fuzz = self.fuzz if chosen else self.source.fuzz
        patches, whole = (*self.source.patches, *chosen), (*self.source.patches, *self.series)
        series = digest([patch.digest for patch in whole])
        return self.source.model_copy(update={"patches": patches, "fuzz": fuzz, "series": series})

    def label(self, candidate: Subset) -> str:
        """See Ground."""
        count = len(candidate)
        if 2 < count < len(self.series) and candidate == frozenset(range(count)):
            return f"the first {count} of {len(self.series)} patches"
        text = subset_label(candidate, len(self.series), "patch", self.names)
        return text.replace("patchs as in B", "patches")

    def described(self, item: int) -> tuple[FoundItem, ...]:
        """The patch, with the subject that it carries."""
        lines = lines_of(text_of(self.series[item]))
        header = takewhile(lambda line: not line.startswith(("--- ", "diff ")), lines)
        subjects = (line.removeprefix("Subject: ") for line in header if line.startswith("Subject: "))
        return (FoundItem(name=self.names[item], note=next(subjects, "")),)

    def _applies(self, candidate: Subset) -> bool:
        try:
            self.builder.configured(self.build_of(candidate), self.progress)
        except PatchNotApplied:
            return False
        except KernelError:
            return candidate != NOTHING
        return True


def series_at(path: Path) -> tuple[str, ...]:
    """The patches of a series, in order: those of a quilt `series` file, or of a directory (series, *.patch).

    Raises BadSeries.
    """
    source = path.expanduser().absolute()
    if source.is_dir() and (source / _SERIES).is_file():
        source /= _SERIES
    if source.is_dir():
        files = sorted(file for file in source.iterdir() if file.suffix in _SUFFIXES)
        if not files:
            raise BadSeries(path, "there is no *.patch file in it")
        return tuple(map(str, files))
    try:
        lines = [line.partition("#")[0].split() for line in lines_of(source.read_text(encoding="utf-8"))]
    except OSError as error:
        raise BadSeries(path, error.strerror) from None
    except UnicodeDecodeError:
        raise BadSeries(path, "it is not text") from None
    if wrong := next((line for line in lines if line[1:] and line[1:] != ["-p1"]), None):
        raise BadSeries(path, f"'{' '.join(wrong)}': only patches with -p1 are taken")
    names = [line[0] for line in lines if line]
    if not names:
        raise BadSeries(path, "it names no patch")
    return tuple(str(source.parent / name) for name in names)
