"""One metric of one workload over versions or time, with the places where it changed. Plain data."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.comparison import Verdict
from ktrial.model.design import Perturbation
from ktrial.model.workload import Direction, Mode


class ChangeKind(StrEnum):
    """How a change shows."""

    STEP = "step"
    """Exact: beyond the margin and the spread, from one version to the next."""
    CREEP = "creep"
    """Exact: beyond them only since the stretch's first version, in small steps."""
    SHIFT = "shift"
    """Timed: the level before and the one after differ, by a test with few false alarms."""


class ChangePoint(Model):
    """One change point."""

    place: int
    """The first point after it, from 0."""
    kind: ChangeKind
    before: float
    after: float
    ratio: float | None
    """after / before; None where `before` is not above zero."""
    low: float | None = None
    high: float | None = None
    """Exact: the interval of the ratio over the perturbations."""
    p: float | None = None
    """Timed: the chance of such a change anywhere in a series without one."""
    verdict: Verdict = Verdict.INCONCLUSIVE
    """Better or worse, by the metric's direction."""
    since: str = ""
    """The version before, or with `creep` the one that the stretch began with."""
    version: str = ""
    """The first version after it."""
    why: str = ""
    """The command that says what the change is made of; empty where nothing can."""


class SystemIdentity(Model):
    """What has to be the same for two numbers to be put in one line: the machine, and how it is set."""

    machine: str
    qemu: str = ""
    cpu_model: str = ""
    """In real time that of the hardware."""
    agent_digest: str = ""
    seed: int = 0
    settings: str = ""
    """Memory, CPUs, boot parameters and levels of other factors, in words."""


class Point(Model):
    """One version's numbers."""

    version: str
    """The kernel's name: `debian:6.1`."""
    release: str = ""
    """`uname -r`."""
    digest: str = ""
    """The kernel's."""
    study_id: int
    study: str
    treatment: str
    values: tuple[float, ...] = ()
    """One a perturbation or block."""
    perturbations: tuple[Perturbation, ...] = Field((), exclude=True)
    """Of each value; in real time a block's number is that of its perturbation."""
    value: float | None = None
    """Their geometric mean, or in real time their median."""
    started: datetime | None = None
    problem: str = ""
    """Why there is no number, in one sentence."""

    @property
    def by_perturbation(self) -> dict[Perturbation, float]:
        """Perturbation → value."""
        return dict(zip(self.perturbations, self.values, strict=True))


class Line(Model):
    """The points that may be compared with each other, in order."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    system: SystemIdentity
    points: tuple[Point, ...]
    changes: tuple[ChangePoint, ...] = ()
    alone: str = ""
    """Why this is not in one line with the others, in one sentence; empty for the first line."""


class History(Model):
    """All lines of a workload's metric."""

    workload: str
    margin: float
    alpha: float
    """The chance of a false change in a timed series."""
    lines: tuple[Line, ...]
    missing: tuple[str, ...] = ()
    """Kernels that are in the cache and have no number, in order."""
    left_out: tuple[str, ...] = ()
    """Studies in the store that are not what was stored: `study 2, quick`."""
