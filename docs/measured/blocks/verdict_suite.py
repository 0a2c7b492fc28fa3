"""docs/statistics.md: verdicts on the numbers of a hundred generators, beside other rules."""

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.pages import ROOT
from docs.measured.wording import decimal, prose, table
from tests.support.adversarial_noise import GENERATORS, effects
from tests.support.estimand_scores import AboutShares, judgeable, score_about
from tests.support.verdict_scores import (
    ASKED_FOR_POWER,
    LEAST_COVERAGE,
    LEAST_WARNED,
    MOST_FALSE,
    Shares,
    power_beside,
    score,
    worst,
)

from ktrial.model.comparison import Estimand

_STUDIES = 4000
_CODE = (
    "src/ktrial/stats/sequential",
    "src/ktrial/stats/resolution.py",
    "src/ktrial/stats/verdict_rules.py",
    "tests/support/adversarial_noise.py",
    "tests/support/verdict_scores.py",
    "tests/data/noise_traces.json",
)
_RULES = ("Welch", "Mann–Whitney", "criterion", "sequential t")
_WORST = """
**The worst of {count} generators**: *{name}*. There a difference is claimed that does not exist in
{false} ± {error} % of {studies} studies. In {holding} generators false differences and false equivalence
stay at or below 5.5 %, and the interval holds the truth in 94 % at least{warned}; in {beyond} they do not.
"""
_WARNED = "; in {count} more at least 90 % of the studies warn"


def _worst(measuring: Measuring) -> str:
    scores = _scores(measuring)
    (name, *_), beyond = worst(scores), _beyond(scores)
    warned = sum(bool(shares.beyond()) for shares in scores.values()) - len(beyond)
    return prose(
        _WORST,
        count=str(len(scores)),
        name=name,
        false=_percent(scores[name].false),
        error=_percent(scores[name].error(scores[name].false)),
        studies=f"{_STUDIES:,}",
        holding=str(len(scores) - len(beyond) - warned),
        warned=_WARNED.format(count=warned) if warned else "",
        beyond=str(len(beyond)) if beyond else "none",
    )


def _beyond(scores: Mapping[str, Shares]) -> list[str]:
    """Generators beyond a limit of which few studies warn."""
    return [name for name, shares in scores.items() if shares.beyond() and shares.warned < LEAST_WARNED]


def _of_beyond(measuring: Measuring) -> str:
    """Generators beyond a limit."""
    scores = _scores(measuring)
    rows = [
        [
            name,
            *(
                f"{_percent(share)} ± {_percent(shares.error(share))}"
                for share in (shares.false, shares.equivalent, shares.covered)
            ),
            f"{shares.warned * 100:.0f}",
            *(_percent(shares.others[rule][0]) for rule in _RULES),
        ]
        for name, shares in scores.items()
        if shares.beyond()
    ]
    heads = (
        "generator beyond a limit",
        "false difference",
        "false equivalence",
        "interval holds",
        "studies that warn",
    )
    return table((*heads, *(f"{rule}: false" for rule in _RULES)), rows, right=True)


def _families(measuring: Measuring) -> str:
    """The worst of each kind."""
    scores, rows = _scores(measuring), []
    for family in dict.fromkeys(generator.family for generator in GENERATORS.values()):
        of_family = [shares for name, shares in scores.items() if GENERATORS[name].family == family]
        rows.append(
            [
                f"{family} ({len(of_family)})",
                _percent(max(shares.false for shares in of_family)),
                _percent(max(shares.equivalent for shares in of_family)),
                _percent(min(shares.covered for shares in of_family)),
                *(_percent(max(shares.others[rule][0] for shares in of_family)) for rule in _RULES),
            ]
        )
    heads = ("kind (generators), the worst of it", "false difference", "false equivalence", "interval holds")
    return table((*heads, *(f"{rule}: false" for rule in _RULES)), rows, right=True)


def _all(measuring: Measuring) -> str:
    """Every generator."""
    rows = [
        [
            name,
            _percent(effects(name).typical),
            _percent(effects(name).total),
            _percent(shares.false),
            _percent(shares.equivalent),
            _percent(shares.covered),
            f"{shares.blocks:.0f}",
            f"{_percent(shares.found)} ({shares.blocks_to_find:.0f})",
            *(
                f"{_percent(false)}, {_percent(power)}"
                for false, power in (shares.others[rule] for rule in _RULES)
            ),
        ]
        for name, shares in _scores(measuring).items()
    ]
    heads = (
        "generator",
        "effect: typical",
        "in total",
        "false difference",
        "false equivalence",
        "interval holds",
        "blocks",
        "+2 % found (blocks)",
    )
    return table((*heads, *(f"{rule}: false, found" for rule in _RULES)), rows, right=True)


def _power(measuring: Measuring) -> str:
    """+2 % power, beside fixed numbers of runs."""

    def measured(name: str) -> tuple[float, dict[str, float]]:
        text = measuring.kept([*_key(), "power", name], lambda: json.dumps(power_beside(name, _STUDIES)))
        power, beside = json.loads(text)
        return power, beside

    rows = []
    for name in ASKED_FOR_POWER:
        power, beside = measured(name)
        rows.append([name, _percent(power), *(_percent(beside[rule]) for rule in _RULES[:-1])])
    heads = ("+2 % found", "ktrial, up to 60 blocks")
    return table((*heads, *(f"{rule}, 30 runs an arm" for rule in _RULES[:-1])), rows, right=True)


_BEYOND_ABOUT = """
**All trials, and the slow ones**, asked of the same generators where these have a value: verdicts on the tail
keep all limits in {tails} generators, and at most {tail} % of {studies} studies claim a false difference;
those on the total keep them in {totals} of {of_totals}, and break one in:
"""


def _about(measuring: Measuring) -> str:
    """Verdicts on all trials, and on the slow ones; rows for the generators beyond a limit."""
    tails, totals = (_of_estimand(measuring, estimand) for estimand in (Estimand.TAIL, Estimand.TOTAL))
    measuring.claim(not _broken(tails), "verdicts on the tail keep all limits")
    beyond = _broken(totals)
    text = prose(
        _BEYOND_ABOUT,
        tails=str(len(tails)),
        tail=_percent(max(shares.false for shares in tails.values())),
        studies=f"{_STUDIES:,}",
        totals=str(len(totals) - len(beyond)),
        of_totals=str(len(totals)),
    )
    rows = [
        [
            name,
            *(
                f"{_percent(share)} ± {_percent(math.sqrt(share * (1 - share) / shares.studies))}"
                for share in (shares.false, shares.covered)
            ),
        ]
        for name, shares in beyond.items()
    ]
    heads = ("verdicts on the total beyond a limit", "false difference", "interval holds")
    return f"{text}\n{table(heads, rows, right=True)}"


def _broken(scores: Mapping[str, AboutShares]) -> dict[str, AboutShares]:
    return {
        name: shares
        for name, shares in scores.items()
        if shares.false > MOST_FALSE or shares.covered < LEAST_COVERAGE
    }


def _of_estimand(measuring: Measuring, estimand: Estimand) -> dict[str, AboutShares]:
    digest = sha256((ROOT / "tests/support/estimand_scores.py").read_bytes()).hexdigest()

    def measured(name: str) -> AboutShares:
        key = [*_key(), digest, estimand.value, name]
        text = measuring.kept(key, lambda: json.dumps(vars(score_about(name, estimand, _STUDIES))))
        return AboutShares(**json.loads(text))

    return {name: measured(name) for name in judgeable(estimand)}


def _scores(measuring: Measuring) -> dict[str, Shares]:
    def measured(name: str) -> Shares:
        text = measuring.kept([*_key(), name], lambda: json.dumps(vars(score(name, _STUDIES, others=True))))
        fields: dict[str, Any] = json.loads(text)
        return Shares(**fields)

    return {name: measured(name) for name in GENERATORS}


def _key() -> list[object]:
    """All that scores depend on."""
    digest = sha256()
    for place in _CODE:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return ["verdict suite", _STUDIES, digest.hexdigest()]


def _percent(share: float) -> str:
    return decimal(share * 100, 1) if math.isfinite(share) else "–"


BLOCKS = (
    Block("verdict-suite-worst", "docs/statistics.md", _worst, simulated=True),
    Block("verdict-suite-beyond", "docs/statistics.md", _of_beyond, simulated=True),
    Block("verdict-suite-kinds", "docs/statistics.md", _families, simulated=True),
    Block("verdict-suite-power", "docs/statistics.md", _power, simulated=True),
    Block("verdict-suite-estimands", "docs/statistics.md", _about, simulated=True),
    Block("verdict-suite", "docs/statistics.md", _all, simulated=True),
)
