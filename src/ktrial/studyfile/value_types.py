"""What a value of a study file may be: text, a level, a duration, a size, a share."""

import math
import re
from typing import Annotated

from pydantic import AfterValidator, Field, PlainValidator

from ktrial.model import quantities
from ktrial.model.levels import LevelValue

LARGEST_INTEGER = 2**63 - 1
"""TOML's own limit."""
FROM_FILE = "from-file"
"""The name of a workload that has the name that its file gives it."""


def plain_text(text: str) -> str:
    """Text of one line. Raises ValueError where it is empty or holds control characters."""
    if not text.strip():
        raise ValueError("it is empty")
    return _one_line(text)


def _one_line(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("it holds control characters")
    return text


def level(value: object) -> LevelValue:
    """A level of a factor, or a parameter's value. Raises ValueError, which says what is allowed."""
    if isinstance(value, bool):
        raise ValueError('levels are numbers and text: write 0 and 1, or "on" and "off"')
    if isinstance(value, str):
        return _one_line(value)
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ValueError("whole numbers have at most 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it is not a finite number")
    if not isinstance(value, int | float):
        raise ValueError('levels are numbers and text: 60, 0.5, "madvise"')
    return value


def _option_value(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('an option is "y", "n", "m", a number or text: SLAB = "y", HZ = 250')
    if isinstance(value, str):
        return plain_text(value)
    return value


def _memory(text: str) -> str:
    quantities.memory_mib(text)
    return text


def cgroup_memory(text: str) -> str:
    """A size of memory from 1 MiB on. Raises ValueError."""
    quantities.memory_mib(text, smallest=1)
    return text


def _io_limit(text: str) -> str:
    # Documentation/admin-guide/cgroup-v2.rst, io.max
    if not re.fullmatch(r"[0-9]+:[0-9]+( (rbps|wbps|riops|wiops)=([0-9]+|max))+", text):
        raise ValueError("a limit names a device and what it may do: 8:0 rbps=1048576 wiops=120")
    return text


def _margin(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('a margin is a percentage: "1 %"')
    return quantities.margin(value)


def _bandwidth(text: str) -> str:
    quantities.memory_mib(text, smallest=1)
    return text


def _budget(text: str) -> str:
    quantities.seconds(text)
    return text


def _interval(text: str) -> str:
    quantities.interval(text)
    return text


def boot_text(text: str) -> str:
    """A boot parameter, or its value. Raises ValueError where the kernel would read more than one."""
    # A quoted value may hold spaces: dyndbg="file sched.c +p".
    if not re.fullmatch(r'(?:[^\s"]|"[^"]*")*', text):
        raise ValueError("spaces separate boot parameters: give one at a time, or quote its value")
    return text


def _regex(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"it has {groups} groups, and needs one, around the number: ([0-9.]+)")
    return text


def _command(value: object) -> str | list[str]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError('a command is text, or a list of words: "./bench.sh 10", ["./bench.sh", "10"]')
    plain_text(words[0])
    return value if isinstance(value, str) else words


def by_name(value: object) -> object:
    """A name, or the file of a workload: that has its name in it, unless the table gives another."""
    if isinstance(value, str):
        value = {"file": value} if value.endswith(".toml") else {"name": value}
    return {"name": FROM_FILE, **value} if isinstance(value, dict) and "file" in value else value


def _absolute(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/"):
        raise ValueError("it is a path in the guest: it begins with / and holds no ..")
    return text


def _environment(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError('it is a table of texts: { LANG = "C.UTF-8" }')
    for name, text in value.items():
        if not name or "=" in name or "\0" in name + text:
            raise ValueError(f"{name!r} cannot be a variable's name, or its value holds a NUL")
    return value


def by_kind(value: object) -> object:
    """A kind alone stands for a table with it."""
    return {"kind": value} if isinstance(value, str) else value


def by_format(value: object) -> object:
    """A format alone stands for a list of one table with it."""
    return [{"format": value}] if isinstance(value, str) else value


Text = Annotated[str, AfterValidator(plain_text)]
Prose = Annotated[str, AfterValidator(lambda text: plain_text(" ".join(text.split())) if text else text)]
Bandwidth = Annotated[str, AfterValidator(_bandwidth)]
Budget = Annotated[str, AfterValidator(_budget)]
Interval = Annotated[str, AfterValidator(_interval)]
Memory = Annotated[Text, AfterValidator(_memory)]
IoLimit = Annotated[Text, AfterValidator(_io_limit)]
Margin = Annotated[float, PlainValidator(_margin)]
Level = Annotated[LevelValue, PlainValidator(level)]
CommandText = Annotated[str | list[str], PlainValidator(_command)]
OptionValue = Annotated[int | str, PlainValidator(_option_value)]
GuestPath = Annotated[Text, AfterValidator(_absolute)]
Environment = Annotated[dict[str, str], PlainValidator(_environment)]
Regex = Annotated[str, AfterValidator(_regex)]
BootParameter = Annotated[Text, AfterValidator(boot_text)]
Name = Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
