"""The table of scaling: throughput over CPUs, of each workload under each treatment."""

from collections.abc import Sequence
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.table import Cell, Column, Field, Output, Table, name, table
from ktrial.model.parallel import CoefficientEstimate, ScalingCurve, ScalingPoint, Waits

SCALING_MEANING = (
    "Speed-up is the throughput by that of the fewest CPUs, efficiency what of each added CPU is used. The "
    "law is Gunther's Universal Scalability Law: contention σ is the share that is done one after another, "
    "coherence κ what each pair of CPUs costs; in brackets their intervals at 95 % over the seeds. A "
    "contention above 1 is no share: several CPUs then get less done than one."
)

_NOTHING = 1e-7
"""Below it a coefficient is what the fit left of zero."""


class ScalingRow(NamedTuple):
    """One number of CPUs of one curve."""

    curve: ScalingCurve
    point: ScalingPoint


class ScalingTables(NamedTuple):
    """What a report says about scaling."""

    points: Table
    laws: Table
    """Empty where there are too few numbers of CPUs."""


def scaling_tables(curves: Sequence[ScalingCurve]) -> ScalingTables | None:
    """None where the number of CPUs is no factor."""
    return ScalingTables(scaling_table(curves), laws_table(curves)) if curves else None


def scaling_table(curves: Sequence[ScalingCurve]) -> Table:
    """One row a number of CPUs."""
    rows = [ScalingRow(curve, point) for curve in curves for point in curve.points]
    return table(_POINTS, rows, "matrix scaling")


def laws_table(curves: Sequence[ScalingCurve]) -> Table:
    """One row a curve: the law that comes nearest to it."""
    return table(_LAWS, [curve for curve in curves if curve.contention], "matrix scaling-laws")


def _ratio(value: float) -> Cell:
    return Cell(value, f"{value:.2f}")


def _share(value: float) -> Cell:
    return Cell(value, f"{value * 100:.1f}")


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


_POINTS: tuple[Field[ScalingRow], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda row: name(row.curve.workload)),
    Field(Column("treatment", "treatment", wraps=True), lambda row: name(row.curve.treatment)),
    Field(Column("cpus", "CPUs", numeric=True), lambda row: Cell(row.point.cpus, str(row.point.cpus))),
    Field(
        Column("throughput", "throughput", "ops/s", numeric=True),
        lambda row: Cell(row.point.throughput, number_format.number(row.point.throughput)),
    ),
    Field(Column("lowest", numeric=True, outputs=Output.PROGRAMS), lambda row: Cell(row.point.lowest)),
    Field(Column("highest", numeric=True, outputs=Output.PROGRAMS), lambda row: Cell(row.point.highest)),
    Field(Column("speed_up", "speed-up", numeric=True), lambda row: _ratio(row.point.speed_up)),
    Field(Column("efficiency", "efficiency", "%", numeric=True), lambda row: _share(row.point.efficiency)),
    Field(Column("seeds", numeric=True, outputs=Output.PROGRAMS), lambda row: Cell(row.curve.seeds)),
)

_LAWS: tuple[Field[ScalingCurve], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda row: name(row.workload)),
    Field(Column("treatment", "treatment", wraps=True), lambda row: name(row.treatment)),
    Field(
        Column("rate", "rate of one", "ops/s", numeric=True),
        lambda row: Cell(row.rate, number_format.number(row.rate or 0.0)),
    ),
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
