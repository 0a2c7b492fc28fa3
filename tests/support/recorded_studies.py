"""Small studies of every kind whose results were recorded before the cost of a result was made linear."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tests.support.grown_studies import a_factor, growing_study, trials_of

from ktrial.model.study import Stopping, Study, Timing
from ktrial.model.trial import Outcome, Trial


@dataclass(frozen=True)
class Case:
    """A study with its trials."""

    study: Study
    trials: tuple[Trial, ...]


def cases() -> dict[str, Case]:
    """Name → study and trials."""
    two = growing_study(2, factors=(a_factor(2, "first"), a_factor(3, "second")), timing=Timing(blocks=10))
    exact_two = two.model_copy(update={"timing": None, "machine": growing_study(2, timed=False).machine})
    several = growing_study(6, workloads=2, blocks=15)
    return {
        "in real time": _whole(growing_study(8), metrics=2, environments=True),
        "two workloads, one of them primary": _whole(_timed(several, primary=("load-0001",)), metrics=2),
        "failed and missing trials": _kept(several, _some_fail),
        "a treatment given up, a block not ended": _kept(several, _one_is_given_up),
        "the baseline given up": _kept(several, _baseline_is_given_up),
        "numbers that are not above zero": _kept(several, _zeros),
        "no block has ended": Case(several, tuple(trials_of(several))[:3]),
        "one look, after the last block": _whole(_timed(several, blocks=8, stopping=Stopping.FIXED)),
        "open-ended": _whole(_timed(several, stopping=Stopping.OPEN_ENDED)),
        "the budget is spent": Case(
            _timed(several, budget_seconds=10.0), tuple(trials_of(several, metrics=2))[:50]
        ),
        "interactions in real time": _whole(two),
        "interactions in exact numbers": _whole(exact_two),
        "exact": _whole(growing_study(6, workloads=2, timed=False)),
        "exact, with failed trials": _kept(growing_study(6, workloads=2, timed=False), _some_fail),
    }


def _timed(study: Study, **changes: object) -> Study:
    timing = (study.timing or Timing()).model_dump() | changes
    return study.model_copy(update={"timing": Timing.model_validate(timing)})


def _whole(study: Study, *, metrics: int = 1, environments: bool = False) -> Case:
    return Case(study, tuple(trials_of(study, metrics=metrics, environments=environments)))


def _kept(study: Study, change: Callable[[Trial], Trial | None]) -> Case:
    changed: Iterable[Trial | None] = map(change, trials_of(study, metrics=2))
    return Case(study, tuple(trial for trial in changed if trial is not None))


def _failed(trial: Trial) -> Trial:
    return trial.model_copy(
        update={"outcome": Outcome.WORKLOAD_FAILED, "samples": (), "reason": "the workload ended with 1"}
    )


def _level(trial: Trial) -> object:
    return next(iter(trial.planned.treatment.levels.values()))


def _some_fail(trial: Trial) -> Trial | None:
    if trial.planned.order % 17 == 5:
        return _failed(trial)
    if trial.planned.order % 13 == 4:
        return trial.model_copy(update={"samples": trial.samples[1:]})
    return trial if trial.planned.order % 40 != 39 else None


def _one_is_given_up(trial: Trial) -> Trial | None:
    if trial.planned.block == 12 and trial.planned.order % 2:
        return None
    if trial.planned.block > 12:
        return None
    if _level(trial) == 3:
        return _failed(trial) if trial.planned.block < 3 else None
    return trial


def _baseline_is_given_up(trial: Trial) -> Trial | None:
    if trial.planned.block >= 4:
        return None
    return _failed(trial) if _level(trial) == 1 else trial


def _zeros(trial: Trial) -> Trial:
    if _level(trial) != 4:
        return trial
    zeros = tuple(one.model_copy(update={"value": 0.0}) for one in trial.samples[:1])
    return trial.model_copy(update={"samples": (*zeros, *trial.samples[1:])})


# Where two values from JSON differ, by the path that leads there: a failure names the number.


def differing(one: object, other: object, *, digits: int = 17, place: str = "") -> Iterator[str]:
    """One line for each place; floating-point numbers agree to so many digits."""
    if isinstance(one, float) and isinstance(other, float):
        if not math.isclose(one, other, rel_tol=10.0**-digits):
            yield f"{place}: {one!r} and {other!r}"
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key, each in one.items():
            yield from differing(each, other[key], digits=digits, place=f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from differing(first, second, digits=digits, place=f"{place}/{number}")
    elif one != other:
        yield f"{place}: {one!r} and {other!r}"
