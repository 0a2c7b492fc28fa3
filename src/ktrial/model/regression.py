"""A regression as a thing that is followed: where it was first seen, how large it is, what became of it."""

from datetime import datetime
from enum import StrEnum

from ktrial.model.base import Model
from ktrial.model.workload import Direction, Mode


class RegressionState(StrEnum):
    """What became of a regression."""

    NEW = "new"
    """One kernel has it, the newest that was measured."""
    KNOWN = "known"
    """Several kernels have it, the newest among them."""
    ACCEPTED = "accepted"
    """Somebody said why it may stay."""
    FIXED = "fixed"
    """The newest kernel has it no more."""
    CAME_BACK = "came back"
    """A kernel in between did not have it, and the newest one has it again."""


class MeasuredVersion(Model):
    """A kernel as it was measured."""

    name: str
    """`debian:6.12`."""
    release: str = ""
    """`uname -r`; with the commit, where it was built from a git tree."""
    digest: str = ""
    """Of its content: two kernels of one name are told apart."""

    @property
    def shown(self) -> str:
        """The name, and the release where the name does not have it."""
        return f"{self.name} ({self.release})" if self.release and self.release != self.name else self.name


class Sighting(Model):
    """A kernel that was measured after the one before the regression, and whether it has it."""

    kernel: MeasuredVersion
    ratio: float | None
    """Its value by that of the kernel before the regression."""
    has_it: bool
    at: datetime


class Acceptance(Model):
    """Why a regression may stay, and which size was accepted."""

    reason: str
    by: str
    at: datetime
    since: MeasuredVersion
    version: MeasuredVersion
    ratio: float | None


class Regression(Model):
    """What is stored of a regression. Numbers are those of when it was seen first, or checked last."""

    id: str
    """Eight hexadecimal digits."""
    workload: str
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    since: MeasuredVersion
    """The newest kernel without it that was measured before it, or the baseline of a check."""
    version: MeasuredVersion
    """The first kernel with it."""
    ratio: float | None
    low: float | None = None
    high: float | None = None
    cause: str = ""
    """The net change of the call tree in words: `+7,977: page-table setup +3,100, …`."""
    found_by: str
    """The command: `check`, `watch`, `history`."""
    found: datetime
    sightings: tuple[Sighting, ...] = ()
    """Of checks, oldest first. Of studies over versions they follow from the history."""
    acceptance: Acceptance | None = None


class TrackedRegression(Model):
    """A regression, and the kernels that were measured since."""

    regression: Regression
    study_id: int
    """The study that was the first to measure it."""
    sightings: tuple[Sighting, ...]
    """The first kernel with it, and those after it, in order."""
    stored: bool = False
    """Whether the store has it under its id."""

    @property
    def state(self) -> RegressionState:
        """What became of it, by the kernels that were measured and by what was accepted."""
        acceptance = self.regression.acceptance
        if self.sightings and not self.sightings[-1].has_it:
            return RegressionState.FIXED
        returned = self._return
        if returned and (acceptance is None or returned.at > acceptance.at):
            return RegressionState.CAME_BACK
        if acceptance:
            return RegressionState.ACCEPTED
        kernels = {sighting.kernel for sighting in self.sightings}
        return RegressionState.NEW if len(kernels) <= 1 else RegressionState.KNOWN

    @property
    def turned(self) -> Sighting | None:
        """The kernel that fixed it, or with which it came back; None where neither was."""
        if self.sightings and not self.sightings[-1].has_it:
            last = max((i for i, s in enumerate(self.sightings) if s.has_it), default=-1)
            return self.sightings[last + 1]
        return self._return

    @property
    def changed(self) -> datetime:
        """When its state changed last, as far as that is known."""
        moments = [self.regression.found]
        if self.regression.acceptance:
            moments.append(self.regression.acceptance.at)
        if self.turned:
            moments.append(self.turned.at)
        return max(moments)

    @property
    def _return(self) -> Sighting | None:
        gone = max((i for i, s in enumerate(self.sightings) if not s.has_it), default=-1)
        after = self.sightings[gone + 1 :] if gone >= 0 else ()
        return after[0] if after else None
