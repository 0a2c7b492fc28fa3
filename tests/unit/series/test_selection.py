"""Workloads are chosen by what they execute of what a series changes; what nobody executes is left over."""

import random
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.kernel_images import a_kernel_of
from tests.support.scripted import ScriptedMachine, scripted_resources

from ktrial.experiment.single_kernel import Runs
from ktrial.model.kernel import Build, PatchSeries, SeriesKind, Ways
from ktrial.model.profile import FunctionCount, OperationCounts, Profile, RegionCounts, StringCounts
from ktrial.model.series_result import Selection, SeriesResult
from ktrial.model.study import Measurement
from ktrial.model.workload import WorkloadUse
from ktrial.report.patch_series import exercised
from ktrial.series.run import find_telling
from ktrial.series.selection import (
    Copies,
    executed_in,
    not_told_apart,
    nothing_ran,
    selected,
    shared_in,
    with_tours,
)
from ktrial.store.store import open_store


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
    assert [choice.use.name for choice in selection.left_out] == ["large", "small"]


def test_workloads_that_are_measured_in_any_case_have_their_places_before_the_others() -> None:
    some = [profile("small", a=1), profile("wide", a=1, b=1), profile("large", b=900), profile("mmap", c=5)]
    selection = selected(["a", "b"], some, most=3, first=["small", "mmap"])
    assert [choice.use.name for choice in selection.chosen] == ["large", "small"]
    assert [choice.use.name for choice in selection.left_out] == ["wide"]


def test_who_reads_changed_data_is_looked_for_as_who_runs_changed_code() -> None:
    some = [profile("hackbench", sched_slice=9), profile("pipe", pipe_write=5), profile("fork", copy=1)]
    selection = selected(["pipe_write"], some, readers=["sched_slice", "place_entity"])
    assert sorted(choice.use.name for choice in selection.chosen) == ["hackbench", "pipe"]
    assert (selection.changed, selection.readers) == (("pipe_write",), ("place_entity", "sched_slice"))
    assert selection.not_executed == (), "what reads data is not itself changed"


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
    sides: list[tuple[Profile, Copies]] = [
        (profile("hackbench", **ran)[1], {}) for ran in ({"schedule": 900}, {"used": 1})
    ]
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
    assert result_of(Selection(changed), executed).not_executed == idle


def result_of(
    selection: Selection, executed: Collection[str], *measured: str, shared: tuple[str, ...] = ()
) -> SeriesResult:
    """What ran where these workloads were measured."""
    return SeriesResult(
        series=PatchSeries(kind=SeriesKind.MAILBOX, origin="s.mbx", base="base", patches=()),
        plain=Build(source="base"),
        measurement=Measurement(tuple(WorkloadUse(name=name) for name in measured)),
        steps=(),
        selection=selection,
        executed=frozenset(executed),
        shared_names=shared,
    )


def test_what_only_workloads_without_a_place_execute_is_named_with_the_option_that_adds_them() -> None:
    some = [profile("wide", a=1, b=1), profile("small", c=1), profile("large", c=9)]
    result = result_of(selected(["a", "b", "c"], some, most=1), {"a", "b"}, "wide", "nqueens")
    assert result.executed_elsewhere == {"c": ("large", "small")}
    assert exercised(result).replace("\u00a0", " ") == (
        "1 of the 3 functions that this series changes is executed by no workload that was measured: c. "
        "large, which was not measured, runs c: --workload wide,nqueens,large measures all."
    )


def test_how_to_run_what_did_not_run_is_said() -> None:
    ways = {
        "pipe_fcntl": Ways(system_calls=("fcntl",)),
        "pipe_poll": Ways(tables=("pipefifo_fops",)),
        "tee_one": Ways(system_calls=("tee", "splice"), tables=("io_op_defs",)),
        "nobody": Ways(),
        "start_kernel": Ways(at_boot=True),
    }
    result = replace(result_of(Selection(tuple(ways)), ()), ways=ways)
    assert exercised(result).endswith(
        "Programs reach pipe_fcntl by the system call fcntl; pipe_poll through pipefifo_fops; tee_one by the "
        "system calls tee, splice. Only the boot executes one of these functions, and is not measured: "
        "start_kernel."
    )


@pytest.mark.parametrize(
    ("changed", "ran", "booted", "said"),
    [
        (("a", "b", "c"), {"a"}, {"a", "b"}, "executes one of these functions, and is not measured: b."),
        (
            ("a", "b", "c", "d"),
            {"a"},
            {"b", "c"},
            "2 of these functions, and is not measured: b, c.",
        ),
        (("a", "b"), {"a"}, {"b"}, "no workload: b. The boot executes it, and is not measured."),
        (("a", "b", "c"), {"a"}, {"b", "c"}, "The boot executes all of them, and is not measured."),
        (("a", "b"), {"a"}, set(), "is executed by no workload: b."),
        (("a",), set(), set(), "The one function that this series changes, a, is executed by no workload."),
        (("a", "b"), {"a", "b"}, {"b"}, "All 2 functions that this series changes are executed by"),
    ],
)
def test_what_only_a_boot_executes_is_told_apart(
    changed: tuple[str, ...], ran: set[str], booted: set[str], said: str
) -> None:
    result = replace(result_of(Selection(changed), ran), booted=frozenset(booted))
    assert said in exercised(result).replace("\u00a0", " ")
    assert set(result.only_booted) == booted - ran


def test_by_a_boot_that_was_looked_at_code_that_only_it_could_run_did_not_run() -> None:
    ways = {"start_kernel": Ways(at_boot=True)}
    result = replace(result_of(Selection(("start_kernel",)), ()), ways=ways)
    assert result.only_booted == ("start_kernel",)
    assert replace(result, booted=frozenset()).only_booted == ()


def shared(use_and_profile: tuple[WorkloadUse, Profile], **copies: int) -> tuple[WorkloadUse, Profile]:
    """The same, with the instructions of each function `init_once`, by its address `at_81000010`."""
    use, profile_ = use_and_profile
    by_address = tuple((int(address.removeprefix("at_"), 16), count) for address, count in copies.items())
    functions = tuple(
        function.model_copy(update={"copies": by_address}) if function.symbol == "init_once" else function
        for function in profile_.region.functions
    )
    region = profile_.region.model_copy(update={"functions": functions})
    return use, profile_.model_copy(update={"region": region})


INODES = {
    "init_once": {
        0x10: "init_once (inode.c)",
        0x20: "init_once (inode.c, no. 2)",
        0x30: "init_once (socket.c)",
    }
}


@pytest.mark.parametrize(
    ("ran", "changed", "chosen"),
    [
        ({"at_10": 7}, "init_once (inode.c)", ["mount"]),
        ({"at_10": 7}, "init_once (inode.c, no. 2)", []),
        ({"at_20": 7, "at_30": 2}, "init_once (inode.c, no. 2)", ["mount"]),
        ({"at_20": 7, "at_30": 0}, "init_once (socket.c)", []),
        ({}, "init_once (socket.c)", []),
    ],
    ids=str,
)
def test_of_functions_that_share_a_name_the_one_that_ran_is_told_by_its_address(
    ran: dict[str, int], changed: str, chosen: list[str]
) -> None:
    some = [shared(profile("mount", init_once=9), **ran)]
    selection = selected([changed], some, copies=INODES)
    assert [choice.use.name for choice in selection.chosen] == chosen
    assert selection.not_executed == (() if chosen else (changed,))
    assert nothing_ran([changed], [(some[0][1], INODES)]) is (not chosen)


def test_a_name_that_one_function_has_here_and_several_have_in_later_kernels_is_that_ones() -> None:
    only = {"init_once": {0x10: "init_once (inode.c)"}}
    _, profile_ = profile("mount", init_once=9)
    names_ = ["init_once", "init_once (inode.c)", "init_once (socket.c)"]
    assert executed_in(profile_, names_, only) == {"init_once": 9, "init_once (inode.c)": 9}
    assert not_told_apart(profile_, only) == set()


def test_a_profile_that_tells_of_names_alone_executes_none_of_those_that_share_one() -> None:
    some = [profile("wide", init_once=1, vfs_read=4)]
    assert not_told_apart(some[0][1], INODES) == {"init_once"}
    changed = ["init_once (inode.c)", "vfs_read"]
    result = result_of(selected(changed, some, copies=INODES), {"vfs_read"}, "wide", shared=("init_once",))
    assert exercised(result).replace("\u00a0", " ") == (
        "1 of the 2 functions that this series changes is executed by no workload: init_once (inode.c). "
        "Several functions are called init_once, and no profile tells which of them ran: none counts as "
        "executed."
    )


def test_names_of_their_own_are_looked_for_where_some_are_needed() -> None:
    assert shared_in(["init_once (inode.c)", "vfs_read", "read [ext4]"]) == {"init_once"}


def toured(
    changed: list[str], built_in: list[tuple[WorkloadUse, Profile]], *tours: tuple[WorkloadUse, Profile]
) -> Selection:
    return with_tours(selected(changed, built_in), tours)


def test_tours_run_what_no_workload_runs_and_as_few_as_will_do() -> None:
    some = [profile("fork", copy=10)]
    tours = [
        profile("tour-ext4", copy=900, ext4_write=5, jbd2_commit=5),
        profile("tour-disks", ext4_write=1),
        profile("tour-routes", fib_insert=3),
        profile("tour-tasks", copy=900),
    ]
    selection = toured(["copy", "ext4_write", "fib_insert", "jbd2_commit", "cpu_down"], some, *tours)
    chosen = {choice.use.name: choice.functions for choice in selection.chosen}
    assert chosen == {
        "fork": ("copy",),
        "tour-ext4": ("ext4_write", "jbd2_commit"),
        "tour-routes": ("fib_insert",),
    }
    assert selection.not_executed == ("cpu_down",)
    assert [choice.use.name for choice in selection.left_out] == ["tour-disks"]


def test_no_tour_is_taken_where_a_workload_that_found_no_place_runs_the_function() -> None:
    some = [profile("fork", a=10), profile("pipe", b=10)]
    selection = with_tours(selected(["a", "b"], some, most=1), [profile("tour-tasks", a=1, b=1)])
    assert [choice.use.name for choice in selection.chosen] == ["fork"]


def test_a_system_call_that_ran_by_one_of_its_ways_needs_no_tour() -> None:
    changed = ["__ia32_sys_getppid", "__x64_sys_getppid"]
    selection = toured(changed, [profile("syscall", __x64_sys_getppid=5)], profile("tour-tasks", copy=1))
    assert selection.not_executed == ()


@pytest.mark.parametrize(
    ("executed", "labels"),
    [
        ({"fork": {"pick": 9}, "pipe": {"wake": 5, "pick": 5}}, ("pipe",)),
        ({"fork": {"wake": 9}, "pipe": {"wake": 1, "pick": 9}}, ("fork", "pipe")),
        ({"fork": {"pick": 9}, "pipe": {"wake": 0}}, ()),
    ],
    ids=["one", "the larger share first", "none"],
)
def test_workloads_that_run_what_differs_between_two_kernels_are_found(
    executed: dict[str, dict[str, int]],
    labels: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, after = (
        a_kernel_of(tmp_path, name, waking=waking, build=Build(source="/linux", options={"X": name}))
        for name, waking in (("before", 1), ("after", 2))
    )
    profiles = {label: profile(label, **functions)[1] for label, functions in executed.items()}
    monkeypatch.setattr("ktrial.series.run.profile_in", lambda _record, label, _runs: profiles[label])
    uses = tuple(WorkloadUse(name=label) for label in executed)
    with open_store(str(tmp_path / "x.db")) as store:
        place = Runs(store, machine=ScriptedMachine(), resources=scripted_resources())
        telling = find_telling((before, after), uses, (), Measurement(uses[:1]), place)
    assert tuple(choice.label for choice in telling) == labels
