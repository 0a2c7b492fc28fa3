"""Errors of a series of patches."""

from ktrial.errors import KtrialError


class SeriesError(KtrialError):
    """The series cannot be measured: {problem}."""


class NothingMeasured(SeriesError):
    """The workloads do not run on the base: {problem}."""

    hint = "--workload names others; ktrial workload list shows them"


class SeriesNotChosen(SeriesError):
    """Which series is meant is not clear: {problem}."""

    hint = "give BASE..TIP, or --mbox FILE --onto SOURCE, or --quilt DIR --onto SOURCE"
    exit_code = 2
