"""Knobs that are taken back from a configuration, by a model that says what each of them brings."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from tests.support.tuning import GOAL, METRIC

from ktrial.model.tuning import Budget, Configuration, Observation
from ktrial.model.workload import Mode
from ktrial.optimize.ablation import ablate_exactly, pruned
from ktrial.optimize.evaluation_log import Ask, EvaluationLog, ObjectiveFunction
from ktrial.optimize.response_model import Surrogate

WHOLE = {"a": "1", "b": "1", "c": "1"}


def believing(brings: dict[str, float], keeps_the_guard: str = "") -> Surrogate:
    """A model that is sure what each knob brings, and that one of them keeps a guard."""

    def gain(configuration: Configuration) -> float:
        return sum(brings[name] for name in configuration)

    def contrast(both: Sequence[Configuration], _weights: Sequence[float]) -> tuple[float, float]:
        return gain(both[0]) - gain(both[1]), 0.001

    return cast(
        Surrogate,
        SimpleNamespace(
            gains=lambda some: np.array([gain(each) for each in some]),
            safe=lambda configuration: keeps_the_guard in configuration or not keeps_the_guard,
            responses=[SimpleNamespace(contrast=contrast)],
            encoding=SimpleNamespace(space=SimpleNamespace(holds=lambda _configuration: True)),
            scores=ObjectiveFunction(GOAL),
            unsafe=lambda _seen: False,
            learn=lambda _observations: None,
        ),
    )


@dataclass
class Exact:
    """A system without noise on which each knob brings so much."""

    brings: dict[str, float]
    noise_free: bool = True
    at_once: int = 1
    perturbations: int = 1
    mode: Mode = Mode.EXACT_PLUGIN

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        for ask in batch:
            gain = sum(self.brings[name] for name in ask.configuration)
            yield Observation(**ask.model_dump(), values={METRIC: 1000 * math.exp(gain)}, seconds=1)


@pytest.mark.parametrize(
    ("brings", "guarded", "left"),
    [
        ({"a": 0.1, "b": 0.0, "c": 0.0}, "", {"a"}),
        ({"a": 0.1, "b": 0.05, "c": 0.0}, "", {"a", "b"}),
        ({"a": 0.1, "b": 0.0, "c": 0.0005}, "b", {"a", "b"}),
        ({"a": 0.1, "b": 0.0005, "c": 0.0}, "c", {"a", "c"}),
    ],
    ids=["two do nothing", "one does nothing", "the idlest keeps a guard", "and the other way about"],
)
def test_what_does_nothing_goes_and_what_keeps_a_guard_stays_without_holding_the_rest(
    brings: dict[str, float], guarded: str, left: set[str]
) -> None:
    assert set(pruned(believing(brings, guarded), WHOLE)) == left


def test_one_that_brings_much_does_not_keep_others_that_the_model_took_for_idle_with_it() -> None:
    """Four runs: the whole, without all three, without the one that matters, without the other two."""
    model = believing({"a": 0.3, "b": 0.0, "c": 0.0, "d": 0.0})
    system = Exact({"a": 0.3, "b": 0.05, "c": 0.0, "d": 0.0})
    log = EvaluationLog(system, Budget(runs=20), (), lambda _stage: None)
    whole = dict.fromkeys("abcd", "1")
    assert set(ablate_exactly(model, log, whole, 4)) == {"a", "b"}
    assert len(log.observations) == 4
