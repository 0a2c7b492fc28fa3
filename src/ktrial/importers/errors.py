"""Errors about files of measurements from elsewhere."""

from collections.abc import Sequence
from pathlib import Path

from ktrial.errors import KtrialError
from ktrial.program_outputs.places import extent

_PLACE, _PROBLEM = 44, 90
"""Characters of a message: with a file's name it has 200 at most."""
_NAMES = 70


def some_of(names: Sequence[str]) -> str:
    """As many names as fit in a message: `user, sys and 58 more`."""
    shown = [name for at, name in enumerate(names) if at == 0 or len(", ".join(names[: at + 1])) <= _NAMES]
    more = f" and {len(names) - len(shown)} more" if shown != list(names) else ""
    return f"{', '.join(_short(name, _NAMES) for name in shown)}{more}"


def _short(text: str, longest: int) -> str:
    """The text, without its middle where it is too long."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


class ImportFailed(KtrialError):
    """A file cannot be read, or not as the user asks for it."""

    exit_code = 2


class MeasurementsDamaged(ImportFailed):
    """Something in a file is not as the tool writes it."""

    hint = "the file may be cut short, or changed by hand; write it again with the tool that made it"

    def __init__(self, file: Path, format: str, where: str, problem: str, hint: str = "") -> None:
        message = f"{file}, taken for {format}: {_short(where, _PLACE)}: {_short(problem, _PROBLEM)}."
        super().__init__(message, hint=hint or self.hint)


class NoMeasurements(ImportFailed):
    """A file is as the tool writes it, and nothing in it can be compared."""

    hint = "look at the file; a run that failed leaves one like this"

    def __init__(self, file: Path, format: str, problem: str, hint: str = "", text: str = "") -> None:
        """`text` is the file's, where the problem names no line."""
        where = f"{extent(text, problem)}: " if text and not problem.startswith("line ") else ""
        message = f"{file}, taken for {format}, holds no measurements: {where}{_short(problem, _PROBLEM)}."
        super().__init__(message, hint=hint or self.hint)
