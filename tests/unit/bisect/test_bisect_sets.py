"""The search for sets, against a builder that builds nothing: it finds what was planted, and counts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.planted_causes import FORK, MARGIN, PIPE, Planted, fork_only, searched

from ktrial.bisect.search import MOST_MEMBERS, Items, Subset, ddmin


def _sets(search: object) -> list[set[int]]:
    return [set(cause.members) for cause in search.causes]  # type: ignore[attr-defined]


def most_builds(count: int) -> float:
    """What issue 5 allows for a single cause, A and B among them."""
    return 2 * math.log2(count) + 6


@pytest.mark.parametrize("count", [60, 64, 65, 100, 128, 200])
def test_a_single_cause_is_found_within_the_bound_wherever_it_stands(count: int) -> None:
    for planted in range(count):
        builder = fork_only(({planted}, 1.05))
        search = searched(builder, count)
        assert _sets(search) == [{planted}]
        assert not search.unexplained
        assert not search.alternatives
        assert len(builder.built) <= math.ceil(math.log2(count)) + 4 <= most_builds(count)


def test_no_candidate_is_built_twice() -> None:
    builder = fork_only(({7, 50}, 1.2), ({30}, 1.1))
    searched(builder, 80)
    assert len(builder.built) == len(set(builder.built))


@given(st.data())
def test_a_planted_set_that_only_matters_together_is_found(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 200))
    size = data.draw(st.integers(1, min(4, count)))
    planted = data.draw(st.sets(st.integers(0, count - 1), min_size=size, max_size=size))
    builder = fork_only((planted, data.draw(st.sampled_from([0.5, 0.9, 1.03, 1.5]))))
    search = searched(builder, count)
    assert _sets(search) == [planted]
    most_each = math.ceil(math.log2(count)) + 1
    assert len(builder.built) <= size * most_each + 3 * size * size + 4


@given(st.data())
def test_independent_causes_are_all_found(data: st.DataObject) -> None:
    """Each carries a part: two that are as large would do for each other's half, so both are named."""
    count = data.draw(st.integers(4, 200))
    places = data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=3, unique=True))
    factors = data.draw(
        st.lists(st.sampled_from([1.03, 1.05, 1.09, 1.2]), min_size=len(places), max_size=len(places))
    )
    search = searched(fork_only(*(({at}, factor) for at, factor in zip(places, factors, strict=True))), count)
    assert search.found == set(places)
    assert not search.unexplained


@given(st.data())
def test_what_it_ends_with_shows_and_is_minimal_even_where_answers_are_not_monotone(
    data: st.DataObject,
) -> None:
    """Random answers: a set counts only by what was measured of it."""
    count = data.draw(st.integers(2, 24))
    seed = data.draw(st.integers(0, 10_000))
    everything = frozenset(range(count))

    class Wild(Planted):
        def factor(self, target: object, candidate: Subset) -> float:
            if candidate in (frozenset(), everything):
                return 1.1 if candidate else 1.0
            return 1.1 if hash((seed, *sorted(candidate))) % 3 == 0 else 1.0

    builder = Wild({FORK: {}})
    search = searched(builder, count)
    assert search.causes
    cause = search.causes[0]
    assert builder.factor(FORK, cause.items) > 1 + MARGIN
    for member in cause.members if len(cause.members) > 1 else ():
        assert builder.factor(FORK, cause.items - {member}) == 1.0


@given(st.data())
def test_candidates_that_cannot_be_built_do_not_hide_the_cause(data: st.DataObject) -> None:
    """An item that does not build without another one, though nobody said so beforehand."""
    count = data.draw(st.integers(4, 100))
    planted, broken, partner = data.draw(
        st.lists(st.integers(0, count - 1), min_size=3, max_size=3, unique=True)
    )
    builder = fork_only(({planted}, 1.05))
    builder.resolves = lambda subset: broken not in subset or partner in subset
    search = searched(builder, count)
    assert _sets(search) == [{planted}]
    builder = fork_only(({broken}, 1.05))
    builder.resolves = lambda subset: broken not in subset or partner in subset
    assert _sets(searched(builder, count)) == [{broken, partner}]


def test_opposite_causes_are_both_found() -> None:
    search = searched(fork_only(({3}, 1.2), ({40}, 0.9)), 64)
    assert search.found == {3, 40}
    assert not search.unexplained


def test_two_causes_each_for_a_target_of_its_own() -> None:
    planted = Planted({FORK: {frozenset({3}): 1.2}, PIPE: {frozenset({60}): 0.8}})
    search = searched(planted, 64)
    assert [(set(cause.members), cause.target) for cause in search.causes] == [({3}, FORK), ({60}, PIPE)]


def test_one_cause_for_two_targets_is_searched_for_once() -> None:
    planted = Planted({FORK: {frozenset({3}): 1.2}, PIPE: {frozenset({3}): 1.1}})
    assert _sets(searched(planted, 64)) == [{3}]
    assert len(planted.built) <= 6 + 4


def test_where_nothing_differs_there_is_no_cause() -> None:
    planted = fork_only(({3}, 1.005))
    assert _sets(searched(planted, 64)) == []
    assert len(planted.built) == 2


def test_a_cause_that_another_item_would_do_for_is_told_with_it() -> None:
    class Either(Planted):
        def factor(self, target: object, candidate: Subset) -> float:
            return 1.1 if candidate & {5, 40} else 1.0

    search = searched(Either({FORK: {}}), 64)
    assert _sets(search) == [{5}]
    assert [set(alternative.members) for alternative in search.alternatives] == [{40}]


def test_a_difference_that_many_items_share_ends_with_what_is_left() -> None:
    """Ten steps of half the margin each: beyond the margin together, and never alone."""
    planted = fork_only(*(({item * 6}, 1 + MARGIN / 2) for item in range(10)))
    search = searched(planted, 64)
    left = planted.factor(FORK, frozenset(range(64))) / planted.factor(FORK, search.found)
    assert left <= 1 + MARGIN
    assert all(len(cause.members) <= MOST_MEMBERS for cause in search.causes)


def test_at_the_limit_it_ends_with_what_is_known() -> None:
    planted = fork_only(({7, 50}, 1.2), ({30}, 1.1))
    search = searched(planted, 80, limit=11)
    assert len(planted.built) == 11
    assert "as many candidates" in search.stopped
    assert search.unexplained == [FORK]


def test_what_an_item_requires_is_set_with_it() -> None:
    items = Items(64, {40: frozenset({10}), 41: frozenset({40})})
    planted = fork_only(({41}, 1.1))
    planted.resolves = lambda subset: all(items.closed({item}) <= subset for item in subset)
    search = searched(planted, items)
    assert _sets(search) == [{41}]
    assert search.causes[0].needed == {10, 40}
    assert items.without(items.everything, frozenset({10})) == items.everything - {10, 40, 41}


def test_an_item_does_not_come_before_what_it_requires() -> None:
    with pytest.raises(ValueError, match="after what it requires"):
        Items(3, {0: frozenset({2})})


@given(st.integers(1, 40), st.data())
def test_ddmin_ends_with_a_part_from_which_nothing_can_be_left_out(count: int, data: st.DataObject) -> None:
    causes = data.draw(
        st.lists(st.sets(st.integers(0, count - 1), min_size=1, max_size=4), min_size=1, max_size=3)
    )

    def shows(subset: Subset) -> bool:
        return any(cause <= subset for cause in causes)

    part = frozenset(ddmin(range(count), shows))
    assert shows(part)
    assert not any(shows(part - {item}) for item in part)
