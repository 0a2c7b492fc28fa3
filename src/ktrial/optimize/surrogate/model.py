"""What the search believes after the runs so far, and the best that it can think of."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ktrial.model.comparison import Comparison
from ktrial.model.tuning import Configuration, FrontPoint, Observation
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.objective import ObjectiveFunction
from ktrial.optimize.surrogate.gaussian_process import Data, GaussianProcess, InputScaling
from ktrial.optimize.surrogate.hyperparameters import fit

Array = NDArray[np.float64]
Value = Callable[[Sequence[Configuration]], Array]

PRICE = 0.2
"""What each changed knob must bring, in margins, before the search changes it."""
_SWEEPS = 4
_RISKY, _FAILING = 0.3, 0.1


class Surrogate:
    """A response surface for each objective; one for each guard and for failure where there is something to
    learn.
    """

    def __init__(self, encoding: Encoding, scores: ObjectiveFunction, noise: float, horizon: int) -> None:
        self.encoding = encoding
        self.scores = scores
        self.noise = noise
        self._frame = InputScaling(encoding)
        self._horizon = max(horizon, 1)
        self.responses: list[GaussianProcess] = []
        self._risk: GaussianProcess | None = None
        self.seen: tuple[Observation, ...] = ()

    def learn(self, observations: Sequence[Observation], *, quick: bool = False) -> None:
        """Fit again, to all of these runs; `quick` keeps the strengths of effects and noise."""
        self.seen = tuple(observations)
        good = [each for each in observations if not self.scores.failure(each)]
        values = np.array([self.scores.of(each) for each in good])
        before: Sequence[GaussianProcess | None] = self.responses or [None] * values.shape[1]
        self.responses = [
            self._fitted(good, values[:, at], old, quick=quick) for at, old in enumerate(before)
        ]
        self._risk = self._risks(observations)

    def _fitted(
        self, runs: Sequence[Observation], values: Array, old: GaussianProcess | None, *, quick: bool
    ) -> GaussianProcess:
        places = self._frame.rows([each.configuration for each in runs])
        times = np.array([each.order / self._horizon for each in runs])
        # The level's prior is centred where the runs are; the baseline's own level is then estimated.
        data = Data(places, times, values - float(np.median(values)))
        return fit(self._frame, data, self.noise, old.strengths if old else None, quick=quick)

    def _risks(self, observations: Sequence[Observation]) -> GaussianProcess | None:
        """How near to what failed, or exceeded a guard: 0 to 1."""
        unsafe = np.array([self.unsafe(each) for each in observations], dtype=np.float64)
        if not unsafe.any() or unsafe.all():
            return None
        places = self._frame.rows([each.configuration for each in observations])
        times = np.zeros(len(observations))
        # The model expects effects of some percent: failure is made one of 10 %.
        return fit(self._frame, Data(places, times, _FAILING * unsafe), 0.1 * _FAILING)

    def unsafe(self, seen: Observation) -> bool:
        """Whether the run failed, or exceeded a guard."""
        return bool(self.scores.failure(seen)) or self.scores.excess(seen) > 0

    def gains(self, configurations: Sequence[Configuration]) -> Array:
        """Expected log gain of each, over all objectives together."""
        return np.asarray(sum(each.mean(configurations) for each in self.responses))

    def spread(self, configurations: Sequence[Configuration]) -> Array:
        """Standard deviation of what `gains` says."""
        return np.asarray(np.sqrt(sum(each.spread(configurations) ** 2 for each in self.responses)))

    def hopeful(self, boldness: float) -> Value:
        """What to look for: expected gain, the price of each change, and `boldness` times the doubt."""
        price = PRICE * self.scores.goal.margin

        def value(configurations: Sequence[Configuration]) -> Array:
            promise = self.gains(configurations) - price * np.array([len(each) for each in configurations])
            if boldness:
                promise = promise + boldness * self.spread(configurations)
            return np.where(self._too_risky(configurations), -np.inf, promise)

        return value

    def _too_risky(self, configurations: Sequence[Configuration]) -> NDArray[np.bool_]:
        if self._risk is None:
            return np.zeros(len(configurations), dtype=np.bool_)
        return np.asarray(self._risk.mean(configurations) > _RISKY * _FAILING)

    def best(self, boldness: float = 0.0, starts: int = 1) -> Configuration:
        """The configuration that promises most, by walks from the best of the runs, and from the defaults."""
        value = self.hopeful(boldness)
        run = self.distinct()
        order = np.argsort(-value(run), kind="stable")[:starts].tolist() if run else []
        ends = [self.walk(start, value) for start in ({}, *(run[at] for at in order))]
        return self.encoding.space.only_changes(ends[int(np.argmax(value(ends)))])

    def distinct(self) -> list[Configuration]:
        """Every configuration that was run, and is not known to be unsafe."""
        bad = [each.configuration for each in self.seen if self.unsafe(each)]
        configurations: list[Configuration] = []
        for each in self.seen:
            if (
                each.configuration
                and each.configuration not in configurations
                and each.configuration not in bad
            ):
                configurations.append(each.configuration)
        return configurations

    def walk(self, start: Configuration, value: Value, names: Iterable[str] = ()) -> Configuration:
        """Along one dimension after the other, always to its best value, until nothing gets better."""
        here, worth = start, float(value([start])[0])
        for _ in range(_SWEEPS):
            before = worth
            for name in names or self.encoding.space.names:
                near = self.encoding.neighbours(here, name)
                if not near:
                    continue
                values = value(near)
                if values.max() > worth + 1e-9:
                    here, worth = near[int(np.argmax(values))], float(values.max())
            if worth <= before + 1e-9:
                break
        return here


_MOST = 12


def front(
    surrogate: Surrogate, answer: Configuration | None, comparisons: tuple[Comparison, ...]
) -> tuple[FrontPoint, ...]:
    """Among what was run and kept all guards, by the model's estimates (not by single lucky runs)."""
    if len(surrogate.responses) < 2:
        return ()
    tried: list[Configuration] = [{}, *surrogate.distinct()]
    if answer and answer not in tried:
        tried.append(answer)
    gains = np.stack([response.mean(tried) for response in surrogate.responses], axis=1)
    margin = surrogate.scores.goal.margin
    best = [at for at in range(len(tried)) if not _beaten(gains, at, margin)]
    best.sort(key=lambda at: -gains[at, 0])
    return tuple(
        FrontPoint(
            configuration=tried[at],
            ratios=_ratios(surrogate, gains[at]),
            runs=sum(each.configuration == tried[at] for each in surrogate.seen),
            comparisons=comparisons if answer and tried[at] == answer else (),
        )
        for at in _thinned(best)
    )


def _thinned(points: list[int]) -> list[int]:
    """At most so many, both ends among them."""
    if len(points) <= _MOST:
        return points
    return [points[round(at)] for at in np.linspace(0, len(points) - 1, _MOST).tolist()]


def _ratios(surrogate: Surrogate, gains: np.ndarray) -> tuple[float, float]:
    first, second = (float(np.exp(surrogate.scores.sign(at) * gain)) for at, gain in enumerate(gains))
    return first, second


def _beaten(gains: np.ndarray, at: int, margin: float) -> bool:
    """Whether another one is at least as good in both, and better by half a margin in one."""
    others = np.delete(gains, at, axis=0)
    as_good = (others >= gains[at]).all(axis=1)
    return bool((as_good & (others > gains[at] + 0.5 * margin).any(axis=1)).any())
