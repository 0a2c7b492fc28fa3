"""Plans and results mean the same in both languages: the golden vectors, from Python's side."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support import vectors

from ktrial.target import PROTOCOL, BootPlan, GuestPlan, StepResult

PLANS = vectors.read("plans")


def named(vector: dict[str, Any]) -> str:
    return str(vector["name"])


@pytest.mark.parametrize("vector", PLANS["plans"], ids=named)
def test_a_plan_is_completed_with_the_defaults_that_the_agent_takes(vector: dict[str, Any]) -> None:
    plan = GuestPlan.model_validate(vector["given"])
    assert plan.model_dump(mode="json") == vector["whole"]
    assert GuestPlan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize("vector", PLANS["boot_plans"], ids=named)
def test_a_boot_plan_is_completed_with_the_same_defaults(vector: dict[str, Any]) -> None:
    assert BootPlan.model_validate(vector["given"]).model_dump(mode="json") == vector["whole"]


@pytest.mark.parametrize("vector", PLANS["refused"], ids=named)
def test_a_wrong_plan_is_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GuestPlan.model_validate(vector["given"])


@pytest.mark.parametrize("vector", vectors.read("results"), ids=named)
def test_a_result_without_its_defaults_is_the_whole_result(vector: dict[str, Any]) -> None:
    short = StepResult.model_validate_json(json.dumps(vector["short"]))
    assert short == StepResult.model_validate(vector["whole"])
    assert short.model_dump(mode="json") == vector["whole"]
    assert short.model_dump(mode="json", exclude_defaults=True) == vector["short"]


def test_both_sides_speak_the_same_protocol() -> None:
    assert PROTOCOL == GuestPlan(steps=()).protocol == BootPlan(settle_ns=0).protocol == 1
