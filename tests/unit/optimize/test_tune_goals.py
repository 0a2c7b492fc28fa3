"""What is wanted of a search, and how a command's metrics are found."""

import re

import pytest

from ktrial.model.tuning import Goal, Guard
from ktrial.model.workload import Direction, Metric
from ktrial.studyfile.errors import BadGoal, TuningError
from ktrial.studyfile.search import by_name, goal_of, guard_of, rules_of

ELAPSED = Metric(name="elapsed", unit="ns", direction=Direction.LOWER)


def goal(*subject_to: str, maximise: tuple[str, ...] = (), minimise: tuple[str, ...] = ()) -> Goal:
    return goal_of(maximise, minimise, subject_to, (ELAPSED,), margin=0.01, workload="bench")


@pytest.mark.parametrize(
    ("text", "guard"),
    [
        ("p99<=20ms", Guard(metric="p99", relation="<=", bound=20, unit="ms")),
        ("errors == 0", Guard(metric="errors", relation="==", bound=0)),
        ("rps>1e3", Guard(metric="rps", relation=">", bound=1000)),
    ],
)
def test_a_limit_is_a_metric_a_relation_and_a_number(text: str, guard: Guard) -> None:
    assert guard_of(text) == guard


@pytest.mark.parametrize("text", ["p99", "p99=20", "p99<=fast", "<=20", ""])
def test_what_is_no_limit_is_told(text: str) -> None:
    with pytest.raises(BadGoal, match="--subject-to"):
        guard_of(text)


def test_without_an_objective_the_first_metric_gets_better_in_its_own_direction() -> None:
    (objective,) = goal().objectives
    assert (objective.metric, objective.direction) == ("elapsed", Direction.LOWER)


def test_two_objectives_are_a_front_and_three_are_too_many() -> None:
    assert len(goal(maximise=("rps",), minimise=("p99",)).objectives) == 2
    with pytest.raises(BadGoal, match="weighed against each other"):
        goal(maximise=("a", "b"), minimise=("c",))
    with pytest.raises(BadGoal, match="an objective already"):
        goal(maximise=("a",), minimise=("a",))


def test_times_are_converted_to_the_metric_s_unit() -> None:
    (guard,) = goal("elapsed<=20ms").guards
    assert (guard.bound, guard.unit) == (2e7, "ns")
    with pytest.raises(BadGoal, match="is in ns"):
        goal("elapsed<=20MB")


@pytest.mark.parametrize(
    ("guards", "contradict"),
    [
        (("p99<=20", "p99>=30"), True),
        (("p99<=20", "p99>=20"), False),
        (("p99<20", "p99>=20"), True),
        (("e==0", "e>0"), True),
        (("e==0", "e==0"), False),
        (("e>1", "e<2"), False),
    ],
)
def test_limits_that_no_number_meets_are_told_before_anything_runs(
    guards: tuple[str, ...], contradict: bool
) -> None:
    if not contradict:
        assert len(goal(*guards).guards) == 2
        return
    with pytest.raises(TuningError, match="meets both"):
        goal(*guards)


@pytest.mark.parametrize(
    "text", ["rps: 1200", "rps=1200", '{"rps": 1200, "x": 1}', "mean rps 1200.0", "rps\t1200"]
)
def test_a_metric_that_nobody_says_more_about_is_found_by_its_name(text: str) -> None:
    assert [float(values) for values in re.findall(by_name("rps"), text, re.MULTILINE)] == [1200]


def test_another_metric_that_ends_alike_is_not_taken_for_it() -> None:
    assert re.findall(by_name("rps"), "grps: 1200\nmax-rps: 7") == []


def test_rules_of_a_command() -> None:
    rules = {
        rule.name: rule
        for rule in rules_of(["rps=Q ([0-9]+)", "p99[ms]=json:a.p99"], ["rps"], [], ["p99<=5ms"])
    }
    assert (rules["rps"].regex, rules["rps"].direction) == ("Q ([0-9]+)", Direction.HIGHER)
    assert (rules["p99"].json_path, rules["p99"].unit) == ("a.p99", "ms")
    (clock,) = rules_of([], [], [], [])
    assert (clock.name, clock.regex, clock.json_path) == ("elapsed", "", "")


@pytest.mark.parametrize("text", ["rps", "rps=", "rps=([0-9]+)([a-z])", "rps=(["])
def test_a_rule_that_cannot_be_meant_is_told(text: str) -> None:
    with pytest.raises(BadGoal, match="--metric"):
        rules_of([text], [], [], [])
