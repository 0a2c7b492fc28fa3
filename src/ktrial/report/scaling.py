"""Tables over CPUs: how much more gets done with more of them, how latencies change, and where CPUs wait."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.table import Cell, Column, Field, Output, Table, name, table
from ktrial.model.parallel import (
    CoefficientEstimate,
    MetricOverCpus,
    PointOverCpus,
    ScalingCurve,
    ScalingPoint,
    Waits,
)

SCALING_MEANING = (
    "Speed-up: how many times as much gets done as with the fewest CPUs; of a time, how many times as fast. "
    "Efficiency: the share of each added CPU that is used. The law is Gunther's Universal Scalability Law: "
    "contention σ is the share of the work that is done one after another, coherence κ is what each pair of "
    "CPUs costs; in brackets stand their intervals at 95 % over the seeds. A contention above 1 is no share: "
    "several CPUs then get less done than one."
)
CHANGES_MEANING = (
    "A latency or a count does not say how much gets done, so it has no speed-up. Change: against the fewest "
    "CPUs."
)

_NOTHING = 1e-7
"""Below it a coefficient is what the fit left of zero."""


class CpusRow(NamedTuple):
    """One number of CPUs of one metric."""

    curve: MetricOverCpus
    point: PointOverCpus


class ScalingTables(NamedTuple):
    """What a report says about scaling; each table is empty where there is nothing to say."""

    points: Table
    """Of metrics that say how much gets done."""
    laws: Table
    changes: Table
    """Of latencies and counts."""


def scaling_tables(curves: Sequence[ScalingCurve], changes: Sequence[MetricOverCpus]) -> ScalingTables | None:
    """None where the number of CPUs is no factor."""
    if not curves and not changes:
        return None
    laws = table(_LAWS, [curve for curve in curves if curve.contention], "matrix scaling-laws")
    return ScalingTables(
        scaling_table(curves), laws, table(_CHANGES, _rows(changes), "matrix scaling-changes")
    )


def scaling_table(metrics: Sequence[MetricOverCpus]) -> Table:
    """One row a number of CPUs; latencies and counts have no speed-up."""
    return table(_POINTS, _rows(metrics), "matrix scaling")


def brief_table(metrics: Sequence[MetricOverCpus]) -> Table:
    """One row a metric, for narrow places: its value with the fewest CPUs, then speed-ups, or a latency's
    changes.
    """
    several = len({(metric.workload, metric.treatment) for metric in metrics}) < len(metrics)
    counts = sorted({point.cpus for metric in metrics for point in metric.points})

    def name_of(metric: MetricOverCpus) -> Cell:
        parts = (metric.workload, metric.metric if several else "", metric.treatment)
        return name(", ".join(filter(None, parts)))

    fewest = "1 CPU" if counts[0] == 1 else f"{counts[0]} CPUs"
    fields: list[Field[MetricOverCpus]] = [
        Field(Column("name", "workload", wraps=True), name_of),
        Field(Column("value", fewest, numeric=True), lambda metric: _brief_cell(metric, counts[0])),
    ]
    for count in counts[1:]:
        column = Column(f"cpus_{count}", f"{count} CPUs", numeric=True)
        fields.append(Field(column, partial(_brief_cell, cpus=count)))
    return table(fields, metrics, "matrix scaling")


def _brief_cell(metric: MetricOverCpus, cpus: int) -> Cell:
    """Of the fewest CPUs the value, of others `3.99×`, or of a latency `+212 %`."""
    first = metric.points[0]
    point = next((point for point in metric.points if point.cpus == cpus), None)
    if point is None:
        return Cell(None, number_format.NONE)
    if point is first:
        return _value(point.value, metric.unit)
    if isinstance(point, ScalingPoint):
        return Cell(point.speed_up, f"{point.speed_up:.2f}×")
    ratio = point.value / first.value if first.value else None
    return Cell(ratio, number_format.NONE if ratio is None else number_format.short_change(ratio))


def _rows(metrics: Sequence[MetricOverCpus]) -> list[CpusRow]:
    return [CpusRow(curve, point) for curve in metrics for point in curve.points]


def _value(value: float | None, unit: str) -> Cell:
    """Three digits and the unit: `31.0 ms`, `7,750,000 ops/s`; programs get the value as it was measured."""
    if value is None or number_format.is_time(unit):
        return Cell(value, number_format.quantity(value, unit))
    return Cell(value, f"{number_format.number(float(f'{value:.3g}'))}{number_format.SPACE}{unit}".rstrip())


def _speed_up(row: CpusRow) -> Cell:
    point = row.point
    return Cell(point.speed_up, f"{point.speed_up:.2f}") if isinstance(point, ScalingPoint) else Cell()


def _efficiency(row: CpusRow) -> Cell:
    point = row.point
    if not isinstance(point, ScalingPoint):
        return Cell()
    return Cell(point.efficiency, number_format.share(point.efficiency))


def _change(row: CpusRow) -> Cell:
    """Against the fewest CPUs; nothing where it was zero with them."""
    first = row.curve.points[0]
    ratio = row.point.value / first.value if first.value and row.point is not first else None
    return Cell(ratio, number_format.change(ratio))


def _coefficient(estimate: CoefficientEstimate | None) -> Cell:
    if estimate is None:
        return Cell()
    text = number_format.number(_short(estimate.value))
    if estimate.low is None or estimate.high is None:
        return Cell(estimate.value, text)
    low, high = (number_format.number(_short(value)) for value in (estimate.low, estimate.high))
    return Cell(estimate.value, f"{text} ({low} … {high})")


def _short(value: float) -> float:
    """Three significant digits; what is next to nothing is nothing."""
    return 0.0 if value < _NOTHING else float(f"{value:.3g}")


def _peak(curve: ScalingCurve) -> Cell:
    most = curve.points[-1].cpus
    if curve.peak is None:
        return Cell(None, "none")
    # Far beyond what was measured the law is a guess.
    return Cell(curve.peak, f"{curve.peak:.0f}" if curve.peak <= 4 * most else f"beyond {4 * most}")


def _limit(low: bool, coefficient: str) -> Field[ScalingCurve]:
    end = "low" if low else "high"
    column = Column(f"{coefficient}_{end}", numeric=True, outputs=Output.PROGRAMS)

    def cell(curve: ScalingCurve) -> Cell:
        estimate: CoefficientEstimate | None = getattr(curve, coefficient)
        return Cell(getattr(estimate, end) if estimate else None)

    return Field(column, cell)


_PLACE: tuple[Field[CpusRow], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda row: name(row.curve.workload)),
    Field(Column("metric", "metric", wraps=True), lambda row: name(row.curve.metric)),
    Field(Column("treatment", "treatment", wraps=True), lambda row: name(row.curve.treatment)),
    Field(Column("cpus", "CPUs", numeric=True), lambda row: Cell(row.point.cpus, str(row.point.cpus))),
    Field(Column("value", "value", numeric=True), lambda row: _value(row.point.value, row.curve.unit)),
    Field(Column("unit", outputs=Output.PROGRAMS), lambda row: Cell(row.curve.unit)),
    Field(Column("lowest", numeric=True, outputs=Output.PROGRAMS), lambda row: Cell(row.point.lowest)),
    Field(Column("highest", numeric=True, outputs=Output.PROGRAMS), lambda row: Cell(row.point.highest)),
    Field(Column("seeds", numeric=True, outputs=Output.PROGRAMS), lambda row: Cell(row.curve.seeds)),
)

_POINTS: tuple[Field[CpusRow], ...] = (
    *_PLACE,
    Field(Column("speed_up", "speed-up", numeric=True), _speed_up),
    Field(Column("efficiency", "efficiency", "%", numeric=True), _efficiency),
)

_CHANGES: tuple[Field[CpusRow], ...] = (
    *_PLACE,
    Field(Column("change", "change", numeric=True), _change),
)

_LAWS: tuple[Field[ScalingCurve], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda row: name(row.workload)),
    Field(Column("treatment", "treatment", wraps=True), lambda row: name(row.treatment)),
    Field(Column("of_one", "one CPU, by the law", numeric=True), lambda row: _value(row.of_one, row.unit)),
    Field(Column("contention", "contention σ", numeric=True), lambda row: _coefficient(row.contention)),
    _limit(True, "contention"),
    _limit(False, "contention"),
    Field(Column("coherence", "coherence κ", numeric=True), lambda row: _coefficient(row.coherence)),
    _limit(True, "coherence"),
    _limit(False, "coherence"),
    Field(Column("peak", "peak at CPUs", numeric=True), _peak),
)


# The table of what CPUs spend no work on.

WAITS_MEANING = (
    "Waiting: in loops until another CPU has done something; idle: with nothing to run; in percent of the "
    "time of all CPUs, under the first seed. Beside it stands the place that has most of it, and who wanted "
    "the lock."
)


def waits_table(waits: Sequence[Waits]) -> Table | None:
    """One row a workload, treatment and number of CPUs; None where nothing was counted."""
    return table(_WAITS, list(waits), "matrix waits") if waits else None


def _waits_share(value: float) -> Cell:
    return Cell(value, f"{value * 100:.1f}")


_WAITS: tuple[Field[Waits], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda row: name(row.workload)),
    Field(Column("treatment", "treatment", wraps=True), lambda row: name(row.treatment)),
    Field(Column("cpus", "CPUs", numeric=True), lambda row: Cell(row.cpus, str(row.cpus))),
    Field(Column("waiting", "waiting", "%", numeric=True), lambda row: _waits_share(row.waiting)),
    Field(Column("waiting_in", "waiting in", wraps=True), lambda row: name(row.waiting_in)),
    Field(Column("idle", "idle", "%", numeric=True), lambda row: _waits_share(row.idle)),
    Field(Column("asleep_in", "asleep in", wraps=True), lambda row: name(row.asleep_in)),
)
