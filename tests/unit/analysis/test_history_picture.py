"""The picture of a history: round numbers beside it, with room for them."""

import pytest
from tests.support.report_records import FIVE

from ktrial.model.history import Line, Point, SystemIdentity
from ktrial.model.workload import Direction, Mode
from ktrial.report.history import picture


def a_line(*values: float) -> Line:
    points = tuple(
        Point(version=name, study_id=1, study="one", treatment=name, values=(value,), value=value)
        for name, value in zip(FIVE, values, strict=False)
    )
    return Line(
        workload="fork",
        metric="fork",
        unit="instructions",
        direction=Direction.LOWER,
        mode=Mode.EXACT_PLUGIN,
        system=SystemIdentity(machine="exact"),
        points=points,
    )


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((82_812, 123_106), ["80,000", "90,000", "100,000", "110,000", "120,000"]),
        ((69_000_000, 53_946_849), ["55,000,000", "60,000,000", "65,000,000", "70,000,000"]),
        ((5.0, 128.0), ["0", "50", "100"]),
        ((0.0012, 0.0017), ["0.0012", "0.0014", "0.0016"]),
        ((252.0,), ["240", "250", "260"]),
        ((0.0, 0.0), ["−1", "−0.5", "0", "0.5", "1"]),
        ((), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_the_numbers_beside_the_axis_are_round_and_few(values: tuple[float, ...], ticks: list[str]) -> None:
    assert [tick.text for tick in picture(a_line(*values)).ticks] == ticks


def test_long_numbers_have_room() -> None:
    short, long = picture(a_line(1.0, 2.0)), picture(a_line(68_948_496.0, 53_946_849.0))
    assert long.left > short.left
    assert long.left >= 7 * len("55,000,000") + 8
    assert min(dot.x for dot in long.dots) > long.left
