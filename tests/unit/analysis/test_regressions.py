"""A regression is one thing: it keeps its id, and its state follows from the kernels measured since."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from tests.support.stored_parts import REGRESSION

from ktrial.analysis.history.change_points import with_changes
from ktrial.analysis.history.regressions import accepted_ratio, of_check, of_same_check, regressions
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Perturbation
from ktrial.model.history import History, Line, Point, SystemIdentity
from ktrial.model.regression import (
    Acceptance,
    MeasuredVersion,
    Regression,
    RegressionState,
    TrackedRegression,
)
from ktrial.model.regression_check import Decision
from ktrial.model.workload import Direction, Mode
from ktrial.report.regressions import all_as_json, answer, feed, line

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
VERSIONS = ("6.1", "6.6", "6.12", "6.18", "7.2")
NEW, KNOWN, ACCEPTED = RegressionState.NEW, RegressionState.KNOWN, RegressionState.ACCEPTED
FIXED, CAME_BACK = RegressionState.FIXED, RegressionState.CAME_BACK


def kernel(version: str) -> MeasuredVersion:
    return MeasuredVersion(name=f"debian:{version}", release=f"{version}.0-cloud", digest=version)


def a_history(
    values: Sequence[float],
    versions: Sequence[str] = VERSIONS,
    *,
    direction: Direction = Direction.LOWER,
    mode: Mode = Mode.EXACT_CLOCK,
) -> History:
    """Values by version, measured a day after the other."""
    points = tuple(
        Point(
            version=kernel(version).name,
            release=kernel(version).release,
            digest=version,
            study_id=place + 1,
            study="versions",
            treatment=version,
            values=(value,),
            perturbations=(Perturbation(number=0),),
            value=value,
            started=BEGIN + timedelta(days=place),
        )
        for place, (version, value) in enumerate(zip(versions, values, strict=False))
    )
    system = SystemIdentity(machine="exact")
    past = Line(
        workload="fork",
        metric="fork",
        unit="instructions/operation",
        direction=direction,
        mode=mode,
        system=system,
        points=points,
    )
    lines = with_changes([past], 0.01, 0.05)
    return History(workload="fork", margin=0.01, alpha=0.05, lines=lines)


def the_only(history: History, stored: Sequence[tuple[int, Regression]] = ()) -> TrackedRegression:
    (tracked,) = regressions([history], stored)
    return tracked


def accepted(tracked: TrackedRegression, day: float, ratio: float | None = None) -> tuple[int, Regression]:
    """As the store has it when it was accepted so many days after the beginning."""
    regression = tracked.regression
    acceptance = Acceptance(
        reason="worth it",
        by="ann",
        at=BEGIN + timedelta(days=day),
        since=regression.since,
        version=regression.version,
        ratio=ratio or regression.ratio,
    )
    return tracked.study_id, regression.model_copy(update={"acceptance": acceptance})


@pytest.mark.parametrize(
    ("values", "state", "turned"),
    [
        ((1.0, 1.14), NEW, None),
        ((1.0, 1.14, 1.14), KNOWN, None),
        ((1.0, 1.14, 1.10), KNOWN, None),
        ((1.0, 1.14, 1.0), FIXED, "6.12"),
        ((1.0, 1.14, 1.03, 1.0), FIXED, "6.12"),
        ((1.0, 1.14, 1.0, 1.14), CAME_BACK, "6.18"),
        ((1.0, 1.14, 1.0, 1.14, 1.0), FIXED, "7.2"),
    ],
)
def test_the_state_follows_from_the_kernels_measured_since(
    values: Sequence[float], state: RegressionState, turned: str | None
) -> None:
    tracked = the_only(a_history(values))
    assert (tracked.state, tracked.regression.version) == (state, kernel("6.6"))
    assert (tracked.turned.kernel if tracked.turned else None) == (kernel(turned) if turned else None)
    assert tracked.regression.ratio == pytest.approx(1.14)


def test_what_gets_better_is_no_regression_and_higher_may_be_better() -> None:
    assert regressions([a_history((1.0, 0.8))], ()) == []
    rate = a_history((100.0, 80.0, 80.0), direction=Direction.HIGHER)
    assert the_only(rate).state is KNOWN
    assert regressions([a_history((100.0, 120.0), direction=Direction.HIGHER)], ()) == []


def test_two_changes_are_two_regressions_each_of_its_own_size() -> None:
    both = regressions([a_history((1.0, 1.1, 1.21))], ())
    assert {(item.regression.version.name, item.state) for item in both} == {
        ("debian:6.6", KNOWN),
        ("debian:6.12", NEW),
    }
    assert [item.regression.ratio for item in both] == pytest.approx([1.1, 1.1])


@pytest.mark.parametrize(
    ("values", "day", "state"),
    [
        ((1.0, 1.14, 1.14), 2.5, ACCEPTED),
        ((1.0, 1.14, 1.14, 1.0), 2.5, FIXED),
        ((1.0, 1.14, 1.0, 1.14), 1.5, CAME_BACK),
        ((1.0, 1.14, 1.0, 1.14), 3.5, ACCEPTED),
    ],
)
def test_what_comes_back_after_it_was_accepted_is_not_accepted(
    values: Sequence[float], day: float, state: RegressionState
) -> None:
    before = the_only(a_history(values[:2]))
    assert the_only(a_history(values), [accepted(before, day)]).state is state


def test_a_version_that_is_measured_between_two_leaves_the_id_as_it_is() -> None:
    before = the_only(a_history((1.0, 1.14), ("6.1", "6.12")))
    stored = [(before.study_id, before.regression)]
    narrowed = the_only(a_history((1.0, 1.14, 1.14), ("6.1", "6.6", "6.12")), stored)
    assert (narrowed.regression.id, narrowed.regression.version) == (before.regression.id, kernel("6.6"))
    later = the_only(a_history((1.0, 1.0, 1.14), ("6.1", "6.6", "6.12")), stored)
    assert (later.regression.id, later.regression.since) == (before.regression.id, kernel("6.6"))
    elsewhere = regressions([a_history((1.0, 1.0, 1.14), ("6.1", "6.12", "6.18"))], stored)
    assert len({item.regression.id for item in elsewhere}) == 2, "what only the store has is kept beside it"


def a_comparison(ratio: float, low: float | None = None, high: float | None = None) -> Comparison:
    return Comparison(
        workload="fork",
        metric="fork",
        unit="instructions/operation",
        direction=Direction.LOWER,
        mode=Mode.EXACT_CLOCK,
        baseline="a",
        treatment="b",
        baseline_value=1.0,
        value=ratio,
        ratio=ratio,
        low=low or ratio,
        high=high or ratio,
        verdict=Verdict.WORSE,
    )


@pytest.mark.parametrize(
    ("since", "version", "allowed"),
    [
        ("6.1", "6.6", 1.1),
        ("6.1", "6.12", 1.1 * 1.2),
        ("6.1", "7.2", 1.1 * 1.2),
        ("6.6", "6.12", 1.2),
        ("6.12", "6.18", 1.0),
    ],
)
def test_a_check_allows_what_was_accepted_between_its_kernels(
    since: str, version: str, allowed: float
) -> None:
    past = a_history((1.0, 1.1, 1.32, 1.32))
    stored = [accepted(item, 9) for item in regressions([past], ())]
    tracked = regressions([past], stored)
    ratio, _ = accepted_ratio(tracked, a_comparison(1.4), kernel(since), kernel(version))
    assert ratio == pytest.approx(allowed)
    nothing, parts = accepted_ratio(
        tracked, a_comparison(1.4).model_copy(update={"workload": "mmap"}), kernel(since), kernel(version)
    )
    assert (nothing, parts) == (1.0, ())


def test_of_two_acceptances_that_overlap_the_larger_counts_and_a_fixed_one_does_not() -> None:
    past = a_history((1.0, 1.1, 1.1))
    of_history = accepted(the_only(past), 9)
    check = of_check(a_comparison(1.12), kernel("6.1"), kernel("6.12"), "check")
    of_checks = accepted(
        TrackedRegression(regression=check, study_id=9, sightings=check.sightings, stored=True), 40_000
    )
    both = [
        TrackedRegression(regression=regression, study_id=number, sightings=regression.sightings)
        for number, regression in (of_history, of_checks)
    ]
    ratio, parts = accepted_ratio(both, a_comparison(1.2), kernel("6.1"), kernel("6.12"))
    assert ratio == pytest.approx(1.12)
    assert len(parts) == 1
    fixed = a_history((1.0, 1.1, 1.0))
    tracked = regressions([fixed], [accepted(the_only(fixed), 9)])
    assert accepted_ratio(tracked, a_comparison(1.2), kernel("6.1"), kernel("6.12"))[0] == 1.0


@pytest.mark.parametrize(
    ("since", "version", "decision", "is_seen"),
    [
        ("6.1", "6.12", Decision.BEYOND, True),
        ("6.1", "6.18", Decision.BEYOND, True),
        ("6.6", "6.12", Decision.BEYOND, True),
        ("6.6", "6.18", Decision.BEYOND, False),
        ("6.1", "6.18", Decision.WITHIN, True),
        ("6.1", "6.6", Decision.WITHIN, False),
        ("6.6", "6.12", Decision.WITHIN, False),
    ],
)
def test_a_check_sees_the_regression_again_or_that_it_is_gone(
    since: str, version: str, decision: Decision, is_seen: bool
) -> None:
    regression = of_check(a_comparison(1.1), kernel("6.1"), kernel("6.12"), "check")
    tracked = TrackedRegression(regression=regression, study_id=1, sightings=regression.sightings)
    seen = of_same_check([tracked], a_comparison(1.1), kernel(since), kernel(version), decision)
    assert (seen is tracked) == is_seen


def test_line_answer_and_json_say_the_same() -> None:
    every = regressions([a_history((1.0, 1.1, 1.21))], ())
    assert answer(every) == (
        "2 regressions are open: fork +10.00 % in debian:6.12 (new), fork +10.00 % in debian:6.6 (known)."
    )
    data = all_as_json(every)
    assert data["answer"] == answer(every)
    assert [entry["state"] for entry in data["regressions"]] == ["new", "known"]
    assert "in debian:6.12 (6.12.0-cloud) against debian:6.6" in line(every[0])
    assert answer([]).startswith("No regression is known")


@pytest.mark.parametrize(
    ("unit", "metric", "subject", "measured"),
    [
        ("instructions", "child, exit, wait", "fork +10 %", "instructions counted"),
        ("ops/s", "throughput", "fork throughput +10 %", "by the guest's clock"),
    ],
)
def test_a_line_says_which_metric_of_a_workload_it_is_about(
    unit: str, metric: str, subject: str, measured: str
) -> None:
    regression = of_check(a_comparison(1.1), kernel("6.1"), kernel("6.12"), "check")
    regression = regression.model_copy(update={"unit": unit, "metric": metric})
    tracked = TrackedRegression(regression=regression, study_id=1, sightings=regression.sightings)
    words = line(tracked).replace("\u00a0", " ")
    assert f": {subject}" in words
    assert f", {measured};" in words


def test_the_feed_is_atom_with_an_entry_each_and_no_name_breaks_it() -> None:
    hostile = REGRESSION.model_copy(update={"workload": "<b>&\x07\n]]>", "cause": "\ud800"})
    tracked = [
        *regressions([a_history((1.0, 1.1))], ()),
        TrackedRegression(regression=hostile, study_id=1, sightings=()),
    ]
    root = ElementTree.fromstring(feed(tracked, "Regressions", "https://example.org/k"))  # noqa: S314
    atom = "{http://www.w3.org/2005/Atom}"
    assert root.tag == f"{atom}feed"
    for tag in ("id", "title", "updated", "author"):
        assert root.find(f"{atom}{tag}") is not None
    entries = root.findall(f"{atom}entry")
    assert len(entries) == 2
    for entry in entries:
        link = entry.find(f"{atom}link")
        assert link is not None
        assert link.attrib["href"].startswith("https://example.org/k/regressions/")
        assert entry.findtext(f"{atom}updated")
