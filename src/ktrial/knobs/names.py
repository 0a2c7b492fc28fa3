"""What a user names: a knob of the catalogue, a sysctl or a path; an instance where there are several."""

import re

from ktrial.knobs import catalogue
from ktrial.knobs.errors import BadKnobName, UnknownKnob
from ktrial.model.knob import Knob
from ktrial.model.notation import nearest
from ktrial.model.references import ALL, KnobRef, sysctl_path

_LONGEST = 1024
_TOPS = ("/proc/sys/", "/sys/")
_INSTANCE = re.compile(r"[\w.:@,+-]+(/[\w.:@,+-]+)*")


def reference(text: str) -> KnobRef:
    """Understand `swappiness`, `vm.swappiness`, `queue/read_ahead_kb@vda`, `/sys/block/vda/queue/…`.

    Raises BadKnobName, UnknownKnob.
    """
    if not text or len(text) > _LONGEST or not text.isprintable():
        problem = "it is empty" if not text else "a name is printable, and at most 1024 letters long"
        raise BadKnobName(knob=repr(text[:60]), problem=problem)
    if text.startswith("/"):
        path = _checked(text, text)
        return KnobRef(asked=text, knob=catalogue.at(path), path=path)
    name, at, instance = text.partition("@")
    if knob := catalogue.known(name):
        return KnobRef(asked=text, knob=knob, instance=_instance(text, knob, instance) if at else "")
    if at or not re.search(r"[./]", text):
        raise UnknownKnob(knob=name, similar=nearest(name, (each.name for each in catalogue.all_knobs())))
    path = _checked(text, sysctl_path(text))
    return KnobRef(asked=text, knob=catalogue.at(path), path=path)


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
        raise BadKnobName(knob=text, problem="a path goes straight down, without . or .. or an empty part")
    if not path.startswith(_TOPS):
        raise BadKnobName(knob=text, problem="a knob's file is below /proc/sys or /sys")
    return path


def _instance(text: str, knob: Knob, instance: str) -> str:
    if not knob.instance:
        raise BadKnobName(knob=text, problem=f"there is only one {knob.name}")
    if instance == ALL:
        return instance
    parts = instance.split("/")
    if not _INSTANCE.fullmatch(instance) or any(part in {".", ".."} for part in parts):
        problem = f"after the @ comes the {knob.instance}'s name, or * for all"
        raise BadKnobName(knob=text, problem=problem)
    return instance
