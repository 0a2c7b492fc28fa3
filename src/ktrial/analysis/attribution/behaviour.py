"""What each function does differently itself, however often it is called.

A function's row grows too where somebody calls it more often. Its own part is what its instructions a call
have changed by, at the number of calls of the second kernel. What comes from more calls belongs to the caller
that makes more of them a call of its own. (Blinder 1973 and Oaxaca 1973 divide differences of products so.)
"""

from collections import defaultdict
from typing import NamedTuple

from ktrial.model.attribution import Attribution, Explanation, FunctionDifference
from ktrial.model.profile import FunctionCount, Profile, RegionCounts, inclusive_counts


class Behaviour(NamedTuple):
    """One function's part, in instructions per operation."""

    row: FunctionDifference
    own: float
    """Its own instructions a call."""
    calls: float
    """What it calls more or less often a call, with all that this runs; 0 where calls were not followed."""

    @property
    def weight(self) -> float:
        """Without signs, as parts cancel."""
        return abs(self.own) + abs(self.calls)


def behaviours(attribution: Attribution) -> list[Behaviour]:
    """Of every row, the heaviest first."""
    explanation = attribution.explanation
    before, after = (
        _Side(profile, _rows_by_symbol(explanation, is_after=is_after))
        for profile, is_after in ((attribution.before, False), (attribution.after, True))
    )
    calls = _calls(before, after)
    parts = [
        Behaviour(row, _own(explanation, row), calls.get(place, 0.0))
        for place, row in enumerate(explanation.rows)
    ]
    return sorted(parts, key=lambda part: (-part.weight, part.row.name))


def _own(explanation: Explanation, row: FunctionDifference) -> float:
    """What its instructions a call have changed by, times the calls of the second kernel."""
    entered = row.before.entered, row.after.entered
    if not all(entered):
        return float(explanation.difference(row))
    per_call = [
        count.instructions / calls for count, calls in zip((row.before, row.after), entered, strict=True)
    ]
    return (per_call[1] - per_call[0]) * entered[1] / explanation.after.operations


class _Side:
    """One profile: who calls whom, how often, and what a call runs."""

    def __init__(self, profile: Profile, rows: dict[tuple[str, str], int]) -> None:
        region, operations = profile.region, profile.operations
        self.edges: dict[tuple[int, int], float] = defaultdict(float)
        self.entered: dict[int, float] = defaultdict(float)
        below: dict[int, float] = defaultdict(float)
        places = [_row_of(function, rows) for function in region.functions]
        for function, place in zip(region.functions, places, strict=True):
            if place is not None:
                self.entered[place] += function.entered / operations
        for function, inclusive in _inclusive(region):
            if (place := _row_of(function, rows)) is not None:
                below[place] += inclusive / operations
        nodes = region.nodes or ()
        for node in nodes[2:]:
            caller = nodes[node.parent].function if node.parent > 1 else -1
            if caller >= 0:
                pair = places[caller], places[node.function]
                if pair[0] is not None and pair[1] is not None:
                    self.edges[pair[0], pair[1]] += node.entered / operations
        self.per_call = {place: below[place] / count for place, count in self.entered.items() if count}


def _inclusive(region: RegionCounts) -> list[tuple[FunctionCount, int]]:
    if region.nodes is None:
        return []
    totals = inclusive_counts(region.nodes, len(region.functions))
    return list(zip(region.functions, totals, strict=True))


def _calls(before: _Side, after: _Side) -> dict[int, float]:
    """Row → what it calls more or less often, a call of its own."""
    parts: dict[int, float] = defaultdict(float)
    for caller, callee in before.edges.keys() | after.edges.keys():
        if caller == callee or not (before.entered.get(caller) and after.entered.get(caller)):
            continue
        rates = [side.edges.get((caller, callee), 0.0) / side.entered[caller] for side in (before, after)]
        cost = after.per_call.get(callee) or before.per_call.get(callee) or 0.0
        parts[caller] += (rates[1] - rates[0]) * after.entered[caller] * cost
    return parts


def _rows_by_symbol(explanation: Explanation, *, is_after: bool) -> dict[tuple[str, str], int]:
    """Symbol and module → place of its row; with an empty module, also where the module has changed."""
    places: dict[tuple[str, str], int] = {}
    for place, row in enumerate(explanation.rows):
        for symbol in (row.after if is_after else row.before).names:
            places[symbol, row.module] = place
    return places


def _row_of(function: FunctionCount, rows: dict[tuple[str, str], int]) -> int | None:
    place = rows.get((function.symbol, function.module))
    return rows.get((function.symbol, "")) if place is None else place
