"""A modelled machine as arguments of the plugin: crates/insn/src/machine.rs reads them.

Costs are whole thousandths of a cycle there, so that two runs give the same sum.
"""

from ktrial.model.machine import TRUE_LRU, BufferSize, CacheSize, ModelledMachine

NO_CACHE = CacheSize(size=64, ways=1, line=64)
"""Stands for a level that is not there: a cache of one line, which the level before it always has as well."""
PER_CYCLE = 1000
_OTHERWISE = frozenset({"string_bytes", "store_share", "l2", "llc", "memory", "stlb", "walk", "walk_level"})
_AS_WRMSR = ("spec_ctrl", "ibpb", "l1d_flush")
"""What costs as any other `wrmsr` where a machine does not say."""
"""Constants that are not one argument each, in thousandths of a cycle."""


def model_arguments(machine: ModelledMachine) -> dict[str, str]:
    """Name → value."""
    cycles, branches, paging = machine.cycles, machine.branches, machine.paging
    levels = (cycles.l2, cycles.llc, cycles.memory)
    given = {
        "l1i": _cache(machine.l1i),
        "l1d": _cache(machine.l1d),
        "l2": _cache(machine.l2),
        "llc": _cache(machine.llc or NO_CACHE),
        "prefetch": str(machine.prefetch),
        "strides": str(machine.strides),
        "sample": str(machine.sample),
        "itlb": _buffer(machine.itlb),
        "dtlb": _buffer(machine.dtlb),
        "stlb": _buffer(machine.stlb),
        "branches": f"{branches.history_bits}:{branches.returns}:{branches.targets}",
        "levels": ":".join(_thousandths(cost) for cost in levels),
        "stores": str(round(cycles.store_share * 100)),
        "translations": f"{_thousandths(cycles.stlb)}:{_thousandths(cycles.walk)}",
        "walk-level": _thousandths(cycles.walk_level or 0),
        "paging": f"{paging.pde}:{paging.pdpte}:{paging.pml4e}" if paging else "none",
        "string-bytes": str(round(cycles.string_bytes)),
    }
    single = dict.fromkeys(_AS_WRMSR, cycles.wrmsr) | cycles.model_dump(exclude=set(_OTHERWISE))
    for name, cost in single.items():
        given[name.replace("_", "-")] = _thousandths(cost)
    return {f"model-{name}": value for name, value in given.items()}


def _thousandths(cycles: float) -> str:
    return str(round(cycles * PER_CYCLE))


def _cache(size: CacheSize) -> str:
    shape = f"{size.size}:{size.ways}:{size.line}"
    return shape if size.replacement == TRUE_LRU else f"{shape}:{size.replacement}"


def _buffer(size: BufferSize) -> str:
    return f"{size.entries}:{size.ways}"
