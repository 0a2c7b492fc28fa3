"""Must hold: over a hundred ways in which numbers scatter, most of them not ktrial's own, verdicts keep their
levels, or say what is odd about the numbers. docs/statistics.md has the table of 4,000 studies each.
"""

import json
import math

import numpy as np
import pytest
from scipy import stats
from tests.support.adversarial_noise import GENERATORS, effects
from tests.support.places import DATA
from tests.support.runs_of_tests import at_night
from tests.support.verdict_scores import (
    LEAST_WARNED,
    OTHERS,
    score,
)

from ktrial.stats.sequential.design import SequentialDesign

STUDIES = 200
NIGHTLY = 4000
CHANCE = 3.5
"""Standard errors by which a share may be beyond its limit: once in 4,000 times."""
_FAMILIES = {generator.family: name for name, generator in GENERATORS.items()}
BY_DAY = {*_FAMILIES.values(), *list(GENERATORS)[::5]}
"""One of each family, and every fifth."""
BEYOND = frozenset(
    {
        "boots: ten blocks a boot, the arms' own",
        "modes: modes that stay (0.9)",
        "memory: AR 0.3, 0.3",
        "memory: wandering",
    }
)
"""Generators of which a limit is known not to hold, and few studies warn; the documentation names them."""


def test_there_are_a_hundred_generators_of_many_kinds() -> None:
    assert len(GENERATORS) >= 100
    assert len({generator.family for generator in GENERATORS.values()}) >= 10


def test_every_trace_names_its_source_and_its_licence() -> None:
    for trace in json.loads((DATA / "noise_traces.json").read_text()).values():
        assert all(trace[key] for key in ("source", "licence", "unit", "about"))


@pytest.mark.parametrize("name", [name if name in BY_DAY else at_night(name) for name in GENERATORS])
def test_levels_and_coverage_hold_or_the_study_says_what_is_odd(name: str) -> None:
    shares = score(name, STUDIES)
    holds = not shares.beyond(CHANCE) or shares.warned >= LEAST_WARNED or name in BEYOND
    assert holds, (shares.beyond(CHANCE), shares)


@pytest.mark.nightly
@pytest.mark.parametrize("name", GENERATORS)
def test_they_hold_in_four_thousand_studies(name: str) -> None:
    shares = score(name, NIGHTLY)
    holds = not shares.beyond(CHANCE) or shares.warned >= LEAST_WARNED
    assert holds == (name not in BEYOND), (shares.beyond(CHANCE), shares)


def test_a_rule_that_claims_too_much_is_found_out() -> None:
    """With an error of 30 % in place of 5 %: the suite can fail."""
    careless = SequentialDesign(margin=0.01, alpha=0.3)
    shares = score("scipy: norm, independent by design", 1000, design=careless)
    assert {"false differences", "coverage"} <= set(shares.beyond(CHANCE))


@pytest.mark.parametrize(
    ("name", "typical", "total", "within"),
    [
        # The pairs of blocks without a spike, with one and with two are 0.81, 0.18 and 0.01 of all.
        ("one arm's tail: +100 % in 10 %", 0.01 * float(stats.norm.ppf(0.5 / 0.81)), math.log(1.1), 3e-4),
        ("one arm's tail: +50 % in 10 %", 0.01 * float(stats.norm.ppf(0.5 / 0.81)), math.log(1.05), 3e-4),
        (
            "one arm's tail: +100 % in 2 %, sd 0.2 %",
            0.002 * float(stats.norm.ppf(0.5 / 0.9604)),
            math.log(1.02),
            3e-4,
        ),
        ("unequal noise: 10 times", 0.0, 0.1**2 / 2 - 0.01**2 / 2, 2e-3),
        ("scipy: cauchy", 0.0, 0.0, 0.0),
    ],
)
def test_effects_are_what_can_be_worked_out(name: str, typical: float, total: float, within: float) -> None:
    """In a pair without a spike the mean of two log ratios of four trials has one trial's spread."""
    assert effects(name).typical == pytest.approx(typical, abs=within)
    assert effects(name).total == pytest.approx(total, abs=max(2e-3, within))


def test_the_other_rules_are_those_of_scipy() -> None:
    rng = np.random.default_rng(8)
    arms = rng.standard_normal((200, 25)), 0.6 + 1.5 * rng.standard_normal((200, 25))
    by_t = stats.ttest_ind(*arms[::-1], axis=1, equal_var=False)
    by_rank = stats.mannwhitneyu(*arms[::-1], axis=1, method="asymptotic")
    assert np.array_equal(OTHERS["Welch"](*arms) != 0, by_t.pvalue < 0.05)
    assert np.array_equal(OTHERS["Mann–Whitney"](*arms) != 0, by_rank.pvalue < 0.05)
    assert np.array_equal(np.sign(by_t.statistic) * (by_t.pvalue < 0.05), OTHERS["Welch"](*arms))


@pytest.mark.parametrize("rule", OTHERS)
def test_the_other_rules_hold_their_level_where_numbers_are_normal(rule: str) -> None:
    rng = np.random.default_rng(9)
    claimed = OTHERS[rule](rng.standard_normal((500, 20)), rng.standard_normal((500, 20)))
    assert float((claimed != 0).mean()) == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 500))
