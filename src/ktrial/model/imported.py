"""Measurements from elsewhere: what an importer reads from a file of another tool, or from a paper."""

from datetime import datetime

from pydantic import Field

from ktrial.model.base import Model
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
    started: datetime | None = None
    """When the run began that the file holds, on the clock of its machine; None where it does not say."""
