"""Differences by modelled cycles and by kinds of miss: the function that only time sees comes first."""

import pytest
from rich.console import Console
from tests.support.profiles import a_profile

from ktrial.analysis.attribution.costs import CostKind, cost_rows, profile_rows
from ktrial.analysis.attribution.decomposition import explain
from ktrial.cli.command_line import BadOption
from ktrial.cli.options.counting import on_model
from ktrial.cli.render.explanation import check_modelled, print_costs
from ktrial.cli.render.profile import print_profile_costs
from ktrial.model.attribution import Explanation
from ktrial.model.machine import BasePrices, ModelCounts
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings

NONE = ModelCounts(
    cycles=0, code_misses=0, data_misses=0, second_misses=0, last_misses=0, translation_misses=0, walks=0,
    mispredictions=0,
)  # fmt: skip
WALKS = NONE.model_copy(update={"cycles": 30_000.0, "translation_misses": 1000, "walks": 1000})
MISPREDICTS = NONE.model_copy(update={"cycles": 9000.0, "mispredictions": 600})
DEAR = NONE.model_copy(update={"cycles": 90_000.0})
"""No miss: a serialising instruction."""


def modelled(instructions: dict[str, int], costs: dict[str, ModelCounts]) -> Profile:
    """In ten operations."""
    plain = a_profile({(name, ""): count for name, count in instructions.items()})
    functions = tuple(
        function.model_copy(update={"modelled": costs.get(function.symbol, NONE)})
        for function in plain.region.functions
    )
    region = plain.region.model_copy(update={"functions": functions, "cycles": 1.0})
    prices = BasePrices(instruction=0.25, string_bytes=32)
    return plain.model_copy(update={"region": region, "prices": prices})


BEFORE = modelled({"busy": 5000, "walker": 400, "guesser": 400, "waiter": 400}, {})
AFTER = modelled(
    {"busy": 6000, "walker": 410, "guesser": 410, "waiter": 410},
    {"walker": WALKS, "guesser": MISPREDICTS, "waiter": DEAR},
)


def explanation() -> Explanation:
    return explain(BEFORE, AFTER.model_copy(update={"kernel": "debian:6.12"}))


def test_instructions_name_the_one_and_cycles_the_others() -> None:
    why = explanation()
    assert why.rows[0].function == "busy"
    rows = cost_rows(why, CostKind.CYCLES)
    assert [row.name for row in rows] == ["waiter", "walker", "guesser", "busy"]
    assert rows[3].difference == pytest.approx(1000 / 10 * 0.25)
    assert rows[1].difference == pytest.approx((30_000 + 10 * 0.25) / 10)


def test_each_row_says_which_cost_moved() -> None:
    moved = {row.name: row.moved for row in cost_rows(explanation(), CostKind.CYCLES)}
    assert moved["walker"].startswith("walks +100.00")
    assert moved["guesser"] == "mispredictions +60.00"
    assert moved["waiter"].startswith("dear instructions and the like, some +9,0")
    assert moved["busy"] == "instructions +100"


@pytest.mark.parametrize(
    ("kind", "first", "by"),
    [(CostKind.WALKS, "walker", 100), (CostKind.MISPREDICTIONS, "guesser", 60)],
)
def test_functions_are_ranked_by_a_kind_of_miss(kind: CostKind, first: str, by: float) -> None:
    (only,) = cost_rows(explanation(), kind)
    assert (only.name, only.difference) == (first, by)
    assert profile_rows(AFTER, kind) == ((first, by),)


def test_tables_say_that_it_is_no_time() -> None:
    console = Console(record=True, width=120)
    print_costs(explanation(), None, 2, console)
    print_profile_costs(AFTER, "walks", 5, console)
    shown = console.export_text()
    assert "by modelled cycles, per operation" in shown
    assert shown.index("waiter") < shown.index("walker")
    assert "guesser" not in shown
    assert shown.count("modelled, not measured") == 2


def test_what_was_not_modelled_cannot_be_asked_for() -> None:
    plain = explain(a_profile({("f", ""): 1}), a_profile({("f", ""): 2}, kernel="debian:6.12"))
    check_modelled(plain, None)
    assert cost_rows(plain, CostKind.CYCLES) == ()
    with pytest.raises(BadOption, match="were not modelled"):
        check_modelled(plain, "walks")
    check_modelled(explanation(), "walks")
    with pytest.raises(BadOption, match="on one CPU"):
        on_model(MachineSettings(kind="exact-parallel"), "desktop")
    assert on_model(MachineSettings(), None).model is None
    chosen = on_model(MachineSettings(), "desktop").model
    assert chosen is not None
    assert chosen.name == "desktop"
