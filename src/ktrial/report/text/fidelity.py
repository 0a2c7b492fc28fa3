"""Fidelity in sentences: figures, disagreements and what of the model could explain them, for all outputs."""

from collections.abc import Iterable

from ktrial.format import number_format
from ktrial.model.fidelity import Change, Fidelity, FidelityPair, FidelityResult, FittedCosts, Interval

_LEAST_SHARE = 0.1
"""Of what modelled cycles moved by: smaller parts are not named."""
_NAMES = {
    "instruction": "instructions",
    "string_bytes": "bytes of string instructions",
    "l2": "lines from the second level",
    "llc": "lines from the last level",
    "memory": "lines from memory",
    "stlb": "translations from the second level",
    "walk": "page walks",
    "misprediction": "mispredicted branches",
    "classes": "dear instructions, interrupts and devices, less what stores do not wait for",
}


def figures(one: Fidelity) -> str:
    """Correlations, error and slope."""
    if one.rms_error is None or one.slope is None:
        return f"no pair is decided on both; {one.undecided_in_exact} only in real time"
    return (
        f"Spearman {interval(one.spearman)}, Pearson {interval(one.pearson)}, RMS error of log ratios "
        f"{one.rms_error:.3f}, slope {one.slope:.2f}; {one.undecided_in_exact} decided only in real time"
    )


def interval(one: Interval) -> str:
    """A figure and its interval."""
    if one.value is None:
        return "unknown (too few)"
    return f"{one.value:.2f}" + (f" ({one.low:.2f} to {one.high:.2f})" if one.low is not None else "")


def change(one: Change) -> str:
    """A ratio as a change, with its interval."""
    return f"{number_format.change(one.ratio)} ({number_format.interval(one.low, one.high)})"


def disagreement(pair: FidelityPair, count: str) -> str:
    """What the two say, which counts have it right, and what modelled cycles moved by."""
    right = [name for name, each in pair.exact.items() if each.verdict is pair.time.verdict]
    better = f"; {', '.join(right)} {'has' if len(right) == 1 else 'have'} it right" if right else ""
    said = f"counted {change(pair.exact[count])}, in time {change(pair.time)}{better}"
    return f"{pair.treatment}, {pair.workload}, {pair.metric}: {said}; {explained(pair)}"


def explained(pair: FidelityPair) -> str:
    """Which kinds of modelled cost moved, the largest first."""
    if not pair.costs:
        return "no cycles were modelled, so that nothing is known of misses"
    whole = sum(map(abs, pair.costs.values()))
    moved = sorted(pair.costs.items(), key=lambda one: -abs(one[1]))
    parts = [f"{_NAMES[name]} {by:+,.0f}" for name, by in moved if abs(by) > _LEAST_SHARE * whole]
    if not parts:
        return "nothing that is modelled moved: waiting, other CPUs, or what is not modelled"
    return f"modelled cycles an operation moved by {', '.join(parts)}"


def lines(result: FidelityResult) -> Iterable[str]:
    """All of it, as plain lines; headings end with a colon."""
    for title, all_figures in (("All treatments", result.all), ("The half held out", result.held_out)):
        yield f"{title}:"
        for one in all_figures:
            yield f"  {one.sentence}"
            yield f"    {figures(one)}"
    for one in result.all:
        for pair in one.disagreements:
            yield f"Other sign by {one.count}: {disagreement(pair, one.count)}"
    if result.workloads:
        yield "Workloads beside each other, as the baseline runs them:"
        yield from (f"  {one.sentence}" for one in result.across)
    if result.fitted:
        yield from fit_lines(result.fitted)
    for reason in result.left_out:
        yield f"Left out: {reason}"


def fit_lines(fit: FittedCosts) -> Iterable[str]:
    """What was fitted, and the other half by it."""
    yield (
        f"Fitted to {fit.operations} operations, from {fit.like}: error of times {fit.error_before:.2f} "
        f"before and {fit.error_after:.2f} after, as logarithms"
    )
    for name, value in fit.after.items():
        yield f"  {name}: {fit.before[name]:.3g} to {value:.3g}"
    for title, one in (("before", fit.held_out_before), ("after", fit.held_out)):
        yield f"  the other half {title}: {one.sentence}; {figures(one)}"
