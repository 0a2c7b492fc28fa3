"""Two configurations of one source: what is searched by `ktrial bisect config`."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ktrial.bisect.errors import NothingDiffers, NotOneSource
from ktrial.bisect.knobs import subset_label
from ktrial.bisect.measurement import Setup
from ktrial.bisect.option_groups import OFF, Config, Grouped, grouped
from ktrial.bisect.plan import Items, Subset
from ktrial.bisect.result import FoundItem
from ktrial.kernels import Progress, cache_directory, silent
from ktrial.kernels.cache.atomic_write import write_atomically
from ktrial.model.kconfig import Menus
from ktrial.model.kernel import Build, Kernel

_PREFIX = "CONFIG_"
_NUMBER = re.compile(r"-?[0-9]+|0x[0-9a-fA-F]+")
_SWITCHES = {"bool", "tristate"}
_TRISTATE = {"y", "m", "n"}
_COMPILES = "building"
"""The step of a build in which the compiler runs."""
_MOST_IN_A_NAME = 3


@dataclass(frozen=True)
class Builder:
    """What configures and builds kernels: `ktrial.kernels.build`, or what a test puts in its place."""

    build: Callable[[Build, Progress], Kernel]
    """Built, or from the cache. Raises KernelError."""
    configured: Callable[[Build, Progress], Mapping[str, str]]
    """The final configuration, without compiling. Raises KernelError: OptionNotTaken, for one."""
    menus: Callable[[Build, Progress], Menus]
    """What the source says of its options."""


def default_builder() -> Builder:
    """The one that compiles."""
    from ktrial.kernels import build as source

    return Builder(build=source.build, configured=source.configured, menus=source.menu_of)


def built(builder: Builder, wanted: Build, progress: Progress) -> tuple[Kernel, bool]:
    """The kernel, and whether the compiler had to run for it. Raises KernelError."""
    steps: set[str] = set()

    def told(what: str, done: int = 0, total: int = 0) -> None:
        steps.add(what.partition(":")[0])
        progress(what, done, total)

    return builder.build(wanted, told), _COMPILES in steps


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
        kernel, compiled = built(self.builder, self.wanted(candidate), self.progress)
        self.compiled += compiled
        return Setup(kernel)

    def wanted(self, candidate: Subset) -> Build:
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
            return self.before.model_copy(update={"options": {**self.before.options, **self._quoted(values)}})
        # An option that a file does not name has its default, which is not always what it is in A.
        off = {
            name: OFF
            for name, option in self.menus.options.items()
            if option.prompt and option.kind in _SWITCHES
        }
        return self._of_file(off | dict(self.old) | values)

    def _of_file(self, values: Config) -> Build:
        """A's build, with this configuration instead."""
        text = "".join(self._line(name, value) for name, value in sorted(values.items()))
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
        """The group's options."""
        return tuple(self._described(option) for option in self.grouped.groups[item])

    def _described(self, option: str) -> FoundItem:
        known = self.menus.options.get(option)
        return FoundItem(
            name=option.removeprefix(_PREFIX),
            before=self.old.get(option, OFF),
            after=self.new.get(option, OFF),
            note=" › ".join((*known.menu, known.prompt)) if known else "",
        )

    def _name(self, item: int) -> str:
        names = [option.removeprefix(_PREFIX) for option in self.grouped.groups[item]]
        more = [f"{len(names) - _MOST_IN_A_NAME} more"] if len(names) > _MOST_IN_A_NAME else []
        return "+".join([*names[:_MOST_IN_A_NAME], *more])

    def _line(self, name: str, value: str) -> str:
        return f"# {name} is not set\n" if value == OFF else f"{name}={self._written(name, value)}\n"

    def _quoted(self, values: Config) -> dict[str, str]:
        return {name: self._written(name, value) for name, value in values.items()}

    def _written(self, name: str, value: str) -> str:
        """As a configuration has it: texts in quotes."""
        known = self.menus.options.get(name)
        is_text = known.kind == "string" if known else not (value in _TRISTATE or _NUMBER.fullmatch(value))
        if not is_text:
            return value
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


def config_ground(
    before: Build, after: Build, names: tuple[str, str], builder: Builder, progress: Progress = silent
) -> ConfigGround:
    """The options in which two configurations of one source differ.

    `names`: what A and B are called. Raises NotOneSource, NothingDiffers, and what configuring raises.
    """
    check_one_source(before, after, names)
    old, new = (builder.configured(one, progress) for one in (before, after))
    menus = builder.menus(before, progress)
    groups = grouped(old, new, menus)
    if not groups.groups:
        advice = "both have the same configuration, or only what the compiler decides is another"
        raise NothingDiffers(before=names[0], after=names[1], what="option", advice=advice)
    notes = []
    if menus.problem:
        notes.append(f"which options go together is not known ({menus.problem}): each is tried by itself")
    return ConfigGround(before, after, old, new, groups, menus, builder, progress, notes=notes)


def check_one_source(before: Build, after: Build, names: tuple[str, str]) -> None:
    """Raise NotOneSource where more than the configuration differs."""
    pairs = {
        "source": (before.source, after.source),
        "patches": tuple([patch.digest for patch in one.patches] for one in (before, after)),
        "make's variables": (before.make, after.make),
    }
    for what, (old, new) in pairs.items():
        if old != new:
            problem = f"they have different {what}" if what != "source" else f"one is of {old}, one of {new}"
            raise NotOneSource(before=names[0], after=names[1], problem=problem)
