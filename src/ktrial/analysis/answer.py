"""A study's answer in sentences: how treatments compare, whether factors interact, which treatments scatter
otherwise than the baseline.
"""

import math
from collections.abc import Sequence

from ktrial.format.number_format import percentage, three_digits
from ktrial.model.comparison import Comparison, Interaction, Scatter, Variability, Verdict
from ktrial.model.design import level_shown, told_apart
from ktrial.model.workload import (
    BESIDE_THE_OWN,
    EXACT_MODES,
    MODELLED_CYCLES,
    STRING_BYTES,
    Mode,
    short_labels,
)

# A study's answer in sentences: how treatments compare, whether factors interact, which treatments scatter
# otherwise than the baseline.

_MOST_NAMED = 3


_ROUTE = "\0"
"""Stands for the treatments in a clause that holds for several."""


_COUNTED = frozenset({Mode.EXACT_CLOCK, Mode.EXACT_PLUGIN})


def answer(comparisons: Sequence[Comparison], margin: float, interactions: Sequence[Interaction] = ()) -> str:
    """What the comparisons say, in plain words: one clause a treatment, the largest changes by name.

    Then a sentence for every two factors, on whether what the one does depends on the other.
    """
    names = short_labels(one.workload for one in comparisons)
    named = [one.model_copy(update={"workload": names[one.workload]}) for one in comparisons]
    return " ".join(filter(None, (_answer(named, margin), interaction_answer(interactions, margin))))


def _answer(comparisons: Sequence[Comparison], margin: float) -> str:
    if not comparisons:
        return "There is nothing to compare: the study has one treatment."
    by_treatment: dict[str, list[Comparison]] = {}
    for one in comparisons:
        by_treatment.setdefault(one.treatment, []).append(one)
    several = len(by_treatment) > 1
    # Treatments of which the same is to be said are named together.
    named: dict[str, list[str]] = {}
    for name, of_treatment in by_treatment.items():
        clause = _whole_clause(of_treatment, margin, several=several)
        named.setdefault(clause, []).append(told_apart(name, comparisons[0].baseline))
    clauses = [clause.replace(_ROUTE, f"with {_listed(names)}") for clause, names in named.items()]
    return f"{_head(comparisons, several=several)}{'; '.join(clauses)}."


def _listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b, c and 4 more`."""
    shown, rest = names[:_MOST_NAMED], len(names) - _MOST_NAMED
    if rest > 0:
        return f"{', '.join(shown)} and {rest} more"
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last


def _head(comparisons: Sequence[Comparison], *, several: bool) -> str:
    modes, counted = {one.mode for one in comparisons}, ""
    if modes <= _COUNTED:
        counted = "By instructions counted, not time: "
    elif modes == {Mode.EXACT_PARALLEL}:
        counted = "By simulated time: "
    first = comparisons[0]
    return f"{counted}against {first.baseline}, " if several else counted


def _whole_clause(comparisons: list[Comparison], margin: float, *, several: bool) -> str:
    """The bytes of string instructions come last: the instructions themselves are the main thing."""
    main = [one for one in comparisons if one.metric not in BESIDE_THE_OWN]
    moved = [one for one in comparisons if one.metric == STRING_BYTES.name] if main else []
    clause = _clause(main or comparisons, margin, several=several)
    parts = []
    for verdict, word in ((Verdict.WORSE, "more"), (Verdict.BETTER, "fewer")):
        if changed := [one for one in moved if one.verdict is verdict]:
            parts.append(f"{word} in {len(changed)} of them: {_named(changed, changed)}")
    beside = [f"string instructions worked on {', '.join(parts)} (bytes)"] if parts else []
    beside += _cycles_clauses(main, comparisons)
    return (", " if several else "; ").join((clause, *beside))


_WAYS = {Verdict.WORSE, Verdict.BETTER}


def _cycles_clauses(main: list[Comparison], comparisons: list[Comparison]) -> list[str]:
    """Where modelled cycles are decided otherwise than the instructions of their workload."""
    instructions = {one.workload: one.verdict for one in reversed(main)}
    otherwise: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.metric == MODELLED_CYCLES.name and one.verdict in _WAYS:
            beside = instructions.get(one.workload)
            if beside in _WAYS - {one.verdict}:
                otherwise.setdefault("go the other way in", []).append(one)
            elif beside is Verdict.EQUIVALENT:
                alone = "worse" if one.verdict is Verdict.WORSE else "better"
                otherwise.setdefault(f"alone got {alone} in", []).append(one)
    return [f"modelled cycles {what} {len(ones)}: {_named(ones, ones)}" for what, ones in otherwise.items()]


def _clause(comparisons: list[Comparison], margin: float, *, several: bool) -> str:
    what, total = _counted(comparisons), len(comparisons)
    first = comparisons[0]
    route = _ROUTE if several else f"from {first.baseline} to {first.treatment}"
    if all(one.verdict is Verdict.IDENTICAL for one in comparisons):
        return f"there is nothing to compare {route}: the kernels are the same image"
    worse, better, same, open_ = (
        [one for one in comparisons if one.verdict is verdict]
        for verdict in (Verdict.WORSE, Verdict.BETTER, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE)
    )
    if len(same) == total:
        every = f"all {total} {what}" if total > 1 else f"{_name(first, comparisons)}"
        return f"{every} stayed equivalent (within {margin * 100:.3g} %) {route}"
    if len(open_) == total:
        return f"nothing is decided {route}: {open_[0].reason or 'all is inconclusive'}"
    parts = []
    if worse:
        parts.append(f"{len(worse)} of {total} {what} got worse {route}: {_named(worse, comparisons)}")
    if better:
        start = (
            f"{len(better)} got better" if worse else f"{len(better)} of {total} {what} got better {route}"
        )
        parts.append(f"{start}: {_named(better, comparisons)}")
    if not parts:
        parts.append(f"no change is shown {route}")
    parts += [f"{len(same)} equivalent"] * bool(same) + [f"{len(open_)} inconclusive"] * bool(open_)
    return ", ".join(parts) if several else "; ".join(parts)


def interaction_answer(interactions: Sequence[Interaction], margin: float) -> str:
    """One sentence for every two factors: where what the one does depends on the other."""
    names = short_labels(one.workload for one in interactions)
    pairs: dict[tuple[str, str], list[Interaction]] = {}
    for one in interactions:
        named = one.model_copy(update={"workload": names[one.workload]})
        pairs.setdefault((one.first, one.second), []).append(named)
    return " ".join(_of_pair(first, second, of_pair, margin) for (first, second), of_pair in pairs.items())


def _of_pair(first: str, second: str, of_pair: list[Interaction], margin: float) -> str:
    depending = [one for one in of_pair if one.verdict in (Verdict.BETTER, Verdict.WORSE)]
    same = sum(one.verdict is Verdict.EQUIVALENT for one in of_pair)
    total, within = len(of_pair), f"{margin * 100:.3g} %"
    word = "workload" if len({one.workload for one in of_pair}) == total else "number"
    if same == total:
        return f"{first} and {second} do not interact: their effects multiply, within {within}."
    rest = [f"{same} without an interaction beyond {within}"] * bool(same)
    rest += [f"{total - same - len(depending)} undecided"] * (total > same + len(depending))
    left = f" ({', '.join(rest)})" if rest else ""
    if not depending:
        return f"No interaction of {first} and {second} is shown{left}."
    ranked = sorted(depending, key=lambda one: -abs(math.log(one.ratio or 1.0)))
    several = len({one.metric for one in of_pair}) > 1
    shown = "; ".join(_dependence(one, several=several) for one in ranked[:_MOST_NAMED])
    more = f"; and {len(ranked) - _MOST_NAMED} more" if len(ranked) > _MOST_NAMED else ""
    return f"{first} and {second} interact in {len(depending)} of {total} {word}s: {shown}{more}{left}."


def _dependence(one: Interaction, *, several: bool) -> str:
    """`scheduler=my.patch changes fork by +3.02 % with SLUB=y and by +1.01 % with SLAB=y`."""
    level = level_shown(one.first, one.first_levels[1])
    with_, beside = (level_shown(one.second, each) for each in one.second_levels)
    effects = [f"{(effect or 1.0) * 100 - 100:+.3g} %" for effect in (one.effect, one.effect_beside)]
    what = f"{one.workload} ({one.metric})" if several else one.workload
    return f"{level} changes {what} by {effects[0]} with {with_} and by {effects[1]} with {beside}"


def _counted(comparisons: list[Comparison]) -> str:
    """What is counted: workloads, unless one of them has more than one metric."""
    workloads = {one.workload for one in comparisons}
    word = "workload" if len(workloads) == len(comparisons) else "metric"
    return word if len(comparisons) == 1 else f"{word}s"


def _named(changed: list[Comparison], among: list[Comparison]) -> str:
    """`fork by 13.8 %, pipe by 3.1 % and 2 more`, the largest change first."""
    ranked = sorted(changed, key=lambda one: (-_change(one), one.workload, one.metric))
    shown = [f"{_name(one, among)} {_by(one)}" for one in ranked[:_MOST_NAMED]]
    rest = len(ranked) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _name(one: Comparison, among: list[Comparison]) -> str:
    several = sum(other.workload == one.workload for other in among) > 1
    return f"{one.workload} ({one.metric})" if several else one.workload


def _change(one: Comparison) -> float:
    """Relative; from nothing to something, and back, it is beyond all others."""
    return math.inf if one.ratio is None else abs(one.ratio - 1.0)


def _by(one: Comparison) -> str:
    if one.ratio is None:
        return f"from {one.baseline_value:g} to {one.value:g}"
    return f"by {three_digits(_change(one))}"


def variability_answer(findings: Sequence[Variability]) -> str:
    """One sentence; empty where nothing was found."""
    if not findings:
        return ""
    named = "; ".join(map(said, findings[:_MOST_NAMED]))
    more = f"; and {len(findings) - _MOST_NAMED} more" if len(findings) > _MOST_NAMED else ""
    return f"Whatever the means say, not all are equally steady: {named}{more}."


def said(one: Variability) -> str:
    """`fork (instructions) scatters more with debian:6.12: 5.2 % over 3 perturbations, against 0.02 %`."""
    treatment = told_apart(one.treatment, one.baseline)
    what = f"{one.workload} ({one.metric})"
    over = f"{one.trials} {'perturbations' if one.mode in EXACT_MODES else 'blocks'}"
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
