"""The table of what CPUs spend no work on."""

from collections.abc import Sequence

from ktrial.format.table import Cell, Column, Field, Table, name, table
from ktrial.model.parallel import Waits

MEANING = (
    "Waiting: in loops until another CPU has done something; idle: with nothing to run; in percent of the "
    "time of all CPUs, under the first seed. Beside it stands the place that has most of it, and who wanted "
    "the lock."
)


def of_all(waits: Sequence[Waits]) -> Table | None:
    """One row a workload, treatment and number of CPUs; None where nothing was counted."""
    return table(_FIELDS, list(waits), "matrix waits") if waits else None


def _share(value: float) -> Cell:
    return Cell(value, f"{value * 100:.1f}")


_FIELDS: tuple[Field[Waits], ...] = (
    Field(Column("workload", "workload", wraps=True), lambda it: name(it.workload)),
    Field(Column("treatment", "treatment", wraps=True), lambda it: name(it.treatment)),
    Field(Column("cpus", "CPUs", numeric=True), lambda it: Cell(it.cpus, str(it.cpus))),
    Field(Column("waiting", "waiting", "%", numeric=True), lambda it: _share(it.waiting)),
    Field(Column("waiting_in", "waiting in", wraps=True), lambda it: name(it.waiting_in)),
    Field(Column("idle", "idle", "%", numeric=True), lambda it: _share(it.idle)),
    Field(Column("asleep_in", "asleep in", wraps=True), lambda it: name(it.asleep_in)),
)
