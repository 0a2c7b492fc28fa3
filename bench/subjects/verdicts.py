"""How often three rules tell apart what is the same, and find what differs by 1 %, on the same noise."""

import math
from collections.abc import Iterator

import numpy as np
from rich.table import Table
from tests.support.noise_models import MODELS, Noise
from tests.support.rival_rules import SLOTS, Verdicts, ktrial, phoronix, ten_runs_and_welch

from bench.row import Row, seconds
from ktrial.stats.sequential import SequentialDesign

STUDIES = 2000
EFFECT = math.log(1.01)
LONGEST = 5.0
"""Seconds for all six models."""


def rows() -> Iterator[Row]:
    """How long the simulations take."""
    took = seconds(lambda: list(tables()))
    yield Row(f"{STUDIES} simulated studies, 6 noise models, 3 rules, twice", took, most_seconds=LONGEST)


def tables() -> Iterator[Table]:
    """False verdicts, and how often a real difference is found; with the runs that it took."""
    for title, effect in (
        ("the same kernel twice: a difference is claimed", 0.0),
        ("1 % better: found", EFFECT),
    ):
        drawn = Table(
            "noise", "ktrial, blocks", "Phoronix, the larger number", "ten runs each, Welch", title=title
        )
        for name, model in MODELS.items():
            rng = np.random.default_rng(1)
            noise = model(rng, STUDIES, SLOTS)
            drawn.add_row(name, *(_cell(verdicts, effect) for verdicts in _all(noise, effect, rng)))
        yield drawn


def _all(noise: Noise, effect: float, rng: np.random.Generator) -> tuple[Verdicts, ...]:
    return (
        ktrial(noise, effect, rng, SequentialDesign(margin=0.01)),
        phoronix(noise, effect),
        ten_runs_and_welch(noise, effect),
    )


def _cell(verdicts: Verdicts, effect: float) -> str:
    share = verdicts.found_it_above if effect else verdicts.found_a_difference
    return f"{share * 100:5.1f} %  ({verdicts.runs.mean():.0f} runs)"
