"""Checks what a study searches, and makes a Search of it."""

import os
from collections.abc import Sequence

from ktrial import workloads
from ktrial.model import quantities
from ktrial.model.study import MachineSettings, Search
from ktrial.model.tuning import Budget, Goal
from ktrial.model.workload import Metric, WorkloadUse
from ktrial.studyfile.diagnostics import Mistakes
from ktrial.studyfile.kernel_names import KernelReader
from ktrial.studyfile.knob_patterns import KERNEL
from ktrial.studyfile.objectives import goal_of
from ktrial.studyfile.schema import SearchTable, StudyTable
from ktrial.studyfile.search_errors import TuningError
from ktrial.target.errors import GuestProgramsMissing
from ktrial.workloads.errors import WorkloadError

DEFAULT_RUNS = 65
_EXACT = "exact"


def search_of(
    tables: StudyTable,
    machine: MachineSettings,
    uses: Sequence[WorkloadUse],
    kernels: KernelReader,
    mistakes: Mistakes,
) -> Search | None:
    """The search; its space is made later, on the system. None where there is a mistake."""
    table = tables.search
    if table is None:
        return None
    if tables.timed:
        mistakes.add(("timed",), "a search has a budget of its own: [search] budget, time")
    if len(uses) != 1:
        mistakes.add(("workloads",), f"a search has one workload, and there are {len(uses)}")
        return None
    if not table.knobs:
        mistakes.add(("search", "knobs"), "there is no knob: name a subsystem, or knobs (ktrial knob list)")
    _check_kernels(table, kernels, mistakes)
    try:
        goal = _goal(table, uses[0], tables.margin, machine)
    except TuningError as error:
        mistakes.add(("search",), f"{error.message} {error.advice}".strip())
        return None
    runs = table.budget or (None if table.time else DEFAULT_RUNS)
    return Search(
        knobs=tuple(table.knobs),
        goal=goal,
        budget=Budget(runs=runs, seconds=quantities.seconds(table.time) if table.time else None),
        optimiser=table.optimiser,
        at_once=_at_once(table, machine),
    )


def _at_once(table: SearchTable, machine: MachineSettings) -> int:
    if machine.kind != _EXACT:
        return 1
    return table.at_once or len(os.sched_getaffinity(0))


def _goal(table: SearchTable, use: WorkloadUse, margin: float, machine: MachineSettings) -> Goal:
    """Raises TuningError."""
    wanted = (table.maximise, table.minimise, table.subject_to)
    return goal_of(*wanted, _metrics(use, machine), margin=margin, workload=use.label)


def _metrics(use: WorkloadUse, machine: MachineSettings) -> tuple[Metric, ...]:
    """What the workload promises; none where it cannot say."""
    if use.command is None:
        try:
            return workloads.find(use).description.metrics
        except (WorkloadError, GuestProgramsMissing):
            return ()
    clock = "instructions" if machine.kind == _EXACT else "ns"
    rules = use.command.metrics
    if not rules:
        return workloads.find(use).description.metrics
    return tuple(
        Metric(
            name=rule.name,
            unit=rule.unit or ("" if rule.regex or rule.json_path else clock),
            direction=rule.direction,
        )
        for rule in rules
    )


def _check_kernels(table: SearchTable, kernels: KernelReader, mistakes: Mistakes) -> None:
    """Kernels that are searched have names that can be meant."""
    for place, text in enumerate(table.knobs):
        name, _, values = text.partition("=")
        if name.strip() != KERNEL:
            continue
        for value in values.split(","):
            if problem := kernels.problem(value.strip()):
                mistakes.add(("search", "knobs", place), problem)
