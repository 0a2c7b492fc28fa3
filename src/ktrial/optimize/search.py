"""The whole search, from the first run of the baseline to the answer."""

import statistics
from collections.abc import Sequence

import numpy as np

from ktrial.model.tuning import Budget, Configuration, Finalist, Goal, Observation, Purpose, Space, Tuned
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.optimize import effects
from ktrial.optimize.ablation import ablate, ablate_exactly, pruned
from ktrial.optimize.budget import ConfirmationSize, Shares, shares, smallest_effect
from ktrial.optimize.confirmation import (
    Confirmation,
    confirm,
    confirm_exactly,
    confirm_front,
    confirm_front_exactly,
    conflict,
    points_to_confirm,
    runs_for_front,
    sentence,
    with_confirmations,
)
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.evaluation_log import (
    EvaluationLog,
    Evaluator,
    ObjectiveFunction,
    StageProgress,
    robust_spread,
)
from ktrial.optimize.exploration import Explorer, calibrate
from ktrial.optimize.finalists import answer_among, fitting, shortlist, smallest_answers
from ktrial.optimize.response_model import Surrogate, front
from ktrial.optimize.samplers import optimiser
from ktrial.optimize.term_model import term_model
from ktrial.studyfile.errors import SearchFailed

QUIET = 0.001
"""What the model takes for noise where there is none: so much do irrelevant changes move an exact number."""
_LEAST_NOISE = 0.0005
_MORE = 4
"""Runs after which a search that goes on looks for its finalists again."""


def _knobs(configuration: Configuration) -> str:
    return "one knob" if len(configuration) == 1 else f"{len(configuration)} knobs"


def tune(
    space: Space,
    goal: Goal,
    budget: Budget,
    measuring: Evaluator,
    seed: int = 1,
    done: Sequence[Observation] = (),
    progress: StageProgress = lambda _stage: None,
    optimiser_name: str = "tpe",
) -> Tuned:
    """Search, take back what does not matter, confirm on fresh runs.

    `done` holds the observations of an interrupted search with the same arguments: what they answer is not
    measured again. Raises TuningError before anything is measured, and where the workload lacks a metric;
    SearchFailed after the first run, and after exploring where no guard is met; NotTheSameSearch; and
    whatever `measuring` raises.

    Algebra has one thread: of matrices so small more are no faster, their threads wait busily, beside what is
    measured, and sums depend on how many there are.
    """
    import scipy.linalg  # noqa: F401 - has an OpenBLAS of its own: only what is loaded is limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        search = _TuningSearch(space, goal, budget, measuring, seed, done, progress, optimiser_name)
        return search.whole()


class _TuningSearch:
    def __init__(
        self,
        space: Space,
        goal: Goal,
        budget: Budget,
        measuring: Evaluator,
        seed: int,
        done: Sequence[Observation],
        progress: StageProgress,
        optimiser_name: str,
    ) -> None:
        self.space, self.goal, self.budget, self.seed = space, goal, budget, seed
        self.measuring = measuring
        self.encoding = Encoding(space)
        self.scores = ObjectiveFunction(goal)
        self.log = EvaluationLog(measuring, budget, done, progress)
        self.rng = np.random.default_rng([seed, 3])
        chosen = optimiser(optimiser_name, self.encoding, len(goal.objectives), seed)
        # A space without a valid configuration is told before anything is spent.
        self.encoding.draw(np.random.default_rng(seed))
        self.points: list[Configuration] = []
        """Of the front, which were confirmed."""
        self.on_front: list[Confirmation] = []
        self.finalists: tuple[Finalist, ...] = ()
        self.confirmed_with: ConfirmationSize | None = None
        self.explorer = Explorer(self.encoding, self.log, self.scores, chosen, self.rng)
        if budget.runs is not None:
            self._shares(budget.runs)

    def whole(self) -> Tuned:
        """Every stage in turn."""
        shared, noise = self._calibrated()
        surrogate = Surrogate(
            self.encoding, self.scores, max(noise, _LEAST_NOISE) if noise else QUIET, shared.runs
        )
        spare = self._put_by(shared)
        self.explorer.explore(min(shared.explore, self.log.left - spare))
        surrogate.noise = max(self._noise(), _LEAST_NOISE) if noise else QUIET
        self.explorer.contend(min(shared.contend, self.log.left - spare), surrogate)
        surrogate.learn(self.log.observations)
        explored = surrogate.best()
        if noise and not self.two_objectives:
            explored, candidate, confirmation = self._best_confirmed(surrogate, explored, shared)
        else:
            candidate = self._ablated(surrogate, explored, min(shared.ablate, self.log.left - spare))
            if self.two_objectives:
                candidate, confirmation = self._front_confirmed(surrogate, candidate, spare)
            else:
                confirmation = self._confirmed(candidate)
        surrogate.learn(self.log.observations)
        self._require_knowledge(confirmation)
        return self._tuned(surrogate, explored, candidate, confirmation, shared)

    def _require_knowledge(self, confirmation: Confirmation | None) -> None:
        """Raise SearchFailed where there is no answer because most of what was tried did not run.

        What the kernel refused to set is known: it is no setting.
        """
        tried = [run for run in self.log.observations if run.configuration and not run.refused]
        failed = [problem for run in tried if (problem := self.scores.failure(run))]
        if 2 * len(failed) > len(tried) and not (confirmation and confirmation.better):
            raise SearchFailed(
                f"Of {len(tried)} runs with other settings {len(failed)} failed, so that it is not known "
                f"whether any of them is better. The first: {failed[0]}",
                hint="search narrower ranges, or raise what they failed by (memory, limit_seconds), and "
                "search again",
            )

    def _calibrated(self) -> tuple[Shares, float]:
        """The shares, and the noise as the first runs show it; 0 in noise-free mode."""
        runs = self.budget.runs
        calibrate(self.log, self.scores, self._shares(runs).calibrate if runs else 1)
        shared = self._shares(self.log.runs)
        if (more := shared.calibrate - len(self.log.observations)) > 0:
            calibrate(self.log, self.scores, more)
        return shared, self._noise()

    def _shares(self, runs: int) -> Shares:
        exact = self.measuring.noise_free
        count, dimensions = self.measuring.perturbations, len(self.space.dimensions)
        return shares(runs, noise_free=exact, perturbations=count, dimensions=dimensions)

    def _noise(self) -> float:
        if self.measuring.noise_free:
            return 0.0
        scores = [self.scores.of(run) for run in self.log.observations if not run.configuration]
        spreads = [robust_spread(np.array(column)) for column in zip(*filter(None, scores), strict=True)]
        return max(*spreads, _LEAST_NOISE)

    def _ablated(self, surrogate: Surrogate, explored: Configuration, runs: int) -> Configuration:
        if not explored:
            return {}
        self.log.say(Purpose.ABLATE, f"taking back {_knobs(explored)}")
        if self.measuring.noise_free:
            return ablate_exactly(surrogate, self.log, explored, runs)
        return ablate(surrogate, self.log, explored, runs, self.rng)

    def _confirmed(self, candidate: Configuration) -> Confirmation | None:
        """In noise-free mode."""
        if not candidate:
            return None
        self.log.say(Purpose.CONFIRM, f"confirming {_knobs(candidate)} on fresh runs")
        return confirm_exactly(self.log, self.scores, candidate, self.measuring.mode)

    def _best_confirmed(
        self, surrogate: Surrogate, explored: Configuration, shared: Shares
    ) -> tuple[Configuration, Configuration, Confirmation | None]:
        """The model's best, the answer or what came nearest to one, and what fresh runs say of it."""
        if shared.ablate and explored:
            # What blocks without a knob say, the model knows when it names the finalists.
            self._ablated(surrogate, explored, min(shared.ablate, self.log.left - shared.confirm))
            explored = surrogate.best()
        explored = self._searched_on(surrogate, explored, shared)
        terms = term_model(surrogate.responses[0], surrogate.noise, len(self.log.observations))
        finalists = shortlist(surrogate, smallest_answers(surrogate, terms, explored))
        if not finalists:
            return explored, {}, None
        finalists, size = fitting(surrogate, finalists, shared.confirm, self.log.left)
        size = size.with_runs(self.log.left)
        expected = terms.estimates(surrogate.lattice.coordinates(surrogate.lattice.rows(finalists)))
        self.log.say(Purpose.CONFIRM, f"confirming {' and '.join(map(_knobs, finalists))} on fresh runs")
        confirmations = confirm(self.log, surrogate, finalists, expected, size.blocks, self.rng)
        self.confirmed_with = size
        self.finalists = tuple(
            Finalist(
                configuration=finalist,
                comparison=confirmation.comparisons[0],
                fresh=confirmation.fresh,
                expected=confirmation.expected,
                broken=confirmation.broken,
            )
            for finalist, confirmation in zip(finalists, confirmations, strict=True)
        )
        better = [
            finalist
            for finalist, confirmation in zip(finalists, confirmations, strict=True)
            if confirmation.better
        ]
        chosen = answer_among(surrogate, better or finalists)
        return explored, chosen, confirmations[finalists.index(chosen)]

    def _searched_on(self, surrogate: Surrogate, explored: Configuration, shared: Shares) -> Configuration:
        """The model's best, after those runs that are put by and that confirmation does not need."""
        while True:
            rough = shortlist(surrogate, [pruned(surrogate, explored), explored])
            needed = fitting(surrogate, rough, shared.confirm, self.log.left)[1].runs if rough else 0
            before = self.log.left
            if (spare := min(before - (needed or shared.confirm), _MORE)) < 1:
                return explored
            self.explorer.contend(spare, surrogate)
            if self.log.left == before:
                return explored
            surrogate.learn(self.log.observations)
            explored = surrogate.best()

    @property
    def two_objectives(self) -> bool:
        """Whether a front is looked for."""
        return len(self.goal.objectives) > 1

    def _put_by(self, shared: Shares) -> int:
        """Runs that are left for the confirmation."""
        if not self.two_objectives:
            return shared.confirm
        return runs_for_front(shared, self.log.runs, noise_free=self.measuring.noise_free)

    def _front_confirmed(
        self, surrogate: Surrogate, candidate: Configuration, runs: int
    ) -> tuple[Configuration, Confirmation | None]:
        """The first point that is better in one objective and worse in none, else the first that there is."""
        exact = self.measuring.noise_free
        promised = front(surrogate, None, ())
        self.points = points_to_confirm(promised, candidate, self.goal, runs, noise_free=exact)
        if not self.points:
            return {}, None
        self.log.say(Purpose.CONFIRM, f"confirming the front on fresh runs: {len(self.points)} of its points")
        if exact:
            mode = self.measuring.mode
            self.on_front = confirm_front_exactly(self.log, self.scores, self.points, mode, runs)
        else:
            self.on_front = confirm_front(self.log, self.scores, self.points, self.rng, runs)
        both = list(zip(self.points, self.on_front, strict=False))
        return next((number for number in both if number[1].better), both[0] if both else (candidate, None))

    def _tuned(
        self,
        surrogate: Surrogate,
        explored: Configuration,
        candidate: Configuration,
        confirmation: Confirmation | None,
        shared: Shares,
    ) -> Tuned:
        noise = self._noise()
        smallest = smallest_effect(self.confirmed_with or shared.confirmation, self.goal.margin, noise)
        good = confirmation is not None and confirmation.better
        traded = "" if good else conflict(self.points, self.on_front)
        comparisons = confirmation.comparisons if confirmation and not traded else ()
        return Tuned(
            space=self.space,
            goal=self.goal,
            budget=self.budget,
            seed=self.seed,
            mode=self.measuring.mode,
            baseline=self._baseline(),
            observations=tuple(self.log.observations),
            drift=self._drift(surrogate),
            candidate=candidate,
            confirmed=candidate if good else None,
            comparisons=comparisons,
            finalists=self.finalists,
            kept=effects.kept(
                surrogate,
                candidate,
                comparisons[0] if comparisons else None,
                exact=self.measuring.noise_free,
            ),
            dropped=effects.dropped(surrogate, explored, candidate),
            importance=effects.importance(surrogate, self.seed),
            interactions=effects.interactions(surrogate, candidate),
            front=with_confirmations(
                front(surrogate, candidate if good else None, comparisons), self.points, self.on_front
            ),
            noise=noise,
            smallest_effect=smallest,
            seen=self._seen(),
            seconds=self.log.seconds,
            answer=traded or sentence(candidate, confirmation, self.goal, smallest),
            warnings=self._warnings(confirmation),
        )

    def _baseline(self) -> dict[str, float]:
        runs = [run for run in self.log.observations if not run.configuration and run.values]
        objectives = {objective.metric for objective in self.goal.objectives}
        middles = {}
        for name in runs[0].values:
            values = [run.values[name] for run in runs if name in run.values]
            positive = name in objectives and min(values) > 0
            middles[name] = statistics.geometric_mean(values) if positive else statistics.median(values)
        return middles

    def _drift(self, surrogate: Surrogate) -> tuple[float, ...]:
        """A factor for each observation; that of a failed one is its neighbour's."""
        if self.measuring.noise_free:
            return ()
        drifted = surrogate.responses[0].drifted()
        factors = iter(np.exp(self.scores.sign(0) * (drifted - drifted.mean())))
        last, factors_of_runs = 1.0, []
        for run in surrogate.seen:
            last = last if self.scores.failure(run) else float(next(factors))
            factors_of_runs.append(last)
        return tuple(factors_of_runs)

    def _seen(self) -> float | None:
        """The best single run of the search, in the objective's own direction."""
        searched = (Purpose.EXPLORE, Purpose.CONTEND)
        runs = [run for run in self.log.observations if run.configuration and run.purpose in searched]
        good = [run for run in runs if self.scores.of(run) and not self.scores.excess(run)]
        if not good:
            return None
        best = max(good, key=lambda run: self.scores.of(run)[0])
        metric = self.goal.objectives[0].metric
        return best.values[metric] / self._baseline()[metric]

    def _warnings(self, confirmation: Confirmation | None) -> tuple[DataWarning, ...]:
        warnings = list(confirmation.warnings) if confirmation else []
        runs = self.log.observations
        failed = [run for run in runs if self.scores.failure(run)]
        if failed:
            reason = self.scores.failure(failed[0]).rstrip(".")
            text = f"{len(failed)} of {len(runs)} runs failed, the first: {reason}"
            advice = "their configurations are no answer; a narrower range leaves more runs for the rest"
            warnings.append(DataWarning(kind=WarningKind.FAILED_TRIALS, text=text, advice=advice))
        return tuple(warnings)
