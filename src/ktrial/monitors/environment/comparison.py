"""What disturbs, what changed, and what differs between treatments beside their factors."""

import importlib
import pkgutil
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import combinations, product
from pathlib import Path

from ktrial.model.trial import Environment, Reading, ReadingKind
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.monitors.environment.reader import Absent, EnvironmentReader

_TOLERATED = {"steal time": 0.001}
"""Counter → rise in a second of a study that is no news: a thousandth of one CPU's time."""
_FEWEST = 6
"""Readings of each treatment before a level that keeps apart by chance is no likely thing: 1 in 400."""


def concerns(environment: Environment) -> tuple[DataWarning, ...]:
    """A warning for each reading that disturbs measurements."""
    return tuple(
        DataWarning(
            kind=WarningKind.ENVIRONMENT,
            text=f"{each.name}: {each.value}: {each.concern}",
            advice=each.advice,
        )
        for each in environment.readings
        if each.concern
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
        now = after.reading(then.name)
        if now is not None and not _is_of_study(then, changed_by_study):
            text = _change(then, now, seconds)
            if text:
                warnings.append(_changed(then.name, text, now))
    return tuple(warnings)


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
        (one, other, places[one][name], name)
        for name, by_arm in read.items()
        for one, other in _pairs_apart(by_arm)
        if not _is_of_study(by_arm[one][0], changed_by_study)
    )
    return tuple(
        _confound(name, every[one], every[other], *_ranges(read[name][one], read[name][other]))
        for one, other, _, name in apart
    )


def _pairs_apart(by_arm: Sequence[Sequence[Reading]]) -> Iterator[tuple[int, int]]:
    """Places of every two arms whose readings of one thing have nothing in common; the lower place first."""
    kind = next((readings[0].kind for readings in by_arm if readings), ReadingKind.COUNTER)
    match kind:
        case ReadingKind.SETTING:
            yield from _settings_apart([frozenset(one.value for one in readings) for readings in by_arm])
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
    for one, other in combinations(arms, 2):
        if one.isdisjoint(other):
            yield from ((min(pair), max(pair)) for pair in product(arms[one], arms[other]))


def _levels_apart(numbers: Sequence[Sequence[float]]) -> Iterator[tuple[int, int]]:
    """By each arm's smallest number, in order: all from one place on lie above an arm's largest."""
    rising = sorted((min(each), place) for place, each in enumerate(numbers) if len(each) >= _FEWEST)
    for place, each in enumerate(numbers):
        if len(each) >= _FEWEST:
            for _, above in rising[bisect_right(rising, (max(each), len(numbers))) :]:
                yield min(place, above), max(place, above)


def _change(then: Reading, now: Reading, seconds: float) -> str:
    match then.kind:
        case ReadingKind.SETTING:
            return "" if then.value == now.value else f"{_shown(then)} became {_shown(now)}"
        case ReadingKind.COUNTER:
            if then.number is None or now.number is None:
                return ""
            rise = now.number - then.number
            tolerated = _TOLERATED.get(then.name, 0.0) * max(seconds, 0.0)
            return f"it rose by {rise:g}" if rise > tolerated else ""
        case ReadingKind.LEVEL:
            return f"{now.value} at the end: {now.concern}" if now.concern and not then.concern else ""


def _shown(reading: Reading) -> str:
    return reading.value or f"not readable ({reading.absent})"


def _changed(name: str, text: str, now: Reading) -> DataWarning:
    return DataWarning(
        kind=WarningKind.ENVIRONMENT_CHANGED,
        text=f"{name} changed meanwhile: {text}",
        advice=now.advice or "what was measured before and after may differ for that reason alone",
    )


def _is_of_study(reading: Reading, changed: Collection[str]) -> bool:
    """`*` in a place stands for anything in one part of a path."""
    patterns = [re.escape(place).replace(r"\*", "[^/]+") + "(/.*)?" for place in reading.places]
    return any(re.fullmatch(pattern, path) for pattern in patterns for path in changed)


def _names(environments: Iterable[Environment]) -> list[str]:
    return list(dict.fromkeys(each.name for one in environments for each in one.readings))


def _readings(environments: Iterable[Environment], name: str) -> list[Reading]:
    readings = (one.reading(name) for one in environments)
    return [each for each in readings if each is not None and each.value]


def _numbers(readings: Iterable[Reading]) -> list[float]:
    return [each.number for each in readings if each.number is not None]


def _ranges(mine: Sequence[Reading], theirs: Sequence[Reading]) -> tuple[str, str]:
    """The two treatments' values, which have nothing in common."""
    return _range(mine), _range(theirs)


def _range(readings: Sequence[Reading]) -> str:
    if readings[0].kind is ReadingKind.SETTING:
        return " or ".join(sorted({each.value for each in readings}))
    numbers = _numbers(readings)
    return f"{min(numbers):g} to {max(numbers):g}"


def _confound(name: str, one: str, other: str, left: str, right: str) -> DataWarning:
    return DataWarning(
        kind=WarningKind.CONFOUND,
        text=f"{name} differs between treatments: {left} for {one}, {right} for {other}",
        advice="what is measured may be this, and not the factor: make it the same for both, or a factor",
    )


_PACKAGE = "ktrial.monitors.environment"


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
    known = Reading(name=row.name, kind=row.kind, places=row.places)
    try:
        value = row.read(root)
    except Absent as error:
        return known.model_copy(update={"absent": str(error)})
    except OSError as error:
        return known.model_copy(update={"absent": _why(error)})
    except (ValueError, LookupError) as error:
        return known.model_copy(update={"absent": f"it has an unknown form here: {error}"})
    return known.model_copy(
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
