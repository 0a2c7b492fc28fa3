"""A space as numbers: values, constraints, walks and draws."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ktrial.model.tuning import Cost, Dimension, OnlyOneOf, Order, Range, Space
from ktrial.optimize.encoding import Encoding, coordinate, is_log, value_at
from ktrial.studyfile.errors import NoValidConfiguration, SpaceEmpty

EDGES = st.integers(-1000, 100_000)


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    low, width = draw(EDGES), draw(st.integers(1, 10**9))
    log = low > 0 and draw(st.booleans())
    step = draw(st.none() | st.integers(1, width))
    return Range(low=low, high=low + width, log=log, step=step)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Up to six dimensions, some of them in order or only one of them, with defaults that may lie outside."""
    made = []
    for number in range(draw(st.integers(1, 6))):
        name, cost = f"knob{number}", draw(st.sampled_from(Cost))
        if draw(st.booleans()):
            span = draw(ranges())
            default = str(draw(st.integers(int(span.low) - 5, int(span.high) + 5)))
            made.append(Dimension(name=name, cost=cost, range=span, default=default))
        else:
            values = draw(st.lists(st.sampled_from("abcde"), min_size=2, max_size=4, unique=True))
            made.append(Dimension(name=name, cost=cost, choices=tuple(values), default=values[0]))
    names = [each.name for each in made]
    only = [OnlyOneOf(names=tuple(names[:2]))] if len(names) > 1 and draw(st.booleans()) else []
    return Space(dimensions=tuple(made), constraints=tuple(only))


@given(ranges(), st.floats(0, 1))
def test_a_value_lies_in_its_range_and_on_its_steps(span: Range, place: float) -> None:
    value = float(value_at(span, place))
    assert span.low <= value <= span.high
    assert value == int(value)
    if span.step is not None:
        assert (value - span.low) % span.step == 0


@given(ranges(), st.floats(0, 1))
def test_there_and_back_again_is_the_same_value(span: Range, place: float) -> None:
    value = value_at(span, place)
    assert value_at(span, coordinate(span, float(value))) == value


@given(spaces(), st.integers(0, 2**32))
def test_what_is_drawn_holds_and_comes_back_from_its_point(space: Space, seed: int) -> None:
    encoding = Encoding(space)
    drawn = encoding.draw(np.random.default_rng(seed))
    assert drawn
    assert space.holds(drawn)
    assert all(value != space[name].default for name, value in drawn.items())
    assert encoding.draw(np.random.default_rng(seed)) == drawn
    inside = {
        name: value
        for name, value in drawn.items()
        if not (span := space[name].range) or span.low <= float(value) <= span.high
    }
    assert encoding.configuration(encoding.point(inside)).items() >= inside.items()


@given(spaces(), st.integers(0, 2**32))
def test_a_neighbour_differs_in_one_dimension_and_holds(space: Space, seed: int) -> None:
    encoding = Encoding(space)
    here = encoding.draw(np.random.default_rng(seed))
    for name in space.names:
        rivals = {other for names in encoding.groups.values() if name in names for other in names}
        for near in encoding.neighbours(here, name):
            assert space.holds(near)
            assert near != here
            different = {each for each in space.names if near.get(each) != here.get(each)}
            assert different <= {name, *rivals}


@given(spaces(), st.integers(0, 2**32))
def test_a_batch_in_order_of_cost_changes_what_is_dearest_as_seldom_as_can_be(
    space: Space, seed: int
) -> None:
    encoding = Encoding(space)
    rng = np.random.default_rng(seed)
    batch = encoding.in_order_of_cost([encoding.draw(rng) for _ in range(8)])
    dear = [tuple(space.value(each, name) for name in encoding.costly[:1]) for each in batch]
    changes = sum(one != other for one, other in pairwise(dear))
    assert changes == len(set(dear)) - 1


def test_steps_reach_both_ends_below_zero_too() -> None:
    span = Range(low=-2, high=-1, step=1)
    assert [value_at(span, place) for place in (0.0, 0.2, 0.8, 1.0)] == ["-2", "-2", "-1", "-1"]
    assert value_at(Range(low=1, high=10, step=4), 1.0) == "9"


def test_wide_whole_numbers_are_logarithmic() -> None:
    assert is_log(Range(low=100_000, high=100_000_000))
    assert is_log(Range(low=0, high=1_000_000))
    assert not is_log(Range(low=0, high=200))
    assert not is_log(Range(low=-1, high=1_000_000))
    assert math.isclose(float(value_at(Range(low=1000, high=1_000_000), 0.5)), 31623)


def test_an_order_between_knobs_is_kept_with_the_defaults_in_mind() -> None:
    space = Space(
        dimensions=(
            Dimension(name="vm.dirty_ratio", range=Range(low=1, high=90), default="20"),
            Dimension(name="vm.dirty_background_ratio", range=Range(low=1, high=90), default="10"),
        ),
        constraints=(Order(left="vm.dirty_background_ratio", relation="<", right="vm.dirty_ratio"),),
    )
    assert not space.holds({"vm.dirty_ratio": "5"})
    assert space.holds({"vm.dirty_ratio": "5", "vm.dirty_background_ratio": "4"})
    assert [str(each) for each in space.broken({"vm.dirty_background_ratio": "20"})] == [
        "vm.dirty_background_ratio < vm.dirty_ratio"
    ]


def test_of_coupled_knobs_one_is_changed() -> None:
    space = Space(
        dimensions=(
            Dimension(name="vm.dirty_ratio", range=Range(low=1, high=90), default="20"),
            Dimension(name="vm.dirty_bytes", range=Range(low=4096, high=10**9), default="0"),
        ),
        constraints=(OnlyOneOf(names=("vm.dirty_ratio", "vm.dirty_bytes")),),
    )
    encoding, rng = Encoding(space), np.random.default_rng(1)
    drawn = [encoding.draw(rng) for _ in range(100)]
    assert {tuple(each) for each in drawn} == {("vm.dirty_ratio",), ("vm.dirty_bytes",)}
    assert not space.holds({"vm.dirty_ratio": "5", "vm.dirty_bytes": "8192"})
    near = encoding.neighbours({"vm.dirty_ratio": "5"}, "vm.dirty_bytes")
    assert near
    assert all(list(each) == ["vm.dirty_bytes"] for each in near)


def test_a_space_that_cannot_be_searched_is_refused() -> None:
    with pytest.raises(SpaceEmpty):
        Encoding(Space(dimensions=()))
    knob = Dimension(name="a", range=Range(low=1, high=9), default="5")
    never = Space(dimensions=(knob,), constraints=(Order(left="a", relation=">", right="10"),))
    with pytest.raises(NoValidConfiguration, match="a > 10"):
        Encoding(never).draw(np.random.default_rng(1))
    with pytest.raises(ValidationError, match="lower to a higher"):
        Range(low=5, high=5)
    with pytest.raises(ValidationError, match="either a range or choices"):
        Dimension(name="a", default="1")
