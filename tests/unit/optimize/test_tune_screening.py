"""Which knobs of the best are left out, to see what they do."""

import numpy as np
from tests.support.tuning import model_after

from ktrial.model.tuning import Configuration, Dimension, Space
from ktrial.optimize.encoding import Encoding
from ktrial.optimize.exploration import Covering, Screening
from ktrial.optimize.response_model import Surrogate

NAMES = ("sure", "seen", "never", "idle")
SPACE = Space(dimensions=tuple(Dimension(name=name, choices=("0", "1"), default="0") for name in NAMES))
ENCODING = Encoding(SPACE)
WHOLE = dict.fromkeys(NAMES, "1")
NOISE = 0.03


def model_of(configurations: list[Configuration]) -> Surrogate:
    """After these runs, where the first knob gains 30 % and the rest do nothing."""
    rng = np.random.default_rng(5)
    return model_after(ENCODING, configurations, lambda each: 0.3 * ("sure" in each), noise=NOISE, rng=rng)


def left_out(model: Surrogate, times: int = 20) -> dict[str, int]:
    """How often each knob was, of so many rows."""
    rng = np.random.default_rng(2)
    screening = Screening(ENCODING, Covering(ENCODING, rng), rng)
    rows = [screening.doubted(model, WHOLE) for _ in range(times)]
    return {name: sum(name not in row for row in rows) for name in NAMES}


def without(*names: str) -> Configuration:
    return {name: "1" for name in NAMES if name not in names}


def test_what_is_certain_of_the_best_stays() -> None:
    model = model_of(
        [{}, WHOLE, without("sure"), without("seen"), without("idle"), without("seen", "idle")] * 4
    )
    assert left_out(model)["sure"] == 0


def test_what_was_never_tried_apart_is_left_out_or_kept_apart_from_the_rest() -> None:
    """`sure` and `never` were in the same runs only: one run without either tells which of them it was."""
    model = model_of([{}, WHOLE, without("sure", "never"), without("seen"), without("idle")] * 5)
    times = left_out(model)
    assert times["sure"] + times["never"] > times["seen"]


def test_where_nothing_is_known_of_the_best_any_configuration_is_run() -> None:
    model = model_of([{}] * 6)
    rows = left_out(model)
    assert all(0 < count < 20 for count in rows.values())
