"""How many treatments a design has, told without making them."""

from hypothesis import given
from hypothesis import strategies as st

from ktrial.model.design import FactorLevels, LevelValue, combinations, count

LEVELS: st.SearchStrategy[LevelValue] = st.sampled_from([1, 1.0, "1", 2, "a"])


@st.composite
def factors(draw: st.DrawFn) -> list[FactorLevels]:
    many = draw(st.integers(0, 3))
    levels = st.lists(LEVELS, min_size=1, max_size=4)
    return [FactorLevels(f"f{number}", draw(levels), draw(LEVELS)) for number in range(many)]


@given(factors(), st.sampled_from(["full-factorial", "one-factor-at-a-time", "listed"]), st.data())
def test_as_many_are_counted_as_are_made(
    chosen: list[FactorLevels], design: str, data: st.DataObject
) -> None:
    row = st.fixed_dictionaries({}, optional={one.name: st.sampled_from(one.levels) for one in chosen})
    listed: list[dict[str, LevelValue]] = data.draw(st.lists(row, max_size=4))
    assert count(chosen, design, listed) == len(combinations(chosen, design, listed))
