"""Comparisons and their verdicts."""

from enum import StrEnum

from ktrial.model.advice import DataWarning
from ktrial.model.base import Model
from ktrial.model.workload import Direction, Mode


class Verdict(StrEnum):
    """Never just 'significant'."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


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


class Result(Model):
    """A study's whole answer."""

    study: str
    question: str
    answer: str
    """One sentence."""
    comparisons: tuple[Comparison, ...]
    warnings: tuple[DataWarning, ...] = ()
