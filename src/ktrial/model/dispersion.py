"""Treatments that scatter otherwise than the baseline: a result of its own, whatever the means say."""

from enum import StrEnum

from ktrial.model.base import Model
from ktrial.model.workload import Mode


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
