"""What a process that runs a study is doing now: told in the store while it runs, and gone when it ends."""

from datetime import datetime

from ktrial.model.base import Model


class Doing(Model):
    """One thing that is under way: a trial, a boot, a kernel that is fetched or built."""

    what: str
    """`debian:6.12, perturbation 3`; `debian:6.12: booting`."""
    where: str = ""
    """Which worker does it; empty: the process itself."""
    since: datetime


class Activity(Model):
    """One process that runs a study."""

    key: str
    """Of this run, apart from all others: drawn at its beginning."""
    host: str
    user: str
    process: int
    """The process's number on its host."""
    born: str
    """The host's boot, and when in it the process began: no other process has both and the number. Empty
    where the system does not tell."""
    started: datetime
    heard: datetime
    """When this was written, by the clock of the host."""
    silence_seconds: float
    """After how long without a word the process must be taken for gone, where nothing else tells."""
    finished: int
    """How many trials are stored, from earlier runs too."""
    planned: int
    """How many there will be; in real time, before the next look."""
    failed: int = 0
    """How many of this run's trials ended with another outcome than `completed`."""
    seconds_left: float | None = None
    """An estimate."""
    doing: tuple[Doing, ...] = ()
    stopping: bool = False
    """Whether it was asked to end."""
