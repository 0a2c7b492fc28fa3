"""What disturbs, what changed, and what differs between treatments beside their factors."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from ktrial.model.environment import Environment, Reading, ReadingKind
from ktrial.model.warnings import DataWarning, WarningKind

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
    found = []
    for then in before.readings:
        now = after.reading(then.name)
        if now is not None and not _is_of_study(then, changed_by_study):
            text = _change(then, now, seconds)
            if text:
                found.append(_changed(then.name, text, now))
    return tuple(found)


def confounds(
    arms: Mapping[str, Sequence[Environment]], changed_by_study: Collection[str] = ()
) -> tuple[DataWarning, ...]:
    """What differs between treatments (label → its environments) beside what the study changes.

    A setting: two treatments have no value of it in common. A level: all of one treatment's are above all of
    another's, from six readings each.
    """
    found = []
    for one, other in combinations(arms, 2):
        for name in _names(arms[one]):
            mine, theirs = _readings(arms[one], name), _readings(arms[other], name)
            if not mine or not theirs or _is_of_study(mine[0], changed_by_study):
                continue
            text = _apart(mine, theirs)
            if text:
                found.append(_confound(name, one, other, *text))
    return tuple(found)


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
    found = [one.reading(name) for one in environments]
    return [each for each in found if each is not None and each.value]


def _apart(mine: list[Reading], theirs: list[Reading]) -> tuple[str, str] | None:
    """The two treatments' values, where they have nothing in common."""
    if mine[0].kind is ReadingKind.SETTING:
        left, right = {each.value for each in mine}, {each.value for each in theirs}
        return None if left & right else (" or ".join(sorted(left)), " or ".join(sorted(right)))
    if mine[0].kind is ReadingKind.COUNTER:
        return None
    low = [each.number for each in mine if each.number is not None]
    high = [each.number for each in theirs if each.number is not None]
    if min(len(low), len(high)) < _FEWEST or not (max(low) < min(high) or max(high) < min(low)):
        return None
    return f"{min(low):g} to {max(low):g}", f"{min(high):g} to {max(high):g}"


def _confound(name: str, one: str, other: str, left: str, right: str) -> DataWarning:
    return DataWarning(
        kind=WarningKind.CONFOUND,
        text=f"{name} differs between treatments: {left} for {one}, {right} for {other}",
        advice="what is measured may be this, and not the factor: make it the same for both, or a factor",
    )
