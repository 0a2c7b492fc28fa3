"""What the plugin counted by function on several CPUs, as a profile's region."""

from collections.abc import Iterable

from ktrial.machines.exact.generated_code import named
from ktrial.model.parallel import (
    PAUSE_NS,
    CountedByFunction,
    CpuCounts,
    CpuShare,
    FunctionOnCpus,
    IdleAfter,
    ParallelCounts,
    WaitedFor,
)
from ktrial.model.profile import (
    PROGRAM,
    FunctionCount,
    Marking,
    OperationCounts,
    PageCount,
    RegionCounts,
    StringCounts,
)


def region_of(counts: ParallelCounts) -> RegionCounts | None:
    """The region with the counts of all CPUs, and by CPU; None where functions were not counted.

    A block of instructions counts where it starts, whole, as it does on the CPUs' clocks.
    """
    rows = counts.counted
    if rows is None:
        return None
    cpus = by_cpu(rows, len(counts.cpus))
    functions = tuple(_summed(each) for each in cpus.functions)
    kernel = sum(each.instructions for each in functions)
    pages = tuple(
        PageCount(address=address, checksum=checksum, instructions=sum(cell[0] for cell in cells))
        for address, checksum, cells in rows.pages
    )
    instructions = kernel + sum(each.instructions for each in pages)
    return RegionCounts(
        whole=True,
        instructions=instructions,
        marks=0,
        strings=StringCounts(),
        functions=functions,
        pages=pages,
        operations=_operations(counts, instructions),
        marking=Marking(regions=counts.regions),
        cpus=cpus,
    )


def by_cpu(rows: CountedByFunction, cpus: int) -> CpuCounts:
    """The rows with their names; pages of programs are one."""
    functions: dict[tuple[str, str], list[CpuShare]] = {}
    for symbol, module, cells in rows.functions:
        _add(functions.setdefault(named(symbol, module), _nothing(cpus)), map(_share, cells))
    program = _nothing(cpus)
    for _address, _checksum, cells in rows.pages:
        _add(program, map(_share, cells))
    return CpuCounts(
        time_ns=rows.time,
        functions=tuple(
            FunctionOnCpus(symbol=symbol, module=module, cpus=tuple(shares))
            for (symbol, module), shares in functions.items()
        ),
        program=FunctionOnCpus(symbol=PROGRAM, cpus=tuple(program)),
        waits=tuple(sorted(map(_wait, rows.waits), key=lambda wait: (-wait.ns, wait.symbol, wait.caller))),
        idle=tuple(sorted(map(_idle, rows.idle), key=lambda idle: (-idle.ns, idle.cpu, idle.symbol))),
    )


def _share(cell: tuple[int, int, int, int, int]) -> CpuShare:
    instructions, entered, waited, pauses, lines = cell
    return CpuShare(instructions=instructions, entered=entered, waited=waited, pauses=pauses, lines_ns=lines)


def _nothing(cpus: int) -> list[CpuShare]:
    return [_share((0, 0, 0, 0, 0))] * cpus


def _add(sums: list[CpuShare], shares: Iterable[CpuShare]) -> None:
    for cpu, (one, other) in enumerate(zip(sums, shares, strict=True)):
        sums[cpu] = CpuShare(
            instructions=one.instructions + other.instructions,
            entered=one.entered + other.entered,
            waited=one.waited + other.waited,
            pauses=one.pauses + other.pauses,
            lines_ns=one.lines_ns + other.lines_ns,
        )


def _summed(function: FunctionOnCpus) -> FunctionCount:
    return FunctionCount(
        symbol=function.symbol,
        module=function.module,
        instructions=sum(share.instructions for share in function.cpus),
        entered=sum(share.entered for share in function.cpus),
    )


def _wait(row: tuple[str, str, str, str, int, int]) -> WaitedFor:
    (symbol, module), (caller, caller_module) = named(*row[:2]), named(*row[2:4])
    instructions, pauses = row[4:]
    return WaitedFor(
        symbol=symbol,
        module=module,
        caller=caller,
        caller_module=caller_module,
        ns=instructions + pauses * PAUSE_NS,
    )


def _idle(row: tuple[str, str, str, str, int, int]) -> IdleAfter:
    (symbol, module), (caller, caller_module) = named(*row[:2]), named(*row[2:4])
    cpu, nanoseconds = row[4:]
    return IdleAfter(
        symbol=symbol, module=module, caller=caller, caller_module=caller_module, cpu=cpu, ns=nanoseconds
    )


def _operations(counts: ParallelCounts, instructions: int) -> OperationCounts:
    """A run that marks nothing is one operation."""
    if not counts.operations:
        return OperationCounts(
            count=1, total=instructions, minimum=instructions, maximum=instructions, median=instructions
        )
    return OperationCounts(
        count=counts.operations,
        total=counts.sum,
        minimum=counts.extremes[0],
        maximum=counts.extremes[1],
        median=counts.median,
    )
