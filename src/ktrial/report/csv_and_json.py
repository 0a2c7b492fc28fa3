"""CSV as RFC 4180 has it: CR LF, a header row, quotes where they are needed."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ktrial.analysis.scaling import changes, curves, waits
from ktrial.format.sanitize import one_line
from ktrial.format.table import Cell, Column, Field, Output, Table, plain, table
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Series, Trial, TrialSampled
from ktrial.model.workload import Sample
from ktrial.report import comparisons as comparison_table
from ktrial.report import provenance, study_summary
from ktrial.report.attribution import DifferencePart, Why
from ktrial.report.proof import proof_as_json


def csv_text(table: Table) -> str:
    """What CSV shows of the table. Numbers carry all their digits."""
    shown = table.shown(Output.CSV)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(column.key for column in shown.columns)
    writer.writerows([_cell(cell.value) for cell in row.cells] for row in shown.rows)
    return text.getvalue()


def _cell(value: object) -> object:
    """Text on one line; numbers with all their digits; None is empty; of several values a list with spaces.

    A text that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, 'CSV injection').
    """
    value = " ".join(map(str, value)) if isinstance(value, tuple) else plain(value)
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


# The tables of single numbers, for programs: a row a sample, or a moment of what was read over time.


class SampleRow(NamedTuple):
    """One sample, and the trial that it is of."""

    trial: Trial
    sample: Sample


class Moment(NamedTuple):
    """One reading of one series."""

    read: TrialSampled
    series: Series
    seconds: float
    value: float


def _of_sample(name: str) -> Field[SampleRow]:
    return Field(Column(name), lambda row: Cell(getattr(row.sample, name)))


SAMPLES: tuple[Field[SampleRow], ...] = (
    Field(Column("order"), lambda row: Cell(row.trial.planned.order)),
    Field(Column("block"), lambda row: Cell(row.trial.planned.block)),
    Field(Column("treatment"), lambda row: Cell(row.trial.planned.treatment.label)),
    Field(Column("perturbation"), lambda row: Cell(row.trial.planned.perturbation.number)),
    Field(Column("outcome"), lambda row: Cell(row.trial.outcome_of(row.sample.workload))),
    Field(Column("kernel_release"), lambda row: Cell(row.trial.provenance.kernel_release)),
    *map(
        _of_sample,
        (
            *("workload", "metric", "unit", "direction", "mode"),
            *("value", "operations", "minimum", "median", "mean"),
        ),
    ),
)

SERIES: tuple[Field[Moment], ...] = (
    Field(Column("treatment"), lambda row: Cell(row.read.treatment)),
    Field(Column("workload"), lambda row: Cell(row.read.sampled.workload)),
    Field(Column("name"), lambda row: Cell(row.series.name)),
    Field(Column("unit"), lambda row: Cell(row.series.unit)),
    Field(Column("kind"), lambda row: Cell(row.series.kind)),
    Field(Column("seconds"), lambda row: Cell(row.seconds)),
    Field(Column("value"), lambda row: Cell(row.value)),
)


def samples_table(record: StudyRecord) -> Table:
    """One row a sample."""
    return table(SAMPLES, (SampleRow(trial, sample) for trial in record.trials for sample in trial.samples))


def series_table(record: StudyRecord) -> Table:
    """One row a moment of a series."""
    return table(
        SERIES,
        (
            Moment(read, series, seconds, value)
            for read in record.sampled
            for series in read.sampled.series
            for seconds, value in zip(read.sampled.times, series.values, strict=True)
        ),
    )


# The whole result of a study as JSON, for other programs; and what its differences are made of.


def record_as_json(
    record: StudyRecord, store: str, report: Path | None = None, whys: Sequence[Why] = ()
) -> dict[str, Any]:
    """What `run`, `compare` and `show` print with --json; docs/commands.md names every field."""
    return {
        "study": record.study.name,
        "question": record.study.question,
        "answer": record.result.answer,
        "comparisons": comparison_table.of_all(record).data(),
        "interactions": [item.model_dump(mode="json") for item in record.result.interactions],
        "scaling": [item.model_dump(mode="json") for item in curves(record)],
        "over_cpus": [item.model_dump(mode="json") for item in changes(record)],
        "waits": [item.model_dump(mode="json") for item in waits(record)],
        "variability": [item.model_dump(mode="json") for item in record.result.variability],
        "builds": provenance.builds_as_json(record),
        "why": whys_as_json(whys),
        "warnings": [warning.model_dump(mode="json") for warning in study_summary.warnings(record)],
        "kernels": [item.model_dump(mode="json") for item in record.kernels],
        "series": [item.model_dump(mode="json") for item in record.sampled],
        "trials": [_trial(trial) for trial in record.trials],
        "planned": record.planned,
        "settings": record.study.model_dump(mode="json"),
        "created": record.created.isoformat(),
        "store": store,
        "report": str(report) if report else None,
        "id": record.id,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    data = trial.model_dump(mode="json", exclude={"planned", "console", "warnings", "sampled"})
    planned = trial.planned
    return {
        "treatment": planned.treatment.label,
        "levels": planned.treatment.levels,
        "perturbation": planned.perturbation.number,
        "block": planned.block,
        **data,
    }


def whys_as_json(whys: Sequence[Why]) -> list[dict[str, Any]]:
    """What `run`, `compare` and `show` have as `why`; docs/commands.md names the fields."""
    return [
        {
            "workload": why.workload,
            "baseline": why.baseline,
            "treatment": why.treatment,
            "unit": "instructions/operation",
            "from": why.total.before,
            "to": why.total.after,
            "difference": why.total.difference,
            "unexplained": why.unexplained,
            "functions": [_part(part) for part in why.parts],
            "others": _part(why.remainder),
            "causes": why.causes,
            "proof": proof_as_json(why.proof) if why.proof else None,
            "subsystems": {part.name: part.difference for part in why.subsystems},
            **({"notice": why.notice} if why.notice else {}),
        }
        for why in whys
    ]


def _part(part: DifferencePart) -> dict[str, Any]:
    return {
        "function": part.name,
        "subsystem": part.subsystem,
        "match": part.match.value,
        "from": part.before,
        "to": part.after,
        "difference": part.difference,
        "share": part.share,
        "string_bytes_difference": part.byte_difference,
    }
