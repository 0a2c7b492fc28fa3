"""Workloads are chosen by what they execute of what a series changes; what nobody executes is left over."""

import random

import pytest

from ktrial.model.kernel import Build, PatchSeries, SeriesKind
from ktrial.model.profile import FunctionCount, OperationCounts, Profile, RegionCounts, StringCounts
from ktrial.model.series_result import Selection, SeriesResult
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.series.selection import executed_in, nothing_ran, selected


def profile(name: str, **functions: int) -> tuple[WorkloadUse, Profile]:
    """A profile of 1000 instructions, of which these functions have so many each."""
    counts = tuple(FunctionCount(symbol=symbol, instructions=count) for symbol, count in functions.items())
    region = RegionCounts(
        whole=True,
        instructions=1000,
        marks=0,
        strings=StringCounts(),
        functions=counts,
        pages=(),
        operations=OperationCounts(count=1, total=1000, minimum=1000, maximum=1000, median=1000),
    )
    return WorkloadUse(name=name), Profile(kernel="k", workload=name, operations=1, region=region)


def names(changed: list[str], *profiles: tuple[WorkloadUse, Profile], most: int = 10) -> list[str]:
    return [choice.use.name for choice in selected(changed, profiles, most).chosen]


def test_only_workloads_that_execute_a_changed_function_are_taken_the_largest_share_first() -> None:
    some = [profile("fork", copy=10, other=500), profile("pipe", pipe_write=900), profile("mmap", copy=300)]
    assert names(["copy"], *some) == ["mmap", "fork"]
    assert names(["nothing"], *some) == []
    assert selected(["copy", "nothing"], some).not_executed == ("nothing",)


def test_every_function_that_anybody_executes_is_executed_by_one_that_is_chosen() -> None:
    drawn = random.Random(3)
    functions = [f"f{number}" for number in range(40)]
    for _ in range(50):
        some = [
            profile(
                f"w{number}", **{function: drawn.randint(1, 50) for function in drawn.sample(functions, 12)}
            )
            for number in range(25)
        ]
        changed = drawn.sample(functions, 10)
        selection = selected(changed, some)
        executed = {name for _, profile_ in some for name in executed_in(profile_, changed)}
        assert set(selection.not_executed) == set(changed) - executed
        assert len(selection.chosen) <= 10


def test_where_places_are_few_the_one_that_covers_most_comes_first_and_the_rest_is_named() -> None:
    some = [profile("small", a=1), profile("wide", a=1, b=1, c=1), profile("large", a=900)]
    selection = selected(["a", "b", "c"], some, most=1)
    assert [choice.use.name for choice in selection.chosen] == ["wide"]
    assert selection.left_out == ("large", "small")


def test_the_compilers_numbers_are_no_part_of_a_name_and_modules_are_not_the_image() -> None:
    use, profile_ = profile("fork", **{"copy.isra.0": 5})
    assert executed_in(profile_, ["copy.isra"]) == {"copy.isra": 5}
    module = profile_.region.functions[0].model_copy(update={"module": "ext4"})
    moved = profile_.model_copy(
        update={"region": profile_.region.model_copy(update={"functions": (module,)})}
    )
    assert executed_in(moved, ["copy.isra"]) == {}
    assert selected(["copy.isra"], [(use, moved)]).not_executed == ("copy.isra",)


@pytest.mark.parametrize("count", [0])
def test_a_function_that_was_only_entered_in_name_does_not_count(count: int) -> None:
    assert names(["copy"], profile("fork", copy=count)) == []


@pytest.mark.parametrize(
    ("changed", "nothing"), [(["gone"], True), (["gone", "used"], False), ([], False)], ids=str
)
def test_a_patch_ran_nowhere_where_none_of_its_functions_did(changed: list[str], nothing: bool) -> None:
    sides = [profile("hackbench", schedule=900)[1], profile("hackbench", used=1)[1]]
    assert nothing_ran(changed, sides) is nothing


@pytest.mark.parametrize(
    ("changed", "executed", "idle"),
    [
        (("__do_sys_getppid", "__x64_sys_getppid"), {"__x64_sys_getppid"}, ()),
        (("__ia32_sys_getppid",), {"__x64_sys_getppid"}, ()),
        (("__do_sys_getppid",), {"__x64_sys_getpid"}, ("__do_sys_getppid",)),
        (("getppid_of",), {"__x64_sys_getppid"}, ("getppid_of",)),
    ],
)
def test_a_system_call_ran_where_one_way_into_it_did(
    changed: tuple[str, ...], executed: set[str], idle: tuple[str, ...]
) -> None:
    result = SeriesResult(
        series=PatchSeries(kind=SeriesKind.MAILBOX, origin="s.mbx", base="base", patches=()),
        plain=Build(source="base"),
        measurement=Measurement(()),
        steps=(),
        selection=Selection(changed),
        executed=frozenset(executed),
    )
    assert result.not_executed == idle
