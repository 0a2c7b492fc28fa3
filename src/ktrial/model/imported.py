"""Measurements from elsewhere: what an importer reads, what their analysis says, and UnixBench's index."""

from datetime import datetime

from pydantic import Field

from ktrial.model.base import Model
from ktrial.model.comparison import Comparison
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction


class Rounded(Model):
    """A number as it was printed: all that is known is that it lies within half a unit of the last digit."""

    value: float
    half_unit: float = 0.0
    """Half a unit of the last digit printed; 0 for a number that was not rounded."""

    @property
    def least(self) -> float:
        """The smallest number that is printed so; not below zero for one that is above."""
        return self.value - self.half_unit

    @property
    def most(self) -> float:
        """The largest number that is printed so."""
        return self.value + self.half_unit


class Summary(Model):
    """What is left of a group's runs where only a table was published."""

    mean: Rounded
    standard_error: Rounded | None = None
    sd: Rounded | None = None
    """In the metric's unit."""
    sd_percent: Rounded | None = None
    """In per cent of the mean."""
    runs: int | None = None


class Group(Model):
    """One treatment's numbers for one metric."""

    label: str
    factors: dict[str, str] = Field(default_factory=dict)
    """Factor → level, as far as the file tells them apart."""
    is_default: bool = False
    """Whether the file calls this the default: in every family the same treatment, then."""
    values: tuple[float, ...] = ()
    """One a run, in the file's order."""
    runs: tuple[str, ...] = ()
    """A name for each value (`trial 2`); empty where there are none."""
    summary: Summary | None = None
    """In place of values."""
    failed: int = 0
    """Runs that gave no value."""
    conditions: dict[str, str] = Field(default_factory=dict)
    """Under which it was measured, as far as the file tells: `clients` → `4`."""


class Family(Model):
    """Groups that are compared with each other: one metric, one factor or set of factors."""

    name: str
    """`aio-stress`, `vm.swappiness`; what tells this family from others in the file."""
    metric: str
    unit: str = ""
    direction: Direction | None = None
    """None where the file does not tell."""
    groups: tuple[Group, ...]
    """In the file's order."""
    blocked: bool = False
    """Whether each value's run is the block that it stands in: every group once in each, in random order."""
    run_order: tuple[str, ...] = ()
    """Labels in the order in which the runs took place; empty where the file does not tell."""


class IndexRow(Model):
    """A test's result with the index that was published for it: index = 10 · result / baseline."""

    group: str
    run: str = ""
    test: str
    baseline: Rounded
    result: Rounded
    index: Rounded


class Score(Model):
    """A total that was published: the geometric mean of a run's indices."""

    group: str
    run: str = ""
    score: Rounded
    indices: dict[str, Rounded]
    """Test → index, of those that were published with it."""
    tests: int
    """How many tests the score is made of."""


class Imported(Model):
    """Everything that was read from one file."""

    source: str
    """The file's name."""
    format: str
    """The importer's name: `csv`, `phoronix`…"""
    families: tuple[Family, ...]
    index_rows: tuple[IndexRow, ...] = ()
    scores: tuple[Score, ...] = ()
    warnings: tuple[DataWarning, ...] = ()
    understood: str = ""
    """How the columns of a table were taken, with the options that say otherwise."""
    started: datetime | None = None
    """When the run began that the file holds, on the clock of its machine; None where it does not say."""


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
    """The mean's interval, from the group's own SD; None with fewer than two runs, or all runs alike."""
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
    understood: tuple[str, ...] = ()
    """How the columns of each table were taken, and the options that say otherwise."""
    families: tuple[FamilyAnalysis, ...]
    scores: tuple[RecomputedScore, ...] = ()
    findings: tuple[DataWarning, ...]
    """The audit's."""
    answer: str
    """In a sentence or two."""


BASELINES = {
    "Dhrystone 2 using register variables": 116700.0,
    "Double-Precision Whetstone": 55.0,
    "Execl Throughput": 43.0,
    "File Copy 1024 bufsize 2000 maxblocks": 3960.0,
    "File Copy 256 bufsize 500 maxblocks": 1655.0,
    "File Copy 4096 bufsize 8000 maxblocks": 5800.0,
    "Pipe Throughput": 12440.0,
    "Pipe-based Context Switching": 4000.0,
    "Process Creation": 126.0,
    "Shell Scripts (1 concurrent)": 42.4,
    "Shell Scripts (8 concurrent)": 6.0,
    "System Call Overhead": 15000.0,
}
"""Test → the result of the SPARCstation 20-61 that counts as an index of 10 (UnixBench's pgms/index.base)."""


SCORE = "System Benchmarks Index Score"
"""The geometric mean of the twelve indices."""
