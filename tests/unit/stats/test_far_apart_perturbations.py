"""Numbers so far apart that their ratio is no number: a bundle from elsewhere may hold any."""

import pytest

from ktrial.stats.verdict_rules import alike, exceeds, within

TINY, HUGE = 5e-324, 1e308


@pytest.mark.parametrize(
    ("below", "above", "larger"),
    [({0: HUGE, 1: 1.0}, {0: TINY, 1: 1.03}, False), ({0: TINY, 1: 1.0}, {0: HUGE, 1: 1.03}, True)],
    ids=["too small", "too large"],
)
def test_a_ratio_that_is_no_number_ends_in_no_error(
    below: dict[int, float], above: dict[int, float], *, larger: bool
) -> None:
    assert not alike(below, above)
    assert not within(below, above, 0.01)
    assert exceeds(below, above, 0.01) is larger
