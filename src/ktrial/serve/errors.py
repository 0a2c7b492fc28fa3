"""Errors of `ktrial serve`."""

from ktrial.errors import KtrialError


class ServeError(KtrialError):
    """{problem}"""


class ServeExtraMissing(ServeError):
    """ktrial serve needs {package}, which is not installed."""

    hint = "install what belongs to it: pip install 'ktrial[serve]'"


class AddressNotHad(ServeError):
    """Nothing can be served at {address}, port {port}: {problem}."""

    hint = "take another port: ktrial serve --port 8001; with --port 0 any that is free"


class BadAddress(ServeError):
    """'{address}' is no address of this machine: {problem}."""

    hint = (
        "leave it out, and pages are seen on this machine alone; --address 0.0.0.0 takes all of its addresses"
    )
    exit_code = 2
