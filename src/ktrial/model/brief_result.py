"""A study's result in brief: what a page of many results says of each, without its trials."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Mode

COMPARISON_FIELDS = tuple(Comparison.model_fields)
"""What a comparison says, in this order."""
_WORKLOAD, _BASELINE, _VALUE, _RATIO, _VERDICT = map(
    COMPARISON_FIELDS.index, ("workload", "baseline_value", "value", "ratio", "verdict")
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
        """How often each verdict was reached."""
        counted = Counter(row[_VERDICT] for row in self.rows)
        return Counter({Verdict(verdict): count for verdict, count in counted.items()})

    def largest(self, most: int) -> list[dict[str, Any]]:
        """The changes for better or worse, the largest first; of the same size as the study has them."""
        changed = (row for row in self.rows if row[_VERDICT] in _CHANGED)
        in_order = sorted(changed, key=lambda row: -_size(row[_RATIO]))
        return [dict(zip(COMPARISON_FIELDS, row, strict=True)) for row in in_order[:most]]


def _size(ratio: float | None) -> float:
    """How far a ratio is from 1, either way; what has none, as after zero, comes first."""
    return max(ratio, 1 / ratio) if ratio else float("inf")
