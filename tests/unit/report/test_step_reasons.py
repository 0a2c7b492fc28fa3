"""A change point's why explains that step: a result's page, which starts from its baseline, or a command."""

import pytest

from ktrial.model.history import ChangeKind, ChangePoint, Line, Point, SystemIdentity
from ktrial.model.workload import Direction, Mode
from ktrial.report.html.history import site_environment

VERSIONS = ("debian:5.10", "debian:6.1", "debian:6.12")
LINE = Line(
    workload="fork",
    metric="instructions",
    unit="instructions/operation",
    direction=Direction.LOWER,
    mode=Mode.EXACT_PLUGIN,
    system=SystemIdentity(machine="exact"),
    points=tuple(
        Point(version=version, study_id=7, study="upgrades", treatment=version) for version in VERSIONS
    ),
)


def change(place: int, why: str = "ktrial explain 7") -> ChangePoint:
    since, version = VERSIONS[place - 1 : place + 1]
    return ChangePoint(
        place=place, kind=ChangeKind.STEP, before=1, after=2, ratio=2, since=since, version=version, why=why
    )


@pytest.mark.parametrize(
    ("step", "link"), [(change(1), "7.html#why"), (change(2), ""), (change(1, why=""), "")]
)
def test_only_a_step_from_the_baseline_is_explained_by_the_result_s_page(
    step: ChangePoint, link: str
) -> None:
    """A later one has its own command instead: the page says what 6.12 has against 5.10, not against 6.1."""
    linked = site_environment().filters["why_link"]
    assert linked((LINE, step), {7: "7.html"}, {7: VERSIONS[0]}) == link
