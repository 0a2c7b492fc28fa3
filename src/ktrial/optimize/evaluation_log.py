"""What was asked and what came of it: budget, order, and the answers of an interrupted search."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ktrial.model.base import Model
from ktrial.model.tuning import Budget, Configuration, Goal, Guard, Observation, Purpose
from ktrial.model.workload import Direction, Mode
from ktrial.studyfile.errors import NotTheSameSearch, TuningError


class Ask(Model):
    """One run that the search wants. The observation that answers it has the same fields."""

    configuration: Configuration
    purpose: Purpose
    order: int
    """Running number, from 0; an interrupted search asks the same again."""
    block: int | None = None
    perturbation: int = 0
    """Noise-free mode: 0 is the plain run, 1 to `Evaluator.perturbations` - 1 are perturbed ones."""


class Evaluator(Protocol):
    """Measures configurations on some machine."""

    @property
    def noise_free(self) -> bool:
        """Whether the same configuration gives the same number every time: nothing is then repeated."""

    @property
    def at_once(self) -> int:
        """How many runs go on in parallel; 1 on a host."""

    @property
    def perturbations(self) -> int:
        """How many runs of one configuration differ by what must not matter (the plain one counts); 1 where
        there are no perturbations. Noise-free mode only."""

    @property
    def mode(self) -> Mode:
        """What its numbers are."""

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        """One observation for each ask, as each ends: with several at once not in the order of the batch.

        A run that fails is an observation with `failure`, and so is a value that the kernel refused or
        changed. What says nothing about the configuration is raised (Interrupted, a machine that is gone).
        """


class Stage(NamedTuple):
    """Where the search is."""

    purpose: Purpose
    done: int
    """Runs so far, of the whole search."""
    runs: int
    """Runs that it will take at most, as far as is known."""
    text: str = ""
    """What just happened, in a line; empty where a run merely ended."""


StageProgress: TypeAlias = Callable[[Stage], None]


class RunRequest(NamedTuple):
    """One run to make."""

    configuration: Configuration
    block: int | None = None
    perturbation: int = 0


class EvaluationLog:
    """Runs of one search. A run that `done` answers is not made again, and costs what it cost."""

    def __init__(
        self, measuring: Evaluator, budget: Budget, done: Sequence[Observation], progress: StageProgress
    ) -> None:
        self.measuring = measuring
        self.budget = budget
        self.observations: list[Observation] = []
        self._done = {run.order: run for run in done}
        self._progress = progress

    @property
    def runs(self) -> int:
        """The runs of the whole budget, as far as its seconds reach; at least those that were made."""
        limits = [self.budget.runs] if self.budget.runs is not None else []
        if self.budget.seconds is not None and self.observations:
            left = max(0.0, self.budget.seconds - self.seconds) / self._each()
            limits.append(len(self.observations) + int(left))
        return max(len(self.observations), min(limits)) if limits else 10**6

    @property
    def left(self) -> int:
        """How many runs may still be made."""
        return self.runs - len(self.observations)

    @property
    def seconds(self) -> float:
        """What the runs took; those at once share the clock."""
        return sum(run.seconds for run in self.observations) / self.measuring.at_once

    def run(self, requests: Sequence[RunRequest], purpose: Purpose, text: str = "") -> list[Observation]:
        """Measure, or take from what was done; in the order of asking. Raises NotTheSameSearch."""
        first = len(self.observations)
        asks = [
            Ask(
                configuration=request.configuration,
                purpose=purpose,
                order=first + at,
                block=request.block,
                perturbation=request.perturbation,
            )
            for at, request in enumerate(requests)
        ]
        self.say(purpose, text)
        answered = {ask.order: seen for ask in asks if (seen := self._answered(ask))}
        new = [ask for ask in asks if ask.order not in answered]
        for seen in self.measuring.measure(new) if new else ():
            answered[seen.order] = seen
            self._progress(Stage(purpose, first + len(answered), self.runs))
        self.observations += [answered[ask.order] for ask in asks]
        return self.observations[first:]

    def say(self, purpose: Purpose, text: str) -> None:
        """Tell what happens."""
        if text:
            self._progress(Stage(purpose, len(self.observations), self.runs, text))

    def _each(self) -> float:
        """Seconds that a run takes of the clock: the mean, so that dear ones are reckoned with."""
        return max(float(np.mean([run.seconds for run in self.observations])), 1e-9) / self.measuring.at_once

    def _answered(self, ask: Ask) -> Observation | None:
        seen = self._done.get(ask.order)
        if seen is None:
            return None
        if any(getattr(seen, name) != getattr(ask, name) for name in Ask.model_fields):
            raise NotTheSameSearch(ask.order)
        return seen


# From values to scores: logarithms, larger is better; and how far the guards are exceeded.

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ObjectiveFunction:
    """How well runs serve a goal."""

    goal: Goal

    def failure(self, seen: Observation) -> str:
        """Why the run counts as failed: its own failure, or a value that is not there or not above zero."""
        if seen.failure:
            return seen.failure
        for objective in self.goal.objectives:
            value = seen.values.get(objective.metric)
            if value is None:
                return f"it gave no {objective.metric}"
            if not math.isfinite(value):
                return f"its {objective.metric} is {value:g}, which is no finite number"
            if value <= 0:
                return f"its {objective.metric} is {value:g}, which is not above zero"
        missing = [guard.metric for guard in self.goal.guards if guard.metric not in seen.values]
        return f"it gave no {missing[0]}" if missing else ""

    def of(self, seen: Observation) -> tuple[float, ...]:
        """Each objective's; empty where the run failed."""
        if self.failure(seen):
            return ()
        return tuple(
            self.sign(at) * math.log(seen.values[objective.metric])
            for at, objective in enumerate(self.goal.objectives)
        )

    def sign(self, objective: int) -> int:
        """1 where higher is better, -1 where lower is."""
        return 1 if self.goal.objectives[objective].direction is Direction.HIGHER else -1

    def excess(self, seen: Observation) -> float:
        """How far the worst guard is exceeded, relative to its bound; 0 where all are kept."""
        values = seen.values
        return max(
            (exceeded(guard, values[guard.metric]) for guard in self.goal.guards if guard.metric in values),
            default=0.0,
        )


def check_measured(goal: Goal, values: Mapping[str, float]) -> None:
    """Raise TuningError where one of the goal's metrics is not among the values of a run."""
    for metric in (
        *(objective.metric for objective in goal.objectives),
        *(guard.metric for guard in goal.guards),
    ):
        if metric not in values:
            printed = ", ".join(map(repr, values)) or "nothing"
            raise TuningError(
                f"The workload does not measure '{metric}'.",
                hint=f"it measures {printed}; of a command's output: --metric 'NAME=REGEX' or --metric "
                "NAME=json:PATH",
            )


def exceeded(guard: Guard, value: float) -> float:
    """How far the value is beyond the guard, relative to its bound; 0 where it is kept."""
    if guard.keeps(value):
        return 0.0
    # At the bound itself, where `<` forbids it, a hair.
    return max(abs(value - guard.bound) / (abs(guard.bound) or 1.0), 1e-6)


def robust_spread(values: Array) -> float:
    """Standard deviation of normal values, from the median distance of all pairs: an outlier does little.

    Shamos (1976); Rousseeuw and Croux, JASA 88, 1993, section 1. The factor for few values is from
    simulation, within 3 % from four values on (tests/unit/optimize/test_tune_scores.py).
    """
    first, second = np.triu_indices(len(values), 1)
    return float(np.median(np.abs(values[first] - values[second]))) / 0.9539 * (1 - 0.55 / len(values))
