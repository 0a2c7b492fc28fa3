"""Plain characters in place of those that a terminal's encoding lacks: `-` for the minus sign, `~` for `≈`.

Latin-1 has no minus sign, ASCII no `µ`. What has no plain form, as in a name of the user's, is told by its
code: `\\u0142`.
"""

import codecs
import io

PLAIN = "ktrial.plain"
"""The name of the error handler, for `open` and `reconfigure`."""

_PLAIN = {
    "−": "-",
    "–": "-",
    "—": "-",
    "≈": "~",
    "∅": "0",
    "≤": "<=",
    "≥": ">=",
    "±": "+-",
    "×": "x",
    "·": ".",
    "…": "...",
    "→": "->",
    "←": "<-",
    "›": ">",
    "∞": "inf",
    "µ": "u",
    "°": " degrees",
    "✓": "+",
    "✗": "x",
    "⚠": "!",
    "ℹ": "i",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "\u00a0": " ",
    "\u202f": " ",
    "\u2060": "",
    "└": "`",
    "├": "|",
    "│": "|",
    "─": "-",
    "█": "#",
    **dict(zip("σκλφπβ", ("sigma", "kappa", "lambda", "phi", "pi", "beta"), strict=True)),
    **dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True)),
}


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is written in place of characters that the encoding lacks, for codecs.register_error."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(map(_plain, lacking)), error.end


def _plain(letter: str) -> str:
    code = letter.encode("ascii", "backslashreplace").decode()
    return _PLAIN.get(letter, code)


def write_plainly(stream: object) -> None:
    """From now on the stream takes every text."""
    codecs.register_error(PLAIN, _replaced)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=PLAIN)
