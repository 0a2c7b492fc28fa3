"""Errors about fleets."""

from ktrial.errors import KtrialError


class FleetError(KtrialError):
    text = "Fleet {address}: {problem}"


class FleetUsageError(FleetError):
    """The command was given something that it cannot take."""

    exit_code = 2


class BatchSystemFailed(FleetError):
    text = "The batch system {address} took no job: {problem}"
    hint = "is this a host from which jobs are submitted? --dry-run shows what would be submitted"


class BadFleet(FleetError):
    text = "There is no fleet {address!r}: {problem}"
    hint = (
        "local:N is N workers of this system; else it is an address (tcp://127.0.0.1:8786) or a file "
        "(lab.toml): ktrial help fleet"
    )
    exit_code = 2


class BadFleetFile(BadFleet):
    text = "The fleet's file {address} cannot be used: {problem}"
    hint = "ktrial help fleet shows such files"


class FleetOutOfReach(FleetError):
    text = "Fleet {address} is not reached: {problem}"
    hint = (
        "is the scheduler running (dask scheduler)? What ended is stored: run the same command again, or "
        "with --fleet none on this system"
    )


class TransferDamaged(FleetError):
    text = "What arrived of {digest} is something else: {found}."


class WorkerDiskFull(FleetError):
    text = "Worker: {directory} takes no more files: {problem}"
    hint = "free some space there, or start the worker with another --cache"
