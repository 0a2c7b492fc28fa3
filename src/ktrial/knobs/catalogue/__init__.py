"""All knobs that ktrial knows: one file a subsystem, each with a tuple `KNOBS`.

Outside this package the same tuple is named by an entry point of the group `ktrial.knobs`, whose name is the
subsystem's.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from ktrial import plugin_discovery
from ktrial.knobs.errors import BadKnobName, UnknownKnob
from ktrial.model.knob import Knob
from ktrial.model.notation import nearest
from ktrial.model.references import ALL, KnobRef, sysctl_path
from ktrial.model.warnings import DataWarning

_GROUP = "ktrial.knobs"
# What a user names: a knob of the catalogue, a sysctl or a path; an instance where there are several.
_LONGEST = 1024
_TOPS = ("/proc/sys/", "/sys/")
_INSTANCE = re.compile(r"[\w.:@,+-]+(/[\w.:@,+-]+)*")


@cache
def installed() -> tuple[dict[str, Knob], tuple[DataWarning, ...]]:
    """Name → knob, by subsystem and in the order of their files, and a warning for each broken plugin."""
    subsystems, warnings = plugin_discovery.installed(_GROUP, "knobs", "KNOBS", (__name__,), _check)
    knobs: dict[str, Knob] = {}
    for group in subsystems.values():
        for knob in group:
            knobs.setdefault(knob.name, knob)
    return knobs, warnings


def all_knobs() -> tuple[Knob, ...]:
    """Every knob."""
    return tuple(installed()[0].values())


def subsystems() -> tuple[str, ...]:
    """The subsystems' names, sorted."""
    return tuple(sorted({knob.subsystem for knob in all_knobs()}))


def find(name: str) -> Knob:
    """The knob of this name: the catalogue's, that of a sysctl or boot parameter, or its last part alone.

    Raises UnknownKnob, which names those like it.
    """
    if knob := _by_name().get(name):
        return knob
    raise UnknownKnob(name, nearest(name, _by_name()))


def get(name: str) -> Knob | None:
    """The same, or None."""
    return _by_name().get(name)


def knob_at(path: str) -> Knob | None:
    """The knob that some kernel keeps in this file; None where the catalogue does not have it."""
    if knob := _by_path().get(path):
        return knob
    return next((knob for template, knob in _templates() if instance_at(template, path)), None)


def instance_at(template: str, path: str) -> str:
    """The instance that is at the path: `vda`, `eth0/rx-0`; empty where there is none."""
    match = _pattern(template).fullmatch(path)
    return "/".join(match.groups()) if match else ""


@cache
def _templates() -> tuple[tuple[str, Knob], ...]:
    return tuple((path, knob) for path, knob in _by_path().items() if "{" in path)


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Groups lie in groups; whatever else there are several of has no slash in its name."""
    pieces = re.split(r"\{(\w+)\}", template)
    literal, names = pieces[::2], pieces[1::2]
    groups = ["(.+)" if name == "group" else "([^/]+)" for name in names]
    return re.compile("".join(map("".join, zip(map(re.escape, literal), [*groups, ""], strict=True))))


@cache
def _by_name() -> Mapping[str, Knob]:
    knobs = all_knobs()
    exact = {knob.name: knob for knob in knobs}
    places = _unambiguous((place.sysctl or place.boot, knob) for knob in knobs for place in knob.places)
    short = _unambiguous((knob.name.rpartition("/")[2].rpartition(".")[2], knob) for knob in knobs)
    return {**short, **places, **exact}


@cache
def _by_path() -> Mapping[str, Knob]:
    return {place.path: knob for knob in all_knobs() for place in knob.places if place.path}


def _unambiguous(names: Iterable[tuple[str, Knob]]) -> dict[str, Knob]:
    """Only names that stand for one knob."""
    knobs: dict[str, set[str]] = {}
    last: dict[str, Knob] = {}
    for name, knob in names:
        knobs.setdefault(name, set()).add(knob.name)
        last[name] = knob
    return {name: last[name] for name, several in knobs.items() if name and len(several) == 1}


def _check(subsystem: str, extension: object) -> tuple[str, tuple[Knob, ...]]:
    if not isinstance(extension, tuple) or not all(isinstance(item, Knob) for item in extension):
        raise TypeError("it is not a tuple of knobs")
    return subsystem, tuple(
        knob if knob.subsystem else knob.model_copy(update={"subsystem": subsystem}) for knob in extension
    )


def reference(text: str) -> KnobRef:
    """Understand `swappiness`, `vm.swappiness`, `queue/read_ahead_kb@vda`, `/sys/block/vda/queue/…`.

    Raises BadKnobName, UnknownKnob.
    """
    if not text or len(text) > _LONGEST or not text.isprintable():
        problem = "it is empty" if not text else "a name is printable, and at most 1024 letters long"
        raise BadKnobName(repr(text[:60]), problem)
    if text.startswith("/"):
        path = _checked(text, text)
        return KnobRef(asked=text, knob=knob_at(path), path=path)
    name, at, instance = text.partition("@")
    if knob := get(name):
        return KnobRef(asked=text, knob=knob, instance=_instance(text, knob, instance) if at else "")
    if at or not re.search(r"[./]", text):
        raise UnknownKnob(name, nearest(name, (known_knob.name for known_knob in all_knobs())))
    path = _checked(text, sysctl_path(text))
    return KnobRef(asked=text, knob=knob_at(path), path=path)


def lenient_reference(text: str) -> KnobRef:
    """As `reference`, of what a stored study names: what would be refused now is a file as it stands."""
    try:
        return reference(text)
    except (BadKnobName, UnknownKnob):
        return KnobRef(asked=text, path=text if text.startswith("/") else sysctl_path(text))


def _checked(text: str, path: str) -> str:
    """The path, where it is one that a knob can have by its letters alone."""
    parts = path.split("/")[1:]
    if any(part in {"", ".", ".."} for part in parts):
        raise BadKnobName(text, "a path goes straight down, without . or .. or an empty part")
    if not path.startswith(_TOPS):
        raise BadKnobName(text, "a knob's file is below /proc/sys or /sys")
    return path


def _instance(text: str, knob: Knob, instance: str) -> str:
    if not knob.instance:
        raise BadKnobName(text, f"there is only one {knob.name}")
    if instance == ALL:
        return instance
    parts = instance.split("/")
    if not _INSTANCE.fullmatch(instance) or any(part in {".", ".."} for part in parts):
        problem = f"after the @ comes the {knob.instance}'s name, or * for all"
        raise BadKnobName(text, problem)
    return instance
