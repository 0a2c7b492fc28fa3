"""Two sets of values of the same knobs: what is searched by `ktrial bisect knobs`."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ktrial.bisect.errors import BadKnobFile, BadKnobRange
from ktrial.bisect.measurement import Setup
from ktrial.bisect.search import Items, Subset
from ktrial.knobs import catalogue
from ktrial.knobs.catalogue import reference
from ktrial.knobs.errors import UnknownKnob
from ktrial.model.bisection import FoundItem
from ktrial.model.design import FactorKind, LevelValue
from ktrial.model.kernel import Kernel
from ktrial.model.notation import nearest
from ktrial.model.study import Study
from ktrial.text_lines import lines_of

_RANGE = re.compile(r"(?P<name>[^=\s]+)\s*=\s*(?P<before>.+?)\s*\.\.\s*(?P<after>.+)")
_LINE = re.compile(r"(?P<name>[^=\s]+)\s*=\s*(?P<value>.+?)\s*")


@dataclass(frozen=True)
class KnobRange:
    """One knob with its values in A and B."""

    name: str
    before: LevelValue
    after: LevelValue


@dataclass(frozen=True)
class KnobGround:
    """Subsets of knobs that are as in B, in one kernel."""

    fetch: Callable[[], Kernel]
    """The kernel, when it is needed. Raises KernelError."""
    knobs: tuple[KnobRange, ...]

    @cached_property
    def kernel(self) -> Kernel:
        """The same for all candidates."""
        return self.fetch()

    @property
    def items(self) -> Items:
        """Each knob can be chosen by itself."""
        return Items(len(self.knobs))

    def setup(self, candidate: Subset) -> Setup:
        """See Ground."""
        return Setup(
            self.kernel,
            {knob.name: knob.after if at in candidate else knob.before for at, knob in enumerate(self.knobs)},
        )

    def label(self, candidate: Subset) -> str:
        """See Ground."""
        return subset_label(candidate, len(self.knobs), "knob", [knob.name for knob in self.knobs])

    def described(self, item: int) -> tuple[FoundItem, ...]:
        """The knob with its values."""
        knob = self.knobs[item]
        return (FoundItem(name=knob.name, before=str(knob.before), after=str(knob.after)),)


def subset_label(candidate: Subset, count: int, noun: str, names: Sequence[str]) -> str:
    """`A`, `B`, `A with INIT_ON_ALLOC_DEFAULT_ON`, `12 of 64 options as in B`."""
    if not candidate:
        return "A"
    if len(candidate) == count:
        return "B"
    if len(candidate) <= 2:
        return f"A with {' and '.join(names[item] for item in sorted(candidate))}"
    if count - len(candidate) <= 2:
        return f"B without {' and '.join(names[item] for item in range(count) if item not in candidate)}"
    return f"{len(candidate)} of {count} {noun}s as in B"


def knob_ranges(texts: Sequence[str]) -> tuple[KnobRange, ...]:
    """From `vm.dirty_ratio=20..40`. Knobs with the same value twice are left out. Raises BadKnobRange."""
    ranges: dict[str, KnobRange] = {}
    for text in texts:
        match = _RANGE.fullmatch(text.strip())
        if match is None:
            problem = "there is no '='" if "=" not in text else "there are no two values with '..' between"
            raise BadKnobRange(text, problem)
        if match["name"] in ranges:
            raise BadKnobRange(text, f"{match['name']} was given before")
        ranges[match["name"]] = KnobRange(match["name"], match["before"], match["after"])
    return tuple(item for item in ranges.values() if item.before != item.after)


def check_names(ranges: Sequence[KnobRange], sysctls: Path = Path("/proc")) -> None:
    """Raise UnknownKnob or BadKnobName where a name cannot be a knob's, before anything is booted.

    A sysctl that the catalogue lacks counts as one where this system's kernel has it; any other file is named
    by its path, which only the kernel under test can judge.
    """
    for item in ranges:
        named = reference(item.name)
        if named.knob or item.name.startswith("/"):
            continue
        if not (sysctls / named.path.removeprefix("/proc/")).exists():
            similar = nearest(item.name, (knob.name for knob in catalogue.all_knobs()))
            hint = f"if the kernel under test has it nevertheless, give its path: {named.path}"
            raise UnknownKnob(knob=item.name, similar=similar, hint=hint)


def knobs_of_files(before: Path, after: Path) -> tuple[KnobRange, ...]:
    """From two files in the form of sysctl.conf that name the same knobs. Raises BadKnobFile."""
    old, new = _read(before), _read(after)
    for path, ours, counterpart in ((after, new, old), (before, old, new)):
        if missing := sorted(counterpart.keys() - ours.keys()):
            problem = f"it has no value for {', '.join(missing[:3])}, which the other one sets"
            raise BadKnobFile(path, problem)
    return tuple(KnobRange(name, old[name], new[name]) for name in old if old[name] != new[name])


def _read(path: Path) -> Mapping[str, str]:
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise BadKnobFile(path, error.strerror) from None
    except UnicodeDecodeError:
        raise BadKnobFile(path, "it is not text") from None
    values: dict[str, str] = {}
    for number, line in enumerate(lines_of(text), start=1):
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        # As sysctl does: a line that begins with - may fail there; here it may not.
        match = _LINE.fullmatch(line.strip().removeprefix("-"))
        if match is None:
            raise BadKnobFile(f"{path}:{number}", "the line is not NAME = VALUE")
        values[_dotted(match["name"])] = match["value"]
    return values


def _dotted(name: str) -> str:
    """`net/core/somaxconn` is `net.core.somaxconn`; an absolute path stays one."""
    return name if name.startswith("/") or "." in name else name.replace("/", ".")


def knobs_of_study(study: Study) -> tuple[KnobRange, ...]:
    """The study's factors of kind `setting`: from the baseline to the other level.

    Raises BadKnobRange where one has more than two levels.
    """
    ranges = []
    for factor in study.factors:
        if factor.kind is not FactorKind.SETTING:
            continue
        if len(factor.levels) != 2:
            text = f"factor {factor.name}"
            raise BadKnobRange(text, f"it has {len(factor.levels)} levels, and A and B are two")
        (other,) = (level for level in factor.levels if level != factor.baseline)
        ranges.append(KnobRange(factor.target, factor.baseline, other))
    return tuple(ranges)
