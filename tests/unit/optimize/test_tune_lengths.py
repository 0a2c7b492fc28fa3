"""A range that was run at one end again and again: what the likeliest length is sure of, a shorter one is
not, and there the search looks as well."""

import numpy as np
import pytest
from scipy import stats
from tests.support.tuning import model_after
from tests.support.tuning_families import problem

from ktrial.model.tuning import Budget, Configuration, Dimension, Purpose, Range, Space
from ktrial.optimize import tune
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.response_model import Surrogate

NOISE = 0.02
SPACE = Space(
    dimensions=(
        Dimension(name="queue", range=Range(low=0, high=100), default="20"),
        Dimension(name="mode", choices=("a", "b"), default="a"),
    )
)
PLACES = {"0": 3, "20": 4, "40": 2, "100": 16}
"""Values of the range, and how often each was run."""


def learnt(seed: int) -> Surrogate:
    """After these runs: the end of the range brings 3 %, the best lies inside."""
    tried = [
        {} if value == "20" else {"queue": value} for value, count in PLACES.items() for _ in range(count)
    ]

    def gain(configuration: Configuration) -> float:
        return 0.03 * (float(configuration.get("queue", "20")) - 20) / 80

    return model_after(Encoding(SPACE), tried, gain, noise=NOISE, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(4))
def test_with_shorter_lengths_less_is_known_between_runs_and_as_much_where_they_are(seed: int) -> None:
    model = learnt(seed)
    rough = model.rougher()
    between, run = [{"queue": "70"}], [{"queue": "100"}]
    assert rough.spread(between)[0] > 1.15 * model.spread(between)[0]
    assert rough.spread(run)[0] == pytest.approx(model.spread(run)[0], rel=0.2)
    assert rough.gains(run)[0] == pytest.approx(model.gains(run)[0], abs=0.5 * NOISE)


def test_the_model_itself_stays_as_it_is() -> None:
    model = learnt(1)
    before = model.gains([{"queue": "70"}])[0], model.responses
    model.rougher().learn(model.seen[:20])
    assert (model.gains([{"queue": "70"}])[0], model.responses) == before
    assert len(model.seen) == sum(PLACES.values())


def test_with_shorter_lengths_the_best_may_lie_inside_where_the_likeliest_is_sure_of_the_end() -> None:
    def chance(model: Surrogate) -> float:
        """Of a percent more at 70 than at the end."""
        mean, deviation = model.responses[0].contrast([{"queue": "70"}, {"queue": "100"}], [1.0, -1.0])
        return float(stats.norm.sf(0.01, mean, deviation))

    models = [learnt(seed) for seed in range(8)]
    assert max(map(chance, models)) < 0.15
    assert float(np.mean([chance(each.rougher()) for each in models])) > 0.15


@pytest.mark.nightly
def test_a_search_asks_it_for_some_of_its_contenders(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = Surrogate.rougher

    def rougher(model: Surrogate) -> Surrogate:
        asked.append(len(model.seen))
        return plain(model)

    monkeypatch.setattr(Surrogate, "rougher", rougher)
    each = problem("ranges", 1)
    tuned = tune(each.space, each.goal, Budget(runs=40), each, 1)
    contenders = [one.order for one in tuned.observations if one.purpose is Purpose.CONTEND]
    assert 2 <= len(asked) <= len(contenders) / 3
    assert set(asked) <= set(contenders)
