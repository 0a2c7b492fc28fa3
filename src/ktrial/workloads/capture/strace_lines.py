"""Lines that strace wrote, one file a process: the call, its arguments, and what it returned."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"(\w+)\((.*)\) += (-?\d+|\?)(?:<((?:[^\\>]|\\.)*)>)?(?: ([A-Z]+))?", re.DOTALL)
_DESCRIPTOR = re.compile(r"(AT_FDCWD|-?\d+)(?:<((?:[^\\>]|\\.)*)>)?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}
_OPENING, _CLOSING = "[{(<", "]})>"


@dataclass(frozen=True)
class Call:
    """One system call that has returned."""

    name: str
    arguments: tuple[str, ...]
    """As strace wrote them."""
    result: int
    path: str = ""
    """Of the descriptor that it returned."""
    error: str = ""

    @property
    def text(self) -> str:
        """All arguments."""
        return ", ".join(self.arguments)

    def path_at(self, index: int) -> str:
        """The text in quotes that is the argument; empty where it is none."""
        match = _QUOTED.match(self.arguments[index]) if index < len(self.arguments) else None
        return unescaped(match[1]) if match else ""

    def descriptor_at(self, index: int) -> str:
        """The path behind a descriptor that is an argument; empty where strace does not tell it."""
        match = _DESCRIPTOR.match(self.arguments[index]) if index < len(self.arguments) else None
        return unescaped(match[2]) if match and match[2] else ""


def calls(file: Path) -> Iterator[Call]:
    """The calls of one process, in order; what is no call (signals, exits) is skipped."""
    with file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for line in lines:
            match = _LINE.match(line)
            if match and match[3] != "?":
                name, text, result, path, error = match.groups()
                yield Call(name, tuple(_split(text)), int(result), unescaped(path or ""), error or "")


def _split(text: str) -> Iterator[str]:
    """The arguments: at commas outside of quotes and brackets."""
    start = depth = 0
    quoted = escaped = False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in _OPENING:
            depth += 1
        elif not quoted and character in _CLOSING:
            depth -= 1
        elif not quoted and character == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()


def unescaped(text: str) -> str:
    """A text as the program had it: strace writes bytes that are not ASCII as octal numbers."""

    def plain(match: re.Match[str]) -> str:
        octal, hexadecimal, other = match.groups()
        if octal or hexadecimal:
            number = int(octal, 8) if octal else int(hexadecimal, 16)
            return bytes([number & 255]).decode("latin-1")
        return _CONTROLS.get(other, str(other))

    if "\\" not in text:
        return text
    return os.fsdecode(_ESCAPE.sub(plain, text).encode("latin-1", errors="replace"))
