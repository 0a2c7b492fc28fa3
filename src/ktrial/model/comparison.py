"""Comparisons, their verdicts, and treatments whose numbers scatter otherwise than the baseline's."""

from enum import StrEnum

from ktrial.model.base import Model
from ktrial.model.levels import LevelValue
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Direction, Mode


class Scatter(StrEnum):
    """How a treatment's numbers lie, beside the baseline's."""

    WIDER = "wider"
    NARROWER = "narrower"
    TWO_MODES = "two-modes"
    """They lie about two values, where the baseline's lie about one."""
    ONE_MODE = "one-mode"
    """They lie about one value, where the baseline's lie about two."""


class Mound(Model):
    """One of the two values about which an arm's numbers lie."""

    value: float
    """The geometric mean of the numbers about it."""
    trials: int


class Variability(Model):
    """One treatment that scatters otherwise than the baseline, for one metric of one workload."""

    workload: str
    metric: str
    unit: str
    mode: Mode
    baseline: str
    treatment: str
    scatter: Scatter
    baseline_spread: float
    """Exact: largest / smallest - 1 over the perturbations. Timed: the standard deviation of the logarithms,
    over the blocks. 0.01 is 1 % in both."""
    spread: float
    """The same of the treatment."""
    trials: int
    """Of each of the two."""
    p: float
    """Adjusted for everything that the study was asked (Holm)."""
    modes: tuple[Mound, ...] = ()
    """Of the one that has two modes, the lower one first; none where it is about the spread."""


class Verdict(StrEnum):
    """Never just 'significant'."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    IDENTICAL = "identical"
    """The kernels are the same image, bit by bit, and nothing else differs: there is nothing to compare."""


class Comparison(Model):
    """One treatment against the baseline, for one metric of one workload."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    baseline: str
    """Label of the baseline treatment."""
    treatment: str
    baseline_value: float | None
    value: float | None
    ratio: float | None
    """value / baseline_value; None where one of the two has no number."""
    low: float | None
    high: float | None
    """The interval of the ratio."""
    verdict: Verdict
    mode: Mode
    reason: str = ""
    """Why the verdict is inconclusive, in one sentence."""


class Interaction(Model):
    """Whether what one factor changes depends on another factor; for one metric of one workload.

    All other factors are as in the baseline.
    """

    workload: str
    metric: str
    unit: str
    direction: Direction
    mode: Mode
    first: str
    """The factor whose effect is looked at."""
    first_levels: tuple[LevelValue, LevelValue]
    """Its baseline, and the level that it is changed to."""
    second: str
    second_levels: tuple[LevelValue, LevelValue]
    treatments: tuple[str, str, str, str]
    """Labels of the four treatments: baseline, the first factor changed, the second, both."""
    effect: float | None
    """What the first factor's change multiplies the metric by while the second is at its baseline; None where
    there is no number."""
    effect_beside: float | None
    """The same while the second factor is at its other level."""
    ratio: float | None
    """effect_beside / effect: 1 where the two effects multiply."""
    low: float | None
    high: float | None
    """The interval of the ratio."""
    verdict: Verdict
    """Better, worse: both changes together than each alone tells. Equivalent: within the margin they
    multiply."""
    reason: str = ""
    """Why the verdict is inconclusive, in one sentence."""


class Result(Model):
    """A study's whole answer."""

    study: str
    question: str
    answer: str
    """One sentence."""
    comparisons: tuple[Comparison, ...]
    interactions: tuple[Interaction, ...] = ()
    """Of every two factors whose four combinations were run, for every metric."""
    variability: tuple[Variability, ...] = ()
    """Treatments that scatter otherwise than the baseline, whatever their verdicts."""
    warnings: tuple[DataWarning, ...] = ()
