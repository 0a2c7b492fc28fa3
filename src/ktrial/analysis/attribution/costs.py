"""A difference by modelled cycles, or by a kind of miss: which functions, and which cost of each moved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ktrial.model.attribution import Count, Explanation
from ktrial.model.machine import BasePrices, ModelCounts, ModelledMachine
from ktrial.model.profile import FunctionCount, Profile, RegionCounts

_LEAST_PART = 0.15
"""Of what a row's cycles moved by: smaller costs are not named."""


class CostKind(StrEnum):
    """What functions are ranked by."""

    CYCLES = "cycles"
    CODE_MISSES = "code-misses"
    DATA_MISSES = "data-misses"
    SECOND_MISSES = "second-misses"
    LAST_MISSES = "last-misses"
    TRANSLATION_MISSES = "translation-misses"
    WALKS = "walks"
    MISPREDICTIONS = "mispredictions"


MISSES = tuple(kind for kind in CostKind if kind is not CostKind.CYCLES)


@dataclass(frozen=True)
class CostRow:
    """One function, in one operation of each side."""

    name: str
    before: float
    after: float
    moved: str
    """Which of its costs moved, the largest first."""

    @property
    def difference(self) -> float:
        """By how much it grew."""
        return self.after - self.before


def amount(count: Count | FunctionCount, kind: CostKind, prices: BasePrices) -> float:
    """Of a function, in the whole region."""
    modelled = count.modelled
    if kind is not CostKind.CYCLES:
        return float(getattr(modelled, kind.value.replace("-", "_"))) if modelled else 0.0
    moved = count.string_bytes if isinstance(count, Count) else count.strings.bytes
    beside = modelled.cycles if modelled else 0.0
    return count.instructions * prices.instruction + moved / prices.string_bytes + beside


def cost_rows(explanation: Explanation, kind: CostKind) -> tuple[CostRow, ...]:
    """All rows that differ, the largest difference first; nothing where cycles were not modelled."""
    prices = explanation.prices
    if prices is None:
        return ()
    rows = []
    for row in explanation.rows:
        sides = (row.before, explanation.before.operations), (row.after, explanation.after.operations)
        before, after = (amount(count, kind, prices) / operations for count, operations in sides)
        if before != after:
            rows.append(CostRow(row.name, before, after, _moved(sides, prices)))
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.name)))


def _moved(sides: Sequence[tuple[Count, int]], prices: BasePrices) -> str:
    """The costs that a row's cycles moved by: its instructions, and the misses that came or went."""
    (old, old_operations), (new, new_operations) = sides
    instructions = new.instructions / new_operations - old.instructions / old_operations
    parts = [(abs(instructions) * prices.instruction, f"instructions {instructions:+,.0f}")]
    unexplained = amount(new, CostKind.CYCLES, prices) / new_operations
    unexplained -= amount(old, CostKind.CYCLES, prices) / old_operations + instructions * prices.instruction
    for kind in MISSES:
        by = amount(new, kind, prices) / new_operations - amount(old, kind, prices) / old_operations
        parts.append((abs(by) * _WEIGHTS[kind], f"{kind.value.replace('-', ' ')} {by:+,.2f}"))
        unexplained -= by * _WEIGHTS[kind]
    if unexplained > sum(weight for weight, _ in parts) / 2:
        parts.append((unexplained, f"dear instructions and the like, some {unexplained:+,.0f} cycles"))
    total = sum(weight for weight, _ in parts)
    named = sorted((part for part in parts if part[0] > _LEAST_PART * total), key=lambda part: -part[0])
    return ", ".join(text for _, text in named)


_WEIGHTS = {
    CostKind.CODE_MISSES: 10.0,
    CostKind.DATA_MISSES: 10.0,
    CostKind.SECOND_MISSES: 30.0,
    CostKind.LAST_MISSES: 160.0,
    CostKind.TRANSLATION_MISSES: 8.0,
    CostKind.WALKS: 20.0,
    CostKind.MISPREDICTIONS: 15.0,
}
"""Cycles by which kinds are ranked within a row, of the order that all of ktrial's machines have.

What the second level did not have was missed by the first one too, what the last one did not have by both.
"""


def profile_rows(profile: Profile, kind: CostKind) -> tuple[tuple[str, float], ...]:
    """Functions with what each has of the kind in an operation, the most first."""
    prices = profile.prices
    if prices is None:
        return ()
    rows = [
        (
            f"{function.symbol} [{function.module}]" if function.module else function.symbol,
            amount(function, kind, prices),
        )
        for function in profile.region.functions
    ]
    ranked = sorted(
        ((name, of / profile.operations) for name, of in rows if of), key=lambda row: (-row[1], row[0])
    )
    return tuple(ranked)


# What an operation's modelled cycles are made of: how often each thing happened, and what it cost.

CLASSES = "classes"
"""Dear instructions, interrupts, devices, and the beginnings of string instructions."""
COSTS = ("instruction", "string_bytes", "l2", "llc", "memory", "stlb", "walk", "misprediction", CLASSES)
"""Names of costs, as a machine's file has them, and `classes`."""
_NOTHING = ModelCounts(
    cycles=0, code_misses=0, data_misses=0, second_misses=0, last_misses=0, translation_misses=0, walks=0,
    mispredictions=0,
)  # fmt: skip


def happened(region: RegionCounts) -> dict[str, float]:
    """How often, in the whole region: instructions, bytes, lines by where they came from, …; no `classes`."""
    of_functions = [function.modelled for function in region.functions]
    of_pages = [page.modelled for page in region.pages]
    sums = _sum(counts for counts in (*of_functions, *of_pages) if counts)
    first = sums.code_misses + sums.data_misses
    return {
        "instruction": region.instructions,
        "string_bytes": region.strings.bytes,
        "l2": first - sums.second_misses,
        "llc": sums.second_misses - sums.last_misses,
        "memory": sums.last_misses,
        "stlb": sums.translation_misses - sums.walks,
        "walk": sums.walks,
        "misprediction": sums.mispredictions,
    }


def prices(machine: ModelledMachine) -> dict[str, float]:
    """Cycles that each of these costs. A line that is stored to costs `store_share` of it: not in here."""
    cycles = machine.cycles.model_dump()
    return {name: cycles[name] for name in COSTS if name in cycles} | {
        "string_bytes": 1 / machine.cycles.string_bytes,
        CLASSES: 1.0,
    }


def costs(profile: Profile, machine: ModelledMachine) -> dict[str, float]:
    """Modelled cycles per operation, by kind of cost.

    Misses are taken at their whole price. What stores do not pay of it is taken off again under `stores`, as
    far as it is larger than the dear instructions, which is what remains otherwise.
    """
    region, price = profile.region, prices(machine)
    times = happened(region)
    by_kind = {name: times[name] * price[name] / profile.operations for name in times}
    unexplained = (region.cycles or 0.0) / profile.operations - sum(by_kind.values())
    return by_kind | {CLASSES: unexplained}


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """By how much each grew."""
    return {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}}


def _sum(rows: Iterable[ModelCounts]) -> ModelCounts:
    summed = _NOTHING.model_dump()
    for row in rows:
        for name, value in row.model_dump().items():
            summed[name] += value
    return ModelCounts.model_validate(summed)
