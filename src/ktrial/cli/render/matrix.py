"""A matrix for the terminal: coloured ratios with the marks of their verdicts, readable without colour."""

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.next_step import store_option
from ktrial.cli.render.screen import Screen
from ktrial.cli.render.table import fits, in_blocks, rendered
from ktrial.format import number_format
from ktrial.format.labels import SCATTER_MARK, SCATTER_MEANING, VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Column, Row, Table, name
from ktrial.model.comparison import Matrix, MatrixCell, Verdict
from ktrial.model.design import told_apart
from ktrial.model.workload import BESIDE_THE_OWN, short_labels
from ktrial.report.comparisons import treatments_table
from ktrial.report.matrix import flat, heat_map, trials_of
from ktrial.report.study_summary import TreatmentComparisons

_MOST_WHYS = 5
_HEADING_COLUMNS, _VERSION_COLUMNS = 18, 40


def print_matrix(
    matrix: Matrix,
    console: Console,
    *,
    whole: bool = False,
    notes: Sequence[str] = (),
    more: str = "",
    store: str | None = None,
    next_step: str = "",
) -> None:
    """The table, what its marks mean, what went wrong, and the answer last.

    `whole`: with all metrics, and what explains the largest changes. `notes`: what the command adds.
    `more`: the command that prints the whole. `store`: as it was given. `next_step`: where nothing explains
    a change.
    """
    if whole:
        _print_all(matrix, notes, console)
        return
    main = [row for row in matrix.rows if row.metric not in BESIDE_THE_OWN] or list(matrix.rows)
    shown = matrix.model_copy(update={"rows": tuple(main)})
    screen = Screen(console, more=more)
    screen.title(_title(matrix), breakable(trials_of(matrix)))
    screen.gap()
    by_workload = _with_short_headings(flat(shown), shown)
    by_version = _turned(shown)
    if fits(by_workload, console):
        screen.rows(by_workload, _by_importance([row.cells for row in main]), "row")
    elif fits(by_version, console):
        columns = [tuple(row.cells[place] for row in main) for place in range(len(shown.columns))]
        ranked = [0, *(place + 1 for place in _by_importance(columns))]
        screen.rows(by_version, ranked, "version")
    else:
        screen.rows(treatments_table(_groups(shown)), noun="version")
        screen.leave_out(len(main) * len(shown.columns), "cell")
    screen.leave_out(len(matrix.rows) - len(main), "row of other metrics")
    screen.lines([_marks(matrix)], "", least=1, style="dim")
    screen.lines([breakable(problem) for problem in matrix.problems], "failure", least=2, style="red")
    largest = min((cell for row in main for cell in row.cells if cell.why), key=_size, default=None)
    if largest:
        next_step = " ".join((largest.why, *map(shlex.quote, store_option(store))))
    screen.lines(notes, "", least=1, wraps=False)
    screen.print(matrix.answer or "There are no numbers yet.", next_step=next_step)


def _print_all(matrix: Matrix, notes: Sequence[str], console: Console) -> None:
    console.print(Text(one_line(_title(matrix)), style="bold"))
    console.print()
    for block in in_blocks(_with_short_headings(heat_map(matrix, {}, {}), matrix), console):
        console.print(rendered(block))
        console.print()
    console.print(Text(_marks(matrix), style="dim"))
    console.print(Text(one_line(breakable(trials_of(matrix))), style="dim"))
    for problem in matrix.problems:
        console.print(Text(one_line(problem), style="red"))
    largest = sorted((cell for row in matrix.rows for cell in row.cells if cell.why), key=_size)[:_MOST_WHYS]
    if largest:
        console.print("why, of the largest changes:")
        for cell in largest:
            console.print(f"  {cell.why}", soft_wrap=True)
    for note in notes:
        console.print(one_line(note), soft_wrap=True)
    console.print(Text(one_line(matrix.answer), style="bold"))


def _title(matrix: Matrix) -> str:
    return f"{matrix.study}: change against {matrix.baseline}"


def _marks(matrix: Matrix) -> str:
    marks = ", ".join(f"{words.symbol} {words.word}" for words in VERDICTS.values())
    if matrix.has_scatter:
        marks += f", {SCATTER_MARK} {SCATTER_MEANING}"
    return f"{marks}; margin {breakable(number_format.percentage(matrix.margin))}"


def _size(cell: MatrixCell) -> float:
    ratio = cell.comparison.ratio if cell.comparison else None
    return -max(ratio, 1 / ratio) if ratio else -1.0


def _by_importance(lines: Sequence[Sequence[MatrixCell]]) -> list[int]:
    """Places of rows, or of columns: what changed most comes first, then what is undecided."""

    def importance(place: int) -> tuple[int, float]:
        present = [cell for cell in lines[place] if cell.comparison]
        changed = [cell for cell in present if cell.comparison and cell.comparison.verdict in _CHANGED]
        undecided = any(
            cell.comparison and cell.comparison.verdict is Verdict.INCONCLUSIVE for cell in present
        )
        return (0 if changed else 1 if undecided else 2, min(map(_size, changed or present), default=0.0))

    return sorted(range(len(lines)), key=importance)


_CHANGED = frozenset({Verdict.BETTER, Verdict.WORSE})


def _turned(matrix: Matrix) -> Table:
    """A row a version, a column a workload: of many versions of few workloads."""
    rows = flat(matrix).rows
    names = short_labels(row.workload for row in matrix.rows)
    headings = (row.name.replace(row.workload, names[row.workload], 1) for row in matrix.rows)
    columns = (
        Column("version", "version", wraps=True, columns=_VERSION_COLUMNS),
        *(
            Column(f"row-{place}", heading, numeric=True, named=True, heading_columns=_HEADING_COLUMNS)
            for place, heading in enumerate(headings)
        ),
    )
    labels = (matrix.baseline, *(told_apart(column, matrix.baseline) for column in matrix.columns))
    turned = (
        Row((name(label), *(row.cells[place] for row in rows))) for place, label in enumerate(labels, start=1)
    )
    return Table(columns, tuple(turned), "matrix")


def _groups(matrix: Matrix) -> list[TreatmentComparisons]:
    """What each version has against the baseline."""
    groups = []
    for place, column in enumerate(matrix.columns):
        cells = (row.cells[place].comparison for row in matrix.rows)
        present = tuple(comparison for comparison in cells if comparison is not None)
        groups.append(TreatmentComparisons(matrix.baseline, column, present))
    return groups


def _with_short_headings(table: Table, matrix: Matrix) -> Table:
    table = table.adapted("baseline", heading=_short(matrix.baseline))
    for place, treatment in enumerate(matrix.columns):
        table = table.adapted(f"treatment-{place}", heading=_short(told_apart(treatment, matrix.baseline)))
    return table


def _short(label: str) -> str:
    return shortened(label.removeprefix("debian:"), _HEADING_COLUMNS)
