"""Errors about what programs of others printed."""

from ktrial.errors import KtrialError


class FormatNotKnown(KtrialError):
    """There is no format of metrics {format}{similar}; there are: {known}."""

    hint = "ktrial workload formats tells what is read of each"
    exit_code = 2


class OutputError(KtrialError):
    """Taken for {format}: {problem}"""


class OutputDamaged(OutputError):
    """Taken for {format}: {where}: {problem}."""

    hint = "the output may be cut short, or not all of it is this program's"


class OutputEmpty(OutputError):
    """Taken for {format}, it holds no measurements: {problem}."""

    hint = "look at it; a run that failed leaves one like this"
