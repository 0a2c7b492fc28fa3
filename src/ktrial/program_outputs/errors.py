"""Errors about what programs of others printed."""

from collections.abc import Iterable

from ktrial.errors import KtrialError
from ktrial.model.notation import nearest

_WHERE, _PROBLEM = 44, 120
"""Characters of a message, which has 200 at most."""


def _short(text: str, longest: int) -> str:
    """The text, without its middle where it is too long."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


class FormatNotKnown(KtrialError):
    """Nobody reads a format of this name."""

    hint = "ktrial workload formats lists all, and what is read of each"
    exit_code = 2

    def __init__(self, format: str, formats: Iterable[str]) -> None:
        super().__init__(f"There is no format of metrics {format}{nearest(format, list(formats))}.")


class OutputError(KtrialError):
    """An output cannot be read as what it was taken for."""


class OutputDamaged(OutputError):
    """Something in it is not as the program prints it."""

    hint = "the output may be cut short, or not all of it is this program's"

    def __init__(self, format: str, where: str, problem: str) -> None:
        super().__init__(f"Taken for {format}: {_short(where, _WHERE)}: {_short(problem, _PROBLEM)}.")
        self.where = where
        self.problem = problem


class OutputEmpty(OutputError):
    """It is as the program prints it, and no measurement is in it."""

    hint = "look at it; a run that failed leaves one like this"

    def __init__(self, format: str, problem: str) -> None:
        super().__init__(f"Taken for {format}, it holds no measurements: {_short(problem, _PROBLEM)}.")
        self.problem = problem
