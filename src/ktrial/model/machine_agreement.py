"""The same comparison on several machines: whether a change is general. Plain data."""

from enum import StrEnum

from ktrial.model.base import Model
from ktrial.model.history import SystemIdentity
from ktrial.model.workload import Direction, Mode


class Agreement(StrEnum):
    """Whether a change is the same on all machines."""

    SAME = "same"
    """The machines' ratios differ by less than the margin, with their spread."""
    DIFFERS = "differs"
    """They differ, beyond margin and spread, or by a test."""
    UNDECIDED = "undecided"


class OnSystem(Model):
    """What a change comes to on one machine."""

    system: SystemIdentity
    study_id: int
    ratio: float
    low: float
    high: float
    """Exact: the spread over the perturbations. Timed: the range of the blocks."""
    blocks: int


class OverMachines(Model):
    """A change in real time over machines of which these are a sample: random effects of machines."""

    ratio: float
    low: float
    high: float
    """95 % for the mean over such machines."""
    between: float
    """By how much the machines' own changes differ: their standard deviation, as a ratio."""


class Across(Model):
    """One workload's change from one version to another, machine by machine. Exact: not averaged."""

    workload: str
    metric: str
    mode: Mode
    direction: Direction
    before: str
    after: str
    systems: tuple[OnSystem, ...]
    agreement: Agreement
    p: float | None = None
    """Timed: of the interaction of machine and version; adjusted for all rows (Holm)."""
    reason: str = ""
    """Why it is undecided."""
    over_machines: OverMachines | None = None
    """Timed, where each machine has blocks enough."""
