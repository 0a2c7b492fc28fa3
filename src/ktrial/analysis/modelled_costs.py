"""What an operation's modelled cycles are made of: how often each thing happened, and what it cost."""

from collections.abc import Iterable, Mapping

from ktrial.model.machine_model import ModelCounts, ModelledMachine
from ktrial.model.profile import Profile, RegionCounts

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
    of_functions = [each.modelled for each in region.functions]
    of_pages = [each.modelled for each in region.pages]
    sums = _sum(each for each in (*of_functions, *of_pages) if each)
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
    """Modelled cycles an operation, by kind of cost.

    Misses are taken at their whole price. What stores do not pay of it is taken off again under `stores`, as
    far as it is larger than the dear instructions, which is what remains otherwise.
    """
    region, price = profile.region, prices(machine)
    times = happened(region)
    by_kind = {name: times[name] * price[name] / profile.operations for name in times}
    rest = (region.cycles or 0.0) / profile.operations - sum(by_kind.values())
    return by_kind | {CLASSES: rest}


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """By how much each grew."""
    return {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}}


def _sum(rows: Iterable[ModelCounts]) -> ModelCounts:
    summed = _NOTHING.model_dump()
    for row in rows:
        for name, value in row.model_dump().items():
            summed[name] += value
    return ModelCounts.model_validate(summed)
