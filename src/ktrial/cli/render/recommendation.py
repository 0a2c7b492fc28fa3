"""Which kernels serve some workloads best, and one change on several machines: for the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console

from ktrial.cli.console import breakable
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.screen import Screen
from ktrial.cli.render.table import fits, in_blocks
from ktrial.format import number_format
from ktrial.format.labels import AGREEMENTS
from ktrial.format.table import Cell, Column, Field, Row, RowKind, Table, name, own, table
from ktrial.model.comparison import ONE_PERTURBATION
from ktrial.model.history import Across, Agreement, KernelCandidate, Recommendation
from ktrial.model.workload import short_labels

_NAME_COLUMNS, _HEADING_COLUMNS = 48, 18


def print_recommendation(recommendation: Recommendation, console: Console, *, whole: bool = False) -> None:
    """A row a workload, or a row a kernel where kernels do not stand beside one another; the answer last.

    `whole`: every number, in blocks of columns.
    """
    screen = Screen(console, whole=whole, more=same_command("-v"))
    by = recommendation.measured_by
    screen.title(f"how far behind the best kernel of each workload, in %, by {by}")
    by_workload = _by_workload(recommendation)
    if fits(by_workload, console):
        screen.rows(by_workload, _by_importance(recommendation), "row")
    elif whole:
        for block in in_blocks(by_workload, console):
            screen.rows(block)
    else:
        screen.rows(table(_CANDIDATES, recommendation.candidates), noun="kernel")
        screen.leave_out(len(recommendation.candidates) * len(recommendation.workloads), "number")
    dominated = [
        f"{candidate.version}: dominated by {', '.join(candidate.dominated_by)}"
        for candidate in recommendation.candidates
        if candidate.dominated_by
    ]
    screen.lines(dominated, "dominated kernel")
    if recommendation.left_out:
        screen.lines([f"not measured, and left out: {', '.join(recommendation.left_out)}"], "", least=1)
    incomplete = [
        f"{version}: not judged, it has no comparable number of {', '.join(missing)}"
        for version, missing in recommendation.incomplete.items()
    ]
    screen.lines(incomplete, "kernel that is not judged", least=1)
    screen.print(recommendation.answer)


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:.2f}"


_CANDIDATES: tuple[Field[KernelCandidate], ...] = (
    Field(
        Column("kernel", "kernel", wraps=True, columns=_NAME_COLUMNS),
        lambda candidate: name(candidate.version),
    ),
    Field(Column("mean", "geometric mean", numeric=True), lambda candidate: own(_percent(candidate.mean))),
    Field(Column("worst", "worst", numeric=True), lambda candidate: own(_percent(candidate.worst))),
    Field(Column("of", "of", wraps=True), lambda candidate: name(candidate.worst_workload)),
)


def _by_workload(recommendation: Recommendation) -> Table:
    candidates, names = recommendation.candidates, short_labels(recommendation.workloads)
    columns = [Column("workload", "workload", wraps=True, columns=_NAME_COLUMNS)]
    for candidate in candidates:
        heading = candidate.version.removeprefix("debian:")
        columns.append(
            Column(candidate.version, heading, named=True, heading_columns=_HEADING_COLUMNS, numeric=True)
        )

    def row(first: Cell, texts: Iterable[str], kind: RowKind = RowKind.PLAIN) -> Row:
        return Row((first, *map(own, texts)), kind)

    def behind(candidate: KernelCandidate, place: int) -> str:
        regret = candidate.regrets[place]
        # `~`: inside margin and spread, as good as the best.
        mark = "~" if regret.low <= 1 + recommendation.margin and regret.ratio > 1 else ""
        return mark + _percent(regret.ratio)

    rows = [
        row(name(names[workload]), [behind(candidate, place) for candidate in candidates])
        for place, workload in enumerate(recommendation.workloads)
    ]
    if len(rows) > 1:
        means = (_percent(candidate.mean) for candidate in candidates)
        rows.append(row(own("geometric mean"), means, RowKind.SUM))
    worst = (_percent(candidate.worst) for candidate in candidates)
    rows.append(row(own("worst"), worst, RowKind.SUM))
    return Table(tuple(columns), tuple(rows))


def _by_importance(recommendation: Recommendation) -> list[int]:
    """Places of rows: the sums, then the workloads in which kernels differ most."""
    count = len(recommendation.workloads)
    sums = range(count, count + (2 if count > 1 else 1))

    def worst(place: int) -> float:
        return max(candidate.regrets[place].ratio for candidate in recommendation.candidates)

    return [*sums, *sorted(range(count), key=lambda place: -worst(place))]


# One change on several machines: what it comes to on each, and over machines like these.


def print_across(rows: Sequence[Across], console: Console, *, whole: bool = False) -> None:
    """Each workload with a line for each machine, those that differ first; the answer last."""
    screen = Screen(console, whole=whole, more=same_command("-v"))
    screen.title(f"{rows[0].before} → {rows[0].after}, machine by machine")
    order = [Agreement.DIFFERS, Agreement.UNDECIDED, Agreement.SAME]
    for row in sorted(rows, key=lambda row: order.index(row.agreement)):
        chance = f", p {row.p:.2g}" if row.p is not None else ""
        reason = f" ({row.reason})" if row.reason else ""
        heading = breakable(f"{row.workload}, {row.metric}: {AGREEMENTS[row.agreement]}{chance}{reason}")
        screen.lines(list(map(breakable, _on_machines(row))), "machine", heading=heading)
    screen.print(across_answer(rows))


_EXACT = {"exact", "exact-parallel"}
"""Machines without blocks."""


def _on_machines(row: Across) -> list[str]:
    lines = []
    for machine in row.systems:
        system = machine.system
        about = "; ".join(part for part in (system.machine, system.qemu[:24], system.cpu_model) if part)
        of_one = ONE_PERTURBATION if system.machine in _EXACT else "one block: no interval"
        ends = of_one if machine.blocks == 1 else number_format.interval(machine.low, machine.high)
        change = f"{number_format.change(machine.ratio)} ({ends})"
        lines.append(f"{change}  {about}; study {machine.study_id}")
    if over := row.over_machines:
        change = f"{number_format.change(over.ratio)} ({number_format.interval(over.low, over.high)})"
        apart = f"their own changes differ by {number_format.change(over.between)}"
        lines.append(f"{change}  over machines like these {len(row.systems)}; {apart}")
    return lines


def across_answer(rows: Sequence[Across]) -> str:
    """How many workloads changed alike on all machines, and which did not."""
    by_agreement = {
        agreement: [row.workload for row in rows if row.agreement is agreement] for agreement in Agreement
    }
    clauses = []
    if same := by_agreement[Agreement.SAME]:
        clauses.append(f"the same on all machines in {len(same)} of {len(rows)}")
    if differing := by_agreement[Agreement.DIFFERS]:
        clauses.append(f"it depends on the machine in {', '.join(differing)}")
    if undecided := by_agreement[Agreement.UNDECIDED]:
        clauses.append(f"undecided in {', '.join(undecided)}")
    return f"From {rows[0].before} to {rows[0].after} the change is {'; '.join(clauses)}."
