"""Text from a guest or a file, made fit to show: it cannot move the cursor or turn the text around."""

import re
import unicodedata

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""ECMA-48 control sequences, OSC strings and two-character escapes: colours in a console log."""
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u202a-\u202e\u2066-\u2069"  # embeddings, overrides, isolates: they reorder the text around them
    r"\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # separators, lone surrogates, non-characters
)


def printable(text: str) -> str:
    r"""`text` without terminal escapes; other control characters are written as `\x07` or `\u202e`.

    Line feeds and tabs stay; CR LF becomes LF. What comes out is valid in HTML and XML, and encodes to UTF-8.
    """
    if text.isprintable():  # it has no character of the two patterns; a page has ten thousand such texts
        return text
    return _INVISIBLE.sub(_written_out, _TERMINAL.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """`text` made printable, with every run of white space turned into one space."""
    return " ".join(printable(text).split())


def shortened(text: str, columns: int) -> str:
    """`text` on one line in at most `columns` character cells; what is left out of its middle becomes `…`."""
    line = one_line(text)
    if _cells(line) <= columns:
        return line
    tail = max(0, (columns - 1) // 2)
    return f"{_leading(line, columns - 1 - tail)}…{_leading(line[::-1], tail)[::-1]}"


def beginning(text: str, columns: int) -> str:
    """The whole words of `text` that fit on a line of so many cells, with `…` where words are left out."""
    line = one_line(text)
    if _cells(line) <= columns:
        return line
    words = _leading(line, columns - 1).rpartition(" ")[0] or _leading(line, columns - 1)
    return f"{words.rstrip(',;:')}…"


def _written_out(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _cells(text: str) -> int:
    if text.isascii():  # printable by now: a cell each
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _leading(text: str, columns: int) -> str:
    if text.isascii():
        return text[: max(0, columns)]
    used = 0
    for position, character in enumerate(text):
        used += _width(character)
        if used > columns:
            return text[:position]
    return text
