"""How often four rules tell apart what is the same, and find what differs by 1 %, on the same noise; and what
ktrial's costs where blocks are independent and normal, for which a plain t test would do.
"""

import math
from collections.abc import Iterator

import numpy as np
from rich.table import Table
from tests.support.noise_models import MODELS, Noise, independent
from tests.support.rival_rules import SLOTS, Verdicts, ktrial, phoronix, plain_t, ten_runs_and_welch

from bench.row import Row, seconds
from ktrial.stats.sequential.design import SequentialDesign

STUDIES = 10_000
"""So that the standard error of 5 % is 0.22 %."""
EFFECT = math.log(1.01)
LONGEST = 120.0
"""Seconds for all models."""
FEW = (6, 10, 20, 40)


def rows() -> Iterator[Row]:
    """How long the simulations take."""
    took = seconds(lambda: list(tables()))
    yield Row(
        f"{STUDIES} simulated studies, {len(MODELS)} noise models, 4 rules, twice", took, most_seconds=LONGEST
    )


def tables() -> Iterator[Table]:
    """False verdicts, and how often a real difference is found; with the runs that it took."""
    for title, effect in (
        ("the same kernel twice: a difference is claimed", 0.0),
        ("1 % better: found", EFFECT),
    ):
        drawn = Table(
            "noise",
            "ktrial",
            "the same looks, plain t",
            "Phoronix, the larger number",
            "ten runs each, Welch",
            title=title,
        )
        for name, model in MODELS.items():
            rng = np.random.default_rng(1)
            noise = model(rng, STUDIES, SLOTS)
            drawn.add_row(name, *(_cell(verdicts, effect) for verdicts in _all(noise, effect, rng)))
        yield drawn
    yield _one_look()
    yield _price()


def _one_look() -> Table:
    """The level at one look, and of false equivalence at an effect of the margin's size."""
    drawn = Table(
        "noise", *(f"{blocks} blocks" for blocks in FEW), "equivalent at 1 %", title="false claims of ktrial"
    )
    for name, model in MODELS.items():
        rng = np.random.default_rng(2)
        shares = []
        for blocks in FEW:
            noise = model(rng, STUDIES, 2 * blocks)
            once = SequentialDesign(margin=1e-9, looks=(blocks,))
            shares.append(ktrial(noise, 0.0, rng, once).found_a_difference)
        at_margin = ktrial(model(rng, STUDIES, SLOTS), EFFECT, rng, SequentialDesign(margin=0.01)).equivalent
        shares.append(0.0 if at_margin is None else float(at_margin.mean()))
        drawn.add_row(name, *(f"{share * 100:.1f} %" for share in shares))
    return drawn


def _price() -> Table:
    """Found, and blocks on average, of independent normal blocks: trials with a standard deviation of 1 %."""
    drawn = Table(
        "effect",
        *(f"{rule}, {looks}" for looks in ("all looks", *FEW) for rule in ("plain t", "ktrial")),
        title="price: found (blocks on average)",
    )
    for effect in (0.005, 0.01, 0.02, 0.05, 0.1):
        cells = []
        for looks in (None, *FEW):
            design = SequentialDesign(margin=0.01, looks=(looks,)) if looks else SequentialDesign(margin=0.01)
            for rule in (plain_t, ktrial):
                rng = np.random.default_rng(3)
                claims = rule(
                    independent(rng, STUDIES, 2 * (looks or SLOTS // 2)), math.log1p(effect), rng, design
                )
                cells.append(
                    f"{claims.found_it_above * 100:.1f} %"
                    + ("" if looks else f" ({claims.runs.mean() / 2:.0f})")
                )
        drawn.add_row(f"{effect * 100:g} %", *cells)
    return drawn


def _all(noise: Noise, effect: float, rng: np.random.Generator) -> tuple[Verdicts, ...]:
    return (
        ktrial(noise, effect, rng, SequentialDesign(margin=0.01)),
        plain_t(noise, effect, rng, SequentialDesign(margin=0.01)),
        phoronix(noise, effect),
        ten_runs_and_welch(noise, effect),
    )


def _cell(verdicts: Verdicts, effect: float) -> str:
    share = verdicts.found_it_above if effect else verdicts.found_a_difference
    return f"{share * 100:5.1f} %  ({verdicts.runs.mean():.0f} runs)"
