"""docs/tune.md: what simulated searches find, beside Optuna's TPE alone and random search."""

import statistics

from bench.subjects.tune import Beside, Found, at_once, on_family, search
from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.wording import decimal, table
from tests.support.tuning import best

_SEARCHES, _FUNCTIONS = 20, 30
_COUNTS, _FUNCTIONS_AT_ONCE = (1, 2, 4), 6
_NAMES = {"ktrial": "ktrial", "tpe": "TPE alone", "random": "random search"}
_FAMILIES = {
    "together": "two knobs that act only together",
    "ranges": "two ranges, the best inside",
    "valley": "narrow valley, a knob that acts only beside a choice",
    "limited": "choice and wide range, with an active limit",
    "many": "several small effects",
    "idle": "nothing acts",
}


def _formula(measuring: Measuring) -> str:
    """Regret on the formula of tests/support/tuning.py."""
    del measuring
    rows = []
    for noise in (0.02, 0.05):
        for name, shown in _NAMES.items():
            searches = [search(name, seed, noise) for seed in range(1, _SEARCHES + 1)]
            rows.append([f"noise {100 * noise:.0f} %: {shown}", *_cells(searches)])
    heads = (f"{_SEARCHES} searches of 65 runs", "median regret", "mean regret", "overstated by")
    return table((*heads, "interval holds the truth", "no gain"), rows)


def _cells(searches: list[Found]) -> list[str]:
    optimum = best()[1]
    regrets = [optimum - each.true for each in searches]
    told = [each.covers for each in searches if each.covers is not None]
    return [
        f"{decimal(100 * statistics.median(regrets), 1)} %",
        f"{decimal(100 * statistics.fmean(regrets), 1)} %",
        f"{decimal(100 * statistics.median(each.reported - each.true for each in searches), 1)} points",
        f"{sum(told)} of {len(told)}" if told else "–",
        str(sum(not each.gain for each in searches)),
    ]


def _families(measuring: Measuring) -> str:
    """Regret on the random functions of tests/support/tuning_families.py."""
    del measuring
    rows = []
    for family, shown in _FAMILIES.items():
        scores = on_family(family, _FUNCTIONS)
        rows.append(
            [
                shown,
                _with_error(scores.ours, scores.ours_error),
                f"{_with_error(scores.again, scores.again_error)} ({scores.gained})",
                _with_error(scores.tpe, scores.tpe_error),
                decimal(scores.idle, 1),
                str(scores.none),
                f"{scores.hold} of {scores.intervals}",
                _beside(scores.plain),
            ]
        )
    again = "with `ktrial tune revalidate` (answers more)"
    heads = ("family", "ktrial: mean regret", again, "TPE alone", "idle knobs in an answer", "no gain")
    plain = "of plain gains: regret, and more than TPE alone"
    return table((*heads, "intervals that hold the truth", plain), rows)


def _beside(plain: Beside) -> str:
    """Where the best gain is plain; of a single function there is no standard error."""
    if plain.functions < 2:
        return "–"
    more = f"{decimal(100 * plain.more, 1)} ± {decimal(100 * plain.more_error, 1)} points"
    return f"{decimal(100 * plain.ours, 1)} %, {more} ({plain.functions})"


def _at_once(measuring: Measuring) -> str:
    """Regret of searches that ask for several points at a time."""
    del measuring
    rows = []
    for count, scored in at_once(_FUNCTIONS_AT_ONCE, _COUNTS).items():
        more = f"{decimal(100 * scored.more, 1)} ± {decimal(100 * scored.more_error, 1)} points"
        rows.append([str(count), _with_error(scored.regret, scored.error), "–" if count == 1 else more])
    return table(("points at once", "mean regret", "more than one at a time"), rows)


def _with_error(mean: float, error: float) -> str:
    return f"{decimal(100 * mean, 1)} ± {decimal(100 * error, 1)} %"


BLOCKS = (
    Block("tune-formula", "docs/tune.md", _formula, simulated=True),
    Block("tune-families", "docs/tune.md", _families, simulated=True),
    Block("tune-at-once", "docs/tune.md", _at_once, simulated=True),
)
