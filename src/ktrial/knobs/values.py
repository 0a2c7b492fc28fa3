"""Values: which are sent to a kernel at all, whether it took one, and what has to be written to undo it.

Most files hold what was written. Some show more: all choices with the one in force in brackets, all words
where one was switched, a line for each disk.
"""

import re
from dataclasses import dataclass

from ktrial.knobs.errors import BadKnob
from ktrial.model.knob import Allowed, Knob, KnobKind, Version
from ktrial.text_lines import lines_of

LONGEST_VALUE = 4095
"""Bytes. Kernel files take at most a page in one write."""
_SWITCH_VALUES = {"0", "1", "y", "n", "on", "off", "true", "false"}
_TRUE, _FALSE = {"1", "y", "true"}, {"0", "n", "false"}
_NO_LIMITS = "rbps=max wbps=max riops=max wiops=max"


@dataclass(frozen=True)
class Form:
    """How a file shows its value. This one shows what was written, or its choices with one in brackets."""

    def undoing(self, before: str, value: str) -> str:
        """What to write to have `before` (the file's text) again after `asked` was written."""
        return chosen(before)

    def shows(self, value: str, text: str) -> bool:
        """Whether the file's text says what was asked for.

        Blanks count as one, numbers are compared as numbers, and Y, true and 1 are the same.
        """
        return _plain(value) == _plain(text) or _plain(value) == _plain(chosen(text))


@dataclass(frozen=True)
class _Parentheses(Form):
    """`none (voluntary) full`, as debugfs has the preemption model."""

    def undoing(self, before: str, value: str) -> str:
        return chosen(_with_brackets(before))

    def shows(self, value: str, text: str) -> bool:
        return super().shows(value, _with_brackets(text))


@dataclass(frozen=True)
class _Words(Form):
    """The scheduler's features: each word stands there, or stands there with NO_ before it."""

    def undoing(self, before: str, value: str) -> str:
        opposite = value.removeprefix("NO_") if value.startswith("NO_") else f"NO_{value}"
        return opposite if opposite in before.split() else value

    def shows(self, value: str, text: str) -> bool:
        return value in text.split()


@dataclass(frozen=True)
class _Disks(Form):
    """A line for each disk: `8:0 rbps=max wiops=120`. A disk without a line is as `unset` says."""

    unset: str

    def undoing(self, before: str, value: str) -> str:
        disk, _, _ = value.partition(" ")
        return _line_of(disk, before) or f"{disk} {self.unset}"

    def shows(self, value: str, text: str) -> bool:
        disk, _, settings = value.partition(" ")
        line = _line_of(disk, text) or self.unset
        return set(settings.split()) <= set(line.split())


def _line_of(disk: str, text: str) -> str:
    return next((line for line in lines_of(text) if line.split()[:1] == [disk]), "")


_PLAIN = Form()
_FORMS = {
    "/sys/kernel/debug/sched/preempt": _Parentheses(),
    "/sys/kernel/debug/sched/features": _Words(),
    "/sys/kernel/debug/sched_features": _Words(),
}
_GROUP_FORMS = {"io.max": _Disks(_NO_LIMITS), "io.latency": _Disks("target=0")}


def form_of(path: str) -> Form:
    """How the file at `path` shows its value."""
    name = path.rpartition("/")[2]
    if path.startswith("/sys/fs/cgroup/") and name in _GROUP_FORMS:
        return _GROUP_FORMS[name]
    return _FORMS.get(path, _PLAIN)


def same(first: str, second: str) -> bool:
    """Whether two texts of a kernel's file say the same: the first may be what was asked for."""
    return _PLAIN.shows(first, second)


def chosen(text: str) -> str:
    """What can be written back: the choice in brackets where there is one, else the text."""
    match = re.search(r"(?:^|\s)\[([^\]\s]+)\](?:\s|$)", text)
    return match[1] if match else text.removesuffix("\n")


def check(name: str, knob: Knob | None, value: str, version: Version) -> None:
    """Raise BadKnob where the value is nothing to send to a kernel of this version."""
    if problem := _hostile(value):
        line = "one line of text, as the kernel takes it"
        raise BadKnob(f"Knob {name} cannot be {_shown(value)}: {problem}.", hint=f"allowed: {line}")
    if knob and (reason := problem_of(knob, value, version)):
        allowed = described(knob, version) or knob.kind
        raise BadKnob(f"Knob {name} cannot be {_shown(value)}: {reason}.", hint=f"allowed: {allowed}")


def problem_of(knob: Knob, value: str, version: Version | None) -> str:
    """Why a kernel of this version does not take the value; empty where nothing is known against it.

    Without a version: why no kernel does.
    """
    if problem := _hostile(value) or _unfit(knob.kind, value):
        return problem
    problems = [_outside(knob.kind, value, allowed) for allowed in _possible(knob, version)]
    return problems[0] if problems and all(problems) else ""


def described(knob: Knob, version: Version | None) -> str:
    """What the knob takes, in words: `0 to 200`, `always, madvise or never`; empty where that is unknown.

    Without a version: what the newest kernels take.
    """
    allowed = next(iter(_possible(knob, version)), Allowed())
    if allowed.choices:
        *first, last = allowed.choices
        return f"{', '.join(first)} or {last}" if first else last
    if allowed.minimum is not None and allowed.maximum is not None:
        return f"{allowed.minimum} to {allowed.maximum}"
    if allowed.minimum is not None:
        return f"{allowed.minimum} or more"
    return ""


def is_switch(value: str) -> bool:
    """Whether the value is off or on, in one of the ways that kernels read."""
    return value.lower() in _SWITCH_VALUES


def _possible(knob: Knob, version: Version | None) -> tuple[Allowed, ...]:
    """What this version takes; without a version, what any takes."""
    return knob.allowed if version is None else (knob.allowed_in(version),)


def _hostile(value: str) -> str:
    if any(letter in value for letter in "\n\r"):
        return "it has a line break in it"
    if "\0" in value:
        return "it has a NUL byte in it"
    if any(ord(letter) < 0x20 and letter != "\t" for letter in value):
        return "it has a control character in it"
    if len(value.encode(errors="surrogateescape")) > LONGEST_VALUE:
        return f"it is longer than {LONGEST_VALUE} bytes"
    return ""


def _unfit(kind: KnobKind, value: str) -> str:
    words = value.split()
    match kind:
        case KnobKind.INTEGER if len(words) != 1 or _number(words[0]) is None:
            return "it is not a whole number"
        case KnobKind.INTEGERS if not words or any(_number(word) is None for word in words):
            return "it is not a list of whole numbers"
        case KnobKind.SWITCH if not is_switch(value):
            return "it is neither on nor off"
        case KnobKind.MASK if not re.fullmatch(r"[0-9a-fA-F]+(,[0-9a-fA-F]+)*", value):
            return "it is not a hexadecimal mask"
        case KnobKind.CHOICE if not words:
            return "it is empty"
        case _:
            return ""


def _outside(kind: KnobKind, value: str, allowed: Allowed) -> str:
    if allowed.choices and kind is KnobKind.CHOICE and value not in allowed.choices:
        return "it is not one of the choices"
    number = _number(value.strip()) if kind is KnobKind.INTEGER else None
    if number is None:
        return ""
    if allowed.minimum is not None and number < allowed.minimum:
        return "it is too small"
    if allowed.maximum is not None and number > allowed.maximum:
        return "it is too large"
    return ""


def _plain(text: str) -> tuple[str | int | bool, ...]:
    return tuple(_word(word) for word in text.split())


def _word(word: str) -> str | int:
    if word.lower() in _TRUE | _FALSE:
        return int(word.lower() in _TRUE)
    number = _number(word)
    return word if number is None else number


def _number(word: str) -> int | None:
    try:
        return int(word, 0)
    except ValueError:
        # A leading zero is octal to the kernel's kstrtol(…, 0), and an error to Python.
        return int(word) if re.fullmatch(r"-?[0-9]{1,40}", word) else None


def _with_brackets(text: str) -> str:
    return re.sub(r"\((\w+)\)", r"[\1]", text)


def _shown(value: str) -> str:
    longest = 60
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
