"""The search of a series, against versions whose numbers a test chose."""

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.planted_causes import FORK, MARGIN

from ktrial.bisect.decision import ExactJudge, Memory, Numbers
from ktrial.bisect.versions import ChainSearch, step_caution


@dataclass
class Series:
    values: list[float | None]
    measured: list[int] = field(default_factory=list)

    def measure(self, candidate: int) -> Numbers | None:
        self.measured.append(candidate)
        value = self.values[candidate]
        return None if value is None else {FORK: {0: value}}


def _searched(series: Series) -> ChainSearch:
    judge: ExactJudge[int] = ExactJudge(FORK, Memory(series), MARGIN)
    search = ChainSearch(len(series.values) - 1, judge)
    search.run()
    return search


def _steps(search: ChainSearch) -> list[tuple[int, int]]:
    return [(change.before, change.after) for change in search.changes]


@given(st.integers(1, 200), st.data())
def test_one_change_is_found_in_the_logarithm_of_the_places(last: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, last))
    series = Series([100.0 if place < at else 104.0 for place in range(last + 1)])
    assert _steps(_searched(series)) == [(at - 1, at)]
    assert len(series.measured) <= math.ceil(math.log2(last)) + 2 if last > 1 else True


@given(st.data())
def test_every_change_in_one_direction_is_found(data: st.DataObject) -> None:
    last = data.draw(st.integers(3, 100))
    at = data.draw(st.sets(st.integers(1, last), min_size=1, max_size=3))
    values, value = [], 100.0
    for place in range(last + 1):
        value *= 1.05 if place in at else 1.0
        values.append(value)
    assert _steps(_searched(Series(list(values)))) == [(place - 1, place) for place in sorted(at)]


@given(st.data())
def test_places_that_cannot_be_measured_widen_the_answer_and_no_more(data: st.DataObject) -> None:
    last = data.draw(st.integers(3, 60))
    at = data.draw(st.integers(1, last))
    gone = data.draw(st.sets(st.integers(1, last - 1), max_size=last // 2))
    values = [None if place in gone else 100.0 if place < at else 110.0 for place in range(last + 1)]
    (step,) = _steps(_searched(Series(values)))
    resolved = [place for place in range(last + 1) if place not in gone]
    assert step == (
        max(place for place in resolved if place < at),
        min(place for place in resolved if place >= at),
    )


def test_a_slow_drift_is_no_step() -> None:
    search = _searched(Series([100 * 1.004**place for place in range(21)]))
    assert not search.changes
    assert search.gradual


def test_equal_ends_are_not_looked_between() -> None:
    series = Series([100.0, 120.0, 100.0])
    assert not _searched(series).changes
    assert series.measured == [0, 2]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("debian:6.1.0-56-cloud-amd64", "debian:6.12.43+deb12-cloud-amd64", "all commits from 6.1 to 6.12"),
        ("debian:6.12.90+deb12-cloud-amd64", "debian:6.12.90+deb13-cloud-amd64", "Debian 12 and 13"),
        ("debian:6.12.43+deb12-cloud-amd64", "debian:6.12.57+deb12-cloud-amd64", ""),
        ("debian:6.1.0-55-cloud-amd64", "debian:6.1.0-56-cloud-amd64", ""),
    ],
)
def test_a_step_that_holds_more_than_a_stable_update_says_so(before: str, after: str, words: str) -> None:
    caution = step_caution(before, after)
    assert words in caution if words else not caution
