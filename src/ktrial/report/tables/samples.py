"""The tables of single numbers, for programs: a row a sample, or a moment of what was read over time."""

from typing import NamedTuple

from ktrial.format.table import Cell, Column, Field, Table, table
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Series, Trial, TrialSampled
from ktrial.model.workload import Sample


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
    return Field(Column(name), lambda it: Cell(getattr(it.sample, name)))


SAMPLES: tuple[Field[SampleRow], ...] = (
    Field(Column("order"), lambda it: Cell(it.trial.planned.order)),
    Field(Column("block"), lambda it: Cell(it.trial.planned.block)),
    Field(Column("treatment"), lambda it: Cell(it.trial.planned.treatment.label)),
    Field(Column("perturbation"), lambda it: Cell(it.trial.planned.perturbation.number)),
    Field(Column("outcome"), lambda it: Cell(it.trial.outcome)),
    Field(Column("kernel_release"), lambda it: Cell(it.trial.provenance.kernel_release)),
    *map(
        _of_sample,
        (
            *("workload", "metric", "unit", "direction", "mode"),
            *("value", "operations", "minimum", "median", "mean"),
        ),
    ),
)

SERIES: tuple[Field[Moment], ...] = (
    Field(Column("treatment"), lambda it: Cell(it.read.treatment)),
    Field(Column("workload"), lambda it: Cell(it.read.sampled.workload)),
    Field(Column("name"), lambda it: Cell(it.series.name)),
    Field(Column("unit"), lambda it: Cell(it.series.unit)),
    Field(Column("kind"), lambda it: Cell(it.series.kind)),
    Field(Column("seconds"), lambda it: Cell(it.seconds)),
    Field(Column("value"), lambda it: Cell(it.value)),
)


def samples(record: StudyRecord) -> Table:
    """One row a sample."""
    return table(SAMPLES, (SampleRow(trial, sample) for trial in record.trials for sample in trial.samples))


def series(record: StudyRecord) -> Table:
    """One row a moment of a series."""
    return table(
        SERIES,
        (
            Moment(read, one, seconds, value)
            for read in record.sampled
            for one in read.sampled.series
            for seconds, value in zip(read.sampled.times, one.values, strict=True)
        ),
    )
