"""How verdicts fare on the numbers of a hundred generators, beside four other rules; and what ktrial's costs
where blocks are independent and normal, for which a plain t test would do.
"""

import math
from collections.abc import Iterator

import numpy as np
from rich.table import Table
from tests.support.adversarial_noise import GENERATORS, effects
from tests.support.noise_models import independent
from tests.support.rival_rules import SLOTS, ktrial, plain_t
from tests.support.verdict_scores import ASKED_FOR_POWER, Shares, power_beside, score

from bench.row import Row, seconds
from ktrial.stats.sequential.design import SequentialDesign

STUDIES = 500
OF_THE_PRICE = 10_000
"""So that the standard error of 5 % is 0.22 %."""
LONGEST = 240.0
"""Seconds for all tables."""
FEW = (6, 10, 20, 40)


def rows() -> Iterator[Row]:
    """How long the simulations take."""
    took = seconds(lambda: list(tables()))
    yield Row(
        f"{STUDIES} simulated studies of {len(GENERATORS)} generators, 5 rules", took, most_seconds=LONGEST
    )


def tables() -> Iterator[Table]:
    """The suite, power beside fixed numbers of runs, and the price."""
    yield _suite()
    yield _power()
    yield _price()


def _suite() -> Table:
    drawn = Table(
        *("generator", "typical", "total", "false", "equivalent", "covered", "blocks", "found"),
        "others: false, found",
        title=f"{STUDIES} studies each",
    )
    for name in GENERATORS:
        shares, effect = score(name, STUDIES, others=True), effects(name)
        drawn.add_row(name, _percent(effect.typical), _percent(effect.total), *_cells(shares))
    return drawn


def _cells(shares: Shares) -> tuple[str, ...]:
    beyond = f"; warned in {shares.warned * 100:.0f} %" if shares.beyond() else ""
    others = ", ".join(
        f"{rule} {_percent(false)} {_percent(power)}" for rule, (false, power) in shares.others.items()
    )
    return (
        _percent(shares.false) + beyond,
        _percent(shares.equivalent),
        _percent(shares.covered),
        f"{shares.blocks:.0f}",
        f"{_percent(shares.found)} ({shares.blocks_to_find:.0f})",
        others,
    )


def _power() -> Table:
    drawn = Table("generator", "ktrial, 60 blocks at most", "30 runs an arm", title="+2 %: found")
    for name in ASKED_FOR_POWER:
        power, beside = power_beside(name, STUDIES)
        drawn.add_row(
            name, _percent(power), ", ".join(f"{rule} {_percent(share)}" for rule, share in beside.items())
        )
    return drawn


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %" if math.isfinite(share) else "–"


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
                noise = independent(rng, OF_THE_PRICE, 2 * (looks or SLOTS // 2))
                claims = rule(noise, math.log1p(effect), rng, design)
                average = "" if looks else f" ({claims.runs.mean() / 2:.0f})"
                cells.append(f"{claims.found_it_above * 100:.1f} %{average}")
        drawn.add_row(f"{effect * 100:g} %", *cells)
    return drawn
