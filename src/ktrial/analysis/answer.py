"""A study's answer in sentences: how treatments compare, whether factors interact, which treatments scatter
otherwise than the baseline.
"""

import math
from collections.abc import Sequence, Set

from ktrial.format import number_format
from ktrial.format.labels import ESTIMANDS
from ktrial.format.number_format import (
    SPACE,
    is_time,
    number,
    percentage,
    quantity,
    short_change,
    short_interval,
)
from ktrial.model.comparison import (
    ONE_PERTURBATION,
    Comparison,
    Estimand,
    Interaction,
    Scatter,
    Variability,
    Verdict,
)
from ktrial.model.design import level_shown, told_apart
from ktrial.model.workload import (
    BESIDE_THE_OWN,
    EXACT_MODES,
    MODELLED_CYCLES,
    STRING_BYTES,
    Mode,
    short_labels,
)
from ktrial.program_outputs import is_by_clock

_MOST_NAMED = 3
_MOST_CLAUSES = 3
"""Of more treatments, of which different things are to be said, the sentence counts them."""
_ROUTE = "\0"
"""Stands for the treatments in a clause that holds for several."""


def answer(comparisons: Sequence[Comparison], margin: float, interactions: Sequence[Interaction] = ()) -> str:
    """What the comparisons say, in plain words: one clause a treatment, the largest changes by name.

    Then a sentence for every two factors, on whether what the one does depends on the other.
    """
    names = short_labels(comparison.workload for comparison in comparisons)
    named = [
        comparison.model_copy(update={"workload": names[comparison.workload]}) for comparison in comparisons
    ]
    return " ".join(filter(None, (_answer(named, margin), interaction_answer(interactions, margin))))


def _answer(comparisons: Sequence[Comparison], margin: float) -> str:
    if not comparisons:
        return "There is nothing to compare: the study has one treatment."
    baseline, modes = comparisons[0].baseline, {comparison.mode for comparison in comparisons}
    by_treatment: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        by_treatment.setdefault(comparison.treatment, []).append(comparison)
    several = len(by_treatment) > 1
    own = [comparison for comparison in comparisons if comparison.metric not in BESIDE_THE_OWN]
    main, _ = told_first(own or comparisons)
    tested = any(comparison.verdict is not Verdict.NOT_TESTED for comparison in main)
    units = {comparison.unit for comparison in main}
    start = measure_of(modes, units, comparisons[0].estimand) if tested else ""
    if several:
        start += f"against {baseline}, "
    # Treatments of which the same is to be said are named together.
    named: dict[str, list[str]] = {}
    for name, of_treatment in by_treatment.items():
        clause = _whole_clause(of_treatment, margin, several=several)
        named.setdefault(clause, []).append(told_apart(name, baseline))
    if len(named) > _MOST_CLAUSES:
        clauses = [_of_many(by_treatment, baseline)]
    else:
        clauses = [clause.replace(_ROUTE, f"with {_listed(names)}") for clause, names in named.items()]
    return f"{start}{'; '.join([*clauses, *_left_open(main, several=several)])}."


_CLAIMED = {Verdict.BETTER, Verdict.WORSE, Verdict.EQUIVALENT}


def _left_open(comparisons: Sequence[Comparison], *, several: bool) -> list[str]:
    """Where other trials than those that verdicts are about say otherwise, and what no block has met."""
    clauses = []
    besides = [
        comparison for comparison in comparisons if comparison.beside and comparison.verdict in _CLAIMED
    ]
    for comparison in besides[:_MOST_NAMED]:
        beside_it = [item for item in comparisons if item.treatment == comparison.treatment]
        names = [_name(comparison, beside_it)] if len(comparisons) > 1 else []
        names += [f"with {told_apart(comparison.treatment, comparison.baseline)}"] if several else []
        clauses.append(f"{' '.join(names)}: {comparison.beside}" if names else comparison.beside)
    if len(besides) > _MOST_NAMED:
        clauses.append(f"and so beside {len(besides) - _MOST_NAMED} more")
    open_to_most = max(comparisons, key=lambda comparison: comparison.unseen or 0.0, default=None)
    return [*clauses, open_to_most.bound] if open_to_most and open_to_most.bound else clauses


def measure_of(modes: Set[Mode], units: Set[str], estimand: Estimand | None = None) -> str:
    """What a sentence on numbers of these modes and units begins with; nothing where their units say enough.

    `estimand`: what verdicts are about where numbers scatter.

    Times and rates in exact mode are the guest's own, whose clock goes on by 1 ns an instruction.
    """
    if modes <= {Mode.EXACT_CLOCK, Mode.EXACT_PLUGIN}:
        by_clock = {unit for unit in units if is_time(unit) or is_by_clock(unit)}
        if not by_clock:
            return "By instructions counted, not time: "
        others = "" if by_clock == units else "instructions counted, or by "
        return f"By {others}the guest's clock (1 ns an instruction), not real time: "
    about = f"of {ESTIMANDS[estimand]}" if estimand else ""
    if modes == {Mode.EXACT_PARALLEL}:
        return f"By simulated time {about}: " if about else "By simulated time: "
    return f"{about.capitalize()}: " if about and modes == {Mode.TIMED} else ""


_UNDECIDED = "are undecided"


def _of_many(by_treatment: dict[str, list[Comparison]], baseline: str) -> str:
    """`of 12 treatments 7 got worse and none better, 2 both: most worse: debian:6.18 (fork +18.2 %)`."""
    ways: dict[str, int] = {}
    for of_treatment in by_treatment.values():
        main = [comparison for comparison in of_treatment if comparison.metric not in BESIDE_THE_OWN]
        verdicts = {comparison.verdict for comparison in main or of_treatment}
        if verdicts >= _WAYS:
            way = "got worse and better, by workload"
        elif Verdict.WORSE in verdicts:
            way = "got worse"
        elif Verdict.BETTER in verdicts:
            way = "got better"
        elif verdicts == {Verdict.NOT_TESTED}:
            way = "are not tested"
        elif verdicts <= {Verdict.EQUIVALENT, Verdict.IDENTICAL, Verdict.NOT_TESTED}:
            way = "stayed equivalent"
        else:
            way = _UNDECIDED
        ways[way] = ways.get(way, 0) + 1
    counted = ", ".join(f"{count} {way}" for way, count in ways.items())
    changed = [
        comparison
        for comparison in (item for of_treatment in by_treatment.values() for item in of_treatment)
        if comparison.verdict in _WAYS and comparison.metric not in BESIDE_THE_OWN
    ]
    largest = []
    for verdict, word in ((Verdict.WORSE, "most worse"), (Verdict.BETTER, "most better")):
        if of_verdict := [comparison for comparison in changed if comparison.verdict is verdict]:
            first = max(of_verdict, key=_change)
            change = f"{_name(first, by_treatment[first.treatment])} {_by(first)}"
            largest.append(f"{word}: {told_apart(first.treatment, baseline)} ({change})")
    reasons = list(
        dict.fromkeys(
            comparison.reason
            for of_treatment in by_treatment.values()
            for comparison in of_treatment
            if comparison.verdict is Verdict.INCONCLUSIVE and comparison.reason
        )
    )
    if set(ways) == {_UNDECIDED} and reasons:
        more = f" (and {number_format.counted(len(reasons) - 1, 'other reason')})" if reasons[1:] else ""
        why = f"{reasons[0]}{more}".replace(number_format.SPACE, " ")
        return f"all is undecided with any of {len(by_treatment)} treatments: {why}"
    return "; ".join((f"of {len(by_treatment)} treatments {counted}", *largest))


def _listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b, c and 4 more`."""
    shown, unnamed = names[:_MOST_NAMED], len(names) - _MOST_NAMED
    if unnamed > 0:
        return f"{', '.join(shown)} and {unnamed} more"
    *first, last = shown
    return f"{', '.join(first)} and {last}" if first else last


def _whole_clause(comparisons: list[Comparison], margin: float, *, several: bool) -> str:
    """The bytes of string instructions come last: the instructions themselves are the main thing."""
    metrics = [comparison for comparison in comparisons if comparison.metric not in BESIDE_THE_OWN]
    main, further = told_first(metrics)
    moved = (
        [comparison for comparison in comparisons if comparison.metric == STRING_BYTES.name] if main else []
    )
    clause = _clause(main or comparisons, margin, several=several)
    parts = []
    for verdict, word in ((Verdict.WORSE, "more"), (Verdict.BETTER, "fewer")):
        if changed := [comparison for comparison in moved if comparison.verdict is verdict]:
            parts.append(f"{word} in {len(changed)} of them: {_named(changed, changed)}")
    tested = [comparison for comparison in further if comparison.verdict is not Verdict.NOT_TESTED]
    beside = [_of_further(tested)] if tested else []
    beside += [f"string instructions worked on {', '.join(parts)} (bytes)"] if parts else []
    beside += _cycles_clauses(main, comparisons)
    return (", " if several else "; ").join((clause, *beside))


_WAYS = {Verdict.WORSE, Verdict.BETTER}
_INSTRUCTIONS = "instructions"


def told_first(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], list[Comparison]]:
    """Those that the answer is about, and the others.

    Where a workload's first metric counts instructions, that is what was measured: rates, latencies and
    events by the guest's clock stand beside it. Otherwise every metric is a workload's own.
    """
    first: dict[str, str] = {}
    for comparison in comparisons:
        if comparison.unit.startswith(_INSTRUCTIONS):
            first.setdefault(comparison.workload, comparison.metric)
    main = [item for item in comparisons if first.get(item.workload, item.metric) == item.metric]
    return main, [item for item in comparisons if first.get(item.workload, item.metric) != item.metric]


def _of_further(further: Sequence[Comparison]) -> str:
    """`of 24 other metrics 3 got worse and 8 better, first file-server (read) −3.9 %`."""
    changed = [item for item in further if item.verdict in _WAYS]
    total = number_format.counted(len(further), "other metric").replace(SPACE, " ")
    if not changed:
        return f"no change is shown in {total}"
    worse = sum(item.verdict is Verdict.WORSE for item in changed)
    # No server has the emulator's latencies.
    named = next((item for item in changed if not item.metric.startswith("latency")), changed[0])
    example = f"{named.workload} ({named.metric}) {_by(named)}"
    if len(further) == 1:
        return f"{total} got {'worse' if worse else 'better'}: {example}"
    better = len(changed) - worse
    counts = [f"{worse} got worse"] * bool(worse) + [f"{better} better"] * bool(better)
    return f"of {total} {' and '.join(counts)}, first {example}"


def _cycles_clauses(main: list[Comparison], comparisons: list[Comparison]) -> list[str]:
    """Where modelled cycles are decided otherwise than the instructions of their workload."""
    instructions = {comparison.workload: comparison.verdict for comparison in reversed(main)}
    otherwise: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.metric == MODELLED_CYCLES.name and comparison.verdict in _WAYS:
            beside = instructions.get(comparison.workload)
            if beside in _WAYS - {comparison.verdict}:
                otherwise.setdefault("go the other way in", []).append(comparison)
            elif beside is Verdict.EQUIVALENT:
                alone = "worse" if comparison.verdict is Verdict.WORSE else "better"
                otherwise.setdefault(f"alone got {alone} in", []).append(comparison)
    return [
        f"modelled cycles {direction} {len(ones)}: {_named(ones, ones)}"
        for direction, ones in otherwise.items()
    ]


def _clause(comparisons: list[Comparison], margin: float, *, several: bool) -> str:
    counted, total = _counted(comparisons), len(comparisons)
    first = comparisons[0]
    route = _ROUTE if several else f"from {first.baseline} to {first.treatment}"
    if all(comparison.verdict is Verdict.IDENTICAL for comparison in comparisons):
        return f"there is nothing to compare {route}: the kernels are the same image"
    worse, better, same, open_, untested = (
        [comparison for comparison in comparisons if comparison.verdict is verdict]
        for verdict in (
            *(Verdict.WORSE, Verdict.BETTER, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE),
            Verdict.NOT_TESTED,
        )
    )
    if len(untested) == total:
        every = f"{total} {counted} are" if total > 1 else f"{_name(first, comparisons)} is"
        return f"{every} not tested {route}"
    if len(same) == total:
        several_of = "both" if total == 2 else f"all {total}"
        every = f"{several_of} {counted}" if total > 1 else _name(first, comparisons)
        return f"{every} stayed equivalent (within {margin * 100:.3g} %) {route}"
    if len(open_) == total:
        why = open_[0].reason or "all is inconclusive"
        if several:
            return f"{_name(first, comparisons) if total == 1 else 'all'} is undecided {route}: {why}"
        what = _name(first, comparisons) if total == 1 else "anything"
        return f"it is undecided whether {what} changed {route}: {why}"
    if total == 1 and first.verdict in _WAYS:
        way = "worse" if worse else "better"
        return f"{_name(first, comparisons)} got {way} {route}: {_by(first)}{_evidence(first)}"
    parts = []
    if worse:
        names = _named(worse, comparisons, intervals=not several)
        parts.append(f"{len(worse)} of {total} {counted} got worse {route}: {names}")
    if better:
        start = (
            f"{len(better)} got better" if worse else f"{len(better)} of {total} {counted} got better {route}"
        )
        parts.append(f"{start}: {_named(better, comparisons, intervals=not several)}")
    if not parts:
        parts.append(f"no change is shown {route}")
    parts += [f"{len(same)} equivalent"] * bool(same) + [f"{len(open_)} inconclusive"] * bool(open_)
    parts += [f"{len(untested)} not tested"] * bool(untested)
    if not (open_ or untested) and (mean := geometric_mean(comparisons)) is not None:
        parts.append(f"geometric mean of {total}: {short_change(mean)}")
    if not several and any(comparison.no_interval for comparison in worse + better):
        parts.append(ONE_PERTURBATION)
    return ", ".join(parts) if several else "; ".join(parts)


def interaction_answer(interactions: Sequence[Interaction], margin: float) -> str:
    """One sentence for every two factors: where what the one does depends on the other."""
    names = short_labels(interaction.workload for interaction in interactions)
    pairs: dict[tuple[str, str], list[Interaction]] = {}
    for interaction in interactions:
        named = interaction.model_copy(update={"workload": names[interaction.workload]})
        pairs.setdefault((interaction.first, interaction.second), []).append(named)
    return " ".join(_of_pair(first, second, of_pair, margin) for (first, second), of_pair in pairs.items())


def _of_pair(first: str, second: str, of_pair: list[Interaction], margin: float) -> str:
    depending = [
        interaction for interaction in of_pair if interaction.verdict in (Verdict.BETTER, Verdict.WORSE)
    ]
    same = sum(interaction.verdict is Verdict.EQUIVALENT for interaction in of_pair)
    total, within = len(of_pair), f"{margin * 100:.3g} %"
    word = "workload" if len({interaction.workload for interaction in of_pair}) == total else "number"
    if same == total:
        return f"{first} and {second} do not interact: their effects multiply, within {within}."
    undecided = [f"{same} without an interaction beyond {within}"] * bool(same)
    undecided += [f"{total - same - len(depending)} undecided"] * (total > same + len(depending))
    left = f" ({', '.join(undecided)})" if undecided else ""
    if not depending:
        return f"No interaction of {first} and {second} is shown{left}."
    ranked = sorted(depending, key=lambda interaction: -abs(math.log(interaction.ratio or 1.0)))
    several = len({interaction.metric for interaction in of_pair}) > 1
    shown = "; ".join(_dependence(interaction, several=several) for interaction in ranked[:_MOST_NAMED])
    more = f"; and {len(ranked) - _MOST_NAMED} more" if len(ranked) > _MOST_NAMED else ""
    return f"{first} and {second} interact in {len(depending)} of {total} {word}s: {shown}{more}{left}."


def _dependence(interaction: Interaction, *, several: bool) -> str:
    """`scheduler=my.patch changes fork by +3.02 % with SLUB=y and by +1.01 % with SLAB=y`."""
    level = level_shown(interaction.first, interaction.first_levels[1])
    with_, beside = (
        level_shown(interaction.second, second_level) for second_level in interaction.second_levels
    )
    effects = [
        f"{(effect or 1.0) * 100 - 100:+.3g} %" for effect in (interaction.effect, interaction.effect_beside)
    ]
    subject = f"{interaction.workload} ({interaction.metric})" if several else interaction.workload
    return f"{level} changes {subject} by {effects[0]} with {with_} and by {effects[1]} with {beside}"


def _counted(comparisons: list[Comparison]) -> str:
    """What is counted: workloads, unless one of them has more than one metric."""
    workloads = {comparison.workload for comparison in comparisons}
    word = "workload" if len(workloads) == len(comparisons) else "metric"
    return word if len(comparisons) == 1 else f"{word}s"


def geometric_mean(comparisons: Sequence[Comparison]) -> float | None:
    """Of the ratios of several workloads' one metric each; None where one has no ratio, or they are of unlike
    kinds.

    Source: P. J. Fleming, J. J. Wallace, How not to lie with statistics: the correct way to summarize
    benchmark results, CACM 29 (3), 1986.
    """
    ratios = [comparison.ratio for comparison in comparisons]
    kinds = {(comparison.unit, comparison.direction, comparison.mode) for comparison in comparisons}
    workloads = {comparison.workload for comparison in comparisons}
    if len(ratios) < 2 or len(workloads) < len(ratios) or len(kinds) > 1 or not all(ratios):
        return None
    return math.exp(sum(math.log(ratio) for ratio in ratios if ratio) / len(ratios))


def _named(changed: list[Comparison], among: list[Comparison], *, intervals: bool = False) -> str:
    """`fork +14.3 % (+13.9 … +14.4), pipe +3.1 % and 2 more`, the largest change first."""
    ranked = sorted(
        changed, key=lambda comparison: (-_change(comparison), comparison.workload, comparison.metric)
    )
    shown = [
        f"{_name(comparison, among)} {_by(comparison)}{_interval(comparison) if intervals else ''}"
        for comparison in ranked[:_MOST_NAMED]
    ]
    unnamed = len(ranked) - len(shown)
    return ", ".join(shown) + (f" and {unnamed} more" if unnamed else "")


def _name(comparison: Comparison, among: list[Comparison]) -> str:
    several = sum(neighbour.workload == comparison.workload for neighbour in among) > 1
    return f"{comparison.workload} ({comparison.metric})" if several else comparison.workload


def _change(comparison: Comparison) -> float:
    """Relative; from nothing to something, and back, it is beyond all others."""
    return math.inf if comparison.ratio is None else abs(comparison.ratio - 1.0)


def _by(comparison: Comparison) -> str:
    if comparison.ratio is None:
        before, after = (
            quantity(value, comparison.unit).replace(SPACE, " ")
            for value in (comparison.baseline_value, comparison.value)
        )
        return f"from {before} to {after}"
    return short_change(comparison.ratio)


def _interval(comparison: Comparison) -> str:
    return short_interval(comparison.ratio, comparison.low, comparison.high)


def _evidence(comparison: Comparison) -> str:
    return f" ({comparison.no_interval})" if comparison.no_interval else _interval(comparison)


def variability_answer(findings: Sequence[Variability]) -> str:
    """One sentence; empty where nothing was found."""
    if not findings:
        return ""
    named = "; ".join(map(said, findings[:_MOST_NAMED]))
    more = f"; and {len(findings) - _MOST_NAMED} more" if len(findings) > _MOST_NAMED else ""
    return f"Whatever the means say, not all are equally steady: {named}{more}."


def said(variability: Variability) -> str:
    """`fork (instructions) scatters more with debian:6.12: 5.2 % over 3 perturbations, against 0.02 %`."""
    treatment = told_apart(variability.treatment, variability.baseline)
    subject = f"{variability.workload} ({variability.metric})"
    over = f"{variability.trials} {'perturbations' if variability.mode in EXACT_MODES else 'blocks'}"
    if variability.scatter in (Scatter.WIDER, Scatter.NARROWER):
        word = "more" if variability.scatter is Scatter.WIDER else "less"
        spreads = (
            f"{_percent(variability.spread)} over {over}, against {_percent(variability.baseline_spread)}"
        )
        return f"{subject} scatters {word} with {treatment}: {spreads}"
    modes = " and ".join(
        f"{number(mode.value)} ({mode.trials} of {variability.trials})" for mode in variability.modes
    )
    if variability.scatter is Scatter.TWO_MODES:
        return (
            f"{subject} has two modes with {treatment}, about {modes}, where {variability.baseline} shows one"
        )
    return f"{subject} shows one mode with {treatment}, where {variability.baseline} has two, about {modes}"


def _percent(spread: float) -> str:
    return percentage(spread, space=" ")
