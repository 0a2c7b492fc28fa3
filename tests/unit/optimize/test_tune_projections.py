"""Two ranges that act by what they come to together have a projection where the runs speak for it."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.support.tuning import model_after

from ktrial.model.tuning import Configuration, Dimension, Range, Space
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.gaussian_process import Data, InputScaling, fit
from ktrial.optimize.response_model import Surrogate

NOISE = 0.03
SPACE = Space(
    dimensions=(
        Dimension(name="read", range=Range(low=0, high=100), default="30"),
        Dimension(name="mode", choices=("a", "b", "c"), default="a"),
        Dimension(name="write", range=Range(low=0, high=100), default="40"),
        Dimension(name="other", range=Range(low=0, high=100), default="50"),
    )
)
ENCODING = Encoding(SPACE)
Truth = Callable[[float, float], float]


def moved(configuration: Configuration, name: str) -> float:
    """From its default, in parts of the range."""
    return (float(SPACE.value(configuration, name)) - float(SPACE[name].default)) / 100


def learnt(truth: Truth, runs: int = 40, seed: int = 1) -> Surrogate:
    """A model of so many runs of random configurations, some of them the baseline."""
    rng = np.random.default_rng(seed)
    configurations = [ENCODING.draw(rng) if at % 8 else {} for at in range(runs)]

    def score(configuration: Configuration) -> float:
        return truth(moved(configuration, "read"), moved(configuration, "write"))

    return model_after(ENCODING, configurations, score, noise=NOISE, rng=rng)


def ridge(slope: float) -> Truth:
    """Both have to go along with each other, and further than they are."""

    def level(read: float, write: float) -> float:
        across, along = (write - slope * read) / 0.1, (read - 0.3) / 0.4
        return 0.3 * math.exp(-0.5 * across**2 - along**2)

    return level


@pytest.mark.parametrize("slope", [1.0, -1.0, 0.5])
def test_ranges_that_must_go_along_with_each_other_have_a_projection(slope: float) -> None:
    (projection,) = learnt(ridge(slope)).responses[0].frame.projections
    assert (projection.first, projection.second) == (0, 2)
    assert projection.slope == slope


@pytest.mark.parametrize(
    "truth",
    [
        lambda read, write: 0.0,
        lambda read, write: 0.3 * read - 0.2 * write,
        lambda read, write: 0.2 * math.exp(-(((read - 0.3) / 0.3) ** 2)) + 0.2 * (write > 0.2),
    ],
    ids=["nothing acts", "two slopes", "a hill and a step"],
)
@pytest.mark.parametrize("seed", range(3))
def test_ranges_that_act_by_themselves_have_none(truth: Truth, seed: int) -> None:
    assert learnt(truth, seed=seed).responses[0].frame.projections == ()


def test_with_the_projection_the_model_is_nearer_to_the_truth_than_without() -> None:
    process, rng = learnt(ridge(1.0)).responses[0], np.random.default_rng(7)
    frame = InputScaling(ENCODING)
    alone = Data(process.data.places[:, : len(SPACE.dimensions)], process.data.times, process.data.scores)
    asked = [ENCODING.draw(rng) for _ in range(300)]
    real = np.array([ridge(1.0)(moved(each, "read"), moved(each, "write")) for each in asked])
    real -= ridge(1.0)(0.0, 0.0)
    with_it, without = (each.mean(asked) - real for each in (process, fit(frame, alone, NOISE)))
    assert float((with_it**2).mean()) < 0.6 * float((without**2).mean())


def test_what_is_looked_up_for_thousands_is_what_the_process_says() -> None:
    model, rng = learnt(ridge(1.0)), np.random.default_rng(3)
    process, lattice = model.responses[0], model.lattice
    numbers = lattice.holding(lattice.drawn(rng, 50, at_default=0.3))
    configurations = [lattice.configuration(row) for row in numbers]
    mean, doubt = process.on(lattice.places).estimates(numbers)
    assert mean == pytest.approx(process.mean(configurations), abs=1e-9)
    assert doubt == pytest.approx(process.spread(configurations), abs=1e-6)


def test_both_ranges_move_to_the_best_where_neither_gains_alone() -> None:
    best = learnt(ridge(1.0)).best()
    assert ridge(1.0)(moved(best, "read"), moved(best, "write")) > 0.24
    assert ridge(1.0)(moved(best, "read"), 0.0) < 0.1


def test_a_later_fit_keeps_the_projection_that_the_runs_still_speak_for() -> None:
    model = learnt(ridge(1.0))
    before = model.responses[0].frame.projections
    model.learn(model.seen, quick=True)
    assert model.responses[0].frame.projections == before
    model.learn(model.seen)
    assert model.responses[0].frame.projections == before
