"""The audit of the environment: what of this machine can change a timed result. Nothing is changed.

A module here has a tuple `READERS`: one more row of it, or one more module, is one more reading.
"""

import importlib
import pkgutil
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import combinations, product
from pathlib import Path

from ktrial.model.trial import Environment, Reading, ReadingKind
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.text_lines import lines_of

__all__ = ["EnvironmentReader", "Observation", "audit", "changes", "concerns", "confounds", "readers"]
_PACKAGE = "ktrial.monitors.environment"
_TOLERATED = {"steal time": 0.001}
"""Counter → rise in a second of a study that is no news: a thousandth of one CPU's time."""
_FEWEST = 6
"""Readings of each treatment before a level that keeps apart by chance is no likely thing: 1 in 400."""


@dataclass(frozen=True)
class Observation:
    """What a reader found."""

    value: str
    number: float | None = None
    concern: str = ""
    advice: str = ""


@dataclass(frozen=True)
class EnvironmentReader:
    """One thing that is looked at."""

    name: str
    what: str
    """What it is, in a line."""
    why: str
    """Why it matters to a measurement, in a sentence."""
    read: Callable[[Path], Observation]
    """Given the root directory. Raises Absent or OSError where it cannot be read."""
    kind: ReadingKind = ReadingKind.SETTING
    places: tuple[str, ...] = ()
    """Files that it reads; `*` stands for a CPU's number."""
    takes_time: bool = False
    """It has to wait to see something."""


class Absent(Exception):
    """It cannot be read here; the text says why."""


@cache
def readers() -> tuple[EnvironmentReader, ...]:
    """Every row of every module here, in the modules' order."""
    path = importlib.import_module(_PACKAGE).__path__
    names = sorted(module.name for module in pkgutil.iter_modules(path))
    modules = [importlib.import_module(f"{_PACKAGE}.{name}") for name in names]
    return tuple(row for module in modules for row in getattr(module, "READERS", ()))


def audit(root: Path = Path("/"), *, patient: bool = True) -> Environment:
    """Read everything. Raises nothing.

    `patient`: also what takes a third of a second, to see what others do meanwhile. `root` stands for `/`:
    tests give a tree of their own.
    """
    rows = [row for row in readers() if patient or not row.takes_time]
    return Environment(taken=datetime.now(UTC), readings=tuple(_read(row, root) for row in rows))


def _read(row: EnvironmentReader, root: Path) -> Reading:
    unread = Reading(name=row.name, kind=row.kind, places=row.places)
    try:
        value = row.read(root)
    except Absent as error:
        return unread.model_copy(update={"absent": str(error)})
    except OSError as error:
        return unread.model_copy(update={"absent": _why(error)})
    except (ValueError, LookupError) as error:
        return unread.model_copy(update={"absent": f"it has an unknown form here: {error}"})
    return unread.model_copy(
        update={
            "value": value.value,
            "number": value.number,
            "concern": value.concern,
            "advice": value.advice,
        }
    )


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "this kernel, or this machine, does not have it"
    if isinstance(error, PermissionError):
        return "only root may read it"
    return str(error.strerror or error)


# --- What disturbs, what changed, and what differs between treatments beside their factors.


def concerns(environment: Environment) -> tuple[DataWarning, ...]:
    """A warning for each reading that disturbs measurements."""
    return tuple(
        DataWarning(
            kind=WarningKind.ENVIRONMENT,
            text=f"{reading.name}: {reading.value}: {reading.concern}",
            advice=reading.advice,
        )
        for reading in environment.readings
        if reading.concern
    )


def changes(
    before: Environment, after: Environment, changed_by_study: Collection[str] = ()
) -> tuple[DataWarning, ...]:
    """What changed between two readings of one machine.

    `changed_by_study`: paths of the settings that the study itself changes, which are no news.
    """
    seconds = (after.taken - before.taken).total_seconds()
    warnings = []
    for then in before.readings:
        reading = after.reading(then.name)
        if reading is not None and not _is_of_study(then, changed_by_study):
            text = _change(then, reading, seconds)
            if text:
                warnings.append(_changed(then.name, text, reading))
    return tuple(warnings)


def _is_of_study(reading: Reading, changed: Collection[str]) -> bool:
    """`*` in a place stands for anything in one part of a path."""
    patterns = [re.escape(place).replace(r"\*", "[^/]+") + "(/.*)?" for place in reading.places]
    return any(re.fullmatch(pattern, path) for pattern in patterns for path in changed)


def _change(then: Reading, reading: Reading, seconds: float) -> str:
    match then.kind:
        case ReadingKind.SETTING:
            return "" if then.value == reading.value else f"{_shown(then)} became {_shown(reading)}"
        case ReadingKind.COUNTER:
            if then.number is None or reading.number is None:
                return ""
            rise = reading.number - then.number
            tolerated = _TOLERATED.get(then.name, 0.0) * max(seconds, 0.0)
            return f"it rose by {rise:g}" if rise > tolerated else ""
        case ReadingKind.LEVEL:
            return (
                f"{reading.value} at the end: {reading.concern}"
                if reading.concern and not then.concern
                else ""
            )


def _shown(reading: Reading) -> str:
    return reading.value or f"not readable ({reading.absent})"


def _changed(name: str, text: str, reading: Reading) -> DataWarning:
    return DataWarning(
        kind=WarningKind.ENVIRONMENT_CHANGED,
        text=f"{name} changed meanwhile: {text}",
        advice=reading.advice or "what was measured before and after may differ for that reason alone",
    )


def confounds(
    arms: Mapping[str, Sequence[Environment]], changed_by_study: Collection[str] = ()
) -> tuple[DataWarning, ...]:
    """What differs between treatments (label → its environments) beside what the study changes.

    A setting: two treatments have no value of it in common. A level: all of one treatment's are above all of
    another's, from six readings each.
    """
    every = list(arms)
    names = [_names(environments) for environments in arms.values()]
    read = {
        name: [_readings(environments, name) for environments in arms.values()]
        for name in dict.fromkeys(name for of_arm in names for name in of_arm)
    }
    places = [{name: place for place, name in enumerate(of_arm)} for of_arm in names]
    apart = sorted(
        (arm, other_arm, places[arm][name], name)
        for name, by_arm in read.items()
        for arm, other_arm in _pairs_apart(by_arm)
        if not _is_of_study(by_arm[arm][0], changed_by_study)
    )
    return tuple(
        _confound(name, every[lower], every[higher], *_ranges(read[name][lower], read[name][higher]))
        for lower, higher, _, name in apart
    )


def _pairs_apart(by_arm: Sequence[Sequence[Reading]]) -> Iterator[tuple[int, int]]:
    """Places of every two arms whose readings of one thing have nothing in common; the lower place first."""
    kind = next((readings[0].kind for readings in by_arm if readings), ReadingKind.COUNTER)
    match kind:
        case ReadingKind.SETTING:
            yield from _settings_apart(
                [frozenset(reading.value for reading in readings) for readings in by_arm]
            )
        case ReadingKind.LEVEL:
            yield from _levels_apart([_numbers(readings) for readings in by_arm])


def _settings_apart(values: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Arms with the same values are looked at together: there are many arms, and few sets of values."""
    arms: dict[frozenset[str], list[int]] = {}
    for place, of_arm in enumerate(values):
        if of_arm:
            arms.setdefault(of_arm, []).append(place)
    if arms and frozenset.intersection(*arms):
        return
    for first, second in combinations(arms, 2):
        if first.isdisjoint(second):
            yield from ((min(pair), max(pair)) for pair in product(arms[first], arms[second]))


def _levels_apart(numbers: Sequence[Sequence[float]]) -> Iterator[tuple[int, int]]:
    """By each arm's smallest number, in order: all from one place on lie above an arm's largest."""
    rising = sorted((min(levels), place) for place, levels in enumerate(numbers) if len(levels) >= _FEWEST)
    for place, arm_numbers in enumerate(numbers):
        if len(arm_numbers) >= _FEWEST:
            for _, above in rising[bisect_right(rising, (max(arm_numbers), len(numbers))) :]:
                yield min(place, above), max(place, above)


def _names(environments: Iterable[Environment]) -> list[str]:
    return list(
        dict.fromkeys(reading.name for environment in environments for reading in environment.readings)
    )


def _readings(environments: Iterable[Environment], name: str) -> list[Reading]:
    readings = (environment.reading(name) for environment in environments)
    return [reading for reading in readings if reading is not None and reading.value]


def _numbers(readings: Iterable[Reading]) -> list[float]:
    return [reading.number for reading in readings if reading.number is not None]


def _ranges(mine: Sequence[Reading], theirs: Sequence[Reading]) -> tuple[str, str]:
    """The two treatments' values, which have nothing in common."""
    return _range(mine), _range(theirs)


def _range(readings: Sequence[Reading]) -> str:
    if readings[0].kind is ReadingKind.SETTING:
        return " or ".join(sorted({reading.value for reading in readings}))
    numbers = _numbers(readings)
    return f"{min(numbers):g} to {max(numbers):g}"


def _confound(name: str, first: str, second: str, left: str, right: str) -> DataWarning:
    return DataWarning(
        kind=WarningKind.CONFOUND,
        text=f"{name} differs between treatments: {left} for {first}, {right} for {second}",
        advice="what is measured may be this, and not the factor: make it the same for both, or a factor",
    )


# --- How readers look at kernel files.


def text(root: Path, path: str) -> str:
    """A file's content without blanks at its ends. Raises OSError."""
    return (root / path.lstrip("/")).read_text(errors="replace").strip()


def chosen(root: Path, path: str) -> str:
    """The choice in a file like `always [madvise] never`. Raises OSError."""
    content = text(root, path)
    marked = re.search(r"\[([^\]]+)\]", content)
    return marked[1] if marked else content


def of_cpus(root: Path, path: str) -> dict[int, str]:
    """A file of every CPU that has it: `/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`."""
    texts = {}
    for file in root.glob(path.lstrip("/")):
        number = re.search(r"/cpu(\d+)/", str(file))
        if number:
            texts[int(number[1])] = file.read_text(errors="replace").strip()
    return texts


def together(values: dict[int, str]) -> str:
    """`performance`, or `performance (cpu 0-3), powersave (cpu 4)` where CPUs differ. Raises Absent: none."""
    if not values:
        raise Absent("no CPU has it")
    by_value: dict[str, list[int]] = {}
    for cpu, value in sorted(values.items()):
        by_value.setdefault(value, []).append(cpu)
    if len(by_value) == 1:
        return next(iter(by_value))
    return ", ".join(f"{value} (cpu {ranges(cpus)})" for value, cpus in by_value.items())


def ranges(numbers: Iterable[int]) -> str:
    """`0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def meminfo(root: Path) -> dict[str, int]:
    """/proc/meminfo: name → KiB. Raises OSError."""
    lines = (line.split() for line in lines_of(text(root, "/proc/meminfo")))
    return {words[0].rstrip(":"): int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}
