"""What goes between the client and a worker: plain data both ways."""

from dataclasses import dataclass

from ktrial.kernels.errors import KernelError
from ktrial.model.design import PlannedTrial
from ktrial.target import Step


@dataclass(frozen=True)
class Bench:
    """A machine of one client's on a worker: kept there from order to order."""

    key: str
    maker: bytes
    """What makes the machine, pickled."""
    symbols: bool = True
    """Whether trials tell which function did what."""


@dataclass(frozen=True)
class Preparation:
    """Make a system ready for its trials."""

    bench: Bench
    package: str
    """The digest of the package that names the system."""
    boot: int
    """Which of the package's."""


@dataclass(frozen=True)
class Order:
    """Perform a trial."""

    bench: Bench
    package: str
    planned: PlannedTrial
    steps: tuple[tuple[Step, ...] | None, ...]
    """Of each of the package's jobs; None: the worker finds out, or finds out why nobody can."""


@dataclass(frozen=True)
class Lacking:
    """The worker needs these contents first: it has not found them, or something else in their place."""

    digests: tuple[str, ...]


@dataclass(frozen=True)
class Completed:
    """What was ordered is done; of a trial: what came of it, as JSON."""

    trial: bytes = b""


@dataclass(frozen=True)
class Unable:
    """The worker's system keeps it from being done: another worker may be able to."""

    problem: str
    advice: str = ""


@dataclass(frozen=True)
class Stopped:
    """The client had the machine stopped."""


@dataclass(frozen=True)
class Failed:
    """A mistake in ktrial, or in a part of it that somebody added."""

    problem: str


@dataclass(frozen=True)
class Introduction:
    """What a worker is."""

    agrees: dict[str, str]
    """What has to agree between it and the client, in words → what the worker has."""
    problem: str = ""
    """Why it cannot perform trials of that machine at all."""
    advice: str = ""


@dataclass(frozen=True)
class Question:
    """Can these kernels be built on the worker?"""

    maker: bytes
    """What makes what builds, pickled."""
    orders: tuple[str, ...]
    """Digests of pickled BuildOrders."""


@dataclass(frozen=True)
class CanBuild:
    """The answer."""

    version: str
    """The worker's ktrial."""
    problems: tuple[str, ...]
    """Of each order: why not; empty: it can."""


@dataclass(frozen=True)
class BuildCall:
    """Build a kernel."""

    maker: bytes
    order: str
    """The digest of a pickled BuildOrder."""
    topic: str
    """Under which the client hears how far it is."""
    files: str
    """The fleet's place of files, which takes the kernel."""


@dataclass(frozen=True)
class Built:
    """The kernel is built; an archive of it lies in the fleet's place of files."""

    digest: str


@dataclass(frozen=True)
class NotBuilt:
    """The kernel cannot be built from this, by whomever."""

    error: KernelError
    log: bytes = b""
    """The end of what make printed."""


@dataclass(frozen=True)
class Gone:
    """The worker is gone, or the scheduler lost what was asked of it. Not said by a worker."""

    died: bool = False
    """It is the worker that is gone, not the scheduler."""


@dataclass(frozen=True)
class Several:
    """What came of each of several trials, in order; none of those after one that was not performed."""

    replies: "tuple[Completed | Unable | Stopped | Failed, ...]"


Reply = Several | Lacking | Completed | Unable | Stopped | Failed
