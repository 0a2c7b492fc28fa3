"""A command's own marks: what was counted of its runs, and what is wrong with the marks.

docs/architecture/guest-protocol.md has the marks, crates/insn/src/region.rs what is counted between them.
"""

from collections.abc import Sequence

from ktrial.model.profile import Marking, RegionCounts
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.target import StepResult
from ktrial.workloads.errors import NoMarkedRegion, WrongMarks
from ktrial.workloads.marked_region import MarkedRegion


def counted_runs(label: str, results: Sequence[StepResult]) -> list[RegionCounts]:
    """What was counted of each run. Raises NoMarkedRegion where nothing was, and WrongMarks."""
    counts = [_counts(label, result) for result in results]
    marked = sum(marks_operations(each) for each in counts)
    if 0 < marked < len(counts):
        problem = f"{marked} of its {len(counts)} runs mark regions, the others none"
        raise WrongMarks(workload=label, problem=problem)
    return counts


def marks_operations(counts: RegionCounts) -> bool:
    """Whether the program marks regions of its own; else the whole run is one operation."""
    return counts.marking.regions > 0


def each_operation(label: str, counts: RegionCounts) -> list[float]:
    """Instructions of each operation of a run, in order. Raises NoMarkedRegion."""
    operations = counts.operations
    each = (operations.total,) if operations.count == 1 else operations.vector
    if each is None:
        raise NoMarkedRegion(workload=label, problem="each operation's count was not asked for")
    return [float(count) for count in each]


def median_run(runs: Sequence[RegionCounts]) -> MarkedRegion:
    """The run whose operations' median is the median (the lower of two), and its operations."""
    ranked = sorted(runs, key=lambda counts: counts.operations.median)
    chosen = ranked[(len(ranked) - 1) // 2]
    return MarkedRegion(chosen, chosen.operations.count)


def warnings_of(label: str, results: Sequence[StepResult]) -> tuple[DataWarning, ...]:
    """What of the marks may not be meant, in runs that are counted all the same."""
    markings = [result.region.marking for result in results if result.region]
    loose = sum(marking.loose_operations for marking in markings)
    foreign = sum(marking.foreign for marking in markings)
    warnings = []
    if loose:
        text = f"{label}: {loose} operations that it marks outside of its regions do not count"
        warnings.append(_warning(text, "begin the region before them, or leave them unmarked"))
    if foreign:
        text = (
            f"{label}: {foreign} marks came from another thread or process than the one that began the "
            "region; an operation goes from one mark to the next, whoever marked"
        )
        warnings.append(_warning(text, "mark in one thread only"))
    return tuple(warnings)


def _warning(text: str, advice: str) -> DataWarning:
    return DataWarning(kind=WarningKind.MARKS, text=text, advice=advice)


def _counts(label: str, result: StepResult) -> RegionCounts:
    if result.region is None:
        raise NoMarkedRegion(workload=label, problem="nothing was counted of one of its runs")
    problem = _problem(result.region.marking)
    if problem:
        raise WrongMarks(workload=label, problem=problem)
    if not result.region.whole:
        raise NoMarkedRegion(workload=label, problem="nothing was counted of one of its runs")
    if not result.region.instructions:
        raise WrongMarks(workload=label, problem="it marks a region with nothing in it")
    return result.region


def _problem(marking: Marking) -> str:
    """What cannot be counted; empty where all can be."""
    problems = {
        "regions that begin before the last one has ended (nested, or of several threads or processes)": (
            marking.nested
        ),
        "ends of regions that have not begun": marking.loose_ends,
        "regions that have not ended when the program does": marking.unclosed,
        "operations or regions beyond what is kept (4,194,304 operations and 16,384 regions a run)": (
            marking.dropped
        ),
        "operations without a region": 0 if marking.regions else marking.loose_operations,
    }
    return next((f"{what}: {count:,}" for what, count in problems.items() if count), "")
