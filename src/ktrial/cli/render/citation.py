"""What a counted change is said to be in time: a sentence, and JSON."""

from collections.abc import Iterable
from typing import Any

from ktrial.analysis.fidelity_citation import cite
from ktrial.model.conditions_diff import Attribution
from ktrial.model.fidelity import NO_FIDELITY, FidelityCitation, FidelityTable
from ktrial.model.profile import Profile
from ktrial.model.workload import MODELLED_CYCLES
from ktrial.program_outputs.protocol import is_by_clock

_INSTRUCTIONS = "instructions"


def cited(citation: FidelityCitation | None, unit: str) -> str:
    """The citation; where there is none, that nothing is known, if people take such a unit for time."""
    if citation:
        return citation.sentence
    return NO_FIDELITY if unit == MODELLED_CYCLES.unit or is_by_clock(unit) else ""


def citation_as_json(citation: FidelityCitation | None) -> dict[str, Any] | None:
    """With its sentence; None where nothing can be cited."""
    return {**citation.model_dump(mode="json"), "sentence": citation.sentence} if citation else None


UNITS = {_INSTRUCTIONS: _INSTRUCTIONS, MODELLED_CYCLES.name: MODELLED_CYCLES.unit}
"""Of what an explanation counts."""


def citations(why: Attribution, tables: Iterable[FidelityTable]) -> dict[str, FidelityCitation | None]:
    """Of what an explanation counts, what is known of changes as large as its own."""
    known = tuple(tables)
    ratios = {
        _INSTRUCTIONS: _ratio(_instructions(why.before), _instructions(why.after)),
        MODELLED_CYCLES.name: _ratio(_cycles(why.before), _cycles(why.after)),
    }
    return {count: cite(known, count, ratio) for count, ratio in ratios.items() if ratio}


def _instructions(profile: Profile) -> float:
    return profile.region.instructions / profile.operations


def _cycles(profile: Profile) -> float:
    return (profile.region.cycles or 0.0) / profile.operations


def _ratio(before: float, after: float) -> float | None:
    """None where one of the two was not counted."""
    return after / before if before and after else None
