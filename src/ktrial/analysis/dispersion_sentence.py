"""Which treatments scatter otherwise than the baseline, in a sentence."""

from collections.abc import Sequence

from ktrial.format.number_format import percentage
from ktrial.model.comparison import Scatter, Variability
from ktrial.model.levels import told_apart
from ktrial.model.workload import Mode

_MOST_NAMED = 3
_EXACT = frozenset({Mode.EXACT_CLOCK, Mode.EXACT_PLUGIN})


def variability_answer(found: Sequence[Variability]) -> str:
    """One sentence; empty where nothing was found."""
    if not found:
        return ""
    named = "; ".join(map(said, found[:_MOST_NAMED]))
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"Whatever the means say, not all are equally steady: {named}{more}."


def said(one: Variability) -> str:
    """`fork (instructions) scatters more with debian:6.12: 5.2 % over 3 perturbations, against 0.02 %`."""
    treatment = told_apart(one.treatment, one.baseline)
    what = f"{one.workload} ({one.metric})"
    over = f"{one.trials} {'perturbations' if one.mode in _EXACT else 'blocks'}"
    if one.scatter in (Scatter.WIDER, Scatter.NARROWER):
        word = "more" if one.scatter is Scatter.WIDER else "less"
        spreads = f"{_percent(one.spread)} over {over}, against {_percent(one.baseline_spread)}"
        return f"{what} scatters {word} with {treatment}: {spreads}"
    modes = " and ".join(f"{mode.value:.4g} ({mode.trials} of {one.trials})" for mode in one.modes)
    if one.scatter is Scatter.TWO_MODES:
        return f"{what} has two modes with {treatment}, about {modes}, where {one.baseline} shows one"
    return f"{what} shows one mode with {treatment}, where {one.baseline} has two, about {modes}"


def _percent(spread: float) -> str:
    return percentage(spread, space=" ")
