"""CSV as RFC 4180 has it: CR LF, a header row, quotes where they are needed."""

import csv
import io
from collections.abc import Iterable

from ktrial.format.sanitize import one_line
from ktrial.model.comparison import Comparison
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.workload import Sample
from ktrial.report.text.dispersion import scatters

_COMPARISON = (
    "workload",
    "metric",
    "unit",
    "direction",
    "baseline",
    "treatment",
    "baseline_value",
    "value",
    "ratio",
    "low",
    "high",
    "verdict",
    "mode",
    "reason",
)
_SAMPLE = (
    "workload",
    "metric",
    "unit",
    "direction",
    "mode",
    "value",
    "operations",
    "minimum",
    "median",
    "mean",
)
_SERIES = ("treatment", "workload", "name", "unit", "kind", "seconds", "value")
_TRIAL = ("order", "block", "treatment", "perturbation", "outcome", "kernel_release")


def comparisons(record: StudyRecord) -> str:
    """One row a comparison. `scatter`: how its treatment scatters, where not as the baseline does."""
    found = record.result.variability
    rows = (
        [*_fields(comparison, _COMPARISON), " ".join(scatters(found, comparison))]
        for comparison in record.result.comparisons
    )
    return _table((*_COMPARISON, "scatter"), rows)


def samples(record: StudyRecord) -> str:
    """One row a sample."""
    rows = (
        [*_trial(trial), *_fields(sample, _SAMPLE)] for trial in record.trials for sample in trial.samples
    )
    return _table((*_TRIAL, *_SAMPLE), rows)


def series(record: StudyRecord) -> str:
    """One row a moment of a series."""
    rows: Iterable[list[object]] = (
        [one.treatment, one.sampled.workload, each.name, each.unit, each.kind.value, seconds, value]
        for one in record.sampled
        for each in one.sampled.series
        for seconds, value in zip(one.sampled.times, each.values, strict=True)
    )
    return _table(_SERIES, rows)


def _trial(trial: Trial) -> list[object]:
    planned = trial.planned
    return [
        planned.order,
        planned.block,
        planned.treatment.label,
        planned.perturbation.number,
        trial.outcome.value,
        trial.provenance.kernel_release,
    ]


def _fields(row: Comparison | Sample, names: tuple[str, ...]) -> list[object]:
    return [getattr(row, name) for name in names]


def _table(header: tuple[str, ...], rows: Iterable[list[object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Text on one line; numbers with all their digits; None is empty.

    A text that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, 'CSV injection').
    """
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
