"""A change point's why explains that step: a result's page, which starts from its baseline, or a command."""

import pytest

from ktrial.model.attribution import Candidate, CauseKind, Proof, ProofSide, Status, Together, Tried
from ktrial.model.history import ChangeKind, ChangePoint, Line, Point, SystemIdentity
from ktrial.model.workload import Direction, Mode
from ktrial.report.history import site_environment

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
    ("step", "link"), [(change(1), "7.html#why-3"), (change(2), ""), (change(1, why=""), "")]
)
def test_only_a_step_from_the_baseline_is_explained_by_the_result_s_page(
    step: ChangePoint, link: str
) -> None:
    """A later one has its own command instead: the page says what 6.12 has against 5.10, not against 6.1."""
    linked = site_environment().filters["why_link"]
    places = {(7, "fork", version): 2 + place for place, version in enumerate(VERSIONS)}
    assert linked((LINE, step), {7: "7.html"}, {7: VERSIONS[0]}, places) == link
    assert linked((LINE, step), {7: "7.html"}, {7: VERSIONS[0]}, {}) == "", "the page does not explain it"


def test_a_step_whose_causes_were_measured_says_so_and_no_other() -> None:
    effects = (250.0,)
    candidate = Candidate(name="HRTICK", kind=CauseKind.FEATURE, target="features", before="no", after="yes")
    proof = Proof(
        workload="fork",
        before=VERSIONS[1],
        after=VERSIONS[2],
        values_before=(1000,),
        values_after=(2000,),
        tested=(Tried(candidate=candidate, side=ProofSide.TO, status=Status.MEASURED, effects=effects),),
        together=Together(names=("HRTICK",), effects=effects),
    )
    measured = site_environment().filters["measured_causes"]
    assert measured((LINE, change(1)), {7: (proof,)}) == ""
    text = measured((LINE, change(2)), {7: (proof,)})
    assert text.replace("\u00a0", " ") == "HRTICK +250 (25.0 %); not explained +750 (75.0 %)"
