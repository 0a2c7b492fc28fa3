"""Is a treatment less steady than the baseline? Two kernels with the same mean are then still told apart.

Two questions for each metric of each workload and each treatment, each with one number a perturbation (exact)
or a block (timed):

- **spread**. From 8 numbers on, Brown and Forsythe's test (JASA 69, 1974: deviations from the median) in the
  form for pairs (Wilcox, Journal of Educational Statistics 14, 1989): a t test of the differences of both
  arms' deviations within a block, so that what a block has in common (drift) divides out. What it claims must
  stand when both arms' numbers are exchanged within blocks at random: t asks more of the numbers than that.
  With 3 to 7 numbers no such test can decide anything: there, and in exact mode only, it is the F test of two
  variances of the logarithms, whose level holds for effects that are about normal;
- **modes**, from 8 numbers on: Hartigan and Hartigan's dip (Annals of Statistics 13, 1985), whose limit holds
  for every distribution with one mode. A machine that switches between two speeds does that to both arms, so
  that their dips must also differ: by permutation of both arms within the blocks.

The level is halved between the two questions, and Holm's procedure holds each half over the whole study, so
that a study of kernels that scatter alike has a finding at all in at most 5 %. A finding also has to matter:
the wider arm's spread, or the distance of the two modes, is beyond the margin.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Mound, Scatter, Variability
from ktrial.model.workload import EXACT_MODES
from ktrial.stats.paired_arms import FEWEST_FOR_RANKS, FLOOR, PairedArms
from ktrial.stats.sequential.data_warnings import best_split
from ktrial.stats.sequential.familywise import holm

Array = NDArray[np.float64]
FEWEST_FOR_MODES = 8
_DRAWS = 999


def variability(pairs: Sequence[PairedArms], margin: float, alpha: float = 0.05) -> tuple[Variability, ...]:
    """Every treatment that scatters otherwise than the baseline, in the order of `pairs`.

    The family-wise error over all pairs and both questions is `alpha`.
    """
    usable = [
        (pair, (np.log([pair.below[block] for block in both]), np.log([pair.above[block] for block in both])))
        for pair in pairs
        if (both := pair.both)
    ]
    findings: dict[int, list[Variability]] = {place: [] for place in range(len(usable))}
    # Where no spread matters, no test is needed: they load SciPy, a third of a second.
    matters = any(max(_spreads(pair, logs)) > margin for pair, logs in usable)
    tested = enumerate(usable if matters else [])
    spreads = _held({place: spread_p(*logs, FLOOR * margin) for place, (_, logs) in tested}, alpha)
    for place, p in spreads.items():
        pair, logs = usable[place]
        # What is exchanged was chosen by the same numbers: half of the level makes up for that.
        stands = len(logs[0]) < FEWEST_FOR_RANKS or spreads_differ(*logs, alpha / 4 / len(spreads))
        finding = _finding(pair, logs, p)
        if stands and max(finding.baseline_spread, finding.spread) > margin:
            findings[place].append(finding)
    dips = _held(
        {
            place: min(1.0, 2 * min(map(dip_p, logs)))
            for place, (pair, logs) in enumerate(usable)
            # A coarse clock makes heaps of equal values, which are no modes.
            if len(logs[0]) >= FEWEST_FOR_MODES
            and (pair.mode in EXACT_MODES or all(2 * len(np.unique(arm)) > len(arm) for arm in logs))
        },
        alpha,
    )
    for place, p in dips.items():
        pair, logs = usable[place]
        if dips_differ(*logs, alpha / 4 / len(dips)):
            below, above = map(dip_p, logs)
            parts = _parts(logs[1] if above < below else logs[0])
            modes = tuple(Mound(value=float(np.exp(part.mean())), trials=len(part)) for part in parts)
            if modes[1].value > (1 + margin) * modes[0].value:
                scatter = Scatter.TWO_MODES if above < below else Scatter.ONE_MODE
                finding = _finding(pair, logs, p)
                findings[place].append(finding.model_copy(update={"scatter": scatter, "modes": modes}))
    return tuple(finding for of_pair in findings.values() for finding in of_pair)


def _held(p_values: Mapping[int, float], alpha: float) -> dict[int, float]:
    """Those that Holm's procedure claims at half of the level, with their adjusted p values."""
    adjusted = holm(list(p_values.values())).tolist() if p_values else []
    return {place: p for place, p in zip(p_values, adjusted, strict=True) if p <= alpha / 2}


def spread_p(below: Array, above: Array, floor: float = 0.0) -> float:
    """The p value of 'both scatter alike', two-sided; logarithms, paired.

    `floor`: a standard deviation below which differences are not looked at, for fewer than 8 numbers.
    """
    count = len(below)
    if count < FEWEST_FOR_RANKS:
        low, high = sorted(max(float(np.var(arm, ddof=1)), floor**2) for arm in (below, above))
        if low == 0 or low == high:  # as of most counts
            return 1.0
        from scipy import special  # takes a third of a second to load

        # The F distribution's upper tail, both sides.
        return min(1.0, 2 * float(special.fdtrc(count - 1, count - 1, high / low)))
    apart = np.abs(above - np.median(above)) - np.abs(below - np.median(below))
    error = float(np.std(apart, ddof=1)) / math.sqrt(count)
    if error <= 0:
        return 1.0
    from scipy import special

    return 2 * float(special.stdtr(count - 1, -abs(float(apart.mean())) / error))


def dip_p(values: Array) -> float:
    """The p value of 'one mode', by Hartigan's dip."""
    if np.ptp(values) == 0:
        return 1.0
    # Here: loading a compiled library takes time that a command without results does not have.
    from diptest import diptest

    return float(diptest(np.sort(values))[1])


def dips_differ(below: Array, above: Array, level: float) -> bool:
    """Whether 'both arms' dips are alike' is refused at this level: logarithms, paired."""
    from diptest import dipstat

    def apart(first: Array, second: Array) -> float:
        return abs(float(dipstat(np.sort(first))) - float(dipstat(np.sort(second))))

    # About the middle between the two parts' means: arms that have the same two modes lie on each other.
    arms = np.stack([arm - sum(float(part.mean()) for part in _parts(arm)) / 2 for arm in (below, above)])
    observed, most = apart(*arms) * (1 - 1e-12), _most(level)
    reached = 1
    for swap in _exchanges(len(below)):
        reached += apart(*np.where(swap, arms[::-1], arms)) >= observed
        if reached > most:
            return False
    return True


def _parts(arm: Array) -> tuple[Array, Array]:
    """The best split in two, in order."""
    ordered = np.sort(arm)
    _, lower = best_split(ordered[None, :])
    return ordered[: lower[0]], ordered[lower[0] :]


def spreads_differ(below: Array, above: Array, level: float) -> bool:
    """Whether 'both scatter alike' is refused at this level: logarithms, paired."""

    def deviation(arms: Array) -> Array:
        return np.asarray(np.abs(arms - np.median(arms, axis=-1, keepdims=True)).mean(axis=-1))

    first, second = (arm - np.median(arm) for arm in (below, above))
    swap = _exchanges(len(below))
    apart = deviation(np.where(swap, second, first)) - deviation(np.where(swap, first, second))
    observed = abs(float(deviation(first) - deviation(second))) * (1 - 1e-12)
    return bool(1 + np.count_nonzero(np.abs(apart) >= observed) <= _most(level))


def _exchanges(blocks: int) -> NDArray[np.bool_]:
    """Blocks whose two numbers are exchanged, one row a draw: either was as likely the other arm's."""
    return np.random.default_rng(1).random((_DRAWS, blocks)) < 0.5


def _most(level: float) -> float:
    """How many orders may show as much, the observed one among them (Phipson and Smyth, 2010)."""
    return max(1.0, level * (1 + _DRAWS))


def _spreads(pair: PairedArms, logs: tuple[Array, Array]) -> tuple[float, float]:
    """Both arms' spreads: the range of exact numbers, the standard deviation of others; as fractions."""
    exact = pair.mode in EXACT_MODES
    below, above = (math.expm1(float(np.ptp(arm))) if exact else float(np.std(arm, ddof=1)) for arm in logs)
    return below, above


def _finding(pair: PairedArms, logs: tuple[Array, Array], p: float) -> Variability:
    """That one of the two scatters more."""
    below, above = _spreads(pair, logs)
    return Variability(
        workload=pair.workload,
        metric=pair.metric.name,
        unit=pair.metric.unit,
        mode=pair.mode,
        baseline=pair.baseline,
        treatment=pair.treatment,
        scatter=Scatter.WIDER if np.std(logs[1]) > np.std(logs[0]) else Scatter.NARROWER,
        baseline_spread=below,
        spread=above,
        trials=len(logs[0]),
        p=p,
    )
