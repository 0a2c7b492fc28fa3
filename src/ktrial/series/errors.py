"""Errors of a series of patches."""

from ktrial.errors import KtrialError


class SeriesError(KtrialError):
    """The series cannot be measured."""


class SeriesNotChosen(SeriesError):
    """It is not clear which series is meant."""

    hint = "give BASE..TIP, or --mbox FILE --onto SOURCE, or --quilt DIR --onto SOURCE"
    exit_code = 2

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(f"Which series is meant is not clear: {problem}.", hint=hint)
