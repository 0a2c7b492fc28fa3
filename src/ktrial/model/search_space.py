"""What a study searches: the knobs as they were asked for, and the space that this became on its system."""

from ktrial.model.base import Model
from ktrial.model.tuning import Budget, Goal, Space


class LeftOut(Model):
    """A knob that was asked for, and is not searched."""

    name: str
    reason: str
    """Why not, in one sentence without its end."""


class Search(Model):
    """A study's search. Its digest, with the space, says which search an interrupted one goes on with."""

    knobs: tuple[str, ...]
    """As they were written: `vm`, `vm.swappiness=0..100`, `boot:nohz=on,off`."""
    goal: Goal
    budget: Budget
    optimiser: str = "tpe"
    at_once: int = 1
    """Trials in parallel: a search asks for so many before it knows what they say."""
    space: Space | None = None
    """With the values in force on the system; None until that was asked."""
    left_out: tuple[LeftOut, ...] = ()
