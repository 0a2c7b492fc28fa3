"""Optimisers behind one seam: ask for configurations, tell what was measured."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ktrial.model.tuning import Configuration, Order
from ktrial.optimize.encoding import NONE_OF_THEM, Encoding, Point, choices_of
from ktrial.studyfile.errors import NoValidConfiguration, TuningError

if TYPE_CHECKING:
    import optuna

_STARTUP = 10
_TRIES = 200


class Evaluation(NamedTuple):
    """One run, as an optimiser hears of it."""

    configuration: Configuration
    scores: tuple[float, ...]
    """One an objective, corrected for drift, larger is better; empty where the run failed."""
    excess: float
    """How far the worst guard was exceeded, relative to its bound; 0 where all were kept."""


class Optimiser(Protocol):
    """Proposes configurations. Deterministic: the same seed and the same tells give the same asks."""

    def ask(self, count: int, fixed: Configuration | None = None) -> list[Configuration]:
        """So many configurations that meet all constraints, to be measured at once.

        `fixed` names values that all of them have, of dimensions that are dear to change.
        """

    def tell(self, evaluations: Sequence[Evaluation]) -> None:
        """What was measured; asked for or not."""


def optimiser(name: str, encoding: Encoding, objectives: int, seed: int) -> Optimiser:
    """The optimiser of this name (`tpe`, `random`). Raises TuningError."""
    if name == "tpe":
        return Tpe(encoding, objectives, seed)
    if name == "random":
        return Random(encoding, seed)
    raise TuningError(f"There is no optimiser {name}.", hint="there are random, tpe")


class Random:
    """Random search: what everything else has to beat. Draws uniformly, whatever was measured."""

    def __init__(self, encoding: Encoding, seed: int) -> None:
        self._encoding = encoding
        self._rng = np.random.default_rng([seed, 1])

    def ask(self, count: int, fixed: Configuration | None = None) -> list[Configuration]:
        """See Optimiser."""
        return [self._encoding.draw_with(self._rng, fixed or {}) for _ in range(count)]

    def tell(self, evaluations: Sequence[Evaluation]) -> None:
        """Nothing is learnt."""


class Tpe:
    """Optuna's tree-structured Parzen estimator (Bergstra and others, NeurIPS 2011), multivariate, with
    constant liar for runs in parallel.

    Optuna sees coordinates from 0 to 1 and choices. Its study lives in memory: an interrupted search rebuilds
    it by telling again what was measured, so that it can never differ from ktrial's own store.
    """

    def __init__(self, encoding: Encoding, objectives: int, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        self._encoding = encoding
        self._distributions = _distributions(encoding)
        with warnings.catch_warnings():
            # Of options that are experimental in Optuna's words.
            warnings.simplefilter("ignore")
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=_STARTUP, constant_liar=True)
        self._study = optuna.create_study(directions=["maximize"] * objectives, sampler=sampler)
        self._objectives = objectives
        self._asked: dict[tuple[tuple[str, str], ...], list[optuna.Trial]] = {}

    def ask(self, count: int, fixed: Configuration | None = None) -> list[Configuration]:
        """See Optimiser. Raises NoValidConfiguration."""
        return [self._one(fixed or {}) for _ in range(count)]

    def tell(self, evaluations: Sequence[Evaluation]) -> None:
        """See Optimiser."""
        for each in evaluations:
            waiting = self._asked.get(_key(each.configuration), [])
            trial = waiting.pop(0) if waiting else self._trial_at(self._encoding.point(each.configuration))
            if each.scores:
                trial.set_constraint("guards", each.excess)
                self._study.tell(trial, list(each.scores))
            else:
                # A run that failed is worse than any: its place is avoided, not forgotten.
                trial.set_constraint("guards", 1.0)
                self._study.tell(trial, [self._worst(at) for at in range(self._objectives)])

    def _one(self, fixed: Mapping[str, str]) -> Configuration:
        for _ in range(_TRIES):
            if fixed:
                at = self._encoding.point(fixed)
                self._study.enqueue_trial({name: at[name] for name in fixed})
            trial = self._study.ask(self._distributions)
            configuration = self._encoding.configuration(trial.params)
            if configuration and self._encoding.space.holds(configuration):
                self._asked.setdefault(_key(configuration), []).append(trial)
                return configuration
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        raise NoValidConfiguration(
            constraint for constraint in self._encoding.space.constraints if isinstance(constraint, Order)
        )

    def _trial_at(self, point: Point) -> "optuna.Trial":
        self._study.enqueue_trial(point)
        return self._study.ask(self._distributions)

    def _worst(self, objective: int) -> float:
        seen = [trial.values[objective] for trial in self._study.trials if trial.values]
        return min(seen, default=0.0)


def _distributions(encoding: Encoding) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    distributions: dict[str, Any] = {
        dimension.name: FloatDistribution(0.0, 1.0)
        if dimension.range
        else CategoricalDistribution(choices_of(dimension))
        for dimension in encoding.space.dimensions
    }
    for choice, names in encoding.groups.items():
        distributions[choice] = CategoricalDistribution((*names, NONE_OF_THEM))
    return distributions


def _key(configuration: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(configuration.items()))
