"""Errors about fleets that somebody catches, or whose advice several places share."""

from ktrial.errors import KtrialError


class FleetError(KtrialError):
    """Of a fleet, or of one of its workers."""


class FleetUsageError(FleetError):
    """The command was given something that it cannot take."""

    exit_code = 2


class TrafficInClear(FleetUsageError):
    """Traffic would leave this system, and is not encrypted."""

    hint = (
        "give certificates (tls-ca, tls-cert and tls-key in the fleet's file, and tls:// in its address); "
        "or where the network is trusted insecure = true in the file (--insecure of ktrial fleet): who "
        "reaches the scheduler runs programs on all workers"
    )

    def __init__(self, address: str) -> None:
        super().__init__(f"Fleet {address}: its traffic is not encrypted, and leaves this system.")


class BatchSystemFailed(FleetError):
    """It takes no jobs."""

    hint = "is this a host from which jobs are submitted? --dry-run shows what would be submitted"


class BadFleet(FleetError):
    """What was named is no fleet."""

    hint = (
        "local:N is N workers of this system; else it is an address (tcp://127.0.0.1:8786) or a file "
        "(lab.toml): ktrial help fleet"
    )
    exit_code = 2

    def __init__(self, address: str, problem: str) -> None:
        self.problem = problem
        super().__init__(f"There is no fleet {address!r}: {problem}")


class BadFleetFile(BadFleet):
    """The file of a fleet has a mistake."""

    hint = "ktrial help fleet shows such files"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.message = f"The fleet's file {path} cannot be used: {problem}"
        self.args = (self.message,)


class FleetOutOfReach(FleetError):
    """Its scheduler does not answer."""

    hint = (
        "is the scheduler running (dask scheduler)? What ended is stored: run the same command again, or "
        "with --fleet none on this system"
    )

    def __init__(self, address: str, problem: object) -> None:
        super().__init__(f"Fleet {address} is not reached: {problem}")


class TransferDamaged(FleetError):
    """What arrived has another digest."""
