"""The environment of trials in real time: readings of the machine that can change a result."""

from datetime import datetime
from enum import StrEnum

from ktrial.model.base import Model


class ReadingKind(StrEnum):
    """How readings of one thing are compared with each other."""

    SETTING = "setting"
    """It stays as it is unless somebody changes it."""
    LEVEL = "level"
    """It goes up and down by itself: temperature, load."""
    COUNTER = "counter"
    """It only rises, and each rise tells that something happened."""


class Reading(Model):
    """One thing about the machine, at one moment."""

    name: str
    kind: ReadingKind
    value: str = ""
    """For people; of a setting also what is compared. Empty where it cannot be read."""
    number: float | None = None
    """Of a level or a counter; None where it has no number."""
    absent: str = ""
    """Why it cannot be read; empty where it was."""
    concern: str = ""
    """What about this value disturbs measurements; empty where nothing does."""
    advice: str = ""
    """What to do about it."""
    places: tuple[str, ...] = ()
    """The kernel files that it was read from: what a study changes there is no surprise."""


class Environment(Model):
    """All readings of one moment."""

    taken: datetime
    readings: tuple[Reading, ...]

    def reading(self, name: str) -> Reading | None:
        """The reading of this name; None where there is none."""
        return next((each for each in self.readings if each.name == name), None)
