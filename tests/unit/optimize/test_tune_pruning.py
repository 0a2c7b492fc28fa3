"""Knobs that are taken back from a configuration, by a model that says what each of them brings."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from tests.support.tuning_function import GOAL

from ktrial.model.tuning import Configuration
from ktrial.optimize.ablation import pruned
from ktrial.optimize.objective import ObjectiveFunction
from ktrial.optimize.surrogate.model import Surrogate

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
        ),
    )


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
