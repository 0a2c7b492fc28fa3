"""Parameters and commands, checked before anything runs."""

import pytest

from ktrial.model.workload import Command, MetricRule, WorkloadUse
from ktrial.workloads import check
from ktrial.workloads.errors import BadWorkload

Value = int | float | str


def use(name: str, **parameters: Value) -> WorkloadUse:
    return WorkloadUse(name=name, parameters=parameters)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (use("hackbench", groups=3), 3),
        (use("hackbench", groups=3.0), 3),
        (use("hackbench", workers="threads"), "threads"),
        (use("open", path="/dev/shm"), "/dev/shm"),
        (use("fork", operations=10), 10),
    ],
)
def test_what_is_allowed_passes_in_the_declared_type(given: WorkloadUse, value: Value) -> None:
    (checked,) = check(given).parameters.values()
    assert checked == value
    assert type(checked) is type(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (use("hackbench", groups=0), "hackbench: groups is 0; give a whole number from 1 to 100"),
        (use("hackbench", groups=1.5), "groups is 1.5; give a whole number"),
        (use("hackbench", groups="2"), "groups is '2'; give a whole number"),
        (use("hackbench", workers="fibres"), "workers is 'fibres'; give processes or threads"),
        (use("hackbench", workers=1), "workers is 1; give processes or threads"),
        (use("open", path=3), "path is 3; give a text"),
    ],
)
def test_what_is_not_allowed_is_named_with_what_is(given: WorkloadUse, message: str) -> None:
    with pytest.raises(BadWorkload) as caught:
        check(given)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_an_unknown_parameter_names_the_nearest_and_all() -> None:
    with pytest.raises(BadWorkload) as caught:
        check(use("hackbench", group=2))
    assert "no parameter group (did you mean groups?); it has groups, loops" in str(caught.value)


def command(*argv: str, **metric: str) -> WorkloadUse:
    metrics = (MetricRule.model_validate({"name": "rate"} | metric),) if metric else ()
    return WorkloadUse(name="mine", command=Command(argv=argv, metrics=metrics))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (command(), "the command is empty"),
        (command("x", regex="(", json=""), "bad regular expression, '(': missing )"),
        (command("x", regex="rate=[0-9]+"), "has 0 groups; give one"),
        (command("x", regex="(a)(b)"), "has 2 groups; give one"),
        (command("x", regex="(a)", json="a.b"), "a regular expression and a JSON path; give one of them"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(given: WorkloadUse, message: str) -> None:
    with pytest.raises(BadWorkload) as caught:
        check(given)
    assert message in str(caught.value)


def test_a_command_has_no_parameters() -> None:
    given = command("true").model_copy(update={"parameters": {"groups": 2}})
    with pytest.raises(BadWorkload, match="it has none"):
        check(given)


def test_a_good_command_passes_as_it_is() -> None:
    given = command("true", regex=r"rate=(\d+)")
    assert check(given) == given
