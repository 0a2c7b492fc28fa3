"""What a user names: a knob of the catalogue, a sysctl or a path; an instance where there are several."""

import re
from dataclasses import dataclass

from ktrial.knobs import catalogue
from ktrial.knobs.errors import BadKnobName, UnknownKnob
from ktrial.model.knob import Knob
from ktrial.model.suggestions import nearest

ALL = "*"
"""The instance that stands for every one."""
_LONGEST = 1024
_TOPS = ("/proc/sys/", "/sys/")
_INSTANCE = re.compile(r"[\w.:@,+-]+(/[\w.:@,+-]+)*")


@dataclass(frozen=True)
class Named:
    """What a user named, understood."""

    text: str
    """As the user wrote it."""
    knob: Knob | None = None
    """None where only a path is known."""
    instance: str = ""
    """`vda`; `*` for all; empty where none was named."""
    path: str = ""
    """Where a path or a sysctl that is not in the catalogue was named."""


def parse(text: str) -> Named:
    """Understand `swappiness`, `vm.swappiness`, `queue/read_ahead_kb@vda`, `/sys/block/vda/queue/…`.

    Raises BadKnobName, UnknownKnob.
    """
    if not text or len(text) > _LONGEST or not text.isprintable():
        problem = "it is empty" if not text else "a name is printable, and at most 1024 letters long"
        raise BadKnobName(knob=repr(text[:60]), problem=problem)
    if text.startswith("/"):
        return Named(text, knob=None, path=_checked(text, text))
    name, at, instance = text.partition("@")
    if knob := catalogue.known(name):
        return Named(text, knob, _instance(text, knob, instance) if at else "")
    if at or not re.search(r"[./]", text):
        raise UnknownKnob(knob=name, similar=nearest(name, (each.name for each in catalogue.all_knobs())))
    path = _checked(text, sysctl_path(text))
    return Named(text, catalogue.at(path), path=path)


def sysctl_path(name: str) -> str:
    """The file of a sysctl.

    As sysctl(8) has it: dots separate, and a slash stands for a dot in a name (`net.ipv4.conf.eth0/1.mtu`);
    where the first separator is a slash, slashes separate and dots are dots.
    """
    first = re.search(r"[./]", name)
    slashes_separate = first is not None and first.group() == "/"
    return "/proc/sys/" + (name if slashes_separate else name.translate(str.maketrans("./", "/.")))


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
