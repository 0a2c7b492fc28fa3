"""The first half of a search: the baseline's noise, then one run a configuration, then the contenders.

Exploring runs a covering design, in which each pair of values is tried together, as far as the runs reach;
an optimiser has what is left. Contending spends its runs one after the other: in turn where the model of all
runs so far promises most, on what is sure of the best beside other values of all else, on the best, and on
the best without what is not known to carry its gain. So a configuration with one lucky run is run again
before it is believed, one that is hopeless never is, and what is taken back was run before it is judged.
While the model knows of no gain, nothing is repeated: the search goes on."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import numpy as np

from ktrial.model.tuning import Configuration, Dimension, Purpose
from ktrial.optimize.ablation import BOLD, Pruning, losses, pruned, without
from ktrial.optimize.budget import EVERY
from ktrial.optimize.encoding import Encoding, choices_of, place_of, value_at
from ktrial.optimize.evaluation_log import EvaluationLog, ObjectiveFunction, RunRequest, check_measured
from ktrial.optimize.response_model import Surrogate
from ktrial.optimize.samplers import Evaluation, Optimiser
from ktrial.studyfile.errors import BaselineFailed, NoValidConfiguration, SearchFailed


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
    """Runs of the baseline. Raises BaselineFailed, TuningError, SearchFailed after the first."""
    (first,) = log.run([RunRequest({})], Purpose.CALIBRATE, "the baseline")
    if first.failure:
        raise BaselineFailed(first.failure)
    check_measured(scores.goal, first.values)
    for objective in scores.goal.objectives:
        value = first.values[objective.metric]
        if not value > 0:
            raise SearchFailed(
                f"The metric {objective.metric} is {value:g}: what is to be improved has to be above zero.",
                hint="its changes are told as ratios: take another metric for the objective, or make it a "
                "guard",
            )
    baseline = log.run([RunRequest({})] * (runs - 1), Purpose.CALIBRATE)
    problems = [problem for run in baseline if (problem := scores.failure(run))]
    if len(problems) > runs // 2:
        raise BaselineFailed(problems[0])


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
        self._evaluated = self._turn = 0
        self._covering = Covering(encoding, rng)
        self._screening = Screening(encoding, self._covering, rng)

    def explore(self, runs: int) -> None:
        """So many runs at most. Raises SearchFailed."""
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
        runs = self._log.observations
        self._optimiser.tell(
            [
                Evaluation(run.configuration, self._scores.of(run), self._scores.excess(run))
                for run in runs[self._evaluated :]
            ]
        )
        self._evaluated = len(runs)

    def _covering_or_asked(self, count: int) -> list[Configuration]:
        """Some at a time have what is dear to change in common: one boot or build serves all of them."""
        self._tell()
        configurations: list[Configuration] = []
        while len(configurations) < count:
            configurations += self._next({})
            if self._encoding.costly:
                shared = self._encoding.dear_values(configurations[-1])
                for _ in range(min(_SHARING - 1, count - len(configurations))):
                    configurations += self._next(shared)
        return configurations

    def _next(self, fixed: Configuration) -> list[Configuration]:
        covers = self._covering.open > 0
        return [self._covering.next(fixed)] if covers else self._optimiser.ask(1, fixed)

    def _in_batches(self, runs: int, purpose: Purpose, choose: _Choose, most: int) -> None:
        """Batches of as many as run at once, the baseline among them where it is due."""
        end = min(len(self._log.observations) + runs, self._log.runs)
        while (left := end - len(self._log.observations)) > 0:
            size = min(most, left)
            due = not self._log.measuring.noise_free and self._baseline_due(size)
            chosen = self._encoding.in_order_of_cost(self._new(choose, size - due if size > 1 else size))
            if not chosen:
                return
            requests = [RunRequest(configuration) for configuration in chosen]
            if due:
                requests.insert(int(self._rng.integers(len(requests) + 1)), RunRequest({}))
            self._log.run(requests[:left], purpose)

    def _new(self, choose: _Choose, count: int) -> list[Configuration]:
        """As chosen; without noise nothing is run twice, so that a small space may be used up."""
        if not self._log.measuring.noise_free:
            return self._takeable(choose(count))
        new: list[Configuration] = []
        for _ in range(_TRIES):
            more = [
                configuration
                for configuration in self._takeable(choose(count - len(new)))
                if not self._was_run(configuration)
            ]
            new += [
                configuration
                for at, configuration in enumerate(more)
                if configuration not in (*new, *more[:at])
            ]
            if len(new) == count:
                break
        return new

    def _takeable(self, chosen: list[Configuration]) -> list[Configuration]:
        """Without what the kernel never takes: each run that is refused would be lost for all other knobs."""
        refused = self._never_taken()
        if not refused:
            return chosen
        remaining = [
            {
                name: value
                for name, value in configuration.items()
                if _may_be_taken(name, configuration, refused.get(name, []))
            }
            for configuration in chosen
        ]
        return [
            configuration
            for configuration in remaining
            if configuration and self._encoding.space.holds(configuration)
        ] or chosen

    def _never_taken(self) -> dict[str, list[Configuration]]:
        """Dimensions whose values were refused more than once, and taken in no run → where that was."""
        seen = self._log.observations
        taken = {name for run in seen if not run.refused for name in run.configuration}
        refused: dict[str, list[Configuration]] = defaultdict(list)
        for run in seen:
            if run.refused and run.refused not in taken:
                refused[run.refused].append(run.configuration)
        return {name: where for name, where in refused.items() if len(where) >= _REFUSALS}

    def _was_run(self, configuration: Configuration) -> bool:
        return any(run.configuration == configuration for run in self._log.observations)

    def _baseline_due(self, size: int) -> bool:
        baseline_runs = [at for at, run in enumerate(self._log.observations) if not run.configuration]
        return len(self._log.observations) + size - (baseline_runs[-1] if baseline_runs else -1) > EVERY

    def _look_at_guards(self) -> None:
        good = [run for run in self._log.observations if not self._scores.failure(run)]
        tried = {tuple(sorted(run.configuration.items())) for run in good}
        if len(tried) < _ENOUGH or any(self._scores.excess(run) == 0 for run in good):
            return
        nearest = min(good, key=self._scores.excess)
        guard = next(
            guard for guard in self._scores.goal.guards if not guard.keeps(nearest.values[guard.metric])
        )
        shown = f"{nearest.values[guard.metric]:g}{guard.unit and ' '}{guard.unit}"
        raise SearchFailed(
            f"None of the first {len(tried)} configurations meets {guard}: the nearest had {shown}.",
            hint="relax it, or search other knobs; what was measured is kept",
        )


def _may_be_taken(name: str, configuration: Configuration, refused: list[Configuration]) -> bool:
    """Whether it was not refused often, and stands beside a value beside which it never was."""
    if not refused:
        return True
    beside = {item for refusal in refused for item in refusal.items()}
    neighbours = {item for item in configuration.items() if item[0] != name}
    return len(refused) < _MOST_REFUSALS and not neighbours <= beside


# The first configurations of a search: each pair of values of two knobs is tried together, in few runs.
#
# A covering array of strength 2 (Cohen, Dalal, Fredman and Patton, IEEE Trans. Software Engineering 23,
# 1997), made greedily: a range counts as three values, its lower, middle and upper third, and the place
# within the third is drawn anew for each run. So what two knobs do only together is seen, whatever the
# pair.

_THIRDS = 3
_CANDIDATES = 20
"""Rows of which the one that covers most new pairs is taken."""
_UNCHANGED = 0.5
"""How often a range is left as it is where its default lies in the third that is wanted."""


class Covering:
    """Rows of a covering array, those that cover most first."""

    def __init__(self, encoding: Encoding, rng: np.random.Generator) -> None:
        self._encoding = encoding
        self._rng = rng
        self._dimensions = encoding.space.dimensions
        counts = [
            _THIRDS if dimension.range else len(choices_of(dimension)) for dimension in self._dimensions
        ]
        self._open = np.zeros((len(counts), max(counts), len(counts), max(counts)), dtype=bool)
        for first, values in enumerate(counts):
            for second, partners in enumerate(counts):
                self._open[first, :values, second, :partners] = first != second
        self._counts = counts

    @property
    def open(self) -> int:
        """Pairs of values that no row has yet."""
        return int(self._open.sum()) // 2

    def next(self, fixed: Mapping[str, str]) -> Configuration:
        """The next configuration that meets every constraint, with these values. Raises
        NoValidConfiguration."""
        best, most = None, -1
        for _ in range(_CANDIDATES):
            drawn = self._encoding.space.only_changes({**self._drawn(), **fixed})
            if drawn and self._encoding.space.holds(drawn) and (new := self._new(drawn)) > most:
                best, most = drawn, new
        chosen = best if best is not None else self._encoding.draw_with(self._rng, fixed)
        self._cover(chosen)
        return chosen

    def _drawn(self) -> Configuration:
        """Dimension after dimension, in random order, the value that covers most beside those before."""
        gains = np.zeros(self._open.shape[:2])
        open_ = self._open.sum(axis=(2, 3)).astype(np.float64)
        point: Configuration = {}
        for at in self._rng.permutation(len(self._dimensions)):
            count = self._counts[at]
            # What is open with the dimensions to come decides where those before say nothing.
            worth = gains[at, :count] + 0.01 * open_[at, :count] + 0.005 * self._rng.random(count)
            cell = int(np.argmax(worth))
            gains += self._open[at, cell]
            point[self._dimensions[at].name] = self._value(self._dimensions[at], cell)
        for names in self._encoding.groups.values():
            chosen = names[int(self._rng.integers(len(names)))]
            point = {name: value for name, value in point.items() if name == chosen or name not in names}
        return self._encoding.space.only_changes(point)

    def _value(self, dimension: Dimension, cell: int) -> str:
        if dimension.range is None:
            return choices_of(dimension)[cell]
        if self._cell(dimension, dimension.default) == cell and self._rng.random() < _UNCHANGED:
            return dimension.default
        return value_at(dimension.range, (cell + float(self._rng.random())) / _THIRDS)

    def _cell(self, dimension: Dimension, value: str) -> int:
        if dimension.range is None:
            return choices_of(dimension).index(value)
        return min(int(_THIRDS * place_of(dimension, value)), _THIRDS - 1)

    def _cells(self, configuration: Configuration) -> list[int]:
        space = self._encoding.space
        return [
            self._cell(dimension, space.value(configuration, dimension.name))
            for dimension in self._dimensions
        ]

    def _new(self, configuration: Configuration) -> int:
        cells = self._cells(configuration)
        at = np.arange(len(cells))
        return int(self._open[at[:, None], np.array(cells)[:, None], at, cells].sum())

    def _cover(self, configuration: Configuration) -> None:
        cells = self._cells(configuration)
        at = np.arange(len(cells))
        self._open[at[:, None], np.array(cells)[:, None], at, cells] = False


# Screening around the best: what is sure of it is kept, all else is varied at once.
#
# So one run says something of every knob that is in doubt, where runs of the best itself say nothing of any
# (Box, Hunter and Hunter, Statistics for Experimenters, 2005, chapter 6: factors are screened together, not
# one at a time). While nothing is sure, all knobs are varied, by a covering design: two that do something
# only together are not met by small steps from the baseline.

_SURE = Pruning(1.5, 0.5)
"""What is not taken back so is sure."""
_CERTAIN = Pruning(2.5, 1.0)
"""What is not taken back so is not looked at again: a model that does not fit is sure of a knob now and then
that does nothing."""
_SUBSETS = 64
_UNDECIDED, _NEAR = 3.0, 1.5
"""Standard deviations of what a knob does, within which it is looked at; and from the border of what stays,
within which it weighs most."""
_CREDIBLE = 1.0
"""Standard deviations of the model that the best must lie above the baseline before anything of it is."""
_STEP, _STEPPED = 0.08, 0.6
"""Standard deviation of a step along a range that is sure, as a part of it, and how often there is one: its
best place is looked for as well."""
_ROWS = 15
"""Of a covering design, after which a new one begins: beside what is kept some pairs never meet."""


class Screening:
    """Chooses configurations around the best of a search."""

    def __init__(self, encoding: Encoding, covering: Covering, rng: np.random.Generator) -> None:
        self._encoding = encoding
        self._covering = covering
        self._rng = rng
        self._rows = 0

    def others(self, surrogate: Surrogate, best: Configuration) -> Configuration:
        """What is sure of the best, near its values, beside any values of all other knobs."""
        return self._row(self._stepped(self._sure(surrogate, best)))

    def doubted(self, surrogate: Surrogate, best: Configuration) -> Configuration:
        """The best without some of its knobs, as tells most of what they do; if nothing is sure, any row."""
        if not self._sure(surrogate, best):
            return self._row({})
        certain = pruned(surrogate, best, _CERTAIN)
        some = [
            {name: value for name, value in best.items() if name in certain or self._rng.random() < 0.5}
            for _ in range(_SUBSETS)
        ]
        held = [
            configuration
            for configuration in some
            if configuration and self._encoding.space.holds(configuration)
        ]
        return _most_telling(surrogate, best, held) if held else best

    def _sure(self, surrogate: Surrogate, best: Configuration) -> Configuration:
        if not best or not credible(surrogate, best):
            return {}
        return pruned(surrogate, best, _SURE)

    def _stepped(self, sure: Configuration) -> Configuration:
        stepped = dict(sure)
        for name, value in sure.items():
            span = self._encoding.space[name].range
            if span is not None and self._rng.random() < _STEPPED:
                place = place_of(self._encoding.space[name], value) + _STEP * self._rng.standard_normal()
                stepped[name] = value_at(span, float(np.clip(place, 0, 1)))
        return stepped if self._encoding.space.holds(self._encoding.space.only_changes(stepped)) else sure

    def _row(self, fixed: Configuration) -> Configuration:
        if self._covering.open <= 0 or self._rows >= _ROWS:
            self._covering, self._rows = Covering(self._encoding, self._rng), 0
        self._rows += 1
        try:
            return self._covering.next(fixed)
        except NoValidConfiguration:
            return self._covering.next({})


def credible(surrogate: Surrogate, configuration: Configuration) -> bool:
    """Whether the model believes that it gains, beyond its own doubt."""
    gain, spread = surrogate.gains([configuration])[0], surrogate.spread([configuration])[0]
    return bool(gain >= _CREDIBLE * spread)


def _most_telling(surrogate: Surrogate, best: Configuration, some: Sequence[Configuration]) -> Configuration:
    """That of these whose run is expected to lessen most the variance of what single knobs of the best do,
    by the model (active learning: Cohn, Ghahramani and Jordan, J. Artificial Intelligence Research 4, 1996);
    knobs near the border of what stays weigh most.
    """
    doubtful = [loss for loss in losses(surrogate, best) if abs(loss.mean) < _UNDECIDED * loss.deviation]
    rests = [without(best, effect.names) for effect in doubtful]
    border = np.array([effect.mean / max(effect.deviation, 1e-9) - BOLD.doubt for effect in doubtful])
    weights, reduction = np.exp(-0.5 * (border / _NEAR) ** 2), np.zeros(len(some))
    for response in surrogate.responses:
        _, covariance = response.gain([best, *rests, *some])
        variance = np.diag(covariance)[1 + len(rests) :] + response.strengths.noise**2
        shared = covariance[0, 1 + len(rests) :] - covariance[1 : 1 + len(rests), 1 + len(rests) :]
        reduction += weights @ (shared**2 / variance)
    return some[int(np.argmax(reduction))]
