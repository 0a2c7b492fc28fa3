"""Comparisons, their verdicts, and treatments whose numbers scatter otherwise than the baseline's."""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from ktrial.model.base import Model
from ktrial.model.design import LevelValue
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import BESIDE_THE_OWN, EXACT_MODES, Direction, Mode

ONE_PERTURBATION = "one perturbation: no interval"
"""What stands in the place of an interval where exact numbers have one perturbation."""


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
    NOT_TESTED = "not-tested"
    """A setting reached nothing: what it decides about never happened, on either side."""
    IDENTICAL = "identical"
    """The kernels are the same image, bit by bit, and nothing else differs: there is nothing to compare."""


class Estimand(StrEnum):
    """What a verdict on timed numbers is about."""

    TYPICAL = "typical"
    """Where a trial of the typical block lies: Hodges and Lehmann's location."""
    TOTAL = "total"
    """The arithmetic mean: what a throughput or a bill feels."""
    TAIL = "tail"
    """What nine trials of ten do not exceed, counted towards worse."""


FEWEST_BLOCKS = {Estimand.TOTAL: 30, Estimand.TAIL: 60}
"""Estimand → blocks before which there is no verdict: those in which its spikes may not have been met."""
TYPICALLY = "typically"


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
    """The interval of the ratio; None for both ends where there is none, as of one perturbation, and for one
    that is open, as where trials failed."""
    verdict: Verdict
    mode: Mode
    reason: str = ""
    """Why the verdict is inconclusive, in one sentence."""
    estimand: Estimand | None = None
    """What a verdict on timed numbers is about; None of exact ones."""
    beside: str = ""
    """Where other trials than the typical ones say otherwise, or trials failed, or all count the same: in one
    clause."""
    blocks: int = 0
    """How many the verdict is from; 0 of exact numbers."""
    unseen: float | None = None
    """The share of trials up to which spikes are not ruled out (95 % sure); None without a verdict."""

    @property
    def tails_disagree(self) -> bool:
        """Whether typical trials and all together say different things: then what stands beside begins so."""
        return self.beside.startswith(TYPICALLY)

    @property
    def bound(self) -> str:
        """`spikes in up to 39 % of trials are not ruled out after 6 blocks`; empty where there is none."""
        if self.unseen is None:
            return ""
        share = f"{self.unseen * 100:.2g}".rstrip(".")
        return f"spikes in up to {share} % of trials are not ruled out after {self.blocks} blocks"

    @property
    def no_interval(self) -> str:
        """Why an exact ratio has no interval; empty where it has one."""
        return why_no_interval(self.ratio, self.low, self.mode)

    @property
    def reach(self) -> tuple[float | None, float | None]:
        """The ends of the interval; where an exact ratio has none, twice that ratio."""
        return (self.ratio, self.ratio) if self.no_interval else (self.low, self.high)


def why_no_interval(ratio: float | None, low: float | None, mode: Mode) -> str:
    """ONE_PERTURBATION where an exact ratio has no interval; else empty."""
    return ONE_PERTURBATION if ratio is not None and low is None and mode in EXACT_MODES else ""


def what_is_counted(rows: Iterable[tuple[str, str, str]]) -> str:
    """What rows are, each a workload, a metric and a treatment, so that who counts verdicts says of what.

    `6 workloads`, `8 metrics` where a workload has several, `30 comparisons` of several treatments.
    """
    every = list(rows)
    workloads, treatments = {row[0] for row in every}, {row[2] for row in every}
    word = "workload" if len(workloads) == len(every) else "metric"
    word = "comparison" if len(treatments) > 1 else word
    return f"{len(every):,} {word}" if len(every) == 1 else f"{len(every):,} {word}s"


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
    """The interval of the ratio; None where there is none, as of one perturbation."""
    verdict: Verdict
    """Better, worse: both changes together than each alone tells. Equivalent: within the margin they
    multiply."""
    reason: str = ""
    """Why the verdict is inconclusive, in one sentence."""

    @property
    def no_interval(self) -> str:
        """Why an exact ratio has no interval; empty where it has one."""
        return why_no_interval(self.ratio, self.low, self.mode)


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


# Versions by workloads: every comparison of a study with its baseline, as a table. Plain data.


class MatrixCell(Model):
    """One workload under one treatment."""

    comparison: Comparison | None
    """None where the study has none."""
    why: str = ""
    """The command that says what the change is made of; empty where there is no change, or no profile."""
    scatter: tuple[Scatter, ...] = ()
    """How it scatters, where that is otherwise than the baseline."""


class MatrixRow(Model):
    """One metric of one workload."""

    name: str
    workload: str
    metric: str
    unit: str
    baseline: float | None
    cells: tuple[MatrixCell, ...]
    """One a column."""


class Matrix(Model):
    """A study as a heat map."""

    study_id: int
    study: str
    baseline: str
    columns: tuple[str, ...]
    """The other treatments, in the study's order."""
    rows: tuple[MatrixRow, ...]
    answer: str
    margin: float
    trials: int = 0
    """How many the numbers are from: all that the study has."""
    problems: tuple[str, ...] = ()
    """Treatments without numbers, and why."""

    @property
    def by_workload(self) -> tuple[tuple[str, tuple[MatrixRow, ...]], ...]:
        """The rows of each workload, with its name."""
        rows_of: dict[str, list[MatrixRow]] = {}
        for row in self.rows:
            rows_of.setdefault(row.workload, []).append(row)
        return tuple((workload, tuple(rows)) for workload, rows in rows_of.items())

    @property
    def has_scatter(self) -> bool:
        """Whether any treatment scatters otherwise than the baseline."""
        return any(cell.scatter for row in self.rows for cell in row.cells)


# A study's result in brief: what a page of many results says of each, without its trials.

COMPARISON_FIELDS = tuple(Comparison.model_fields)
"""What a comparison says, in this order."""


_WORKLOAD, _METRIC, _TREATMENT, _BASELINE, _VALUE, _RATIO, _VERDICT = map(
    COMPARISON_FIELDS.index,
    ("workload", "metric", "treatment", "baseline_value", "value", "ratio", "verdict"),
)


_CHANGED = (Verdict.BETTER.value, Verdict.WORSE.value)


class WarningsAlike(NamedTuple):
    """Warnings of one kind that have one advice: the first of them, and the number of them."""

    first: DataWarning
    number: int


class BriefResult(NamedTuple):
    """What a study came to."""

    answer: str
    modes: tuple[Mode, ...]
    """Of all numbers, in the order of Mode."""
    planned: int
    completed: int
    failed: int
    """Trials that ended otherwise than completed."""
    started: str
    """When the first trial began, as ISO 8601; empty where none did."""
    warnings: tuple[WarningsAlike, ...]
    rows: Sequence[Sequence[Any]]
    """Its comparisons, each with the values of COMPARISON_FIELDS as JSON has them: a page of ten thousand
    results reads a million, and shows few."""

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        """The comparisons as JSON."""
        return [dict(zip(COMPARISON_FIELDS, row, strict=True)) for row in self.rows]

    @property
    def measured(self) -> set[str]:
        """Workloads (their labels) that have a number."""
        return {row[_WORKLOAD] for row in self.rows if row[_VALUE] is not None or row[_BASELINE] is not None}

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How often each verdict was reached in the workloads' own metrics, which the answer counts."""
        counted = Counter(row[_VERDICT] for row in self._main)
        return Counter({Verdict(verdict): count for verdict, count in counted.items()})

    @property
    def counted(self) -> str:
        """Of what the verdicts are: `6 workloads`."""
        return what_is_counted((row[_WORKLOAD], row[_METRIC], row[_TREATMENT]) for row in self._main)

    def largest(self, most: int) -> list[dict[str, Any]]:
        """The changes for better or worse, the largest first; of the same size as the study has them."""
        changed = (row for row in self._main if row[_VERDICT] in _CHANGED)
        in_order = sorted(changed, key=lambda row: -_size(row[_RATIO]))
        return [dict(zip(COMPARISON_FIELDS, row, strict=True)) for row in in_order[:most]]

    @property
    def _main(self) -> Sequence[Sequence[Any]]:
        return [row for row in self.rows if row[_METRIC] not in BESIDE_THE_OWN] or self.rows


def _size(ratio: float | None) -> float:
    """How far a ratio is from 1, either way; what has none, as after zero, comes first."""
    return max(ratio, 1 / ratio) if ratio else float("inf")


# What a machine's A/A study says about the studies that it can carry.


class MetricCalibration(Model):
    """One metric of one workload, the same treatment in every arm."""

    workload: str
    metric: str
    blocks: int
    ratio_spread: float
    """Standard deviation of a block's log ratio: 0.014 is about 1.4 %."""
    false_alarms: float
    """Share of pseudo-studies (labels exchanged within blocks) that found a difference where none is."""
    smallest_effect: float
    """The smallest relative change that 95 of 100 studies find within the design's blocks."""
    suggested_blocks: int | None
    """Blocks with which 95 of 100 studies find a change of the margin's size; None: no sensible number."""


class Calibration(Model):
    """The calibration of one machine."""

    machine: str = ""
    margin: float
    metrics: tuple[MetricCalibration, ...]

    @property
    def largest_spread(self) -> float:
        """That of the least steady metric: what a study of all of them has to be planned for."""
        return max(metric.ratio_spread for metric in self.metrics)
