"""What can be said about measurements from elsewhere."""

from ktrial.model.base import Model
from ktrial.model.comparison import Comparison
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction


class GroupAnalysis(Model):
    """One group: mean and standard deviation with their intervals."""

    label: str
    runs: int | None
    """None where neither the file tells nor anything lets it be recovered."""
    runs_recovered: bool = False
    """Whether `runs` was computed from SD and standard error."""
    mean: float
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    """The mean's interval, from the group's own SD; None with fewer than two runs."""
    sd_low: float | None = None
    sd_high: float | None = None
    """The SD's interval; all groups' hold together (Bonferroni)."""


class Anova(Model):
    """One-way analysis of variance."""

    f: float
    between: float
    """Degrees of freedom."""
    within: float
    p: float
    ss_between: float | None = None
    ss_within: float | None = None
    """Sums of squares; None in Welch's test, which has none."""


class Pair(Model):
    """Two groups' means, as Games and Howell compare them."""

    group: str
    against: str
    difference: float
    """Mean of `group` - mean of `against`."""
    standard_error: float
    df: float
    low: float
    high: float
    p: float


class FamilyAnalysis(Model):
    """One family of groups, analysed."""

    source: str
    name: str
    metric: str
    unit: str
    direction: Direction | None
    baseline: str
    blocked: bool = False
    """Whether the runs stand in blocks, and the comparisons are made within them."""
    groups: tuple[GroupAnalysis, ...]
    anova: Anova | None = None
    welch: Anova | None = None
    pairs: tuple[Pair, ...] = ()
    """Every group against the baseline; their intervals hold for all pairs together."""
    comparisons: tuple[Comparison, ...] = ()


class RecomputedScore(Model):
    """A geometric mean of indices, recomputed from a run's results."""

    group: str
    run: str
    score: float


class Analysis(Model):
    """Everything about the files."""

    confidence: float
    margin: float
    families: tuple[FamilyAnalysis, ...]
    scores: tuple[RecomputedScore, ...] = ()
    findings: tuple[DataWarning, ...]
    """The audit's."""
    answer: str
    """In a sentence or two."""
