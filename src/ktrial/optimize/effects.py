"""What each knob does, by all runs of a search: effects in the answer, importance, interactions.

An effect in the answer has an interval only where fresh runs gave it: of a single knob, whose effect is the
gain that was confirmed. The model's own doubt is no such interval: beside interactions it holds the truth far
too seldom.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ktrial.model.comparison import Comparison
from ktrial.model.tuning import Configuration, Effect, Importance, Observation, Purpose, TunedInteraction
from ktrial.optimize.ablation import Loss, losses, without
from ktrial.optimize.gaussian_process import Array
from ktrial.optimize.response_model import Surrogate

_PLACES, _DRAWS = 32, 200
_MOST_INTERACTIONS = 6


def kept(
    surrogate: Surrogate, answer: Configuration, confirmed: Comparison | None, *, exact: bool
) -> tuple[Effect, ...]:
    """What each knob of the answer brings, the largest first: with it / without it, all else as there.

    `confirmed`: what confirmation says of the answer. `exact`: without noise, where the runs themselves tell.
    """
    by_gain = sorted(losses(surrogate, answer), key=lambda loss: -loss.mean)
    effects = tuple(_effect(surrogate, answer, names, exact=exact) for names in by_gain)
    if len(effects) != 1 or confirmed is None or confirmed.ratio is None:
        return effects
    numbers = {"ratio": confirmed.ratio, "low": confirmed.low, "high": confirmed.high}
    return (effects[0].model_copy(update=numbers),)


def dropped(surrogate: Surrogate, explored: Configuration, answer: Configuration) -> tuple[Effect, ...]:
    """What each knob that was taken back would add to the answer."""
    gone = {name: value for name, value in explored.items() if name not in answer}
    effects = []
    for name, value in gone.items():
        more = surrogate.encoding.space.only_changes({**answer, name: value})
        if not surrogate.encoding.space.holds(more):
            continue
        loss = next((loss for loss in losses(surrogate, more) if loss.names == (name,)), None)
        if loss is not None:
            effects.append(_effect(surrogate, more, loss, "it does not carry the gain"))
    return tuple(effects)


def _effect(
    surrogate: Surrogate, configuration: Configuration, loss: Loss, reason: str = "", *, exact: bool = False
) -> Effect:
    fewer = without(configuration, loss.names)
    measured = _measured(surrogate, configuration, fewer) if exact else None
    if measured is None:
        mean, _ = surrogate.responses[0].contrast([configuration, fewer], [1.0, -1.0])
        measured = float(np.exp(surrogate.scores.sign(0) * mean))
    return Effect(
        names=loss.names,
        values=tuple(configuration[name] for name in loss.names),
        ratio=measured,
        runs=_runs(surrogate.seen, fewer),
        reason=reason,
    )


def _measured(surrogate: Surrogate, configuration: Configuration, fewer: Configuration) -> float | None:
    """The ratio of the plain runs of both; None where one was not run."""
    plain = [run for run in surrogate.seen if not run.perturbation and surrogate.scores.of(run)]
    metric = surrogate.scores.goal.objectives[0].metric
    values = [
        next((run.values[metric] for run in plain if run.configuration == arm), None)
        for arm in (configuration, fewer)
    ]
    return None if values[0] is None or values[1] is None else values[0] / values[1]


def _runs(seen: Sequence[Observation], configuration: Configuration) -> int:
    return sum(run.purpose is Purpose.ABLATE and run.configuration == configuration for run in seen)


def importance(surrogate: Surrogate, seed: int) -> tuple[Importance, ...]:
    """Each dimension's total effect (Jansen, Computer Physics Communications 117, 1999), the largest first.

    Of configurations drawn at random over the space; the interval is over draws of the model's posterior, so
    that what the runs leave open shows.
    """
    encoding, response = surrogate.encoding, surrogate.responses[0]
    rng = np.random.default_rng([seed, 5])
    places = [encoding.configuration(encoding.random_point(rng)) for _ in range(2 * _PLACES)]
    rows = response.frame.rows(places)
    some, resampled = rows[:_PLACES], rows[_PLACES:]
    tables = [some]
    for at in range(some.shape[1]):
        moved = some.copy()
        moved[:, at] = resampled[:, at]
        tables.append(moved)
    drawn = _draws(*response.gain_of(np.concatenate(tables)), rng).reshape(_DRAWS, len(tables), _PLACES)
    apart = 0.5 * ((drawn[:, 1:] - drawn[:, :1]) ** 2).mean(axis=2)
    shares = apart / np.maximum(drawn.reshape(_DRAWS, -1).var(axis=1), 1e-18)[:, None]
    low, middle, high = np.quantile(np.clip(shares, 0.0, 1.0), [0.025, 0.5, 0.975], axis=0)
    importances = [
        Importance(name=name, share=float(middle[at]), low=float(low[at]), high=float(high[at]))
        for at, name in enumerate(encoding.space.names)
    ]
    return tuple(sorted(importances, key=lambda importance: -importance.share))


def _draws(mean: Array, covariance: Array, rng: np.random.Generator) -> Array:
    """From a normal distribution whose covariance may be flat in some directions; shape (draws, places)."""
    hair = 1e-9 + 1e-6 * float(np.diag(covariance).mean())
    root = np.linalg.cholesky(covariance + hair * np.eye(len(mean)))
    return np.asarray(mean + rng.standard_normal((_DRAWS, len(mean))) @ root.T)


def interactions(surrogate: Surrogate, answer: Configuration) -> tuple[TunedInteraction, ...]:
    """Of every two knobs of the answer, all else as there; the clearest first."""
    holds = surrogate.encoding.space.holds
    ranked: list[tuple[float, TunedInteraction]] = []
    for first, second in combinations(answer, 2):
        corners = [without(answer, names) for names in ((first, second), (second,), (first,), ())]
        if all(map(holds, corners)):
            ranked.append(_interaction(surrogate, answer, (first, second), corners))
    ranked.sort(key=lambda pair: -pair[0])
    return tuple(pair for _, pair in ranked[:_MOST_INTERACTIONS])


def _interaction(
    surrogate: Surrogate, answer: Configuration, names: tuple[str, str], corners: Sequence[Configuration]
) -> tuple[float, TunedInteraction]:
    response, sign, space = surrogate.responses[0], surrogate.scores.sign(0), surrogate.encoding.space
    mean, deviation = response.contrast(corners, [1.0, -1.0, -1.0, 1.0])
    ratios = np.exp(sign * response.mean(corners))
    first, second = names
    return abs(mean) / max(deviation, 1e-12), TunedInteraction(
        first=first,
        first_values=(space[first].default, answer[first]),
        second=second,
        second_values=(space[second].default, answer[second]),
        corners=(float(ratios[0]), float(ratios[1]), float(ratios[2]), float(ratios[3])),
        ratio=float(np.exp(sign * mean)),
    )
