"""Errors of `ktrial serve`."""

from ktrial.errors import KtrialError


class ServeError(KtrialError):
    text = "{problem}"


class ServeUsageError(ServeError):
    """The command was given something that it cannot take."""

    exit_code = 2
