"""Errors about fleets."""

from ktrial.errors import KtrialError


class FleetError(KtrialError):
    """Fleet {address}: {problem}"""


class FleetNotInstalled(FleetError):
    """A fleet needs Dask distributed, which is not installed here ({problem})."""

    hint = "pip install 'ktrial[fleet]'"


class JobqueueNotInstalled(FleetError):
    """Workers as jobs of a batch system need dask-jobqueue, which is not installed here ({problem})."""

    hint = "pip install 'ktrial[jobqueue]'"


class BatchSystemFailed(FleetError):
    """The batch system {address} took no job: {problem}"""

    hint = "is this a host from which jobs are submitted? --dry-run shows what would be submitted"


class BadFleet(FleetError):
    """There is no fleet {address!r}: {problem}"""

    hint = (
        "local:N is N workers of this system; else it is an address (tcp://127.0.0.1:8786) or a file "
        "(lab.toml): ktrial help fleet"
    )
    exit_code = 2


class BadFleetFile(BadFleet):
    """The fleet's file {address} cannot be used: {problem}"""

    hint = "ktrial help fleet shows such files"


class CertificateMissing(FleetError):
    """Fleet {address}: there is no file {file}."""

    hint = "tls-ca, tls-cert and tls-key in the fleet's file say where they are, beside that file"
    exit_code = 2


class NoFleetNamed(FleetError):
    """No fleet is named."""

    hint = (
        "give the address of its scheduler (tcp://127.0.0.1:8786) or its file (lab.toml); else KTRIAL_FLEET "
        "says it, or [fleet] in the configuration: ktrial help fleet"
    )
    exit_code = 2


class FleetInClear(FleetError):
    """Fleet {address}: its traffic is not encrypted, and leaves this system."""

    hint = (
        "give certificates (tls-ca, tls-cert and tls-key in the fleet's file, and tls:// in its address); or "
        "where the network is trusted insecure = true in the file (--insecure of ktrial fleet): who reaches "
        "the scheduler runs programs on all workers"
    )
    exit_code = 2


class FleetOutOfReach(FleetError):
    """Fleet {address} is not reached: {problem}"""

    hint = (
        "is the scheduler running (dask scheduler)? What ended is stored: run the same command again, or "
        "with --fleet none on this system"
    )


class FleetEmpty(FleetError):
    """Fleet {address} has no worker that can be used{problem}"""

    hint = "ktrial fleet worker ADDRESS starts one; trials that ended are stored; run the same command again"


class NotForFleet(FleetError):
    """Fleet {address} is given exact trials only: the machine {machine} measures {what}, in real time."""

    hint = (
        "leave --fleet out (--fleet none, where KTRIAL_FLEET or the configuration names one); a machine "
        "ssh is held in a fleet that has an address"
    )
    exit_code = 2


class HolderUnknown(FleetError):
    """Fleet {address}: somebody has the machine {machine}, and does not say who."""

    hint = "is it a ktrial of another version? --fleet none measures without that fleet"


class TransferDamaged(FleetError):
    """What arrived of {digest} is something else: {found}."""


class WorkerDiskFull(FleetError):
    """Worker: {directory} takes no more files: {problem}"""

    hint = "free some space there, or start the worker with another --cache"


class WorkerBroke(FleetError):
    """Worker {worker}: {problem}"""


class ClientDisagrees(FleetError):
    """Workers told different digits for {trial}, and this system could not say which are right: {problem}"""

    hint = "trials that ended before are stored; ktrial doctor says what this system lacks"
