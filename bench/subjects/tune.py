"""How well a search over settings does on a formula with noise: ktrial, Optuna's TPE alone, random search.

All have 65 runs. TPE and random search report the best configuration that they happened to see, with the
number that they saw; ktrial what it confirmed, with the confirmation's. Regret is what the true best has
more than the true value of what was reported, in % of the baseline (logarithms).
"""

import math
import os
import statistics
from collections.abc import Iterator
from typing import NamedTuple

from rich.table import Table
from tests.support.tuning import GOAL, METRIC, SPACE, Formula, best, log_gain, nothing
from tests.support.tuning_families import FAMILIES, Problem, gains_in_more_blocks, problem

from bench.row import Row, seconds
from ktrial.model.tuning import Budget, Configuration, Purpose, Tuned
from ktrial.optimize import tune
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.evaluation_log import EvaluationLog, ObjectiveFunction, RunRequest
from ktrial.optimize.samplers import Evaluation, optimiser

RUNS = 65
SEEDS = int(os.environ.get("KTRIAL_BENCH_SEEDS", "20"))
"""Searches of each kind; the test of A/A spaces has twice as many."""
_HELD_OUT = 5000
"""The first seed of the functions that are reported: the search was not developed on them."""
PLAIN = 3.0
"""Standard deviations of one run that a gain must have at least to be plain: a dozen runs of confirmation
show one of half as many in most searches."""
LONGEST = 5.0
"""Seconds that a search of 65 runs may think."""


class Found(NamedTuple):
    """One search's answer, beside the truth."""

    true: float
    """Log gain of what was reported."""
    reported: float
    """What it said."""
    covers: bool | None
    """Whether its interval holds the truth; None where it gave none."""
    gain: bool
    """Whether a gain was reported at all."""


def rows() -> Iterator[Row]:
    """How long a search thinks."""
    took = seconds(lambda: ours(1, 0.05))
    yield Row(f"a search of {RUNS} runs over 12 knobs, without the runs", took, most_seconds=LONGEST)


def tables() -> Iterator[Table]:
    """Regret, overstatement, coverage; and how often an A/A space shows a gain."""
    optimum = best()[1]
    for noise in (0.02, 0.05):
        title = f"{SEEDS} searches, noise {noise * 100:.0f} %, 3 % outliers, best gain {optimum * 100:.1f} %"
        drawn = Table(
            "search", "median regret", "mean regret", "overstated by", "interval holds", title=title
        )
        for name in ("ktrial", "tpe", "random"):
            searches = [search(name, seed, noise) for seed in range(1, SEEDS + 1)]
            drawn.add_row(name, *_cells(searches, optimum))
        yield drawn
    yield _families()
    again = [ours(seed, 0.05, idle=True) for seed in range(1, 2 * SEEDS + 1)]
    none = sum(not each.gain for each in again)
    idle = Table("search", "no gain", title="knobs that do nothing, noise 5 %, 3 % outliers")
    idle.add_row("ktrial", f"{100 * none / len(again):.1f} % of {len(again)}")
    yield idle


class FamilyResult(NamedTuple):
    """Searches on random functions of a family; regrets are means, as fractions, with standard errors."""

    functions: int
    ours: float
    ours_error: float
    tpe: float
    tpe_error: float
    idle: float
    """Knobs in an answer that do nothing."""
    none: int
    """Searches that ended with 'no gain'."""
    again: float
    """Mean regret where what these left undecided is measured again, with standard error."""
    again_error: float
    gained: int
    """How many answers that brings."""
    intervals: int
    """Of finalists, of which several of one search hold together."""
    hold: int
    """Of these, how many hold the truth."""
    plain: "Beside"
    """Where the best gain is `PLAIN` standard deviations of a run, or more."""


class Beside(NamedTuple):
    """Searches of ours and TPE's on the same functions: mean regrets, as fractions."""

    functions: int
    ours: float
    more: float
    """Than TPE's."""
    more_error: float


def on_family(family: str, functions: int) -> FamilyResult:
    """With seeds from 5000 on."""
    problems = [problem(family, seed) for seed in range(_HELD_OUT, _HELD_OUT + functions)]
    tuned = [tune(each.space, each.goal, Budget(runs=RUNS), each, each.seed) for each in problems]
    answers = [each.confirmed or {} for each in tuned]
    held = [hold for each, one in zip(problems, tuned, strict=True) for hold in intervals_hold(each, one)]
    both = list(zip(problems, answers, strict=True))
    regrets = [each.optimum - each.log_gain(answer) for each, answer in both]
    later = [measured_again(each, one) for each, one in zip(problems, tuned, strict=True)]
    again = [each.optimum - each.log_gain(answer) for each, answer in zip(problems, later, strict=True)]
    of_tpe = [each.optimum - best_seen(each) for each in problems]
    idle = [len(each.idle(answer)) for each, answer in both if answer]
    rows = zip(problems, regrets, of_tpe, strict=True)
    return FamilyResult(
        functions,
        statistics.fmean(regrets),
        _error(regrets),
        statistics.fmean(of_tpe),
        _error(of_tpe),
        statistics.fmean(idle) if idle else 0.0,
        len(answers) - len(idle),
        statistics.fmean(again),
        _error(again),
        sum(map(bool, later)) - len(idle),
        len(held),
        sum(held),
        _beside([(one, other) for each, one, other in rows if plain(each)]),
    )


def measured_again(each: Problem, tuned: Tuned) -> Configuration:
    """The answer; where the search left a candidate undecided, what `ktrial tune revalidate` makes of it."""
    if tuned.confirmed or not tuned.undecided:
        return tuned.confirmed or {}
    return tuned.undecided if gains_in_more_blocks(each, tuned.undecided) else {}


def plain(each: Problem) -> bool:
    """Whether it has a gain that a few runs can show."""
    return each.optimum >= PLAIN * each.noise


def _beside(regrets: list[tuple[float, float]]) -> Beside:
    """Of ours and TPE's."""
    more = [one - other for one, other in regrets]
    ours = statistics.fmean(one for one, _ in regrets) if regrets else math.nan
    error = _error(more) if len(more) > 1 else math.nan
    return Beside(len(more), ours, statistics.fmean(more) if more else math.nan, error)


class AtOnce(NamedTuple):
    """Searches that ask for several points at once beside those that ask for one, on the same functions."""

    regret: float
    """Mean, as a fraction."""
    error: float
    more: float
    """Regret more than with one point at a time: the mean of the differences."""
    more_error: float


def at_once(functions: int, counts: tuple[int, ...]) -> dict[int, AtOnce]:
    """Of each family in which something acts so many functions, with seeds from 5000 on. By the count."""
    alone = regrets_at_once(functions, 1)
    by_count = {}
    for count in counts:
        regrets = alone if count == 1 else regrets_at_once(functions, count)
        differences = [one - other for one, other in zip(regrets, alone, strict=True)]
        means = statistics.fmean(regrets), _error(regrets), statistics.fmean(differences)
        by_count[count] = AtOnce(*means, _error(differences))
    return by_count


def regrets_at_once(functions: int, count: int) -> list[float]:
    """Of searches of 65 runs, of which `count` are asked for at a time."""
    return [
        _regret(problem(family, seed), count)
        for family in FAMILIES
        if family != "idle"
        for seed in range(_HELD_OUT, _HELD_OUT + functions)
    ]


def _regret(each: Problem, count: int) -> float:
    each.at_once = count
    tuned = tune(each.space, each.goal, Budget(runs=RUNS), each, each.seed)
    return each.optimum - each.log_gain(tuned.confirmed or {})


def intervals_hold(each: Problem, tuned: Tuned) -> list[bool]:
    """Of every finalist's interval, whether it holds the truth."""
    return [
        one.comparison.low <= math.exp(each.log_gain(one.configuration)) <= one.comparison.high
        for one in tuned.finalists
        if one.comparison.low is not None and one.comparison.high is not None
    ]


def _error(values: list[float]) -> float:
    return statistics.stdev(values) / math.sqrt(len(values))


def _families() -> Table:
    """Regret on random functions of each family."""
    title = f"mean regret, {SEEDS} random functions each"
    drawn = Table("family", "ktrial", "TPE", "idle knobs", "no gain", title=title)
    for family in FAMILIES:
        scores = on_family(family, SEEDS)
        drawn.add_row(
            family,
            f"{100 * scores.ours:.1f} ± {100 * scores.ours_error:.1f} %",
            f"{100 * scores.tpe:.1f} ± {100 * scores.tpe_error:.1f} %",
            f"{scores.idle:.1f}",
            f"{scores.none} of {scores.functions}",
        )
    return drawn


def best_seen(each: Problem) -> float:
    """The true log gain of the best run that Optuna's TPE saw, alone, among those that keep all limits."""
    chosen, scores = optimiser("tpe", Encoding(each.space), 1, each.seed), ObjectiveFunction(each.goal)
    ledger = EvaluationLog(each, Budget(runs=RUNS), (), lambda _stage: None)
    ledger.run([RunRequest({})], Purpose.EXPLORE)
    while ledger.left:
        (seen,) = ledger.run([RunRequest(chosen.ask(1)[0])], Purpose.EXPLORE)
        chosen.tell([Evaluation(seen.configuration, scores.of(seen), scores.excess(seen))])
    kept = (seen for seen in ledger.observations if each.keeps(seen.configuration))
    return each.log_gain(max(kept, key=lambda seen: seen.values[METRIC]).configuration)


def _cells(searches: list[Found], optimum: float) -> tuple[str, ...]:
    regrets = [optimum - each.true for each in searches]
    over = statistics.median(each.reported - each.true for each in searches)
    told = [each.covers for each in searches if each.covers is not None]
    holds = f"{100 * sum(told) / len(told):.0f} %" if told else "none given"
    return (
        f"{100 * statistics.median(regrets):.1f} %",
        f"{100 * statistics.fmean(regrets):.1f} %",
        f"{100 * over:.1f} points",
        holds,
    )


def search(name: str, seed: int, noise: float) -> Found:
    """One search of `ktrial`'s, or of an optimiser alone."""
    return ours(seed, noise) if name == "ktrial" else alone(name, seed, noise)


def ours(seed: int, noise: float, *, idle: bool = False) -> Found:
    """A whole search of ktrial's."""
    truth = nothing if idle else log_gain
    return judged(tune(SPACE, GOAL, Budget(runs=RUNS), Formula(noise, seed, truth), seed), idle=idle)


def judged(tuned: Tuned, *, idle: bool = False) -> Found:
    """Beside the truth. The interval is that of the configuration which was put to the test, gain or not."""
    truth = nothing if idle else log_gain
    one = tuned.comparison
    covers = None
    if one is not None and one.low is not None and one.high is not None:
        covers = one.low <= math.exp(truth(tuned.candidate)) <= one.high
    gain = tuned.confirmed is not None
    reported = math.log(one.ratio) if gain and one and one.ratio else 0.0
    return Found(truth(tuned.confirmed or {}), reported, covers, gain)


def alone(name: str, seed: int, noise: float) -> Found:
    """An optimiser by itself: it reports the best run that it saw."""
    chosen, scores = optimiser(name, Encoding(SPACE), 1, seed), ObjectiveFunction(GOAL)
    ledger = EvaluationLog(Formula(noise, seed), Budget(runs=RUNS), (), lambda _stage: None)
    baseline = ledger.run([RunRequest({})], Purpose.EXPLORE)[0].values[METRIC]
    while ledger.left:
        (seen,) = ledger.run([RunRequest(chosen.ask(1)[0])], Purpose.EXPLORE)
        chosen.tell([Evaluation(seen.configuration, scores.of(seen), 0.0)])
    top = max(ledger.observations[1:], key=lambda each: each.values[METRIC])
    return Found(log_gain(top.configuration), math.log(top.values[METRIC] / baseline), None, True)
