"""The first half of a search: the baseline's noise, then one run a configuration, then the contenders.

Exploring runs a covering design, in which each pair of values is tried together, as far as the runs reach;
an optimiser has what is left. Contending spends its runs one after the other: in turn where the model of all
runs so far promises most, on what is sure of the best beside other values of all else, on the best, and on
the best without what is not known to carry its gain. So a configuration with one lucky run is run again
before it is believed, one that is hopeless never is, and what is taken back was run before it is judged.
While the model knows of no gain, nothing is repeated: the search goes on."""

from collections import defaultdict
from collections.abc import Callable
from enum import Enum

import numpy as np

from ktrial.model.tuning import Configuration, Goal, Observation, Purpose
from ktrial.optimize.ablation import pruned
from ktrial.optimize.budget import EVERY
from ktrial.optimize.covering import Covering
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.evaluation_log import EvaluationLog, RunRequest
from ktrial.optimize.objective import ObjectiveFunction
from ktrial.optimize.samplers import Evaluation, Optimiser
from ktrial.optimize.screening import Screening, credible
from ktrial.optimize.surrogate.model import Surrogate
from ktrial.studyfile.errors import GuardsNeverMet, NotPositive, ObjectiveMissing, TuneBaselineFailed


class _Look(Enum):
    """What a contender is chosen for."""

    AROUND = "around"
    """What may be better than the best."""
    ROUGHLY = "roughly"
    """The same, if what ranges do is less smooth than is likeliest: a search that believes one length looks
    again and again where it was."""
    OTHERS = "others"
    """What is sure of the best, beside other values of all else."""
    DOUBTED = "doubted"
    """The best with some of what is in doubt."""
    BEST = "best"
    """The best, to see it again."""
    SMALLEST = "smallest"
    """The best without what is not known to carry its gain."""


_ENOUGH = 12
"""Configurations after which a guard that none has kept is given up."""
_DEAR_BATCH = 8
"""Configurations that are chosen together, and put in order, where some changes need a boot or a build."""
_TRIES = 12
_REFUSALS, _MOST_REFUSALS = 2, 6
"""Times that a knob's value is refused, and none is taken, until it is tried only beside values of other
knobs that it was not refused beside (one of these may let it be set), and until it is left as it is."""
_REFIT = 4
"""Contending runs after which the strengths of effects and noise are estimated again."""
_SHARING = 4
"""Configurations that have a boot, build or kernel in common."""
_LOOKS = tuple(map(_Look, ("around", "others", "roughly", "others", "around", "smallest", "others", "best")))
"""In turn."""
_LAST_LOOKS = tuple(
    map(_Look, ("doubted", "roughly", "doubted", "others", "doubted", "around", "doubted", "others"))
)
"""After so many of the contenders, as a part of them:"""
_EARLY = 0.4
_Choose = Callable[[int], list[Configuration]]


def calibrate(log: EvaluationLog, scores: ObjectiveFunction, runs: int) -> None:
    """Runs of the baseline. Raises TuneBaselineFailed, ObjectiveMissing, NotPositive after the first."""
    (first,) = log.run([RunRequest({})], Purpose.CALIBRATE, "the baseline")
    _usable(first, scores.goal)
    rest = log.run([RunRequest({})] * (runs - 1), Purpose.CALIBRATE)
    problems = [problem for each in rest if (problem := scores.failure(each))]
    if len(problems) > runs // 2:
        raise TuneBaselineFailed(problem=problems[0])


def _usable(first: Observation, goal: Goal) -> None:
    if first.failure:
        raise TuneBaselineFailed(problem=first.failure)
    printed = ", ".join(map(repr, first.values)) or "nothing"
    for metric in (*(each.metric for each in goal.objectives), *(each.metric for each in goal.guards)):
        if metric not in first.values:
            raise ObjectiveMissing(metric=metric, printed=printed)
    for each in goal.objectives:
        if not first.values[each.metric] > 0:
            raise NotPositive(metric=each.metric, value=f"{first.values[each.metric]:g}")


class Explorer:
    """Spends runs, with the baseline among them."""

    def __init__(
        self,
        encoding: Encoding,
        log: EvaluationLog,
        scores: ObjectiveFunction,
        chosen: Optimiser,
        rng: np.random.Generator,
    ) -> None:
        self._encoding = encoding
        self._log = log
        self._scores = scores
        self._optimiser = chosen
        self._rng = rng
        self._told = self._turn = 0
        self._covering = Covering(encoding, rng)
        self._screening = Screening(encoding, self._covering, rng)

    def explore(self, runs: int) -> None:
        """So many runs at most. Raises GuardsNeverMet."""
        size = max(self._log.measuring.at_once, _DEAR_BATCH if self._encoding.costly else 1)
        self._in_batches(runs, Purpose.EXPLORE, self._covering_or_asked, size)
        self._look_at_guards()

    def contend(self, runs: int, surrogate: Surrogate) -> None:
        """So many runs at most, each where the most is promised."""
        late = 0 if self._turn else round(_EARLY * runs)

        def chosen(count: int) -> list[Configuration]:
            surrogate.learn(self._log.observations, quick=self._turn % _REFIT != 0)
            self._tell()
            configurations: list[Configuration] = []
            for _ in range(count):
                looks = _LOOKS if self._turn < late else _LAST_LOOKS
                best = self._contender(surrogate, looks[self._turn % len(looks)])
                # Where runs go on at once, or without noise, a second look at the same place tells little.
                again = best in configurations or (self._log.measuring.noise_free and self._was_run(best))
                configurations.append(self._optimiser.ask(1)[0] if again or not best else best)
                self._turn += 1
            return configurations

        self._in_batches(runs, Purpose.CONTEND, chosen, self._log.measuring.at_once)

    def _contender(self, surrogate: Surrogate, look: _Look) -> Configuration:
        """What the look chooses; empty where the optimiser has the run."""
        if look is _Look.ROUGHLY:
            return surrogate.rougher().best(bold=True, turn=self._turn)
        best = surrogate.best(bold=look is _Look.AROUND, turn=self._turn)
        if look is _Look.OTHERS:
            return self._screening.others(surrogate, best)
        if look is _Look.DOUBTED:
            return self._screening.doubted(surrogate, best)
        if look is _Look.AROUND or not best:
            return best
        if not credible(surrogate, best):
            return {}
        return pruned(surrogate, best) or best if look is _Look.SMALLEST else best

    def _tell(self) -> None:
        """The optimiser, of all runs since it was told last; the baseline is a configuration like others."""
        seen = self._log.observations
        self._optimiser.tell(list(map(self._told_of, seen[self._told :])))
        self._told = len(seen)

    def _covering_or_asked(self, count: int) -> list[Configuration]:
        self._tell()

        def chosen(some: int, fixed: Configuration) -> list[Configuration]:
            asked: list[Configuration] = []
            for _ in range(some):
                covers = self._covering.open > 0
                asked += [self._covering.next(fixed)] if covers else self._optimiser.ask(1, fixed)
            return asked

        return self._sharing(count, chosen)

    def _sharing(
        self, count: int, choose: Callable[[int, Configuration], list[Configuration]]
    ) -> list[Configuration]:
        """Some at a time have what is dear to change in common: one boot or build serves all of them."""
        configurations: list[Configuration] = []
        while len(configurations) < count:
            configurations += choose(1, {})
            if self._encoding.costly and (more := min(_SHARING - 1, count - len(configurations))):
                configurations += choose(more, self._encoding.dear_values(configurations[-1]))
        return configurations

    def _told_of(self, seen: Observation) -> Evaluation:
        return Evaluation(seen.configuration, self._scores.of(seen), self._scores.excess(seen))

    def _in_batches(self, runs: int, purpose: Purpose, choose: _Choose, most: int) -> None:
        """Batches of as many as run at once, the baseline among them where it is due."""
        end = min(len(self._log.observations) + runs, self._log.runs)
        while (left := end - len(self._log.observations)) > 0:
            size = min(most, left)
            due = not self._log.measuring.noise_free and self._baseline_due(size)
            chosen = self._encoding.in_order_of_cost(self._new(choose, size - due if size > 1 else size))
            if not chosen:
                return
            wanted = [RunRequest(each) for each in chosen]
            if due:
                wanted.insert(int(self._rng.integers(len(wanted) + 1)), RunRequest({}))
            self._log.run(wanted[:left], purpose)

    def _new(self, choose: _Choose, count: int) -> list[Configuration]:
        """As chosen; without noise nothing is run twice, so that a small space may be used up."""
        if not self._log.measuring.noise_free:
            return self._takeable(choose(count))
        new: list[Configuration] = []
        for _ in range(_TRIES):
            more = [each for each in self._takeable(choose(count - len(new))) if not self._was_run(each)]
            new += [each for at, each in enumerate(more) if each not in (*new, *more[:at])]
            if len(new) == count:
                break
        return new

    def _takeable(self, chosen: list[Configuration]) -> list[Configuration]:
        """Without what the kernel never takes: each run that is refused would be lost for all other knobs."""
        refused = self._never_taken()
        if not refused:
            return chosen
        rest = [
            {name: value for name, value in each.items() if _may_be_taken(name, each, refused.get(name, []))}
            for each in chosen
        ]
        return [each for each in rest if each and self._encoding.space.holds(each)] or chosen

    def _never_taken(self) -> dict[str, list[Configuration]]:
        """Dimensions whose values were refused more than once, and taken in no run → where that was."""
        seen = self._log.observations
        taken = {name for each in seen if not each.refused for name in each.configuration}
        refused: dict[str, list[Configuration]] = defaultdict(list)
        for each in seen:
            if each.refused and each.refused not in taken:
                refused[each.refused].append(each.configuration)
        return {name: where for name, where in refused.items() if len(where) >= _REFUSALS}

    def _was_run(self, configuration: Configuration) -> bool:
        return any(each.configuration == configuration for each in self._log.observations)

    def _baseline_due(self, size: int) -> bool:
        own = [at for at, each in enumerate(self._log.observations) if not each.configuration]
        return len(self._log.observations) + size - (own[-1] if own else -1) > EVERY

    def _look_at_guards(self) -> None:
        good = [each for each in self._log.observations if not self._scores.failure(each)]
        tried = {tuple(sorted(each.configuration.items())) for each in good}
        if len(tried) < _ENOUGH or any(self._scores.excess(each) == 0 for each in good):
            return
        nearest = min(good, key=self._scores.excess)
        guard = next(each for each in self._scores.goal.guards if not each.keeps(nearest.values[each.metric]))
        shown = f"{nearest.values[guard.metric]:g}{guard.unit and ' '}{guard.unit}"
        raise GuardsNeverMet(count=len(tried), guard=str(guard), nearest=shown)


def _may_be_taken(name: str, configuration: Configuration, refused: list[Configuration]) -> bool:
    """Whether it was not refused often, and stands beside a value beside which it never was."""
    if not refused:
        return True
    beside = {item for each in refused for item in each.items()}
    others = {item for item in configuration.items() if item[0] != name}
    return len(refused) < _MOST_REFUSALS and not others <= beside
