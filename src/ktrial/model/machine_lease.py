"""Who has a real machine for trials of theirs: told in the store, and held by being told again."""

from datetime import datetime

from ktrial.model.base import Model


class MachineLease(Model):
    """One that is held, or was held until its holder fell silent."""

    machine: str
    """What tells the machine from every other one, whoever names it."""
    called: str
    """What its holder calls it."""
    key: str
    """Of this holder, apart from all others: drawn when it asks."""
    host: str
    user: str
    process: int
    """The process's number on its host."""
    born: str
    """See Activity."""
    study: str
    """What it is held for."""
    since: datetime
    heard: datetime
    """When its holder was last heard of; like `since` by the clock of whoever keeps the store."""
    silence_seconds: float
    """After how long without a word the holder must be taken for gone, where nothing else tells."""

    @property
    def shown(self) -> str:
        """`lab1 (10.0.0.7:22)`."""
        return f"{self.called} ({self.machine})"

    @property
    def who(self) -> str:
        """`ada@lab (process 4711)`."""
        return f"{self.user}@{self.host} (process {self.process})"
