"""docs/tune.md: what an oracle reaches with as many noisy runs."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import decimal, table
from tests.support.tuning_families import at_idle, decided, known

_MOST_IDLE = (2.0, 1.0, 0.5, 0.25)
_RUNS = {49: "49 runs for the search (and 12 to confirm)", 61: "61 runs (nothing is confirmed)"}


def _frontier(measuring: Measuring) -> str:
    """The oracle of tests/support/tuning_families.py."""
    del measuring
    rows = []
    for runs, shown in _RUNS.items():
        knowledge = known(runs)
        free = decided(knowledge, 0.0)
        points = [free, *(at_idle(knowledge, most) for most in _MOST_IDLE)]
        cells = [f"{decimal(100 * each.regret, 2)} %" for each in points]
        rows.append([shown, f"{cells[0]} ({decimal(free.idle, 1)} idle)", *cells[1:]])
    heads = ("what the oracle has", "whatever is idle", *(f"at most {most:g} idle" for most in _MOST_IDLE))
    return table(heads, rows)


BLOCKS = (Block("tune-frontier", "docs/tune.md", _frontier, simulated=True),)
