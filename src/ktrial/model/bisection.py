"""What a bisection found: plain data, for texts and JSON."""

from pydantic import Field

from ktrial.model.attribution import Explanation
from ktrial.model.base import Model
from ktrial.model.workload import Direction, Mode

# What a bisection found: plain data, for texts and JSON.


class FoundTarget(Model):
    """A metric whose difference between A and B was to be explained."""

    label: str
    """`fork instructions`."""
    workload: str
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    before: float | None
    """A's value."""
    after: float | None
    """B's value."""
    reached: float | None
    """A's value with all causes as in B; None where there is none."""
    differs: bool
    """Whether A and B differ by more than the margin."""
    explained: bool
    """Whether what is reached does not differ from B by more than the margin."""

    @property
    def ratio(self) -> float | None:
        """B / A."""
        return self.after / self.before if self.before and self.after is not None else None


class FoundItem(Model):
    """One thing that differs between A and B."""

    name: str
    before: str = ""
    """Its value in A; empty where it has none."""
    after: str = ""
    note: str = ""
    """What is known of it: where it is in the menus, which file it is in."""

    @property
    def text(self) -> str:
        """`INIT_ON_ALLOC_DEFAULT_ON n → y`."""
        values = f"{self.before or '–'} → {self.after or '–'}"
        return f"{self.name} {values}" if self.before or self.after else self.name


Shares = dict[str, float]
"""Target's label → share of its difference: 1 is all of it. Shares beyond 1 and below 0 occur where causes
work against each other."""


class FoundMember(Model):
    """One item, or a group that goes together, of a cause."""

    items: tuple[FoundItem, ...]
    alone: Shares = Field(default_factory=dict)
    """What it does alone; empty where that was not measured, or cannot be."""
    without: Shares = Field(default_factory=dict)
    """What the others of its cause do without it."""


class FoundCause(Model):
    """A smallest set that explains a difference, or a part of one."""

    members: tuple[FoundMember, ...]
    needed: tuple[FoundItem, ...] = ()
    """What the members require."""
    needed_alone: Shares = Field(default_factory=dict)
    target: str
    """The label of the target that it was found for."""
    shares: Shares = Field(default_factory=dict)
    """What it adds to the causes before it."""
    ratios: dict[str, float] = Field(default_factory=dict)
    """Target's label → with the cause / without it."""


class Unresolved(Model):
    """A candidate that could not be measured."""

    candidate: str
    problem: str


INTERRUPTED = "it was interrupted"
"""Why a search stopped before its time."""


class BisectResult(Model):
    """The answer of one bisection."""

    kind: str
    """`config`, `knobs`, `patches` or `versions`."""
    before: str
    """What A is called."""
    after: str
    margin: float
    differing: int
    """How many things differ: options, knobs, patches, releases."""
    groups: int
    """How many of them can be chosen apart."""
    targets: tuple[FoundTarget, ...]
    causes: tuple[FoundCause, ...] = ()
    alternatives: tuple[FoundCause, ...] = ()
    """Sets that show the difference without the first cause."""
    measured: int = 0
    """Candidates, A and B among them."""
    built: int = 0
    """Kernels that had to be compiled, A and B among them; what was in the cache does not count."""
    builds: int = 0
    """Different kernels among the candidates, those from the cache too."""
    unresolved: tuple[Unresolved, ...] = ()
    notes: tuple[str, ...] = ()
    """What else must be known, a sentence each."""
    stopped: str = ""
    """Why the search ended before its time."""
    error_probability: float | None = None
    """In real time: the probability that any of the search's decisions is wrong, at most."""
    study: str = ""
    """The study that holds A, A with the causes, and B: for `ktrial explain`, `ktrial report`."""
    treatment: str = Field(default="", exclude=True)
    """What the study calls A with the causes, where it holds more than two candidates."""
    explanations: dict[str, Explanation] = Field(default_factory=dict, exclude=True)
    """Target's label → A against A with the causes, by function."""

    @property
    def found(self) -> bool:
        """Whether every difference is explained."""
        return bool(self.causes) and not self.stopped and all(target.explained for target in self.targets)
