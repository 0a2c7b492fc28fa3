"""Which values of a knob are searched: from the catalogue, from its file, and from the value in force."""

from dataclasses import dataclass

from ktrial.experiment.resources import Builder
from ktrial.kernels import Progress
from ktrial.knobs import values
from ktrial.knobs.lookup import KnobInstance
from ktrial.model.kernel import Build, BuildChange
from ktrial.model.knob import Allowed, Knob, KnobKind, Safety, Version
from ktrial.model.tuning import Cost, Dimension, Range
from ktrial.studyfile.errors import BadKnobSpace
from ktrial.studyfile.search import OPTION, SearchedKnob

AROUND = 16
"""Where no largest value is known: from a sixteenth of the value in force to sixteen times as much."""
_WIDE = 100
"""From here on the factor between two values matters, not their difference."""
_MODES = ("1", "0", "2")
"""Of a knob that is 1, whose largest value is not known: 0 is off."""
_SWITCHES = (("0", "1"), ("N", "Y"), ("n", "y"), ("false", "true"), ("off", "on"))
_WHY_UNSAFE = {
    Safety.SECURITY: "some of its values open the system to attacks",
    Safety.DURABILITY: "some of its values lose data or the system when power, memory or a task fails",
}


def why_unsafe(knob: Knob | None) -> str:
    """Why the knob is not searched unless it is named by itself; empty where it is safe."""
    reason = _WHY_UNSAFE.get(knob.safety, "") if knob else ""
    return f"{reason}: name it by itself to search it" if reason else ""


def dimension(wanted: SearchedKnob, reading: KnobInstance, version: Version) -> Dimension | str:
    """What is searched of the knob that was found, or why nothing is.

    Raises BadKnobValue and BadKnobSpace, where values were given that it cannot have.
    """
    now = reading.value
    made = _given(wanted, reading, version) if _is_given(wanted) else _known(reading, version)
    if isinstance(made, str):
        return made
    if not isinstance(made, Range) and set(made) <= {now}:
        return f"it is {now} already, and no other value is known"
    knob = reading.knob
    return Dimension(
        name=reading.name,
        cost=Cost.RUN_TIME,
        range=made if isinstance(made, Range) else None,
        choices=() if isinstance(made, Range) else tuple(dict.fromkeys((now, *made))),
        default=now,
        unit=knob.unit if knob else "",
        summary=knob.summary if knob else "",
    )


def _is_given(wanted: SearchedKnob) -> bool:
    return bool(wanted.values) or wanted.low is not None


def _given(wanted: SearchedKnob, reading: KnobInstance, version: Version) -> Range | tuple[str, ...]:
    edges = (wanted.low, wanted.high)
    for value in wanted.values or (str(edge) for edge in edges):
        values.check(reading.name, reading.knob, value, version)
    if wanted.low is None or wanted.high is None:
        return wanted.values
    if _number(reading.value) is None:
        problem = f"it is {reading.value!r} now, which is no whole number: give values, NAME=a,b,c"
        raise BadKnobSpace(text=f"{wanted.name}={wanted.low}..{wanted.high}", problem=problem)
    return range_of(wanted.low, wanted.high)


def range_of(low: int, high: int) -> Range:
    """Logarithmic where it is wide, and above zero."""
    return Range(low=low, high=high, log=low > 0 and high / low >= _WIDE)


def _known(reading: KnobInstance, version: Version) -> Range | tuple[str, ...] | str:
    """The values that are known without being told, or why there are none."""
    knob = reading.knob
    if knob is None:
        return "ktrial does not know its values: write NAME=low..high or NAME=a,b,c"
    allowed = knob.allowed_in(version)
    match knob.kind:
        case KnobKind.SWITCH:
            return next((pair for pair in _SWITCHES if reading.value in pair), ("0", "1"))
        case KnobKind.CHOICE:
            shown = tuple(word.strip("[]()") for word in reading.text.split())
            several = len(shown) > 1
            return allowed.choices or (shown if several else "its values are not known: write NAME=a,b,c")
        case KnobKind.INTEGER if allowed.choices:
            return allowed.choices
        case KnobKind.INTEGER:
            if _is_mode(reading.value, knob, allowed):
                return tuple(value for value in _MODES if int(value) >= (allowed.minimum or 0))
            return _integers(reading.value, allowed.minimum, allowed.maximum)
        case _:
            return f"its values are {_WORDS[knob.kind]}: write NAME=a,b,c"


_WORDS = {KnobKind.INTEGERS: "lists of numbers", KnobKind.MASK: "masks", KnobKind.TEXT: "texts"}


def _is_mode(now: str, knob: Knob, allowed: Allowed) -> bool:
    """Whether 1 stands for `on` or one of a few modes, as it does where it is no number of anything."""
    return now == "1" and allowed.maximum is None and not knob.unit


def _integers(now: str, minimum: int | None, maximum: int | None) -> Range | str:
    value = _number(now)
    if value is None or now.lower().startswith("0x"):
        return f"it is {now} now, which is no plain number: write NAME=a,b,c"
    if minimum is not None and maximum is not None:
        return range_of(minimum, maximum)
    if value <= 0:
        return f"no largest value is known, and it is {now} now: write NAME=low..high"
    low = max(1, minimum or 1, value // AROUND)
    high = value * AROUND if maximum is None else min(maximum, value * AROUND)
    # From a value above zero what matters is its factor, however near the limits are.
    return Range(low=low, high=high, log=True) if low < high else f"it can only be {now}"


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


NOT_SET = "n"
"""What `# CONFIG_X is not set` stands for."""


@dataclass(frozen=True)
class Options:
    """The options of the kernel that a study builds. Configuring takes seconds; nothing is compiled."""

    build: Build
    builder: Builder
    progress: Progress

    def dimension(self, wanted: SearchedKnob) -> Dimension | str:
        """What is searched of the option, or why nothing is.

        Raises KernelError where the source does not take one of the values (OptionNotTaken).
        """
        name = f"CONFIG_{wanted.name.removeprefix(OPTION)}"
        now = self.builder.configured(self.build, self.progress).get(name, NOT_SET)
        edges = () if wanted.low is None else (str(wanted.low), str(wanted.high))
        for value in wanted.values or edges:
            if value != now:
                self._try(name, value)
        choices = tuple(dict.fromkeys((now, *wanted.values)))
        if wanted.values and choices == (now,):
            return f"it is {now} already, and no other value is given"
        return Dimension(
            name=wanted.name,
            cost=Cost.BUILD,
            range=range_of(wanted.low, wanted.high) if wanted.low is not None and wanted.high else None,
            choices=choices if wanted.values else (),
            default=now,
            summary="an option of the kernel's build",
        )

    def _try(self, name: str, value: str) -> None:
        changed = self.build.changed(BuildChange(options={name: value}))
        if self.builder.cached(changed) is None:
            self.builder.configured(changed, self.progress)
