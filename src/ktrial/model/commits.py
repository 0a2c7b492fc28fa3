"""Commits between two kernels: what of a measured difference they touch, and what was measured of them."""

from enum import StrEnum

from pydantic import Field

from ktrial.model.base import Model

_SHORT = 12


class Relation(StrEnum):
    """How what a commit changes is part of a function."""

    OWN = "itself"
    INLINED = "inlined"
    """A function or macro that has become part of it."""
    DATA = "data"
    """A variable or table that it, or what is inlined into it, names."""
    STRUCTURE = "structure"
    """A structure that they name: what changes is where its members lie, or how many bytes are moved."""


class Touch(Model):
    """One function that behaves differently, and what of it a commit changes."""

    function: str
    """As the difference has it: `do_mmap`, `map [ext4]`."""
    through: str
    """What the commit changes: the function itself, `pipe_full`, `struct page`."""
    relation: Relation
    share: float
    """The function's share of what all functions do differently."""


class RankedCommit(Model):
    """One commit, by what it touches."""

    place: int
    """Among those that were looked at: the oldest is the first."""
    commit: str
    parent: str
    subject: str
    author: str
    date: str
    share: float
    """Of what functions do differently: that of the functions of which it changes code or data."""
    by_structures: float = 0.0
    """The share of those of which it changes structures only."""
    size: int = 0
    """How many tokens of them it changes."""
    touches: tuple[Touch, ...] = ()
    """The largest share first."""
    files: tuple[str, ...] = ()
    """In which that is."""

    @property
    def short(self) -> str:
        """The beginning of its name, as the kernel's developers write it."""
        return self.commit[:_SHORT]


class CommitList(Model):
    """The commits between two kernels, ranked."""

    directory: str
    range: str
    """`v6.1.192..v6.12`."""
    before: str
    """Whole name of the first end's commit."""
    after: str
    is_line: bool = True
    """Whether the second was made from the first."""
    commits: int
    """Of the whole range, merges apart."""
    looked_at: int
    """Those that change a file in which a ranked function, or a header of it, is."""
    functions: int
    """Functions that do something differently, and that commits were looked for."""
    ranked: tuple[RankedCommit, ...] = ()
    unplaced: tuple[str, ...] = ()
    """Functions that do something differently, and whose source was not found in the tree."""
    unplaced_share: float = 0.0
    notes: tuple[str, ...] = ()


# What was measured: kernels of the tree, with commits taken back, and on the way through the range.


class MeasuredHow(StrEnum):
    """How a commit's part was measured."""

    TAKEN_BACK = "taken back"
    """On the newer side, with all other commits."""
    STEP = "step"
    """As the difference between the kernel with it and the one before it."""


class MeasuredCommit(Model):
    """One commit, and what it was measured to do; or why it could not be."""

    commit: str
    subject: str
    how: MeasuredHow
    effects: tuple[float, ...] = ()
    """Its part of the difference under each perturbation; empty where it was not measured."""
    problem: str = ""
    also: int = 0
    """Of a step: how many steps before it are in it, since none of those could be measured."""
    merge: bool = False
    """Whether it is a merge: the step holds all that it brings."""

    @property
    def short(self) -> str:
        """The beginning of its name."""
        return self.commit[:_SHORT]

    @property
    def is_sure(self) -> bool:
        """Whether it has a part, in one direction under every perturbation."""
        return bool(self.effects) and min(self.effects) * max(self.effects) > 0

    @property
    def effect(self) -> float | None:
        """The mean over the perturbations; None where it was not measured."""
        return sum(self.effects) / len(self.effects) if self.effects else None


class CommitProof(Model):
    """Which commits make a difference, and how much of it."""

    workload: str
    before: str
    """What the two ends are called: kernels of the tree."""
    after: str
    unit: str = "instructions/operation"
    value_before: float
    value_after: float
    """Means over the perturbations."""
    measured: tuple[MeasuredCommit, ...] = ()
    """The largest part first; those without a number last."""
    together: float | None = None
    """What all that have a part do together, taken back at once; None where it was not measured."""
    kernels: int = 0
    """That were measured, both ends among them."""
    builds: int = 0
    """How many of them had to be compiled."""
    seconds: float = 0.0
    """CPU time that it took, without the compiler's."""
    stopped: str = ""
    """Why it ended before the difference was explained; empty where it was."""
    notes: tuple[str, ...] = Field(default=())

    @property
    def difference(self) -> float:
        """The whole of it."""
        return self.value_after - self.value_before

    @property
    def causes(self) -> tuple[MeasuredCommit, ...]:
        """Those that have a part."""
        least = LEAST_PART * abs(self.difference)
        return tuple(row for row in self.measured if abs(row.effect or 0.0) >= least and row.is_sure)

    @property
    def explained(self) -> float:
        """What the causes have of it."""
        if self.together is not None:
            return self.together
        return sum(row.effect or 0.0 for row in self.causes)

    @property
    def unexplained(self) -> float:
        """What is left."""
        return self.difference - self.explained

    def share(self, part: float) -> float | None:
        """A part's share of the difference; None where there is none."""
        return part / self.difference if self.difference else None


LEAST_PART = 0.01
"""Of the difference: what has less is no cause."""
