"""Change points of a series with noise, with a controlled rate of false alarms.

Stretches of many lengths are searched for a step, each by the maximally selected rank statistic, after the
series' autocorrelation is taken out. The stretches are those of seeded binary segmentation (Kovács, Li,
Bühlmann and Munk, Biometrika 110, 2023): lengths shrink by a factor, and neighbours of one length overlap by
half, so that every change has a stretch in which it is alone, and all of them together have some n log n
points. The chance α of a false alarm anywhere in the series is split evenly over the lengths, and over the
stretches of one length (Bonferroni). Of the stretches that hold a step the shortest one is taken first
(narrowest over threshold: Baranowski, Chen and Fryzlewicz, JRSS B 81, 2019), all that contain its change are
dropped, and so on.

A step that was found is then placed exactly, by least squares between its neighbours. What is left beside the
steps is searched for excursions: 3 to 40 points that lie off the level on both sides of them, too short for a
step of their own. They have a fifth of α. `shifts_of_all` judges many series at once.

A series whose neighbours are nearly one (a random walk) has no level that could change: it `wanders`, and
shows no change.

Nothing is drawn by chance: the same series has the same change points.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
ALPHA = 0.05
"""The chance that a series without any change shows one."""
_LEAST_LENGTH = 16
_SHRINKS = 2.0
_WILD = 3.0
"""Robust standard deviations beyond both levels: values further out are brought in to there."""
_TO_SD = 1.4826
"""Median absolute deviation → standard deviation of a normal distribution."""
_MOST_POINTS = 4096
_AROUND = 2
_OF_EXCURSIONS = 0.2
"""The share of α that the search for excursions has; the search for steps has the rest."""


@dataclass(frozen=True)
class Shift:
    """One change of a series' level."""

    place: int
    """The first point after it, from 0."""
    p: float
    """The chance of such a step anywhere in a series without changes."""
    before: float
    """The median between the change before and this one."""
    after: float
    """The median from here to the next change."""


@dataclass(frozen=True)
class _LevelStep:
    length: int
    first: int
    place: int
    p: float


def shifts(values: ArrayLike, *, alpha: float = ALPHA, autocorrelated: bool = True) -> tuple[Shift, ...]:
    """Where the level of a series changes, in order. `values` has the shape (points,), the oldest first.

    A series without changes shows any with a chance of at most `alpha`: for independent noise of any
    distribution, and with `autocorrelated` for noise that follows AR(1). `autocorrelated=False`: the points
    are known to be independent. Fewer than 16 points never show one. Raises ValueError for values that are
    no numbers.
    """
    series = _checked(values)
    if len(series) < _LEAST_LENGTH:
        return ()
    phi = autoregression(series) if autocorrelated else 0.0
    if phi >= _WANDERS:
        return ()
    of_steps = alpha * (1 - _OF_EXCURSIONS)
    candidates = _chosen(list(_steps(whitened(series, phi), of_steps)))
    steps = _settled(series, candidates, phi, of_steps)
    excursions = _excursions(series, list(steps), phi, alpha * _OF_EXCURSIONS)
    changes = {place: p / (1 - _OF_EXCURSIONS) for place, p in steps.items()}
    changes |= {place: p / _OF_EXCURSIONS for ends, p in excursions.items() for place in ends}
    return _described(series, dict(sorted(changes.items())))


def p_of_any(values: ArrayLike, *, autocorrelated: bool = True) -> float:
    """The p value of 'this series has no change at all'; 1 for fewer than 16 points. Raises as `shifts`."""
    series = _checked(values)
    if len(series) < _LEAST_LENGTH:
        return 1.0
    phi = autoregression(series) if autocorrelated else 0.0
    if phi >= _WANDERS:
        return 1.0
    of_steps = min((step.p for step in _steps(whitened(series, phi), 1.0)), default=1.0)
    of_excursions = min(_excursions(series, (), phi, 1.0).values(), default=1.0)
    return min(1.0, of_steps / (1 - _OF_EXCURSIONS), of_excursions / _OF_EXCURSIONS)


def wanders(values: ArrayLike) -> bool:
    """Whether neighbours of a series are so much alike that it has no level: a random walk, for one.

    Raises ValueError as `shifts` does.
    """
    series = _checked(values)
    return len(series) >= _LEAST_LENGTH and autoregression(series) >= _WANDERS


def _checked(values: ArrayLike) -> Array:
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or not np.isfinite(series).all():
        raise ValueError("a series is one row of finite numbers")
    return series


def _steps(series: Array, alpha: float) -> Iterator[_LevelStep]:
    """Every stretch that holds a step, with the p value that counts all stretches."""
    lengths = _lengths(len(series))
    for length in lengths:
        starts = _starts(len(series), length)
        stretches = np.lib.stride_tricks.sliding_window_view(series, length)[starts]
        z, places = largest(stretches)
        p = p_value(z, length) * (len(starts) * len(lengths))
        for row in np.flatnonzero(p <= alpha):
            yield _LevelStep(length, int(starts[row]), int(starts[row] + places[row]), float(p[row]))


def _lengths(points: int) -> list[int]:
    lengths, length = [], float(points)
    while length >= _LEAST_LENGTH:
        lengths.append(round(length))
        length /= _SHRINKS
    return lengths


def _starts(points: int, length: int) -> NDArray[np.intp]:
    count = max(1, -(-2 * (points - length) // length) + 1)
    return np.unique(np.linspace(0, points - length, count).round().astype(np.intp))


def _chosen(steps: list[_LevelStep]) -> list[_LevelStep]:
    chosen: list[_LevelStep] = []
    for step in sorted(steps, key=lambda candidate: (candidate.length, candidate.p, candidate.first)):
        inside = range(step.first + 1, step.first + step.length)
        if not any(earlier.place in inside for earlier in chosen):
            chosen.append(step)
    return sorted(chosen, key=lambda step_: step_.place)


def _settled(series: Array, candidates: list[_LevelStep], phi: float, alpha: float) -> dict[int, float]:
    """Place → p value of the changes, each moved to where it fits best.

    One that the stretch between its neighbours does not show is none: it was its neighbour, seen twice.
    """
    lost = len(series) - len(whitened(series, phi))
    remaining, autocorrelation = list(candidates), significant_autoregression(series) if phi else 0.0
    while remaining:
        places = placed(series, [step.place + lost for step in remaining], autocorrelation)
        edges = [0, *places, len(series)]
        p = np.array([_p_between(series[edges[n] : edges[n + 2]], phi) for n in range(len(remaining))])
        if p.max() <= alpha and all(first < second for first, second in pairwise(edges)):
            return {place: step.p for place, step in zip(places, remaining, strict=True)}
        p[np.diff(edges[:-1]) <= 0] = 2.0  # two changes in one place
        remaining = [step for step, weak in zip(remaining, _weakest(p, alpha), strict=True) if not weak]
    return {}


def _weakest(p: Array, alpha: float) -> NDArray[np.bool_]:
    """Those above alpha that no neighbour exceeds; of two equal neighbours the first."""
    before, after = np.r_[-1.0, p[:-1]], np.r_[p[1:], -1.0]
    return np.asarray((p > alpha) & (p > before) & (p >= after))


def _p_between(stretch: Array, phi: float) -> float:
    fresh = whitened(stretch, phi)
    if len(fresh) < 2 * LEAST_SIDE:
        return 1.0
    z, _ = largest(fresh[None])
    return float(p_value(z, len(fresh))[0])


def _described(series: Array, p_by_place: dict[int, float]) -> tuple[Shift, ...]:
    edges = [0, *p_by_place, len(series)]
    medians = [float(np.median(series[first:last])) for first, last in pairwise(edges)]
    return tuple(
        Shift(place, min(1.0, p), before, after)
        for (place, p), (before, after) in zip(p_by_place.items(), pairwise(medians), strict=True)
    )


def shifts_of_all(
    series: Mapping[str, ArrayLike], *, alpha: float = ALPHA, autocorrelated: bool = True
) -> dict[str, tuple[Shift, ...]]:
    """Name → its changes. Any false change in any series has a chance of at most `alpha`.

    Holm's step-down (Scandinavian Journal of Statistics 6, 1979) over the series, by the p value of 'no
    change at all': the series that are left get their changes at the level at which they passed.
    """
    p = {name: p_of_any(values, autocorrelated=autocorrelated) for name, values in series.items()}
    changes: dict[str, tuple[Shift, ...]] = dict.fromkeys(series, ())
    for passed, name in enumerate(sorted(p, key=lambda name_: p[name_])):
        level = alpha / (len(p) - passed)
        if p[name] > level:
            break
        changes[name] = shifts(series[name], alpha=level, autocorrelated=autocorrelated)
    return changes


def placed(series: Array, places: Sequence[int], phi: float) -> list[int]:
    """The places, each moved to where a step fits best between its two neighbours.

    Two rounds: the first moves the neighbours too.
    """
    located = list(places)
    for _ in range(2):
        edges = [0, *located, len(series)]
        located = [
            _best(series, edges[number], edges[number + 1], edges[number + 2], phi)
            for number in range(len(located))
        ]
    return located


def _best(series: Array, first: int, place: int, last: int, phi: float) -> int:
    first, last = max(first, place - _MOST_POINTS), min(last, place + _MOST_POINTS)
    if not first < place < last:
        return place
    near = _tamed(series[first:place], series[place:last])
    gain, residual = _gain(near, phi)
    return first + 1 + _likeliest(gain, residual / max(1, len(near) - 3))


def _likeliest(gain: Array, variance: float) -> int:
    """The place with the most probability around it: the step is there, or up to two points off.

    With a flat prior a place's probability goes with exp(gain / (2 variance)). The single likeliest place is
    further off more often: by three points or more in 6 % of steps of two standard deviations, against 4 %.
    """
    if variance <= 0:
        return int(gain.argmax())
    probability = np.exp((gain - gain.max()) / (2 * variance))
    around = np.convolve(probability, np.ones(2 * _AROUND + 1))[_AROUND:-_AROUND]
    # Of places with as much around them (a step beyond doubt) the likeliest one.
    return int(np.lexsort((probability, around.round(9)))[-1])


def _tamed(before: Array, after: Array) -> Array:
    levels = np.array([np.median(before), np.median(after)])
    off = np.concatenate([before - levels[0], after - levels[1]])
    reach = _WILD * _TO_SD * float(np.median(np.abs(off)))
    both = np.concatenate([before, after])
    return np.clip(both, levels.min() - reach, levels.max() + reach) if reach else both


def _gain(near: Array, phi: float) -> tuple[Array, float]:
    """For a step before each point from the second on: by how much it lowers the sum of squares; and what is
    left of that sum at best.

    Generalised least squares for AR(1): both the series and the step are whitened, e_t = x_t - φ x_(t-1), the
    first point weighted by √(1 - φ²) (Prais and Winsten, 1954).
    """
    n, first = len(near), float(np.sqrt(1 - phi**2))
    e = np.concatenate([[first * near[0]], near[1:] - phi * near[:-1]])
    constant = np.concatenate([[first], np.full(n - 1, 1 - phi)])
    # The step at k, whitened: 0 before k, 1 at k, 1 - φ after it.
    tail_e = np.cumsum(e[::-1])[::-1]
    k = np.arange(1, n)
    after = n - 1 - k
    ge = e[k] + (1 - phi) * (tail_e[k] - e[k])
    g1 = constant[k] + (1 - phi) ** 2 * after
    gg = 1 + (1 - phi) ** 2 * after
    oe, oo = float(constant @ e), float(constant @ constant)
    top = ge - g1 * oe / oo
    bottom = gg - g1**2 / oo
    gain = np.zeros(n - 1)
    np.divide(top**2, bottom, out=gain, where=bottom > 1e-12)
    return gain, max(0.0, float(e @ e) - oe**2 / oo - float(gain.max()))


# The autocorrelation of a series: the model AR(1), estimated so that steps do not look like memory.
#
# The model: x_t = level + u_t, u_t = φ u_(t-1) + e_t, with independent e_t. A step in the level raises the
# autocorrelation of the whole series, however independent its noise is; so φ is estimated in short windows,
# each around its own mean, and the median window is taken: a step spoils the windows that it stands in, and
# no other. In a window of w points the estimate is too low by about (1 + 3 φ) / w (Kendall, Biometrika 41,
# 1954; Marriott and Pope, the same volume), which is added back.

_WINDOWS = (12, 25, 200)
"""A window is a fourth of a short series, 25 points of most, and a tenth of a long one, within these."""
_MOST = 0.95
"""Beyond it a series and its sums are hard to tell apart."""
_ALLOWANCE = 0.7
"""Standard errors: found by simulation, so that false alarms stay rare up to φ = 0.9."""
_OF_A_MEDIAN = 1.6
"""The variance of a median over that of a mean (π/2), and windows that overlap by half."""
_WANDERS = 0.9
"""From here on a series is taken for one without a level: of 120 points of a random walk 97 % are."""
_LOOSE, _ROUNDS = 0.5, 3
"""The level at which steps are taken out before φ is estimated again, and how often."""
_SURELY_MEMORY = 0.7
"""What looks like steps beyond it is rather a walk."""


def autoregression(values: Array) -> float:
    """φ, from 0 to 0.95: a little more than the likeliest value.

    A series with more autocorrelation than the test knows of raises false alarms; one with less costs
    some power. With n points the allowance is 0.7 standard errors of the estimate. Where steps lie so close
    that most windows hold one, φ is estimated again without those that it lets one see, up to three times.
    """
    phi = _allowed(values)
    if phi >= _SURELY_MEMORY:
        return phi
    taken_out: list[int] = []
    for _ in range(_ROUNDS):
        fresh = whitened(values, phi)
        steps = _chosen(list(_steps(fresh, _LOOSE)))
        places = sorted(set(placed(values, [step.place + len(values) - len(fresh) for step in steps], 0.0)))
        if not places or places == taken_out:
            break
        taken_out = places
        phi = min(phi, _allowed(_without_levels(values, places)))
    return phi


def _allowed(values: Array) -> float:
    return _within(_of_windows(values) + _ALLOWANCE * _standard_error(values))


def _without_levels(values: Array, places: Sequence[int]) -> Array:
    """Each stretch between two places without its median."""
    edges = [0, *places, len(values)]
    return np.concatenate(
        [values[first:last] - np.median(values[first:last]) for first, last in pairwise(edges)]
    )


def whitened(values: Array, phi: float) -> Array:
    """What is new at each point: x_t - φ x_(t-1). A step of the level stays one, of (1 - φ) its size.

    One point shorter than `values`, unless φ is 0.
    """
    return values[1:] - phi * values[:-1] if phi else values


def significant_autoregression(values: Array) -> float:
    """φ, from 0 to 0.95: the likeliest value; 0 where that lies within two standard errors of 0."""
    phi = _of_windows(values)
    return _within(phi) if phi > 2 * _standard_error(values) else 0.0


def _within(phi: float) -> float:
    return float(min(_MOST, max(0.0, phi)))


def _of_windows(values: Array) -> float:
    short, usual, long = _WINDOWS
    size = min(len(values), max(short, min(usual, len(values) // 4), min(long, len(values) // 10)))
    windows = np.lib.stride_tricks.sliding_window_view(values, size)[:: max(1, size // 2)]
    centred = windows - windows.mean(axis=1, keepdims=True)
    spread = (centred**2).sum(axis=1)
    lagged = (centred[:, 1:] * centred[:, :-1]).sum(axis=1)
    # A window without any spread has no noise, and so no memory.
    of_windows = np.divide(lagged, spread, out=np.zeros_like(lagged), where=spread > 0)
    if not spread.any():
        return 0.0
    middle = float(np.median(of_windows))
    return (size * middle + 1.0) / (size - 3.0)


def _standard_error(values: Array) -> float:
    return float(np.sqrt(_OF_A_MEDIAN / max(1, len(values))))


# A level that is left and comes back: the largest rank statistic over all short stretches.
#
# For every stretch of 3 to 40 points (a fourth of a short series at most) the sum of the normal scores is
# divided by its standard deviation under all permutations. The chance that the largest one of a series of
# exchangeable values is that large is Siegmund's (Annals of Statistics 16, 1988), as circular binary
# segmentation uses it (Olshen, Venkatraman, Lucito and Wigler, Biostatistics 5, 2004): with b for the
# statistic, n points, and t for the stretch's share of them,
#
#     p = b³ φ(b) / 2 · ∫ ν(b / √(n t (1 − t)))² / (t² (1 − t)) dt
#
# where ν(x) = (2/x) (Φ(x/2) − 1/2) / ((x/2) Φ(x/2) + φ(x/2)) makes up for the sum's discrete steps. Against
# random orders it is some two times too large, mostly because scores of ranks are bounded.

_SHORTEST, _LONGEST = 3, 40
_SHARES = 200
"""Points at which the integral is taken."""
_LEAST_B = 2.0
"""Below it the formula is none."""


def _excursions(
    series: Array, steps: Sequence[int], phi: float, alpha: float
) -> dict[tuple[int, int], float]:
    """First point of each excursion and the first one after it → p value; `steps` are taken out first."""
    fresh = whitened(_without_levels(series, steps), phi)
    points, lost = len(fresh), len(series) - len(fresh)
    longest = max(_SHORTEST, min(_LONGEST, points // 4))
    scores = _scores(fresh[None])[0]
    scores = scores - scores.mean()
    squares = float(scores @ scores)
    if not squares:
        return {}
    sums = np.concatenate([[0.0], np.cumsum(scores)]) / np.sqrt(squares / (points - 1))
    edge = _edge(points, longest, alpha)
    seen: list[tuple[float, int, int]] = []
    for length in range(_SHORTEST, longest + 1):
        # Neither the first point nor the last: what does not come back, or did not come, is a step.
        z = np.abs(sums[length:] - sums[:-length])[1:-1] / np.sqrt(length * (points - length) / points)
        beyond = np.flatnonzero(z >= edge) if alpha < 1 else [int(z.argmax())]
        seen += [(float(z[first]), int(first) + 1, int(first) + 1 + length) for first in beyond]
    excursions: dict[tuple[int, int], float] = {}
    taken = np.zeros(points, dtype=np.bool_)
    for step in steps:  # what is left beside a step that was placed a point or two off
        taken[max(0, step - lost - _AROUND) : step - lost + _AROUND] = True
    for z_seen, first, last in sorted(seen, reverse=True):
        if not taken[max(0, first - 1) : last + 1].any():
            taken[first:last] = True
            excursions[first + lost, last + lost] = _excursion_p(z_seen, points, longest)
    return excursions


@lru_cache(maxsize=1024)
def _edge(points: int, longest: int, alpha: float) -> float:
    """The statistic whose p value is alpha, by bisection; series of one length share it."""
    low, high = _LEAST_B, 12.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _excursion_p(middle, points, longest) <= alpha else (middle, high)
    return high


def _excursion_p(b: float, points: int, longest: int) -> float:
    """The chance of a statistic this large somewhere in a series of exchangeable values."""
    from scipy.special import ndtr

    if b <= _LEAST_B:
        return 1.0
    ends = np.linspace(_SHORTEST, longest, _SHARES + 1) / points if longest > _SHORTEST else np.zeros(0)
    if not len(ends):
        ends = np.array([_SHORTEST - 0.5, _SHORTEST + 0.5]) / points
    t, width = (ends[1:] + ends[:-1]) / 2, float(ends[1] - ends[0])
    half = b / np.sqrt(points * t * (1 - t)) / 2
    nu = (ndtr(half) - 0.5) / half / (half * ndtr(half) + _density(half))
    return min(1.0, float(0.5 * b**3 * _density(np.float64(b)) * (nu**2 / (t**2 * (1 - t))).sum() * width))


# Is there a step in a stretch of a series? The maximally selected rank statistic.
#
# Each stretch's values are replaced by the normal scores of their ranks within it (van der Waerden), so
# that one wild value counts for no more than the largest rank. For every split the sum of the scores before
# it is divided by its standard deviation under all permutations; the statistic is the largest |z|. Since
# only ranks enter, its permutation distribution is the same for every series of that length, and need not
# be sampled: the tail is that of Lausen and Schumacher (Biometrics 48, 1992), after Miller and Siegmund
# (Biometrics 38, 1982). It holds for the supremum over a continuum of splits, and is a little too large for
# the splits that there are.

Places = NDArray[np.intp]
LEAST_SIDE = 3
"""Points that each side of a split has at least."""


def largest(stretches: Array) -> tuple[Array, Places]:
    """For each row of shape (stretches, length) the largest |z| over its splits, and how many points lie
    before that split. Rows of equal values have 0.
    """
    length = stretches.shape[1]
    scores = _scores(stretches)
    before = np.arange(LEAST_SIDE, length - LEAST_SIDE + 1)
    sums = np.cumsum(scores, axis=1)[:, before - 1]
    squares = (scores**2).sum(axis=1, keepdims=True)
    variance = squares * (before * (length - before) / (length * (length - 1.0)))
    z = np.zeros_like(sums)
    np.divide(np.abs(sums), np.sqrt(variance), out=z, where=variance > 0)
    place = z.argmax(axis=1)
    return z[np.arange(len(z)), place], before[place]


def _scores(stretches: Array) -> Array:
    """The normal scores of the ranks in each row; equal values have one score, that of their mean rank."""
    from scipy.special import ndtri

    length = stretches.shape[1]
    order = stretches.argsort(axis=1)
    in_order = np.take_along_axis(stretches, order, axis=1)
    tied = (in_order[:, 1:] == in_order[:, :-1]).any(axis=1)
    scores = np.empty_like(stretches)
    np.put_along_axis(scores, order, ndtri(np.arange(1, length + 1) / (length + 1))[None], axis=1)
    if tied.any():
        from scipy.stats import rankdata

        scores[tied] = ndtri(rankdata(stretches[tied], axis=1) / (length + 1))
    return scores


def p_value(z: Array, length: int) -> Array:
    """The chance of a |z| this large somewhere in a stretch of exchangeable values."""
    edge = LEAST_SIDE / length
    width = 2 * np.log((1 - edge) / edge)
    b = np.maximum(z, 1.5)  # the tail's formula is none below
    tail = _density(b) * ((b - 1 / b) * width + 4 / b)
    return np.asarray(np.where(z < b, 1.0, np.minimum(1.0, tail)))


def _density(x: Array | np.float64) -> Array:
    """Of the normal distribution. With that of scipy.stats searches take four times as long."""
    return np.asarray(np.exp(-(x**2) / 2.0) / np.sqrt(2 * np.pi))
