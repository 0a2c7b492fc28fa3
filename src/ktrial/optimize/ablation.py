"""Ablation: knobs are taken back until only those are left that carry the gain.

With noise a knob stays if, by all runs so far, it is expected to bring more than its share of the margin;
runs go, in blocks of the candidate beside itself without one knob, where that is least certain. Noise-free,
every knob is taken back and measured, and those that the gain does not need go together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ktrial.model.tuning import Configuration, Observation, Purpose
from ktrial.optimize.evaluation_log import EvaluationLog, RunRequest
from ktrial.optimize.response_model import Surrogate

KEEP = 0.5
"""What a knob must be expected to bring to stay, in margins."""


class Pruning(NamedTuple):
    """How readily knobs are taken back."""

    doubt: float
    """Standard deviations of the model that a knob must lie beyond `KEEP`: what is in doubt goes,"""
    share: float
    """as long as all of it together costs no more than this part of the expected gain, and a margin."""


BOLD = Pruning(1.25, 0.45)
_ARMS = 5


class Loss(NamedTuple):
    """What taking some knobs back costs: logarithm of the ratio, and its standard deviation."""

    names: tuple[str, ...]
    mean: float
    deviation: float


def without(configuration: Configuration, names: Sequence[str]) -> Configuration:
    """The configuration with these knobs at their defaults."""
    return {name: value for name, value in configuration.items() if name not in names}


def removals(surrogate: Surrogate, configuration: Configuration) -> list[tuple[str, ...]]:
    """What can be taken back and leave a configuration that meets all constraints: single knobs, and a knob
    with the one that only holds beside it."""
    holds = surrogate.encoding.space.holds
    removable: list[tuple[str, ...]] = []
    for name in configuration:
        if holds(without(configuration, [name])):
            removable.append((name,))
            continue
        pairs = ((name, partner) for partner in configuration if partner != name)
        removable += [pair for pair in pairs if holds(without(configuration, pair))][:1]
    return removable


def losses(surrogate: Surrogate, configuration: Configuration) -> list[Loss]:
    """What each removal is believed to cost, the least first."""
    expected = []
    for names in removals(surrogate, configuration):
        mean = deviation = 0.0
        for response in surrogate.responses:
            one, doubt = response.contrast([configuration, without(configuration, names)], [1.0, -1.0])
            mean, deviation = mean + one, float(np.hypot(deviation, doubt))
        expected.append(Loss(names, mean, deviation))
    return sorted(expected, key=lambda loss: loss.mean)


def pruned(surrogate: Surrogate, configuration: Configuration, how: Pruning = BOLD) -> Configuration:
    """Without the knobs that are not known to bring what they must, one after the other, the least first.

    All together cost no more of the expected gain than a margin and a small part of it: where little is
    certain, a rule for single knobs would take back everything, and the gain with it. A knob without which a
    guard is not known to be kept stays.
    """
    least = KEEP * surrogate.scores.goal.margin
    gain = float(surrogate.gains([configuration])[0])
    allowed = surrogate.scores.goal.margin + how.share * max(gain, 0.0)

    def may_stay(fewer: Configuration) -> bool:
        return gain - float(surrogate.gains([fewer])[0]) <= allowed and surrogate.safe(fewer)

    while configuration:
        weak = [loss for loss in losses(surrogate, configuration) if _excess(loss, least) < how.doubt]
        if not weak:
            break
        weak.sort(key=lambda loss: _excess(loss, least))
        fewer = next(
            (smaller for effect in weak if may_stay(smaller := without(configuration, effect.names))), None
        )
        if fewer is None:
            break
        configuration = fewer
    return configuration


def _excess(loss: Loss, least: float) -> float:
    """Standard deviations by which it brings more than it must."""
    return (loss.mean - least * len(loss.names)) / max(loss.deviation, 1e-9)


def ablate(
    surrogate: Surrogate, log: EvaluationLog, candidate: Configuration, runs: int, rng: np.random.Generator
) -> Configuration:
    """The candidate without what does not carry its gain, after so many runs at most."""
    candidate = pruned(surrogate, candidate)
    least = KEEP * surrogate.scores.goal.margin
    block = 0
    while candidate and runs >= 2:
        doubtful = sorted(losses(surrogate, candidate), key=lambda loss: -_doubt(loss, least))
        arms = doubtful[: min(_ARMS, runs - 1)]
        wanted = [
            RunRequest(candidate, block),
            *(RunRequest(without(candidate, arm.names), block) for arm in arms),
        ]
        log.run([wanted[at] for at in rng.permutation(len(wanted))], Purpose.ABLATE)
        surrogate.learn(log.observations)
        candidate = pruned(surrogate, _safe(surrogate, candidate))
        runs, block = runs - len(wanted), block + 1
    return _safe(surrogate, candidate)


def _safe(surrogate: Surrogate, candidate: Configuration) -> Configuration:
    """The candidate; where a run of it failed or exceeded a guard, the best of those that did not."""
    if not any(run.configuration == candidate and surrogate.unsafe(run) for run in surrogate.seen):
        return candidate
    distinct = surrogate.distinct()
    gains = surrogate.gains(distinct) if distinct else np.zeros(1)
    return distinct[int(np.argmax(gains))] if gains.max() > 0 else {}


def _doubt(loss: Loss, least: float) -> float:
    """How much may be lost by deciding now: what the doubt beyond the border weighs."""
    return loss.deviation - abs(loss.mean - least)


def ablate_exactly(
    surrogate: Surrogate, log: EvaluationLog, candidate: Configuration, runs: int
) -> Configuration:
    """Noise-free: take back what the model expects to be idle, together; then each knob by itself, drop what
    costs less than the margin, and check it together. So a few runs already leave no more than a few knobs.
    """
    runs_once = _Exact(surrogate, log, runs)
    candidate = runs_once.best(candidate)
    surrogate.learn(log.observations)
    expected = [(loss.names, loss.mean) for loss in losses(surrogate, candidate)]
    candidate = without(candidate, runs_once.spared(candidate, _idle(expected, surrogate.scores.goal.margin)))
    while candidate and runs_once.left >= len(candidate):
        costs = runs_once.costs(candidate)
        idle = runs_once.spared(candidate, _idle(costs, surrogate.scores.goal.margin))
        if not idle:
            break
        candidate = without(candidate, idle)
    return candidate


def _idle(costs: Sequence[tuple[tuple[str, ...], float]], margin: float) -> list[str]:
    """Names that can go, the cheapest first, as long as their costs add up to less than the margin."""
    idle: list[str] = []
    total = 0.0
    for names, cost in sorted(costs, key=lambda effect: effect[1]):
        total += max(cost, 0.0)
        if cost >= margin or total >= margin:
            break
        idle += [name for name in names if name not in idle]
    return idle


class _Exact:
    """Runs without noise: each configuration once."""

    def __init__(self, surrogate: Surrogate, log: EvaluationLog, runs: int) -> None:
        self._surrogate = surrogate
        self._log = log
        self._end = len(log.observations) + runs

    @property
    def left(self) -> int:
        return min(self._end - len(self._log.observations), self._log.left)

    def best(self, candidate: Configuration) -> Configuration:
        """The candidate, measured, or the best that was: without noise the largest number is the best."""
        self._measure([candidate])
        plain = [run for run in self._log.observations if not run.perturbation]
        good = [run for run in plain if not self._surrogate.unsafe(run)]
        return max(good, key=lambda run: sum(self._surrogate.scores.of(run))).configuration if good else {}

    def costs(self, candidate: Configuration) -> list[tuple[tuple[str, ...], float]]:
        """Each removal, and the log ratio that it costs."""
        names = removals(self._surrogate, candidate)
        self._measure([candidate, *(without(candidate, name) for name in names)])
        reference = self._score(candidate)
        scores = ((name, self._score(without(candidate, name))) for name in names)
        return [
            (each, reference - score) for each, score in scores if score is not None and reference is not None
        ]

    def spared(self, candidate: Configuration, idle: Sequence[str], gone: Sequence[str] = ()) -> list[str]:
        """As many of these names as the candidate can do without together, as far as the runs reach.

        Where not all of them can go, each half is tried, the second beside what went of the first: they may
        cost nothing one at a time only, and one that costs much must not keep the others (group testing:
        Dorfman, Annals of Mathematical Statistics 14, 1943).
        """
        if not idle or self.stands(without(candidate, [*gone, *idle]), candidate):
            return list(idle)
        if len(idle) == 1:
            return []
        middle = len(idle) // 2
        first = self.spared(candidate, idle[:middle], gone)
        return first + self.spared(candidate, idle[middle:], [*gone, *first])

    def stands(self, fewer: Configuration, whole: Configuration) -> bool:
        """Whether the smaller configuration is as good, within the margin."""
        self._measure([fewer])
        here, there = self._score(fewer), self._score(whole)
        return here is not None and there is not None and there - here < self._surrogate.scores.goal.margin

    def _measure(self, configurations: Sequence[Configuration]) -> None:
        new = [configuration for configuration in configurations if not self._seen(configuration)]
        self._log.run(
            [RunRequest(configuration) for configuration in new[: max(self.left, 0)]], Purpose.ABLATE
        )

    def _seen(self, configuration: Configuration) -> Observation | None:
        plain = (run for run in self._log.observations if not run.perturbation)
        return next((run for run in plain if run.configuration == configuration), None)

    def _score(self, configuration: Configuration) -> float | None:
        seen = self._seen(configuration)
        if seen is None or self._surrogate.unsafe(seen):
            return None
        return sum(self._surrogate.scores.of(seen))
