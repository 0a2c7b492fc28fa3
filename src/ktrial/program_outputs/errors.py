"""Errors about what programs of others printed."""

from collections.abc import Iterable

from ktrial.errors import KtrialError
from ktrial.model.notation import nearest


class FormatNotKnown(KtrialError):
    """Nobody reads a format of this name."""

    hint = "ktrial workload formats tells what is read of each"
    exit_code = 2

    def __init__(self, format: str, formats: Iterable[str]) -> None:
        names = list(formats)
        similar = nearest(format, names)
        super().__init__(f"There is no format of metrics {format}{similar}; there are: {', '.join(names)}.")


class OutputError(KtrialError):
    """An output cannot be read as what it was taken for."""


class OutputDamaged(OutputError):
    """Something in it is not as the program prints it."""

    hint = "the output may be cut short, or not all of it is this program's"

    def __init__(self, format: str, where: str, problem: str) -> None:
        super().__init__(f"Taken for {format}: {where}: {problem}.")
        self.where = where
        self.problem = problem


class OutputEmpty(OutputError):
    """It is as the program prints it, and no measurement is in it."""

    hint = "look at it; a run that failed leaves one like this"

    def __init__(self, format: str, problem: str) -> None:
        super().__init__(f"Taken for {format}, it holds no measurements: {problem}.")
        self.problem = problem
