"""Versions by workloads: every comparison of a study with its baseline, as a table. Plain data."""

from ktrial.model.base import Model
from ktrial.model.comparison import Comparison, Scatter


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
