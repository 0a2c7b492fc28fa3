"""Where functions stand in the tree of calls, ways into the kernel, and the evidence that places are."""

from fractions import Fraction

import pytest
from tests.support.profiles import a_profile

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.function_matching import (
    ENTRY,
    Key,
    alike,
    call_places,
    is_evidence,
    may_be_together,
    names_of,
)
from ktrial.analysis.attribution.subsystems import kernel_entries
from ktrial.model.attribution import Explanation, FunctionDifference, Match
from ktrial.model.profile import CallNode, FunctionFiles, Profile, StringCounts

Tree = list[tuple[int, str, int, int]]
"""Parent (0: entered from outside), function, its own instructions, how often it was entered."""


def a_tree(tree: Tree, *, operations: int = 10, **names: str) -> Profile:
    """Each function's own instructions are the sum over its places."""
    functions = list(dict.fromkeys(name for _, name, _, _ in tree))
    instructions = {
        name: sum(count for _, function_, count, _ in tree if function_ == name) for name in functions
    }
    plain = a_profile(
        {(name, names.get(name, "")): instructions[name] for name in functions}, operations=operations
    )
    nodes = [CallNode(parent=0, function=-1, instructions=0, entered=0)] * 2
    for parent, name, count, entered in tree:
        above = parent + 1 if parent else 0
        nodes.append(
            CallNode(parent=above, function=functions.index(name), instructions=count, entered=entered)
        )
    return plain.model_copy(update={"region": plain.region.model_copy(update={"nodes": tuple(nodes)})})


def key(symbol: str, module: str) -> Key:
    return symbol, module


def test_who_calls_whom_and_how_often_an_operation() -> None:
    tree: Tree = [
        (0, "entry", 10, 20),
        (1, "work", 10, 40),
        (2, "work", 10, 5),
        (2, "leaf", 10, 30),
        (1, "leaf", 1, 10),
    ]
    places = call_places(a_tree(tree), key)
    entry, work, leaf = ("entry", ""), ("work", ""), ("leaf", "")
    assert places.callers == {
        entry: {ENTRY: Fraction(2)},
        work: {entry: Fraction(4)},  # its calls of itself are none
        leaf: {work: Fraction(3), entry: Fraction(1)},
    }
    assert places.callees == {
        ENTRY: {entry: Fraction(2)},
        entry: {work: Fraction(4), leaf: Fraction(1)},
        work: {leaf: Fraction(3)},
    }
    assert places.entered(leaf) == Fraction(4)
    assert places.entered(("none", "")) == Fraction(0)


def test_a_place_that_was_never_entered_is_no_call_and_without_a_tree_there_are_none() -> None:
    assert call_places(a_tree([(0, "entry", 10, 1), (1, "work", 10, 0)]), key).callers == {
        ("entry", ""): {ENTRY: Fraction(1, 10)},
        ("work", ""): {},
    }
    assert call_places(a_profile({("work", ""): 10}), key).callers == {}


@pytest.mark.parametrize(
    ("left", "right", "likeness"),
    [
        ({"a": 2, "b": 2}, {"a": 2, "b": 2}, 1.0),
        ({"a": 2}, {"b": 2}, 0.0),
        ({"a": 1, "b": 3}, {"a": 1, "c": 1}, 0.2),
        ({"a": 1}, {"a": 4}, 0.25),
        ({"a": 0}, {"a": 0}, 0.0),
        ({}, {}, 0.0),
    ],
)
def test_calls_are_alike_by_what_both_have_of_what_one_has(
    left: dict[str, int], right: dict[str, int], likeness: float
) -> None:
    first, second = (
        {(name, ""): Fraction(count) for name, count in calls.items()} for calls in (left, right)
    )
    assert alike(first, second) == alike(second, first) == likeness


def test_the_most_frequent_calls_are_named_first() -> None:
    calls = {("d", ""): Fraction(1), ("b", ""): Fraction(5), ("c", ""): Fraction(1), ("a", ""): Fraction(1)}
    assert names_of(calls) == "b, a, c and others"
    assert names_of(dict(list(calls.items())[:3])) == "b, c, d"


@pytest.mark.parametrize(
    ("name", "tells"),
    [
        ("vfs_read", True),
        ("__x86_return_thunk", False),
        ("__x86_indirect_thunk_rax", False),
        ("cond_resched", False),
        ("__cond_resched", False),
        ("__rcu_read_unlock", False),
        ("preempt_schedule_notrace", False),
        ("mutex_lock", False),
    ],
)
def test_what_everything_calls_is_no_evidence(name: str, tells: bool) -> None:
    assert is_evidence((name, "")) is tells


@pytest.mark.parametrize(
    ("file", "right", "together"),
    [
        ("mm/mmap.c", "mm/vma.c", True),
        ("mm/mmap.c", "fs/exec.c", False),
        ("mm/", "mm/kasan/x.c", True),
        ("mm/kasan/x.c", "mm/", True),
        ("mm/a.c", "mm/kasan/x.c", False),
        ("mm/", "fs/x.c", False),
    ],
)
def test_files_of_one_directory_may_be_together(file: str, right: str, together: bool) -> None:
    assert may_be_together(file, right) is together


def matches(old: Profile, new: Profile, **files: str) -> dict[str, FunctionDifference]:
    """Row's name → row, where all functions that ran are known, and these files."""
    sides = []
    for profile in (old, new):
        names = frozenset(function.symbol for function in profile.region.functions)
        sides.append(
            FunctionFiles(
                functions=names, files={name: file for name, file in files.items() if name in names}
            )
        )
    return {row.name: row for row in explain(old, new, *sides).rows}


def leaf(name: str, instructions: int = 100, *, calls: int = 10, other_calls: int = 0) -> Profile:
    """Called by `caller`, and so many times by `other`."""
    tree: Tree = [(0, "caller", 100, 10), (1, name, instructions, calls), (0, "other", 100, 10)]
    return a_tree([*tree, (3, name, 0, other_calls)] if other_calls else tree)


@pytest.mark.parametrize(
    ("old", "new", "files", "is_one"),
    [
        (leaf("vma_adjust_now"), leaf("vma_adjust_then"), ("", ""), True),
        (leaf("vma_adjust"), leaf("page_clean"), ("", ""), False),  # no word in common
        (
            leaf("vma_adjust_now", 100),
            leaf("vma_adjust_then", 200),
            ("", ""),
            True,
        ),  # twice as large, not more
        (leaf("vma_adjust_now", 100), leaf("vma_adjust_then", 210), ("", ""), False),
        (leaf("vma_adjust_now", 210), leaf("vma_adjust_then", 100), ("", ""), False),
        (
            leaf("vma_adjust_now"),
            leaf("vma_adjust_then", other_calls=1),
            ("", ""),
            True,
        ),  # 10 of 11 calls are the same
        (leaf("vma_adjust_now"), leaf("vma_adjust_then", other_calls=2), ("", ""), False),  # 10 of 12
        # With files of one directory the places may be less alike.
        (leaf("vma_adjust_now"), leaf("vma_adjust_then", other_calls=10), ("mm/a.c", "mm/b.c"), True),
        (leaf("vma_adjust_now"), leaf("vma_adjust_then", other_calls=11), ("mm/a.c", "mm/b.c"), False),
        (leaf("vma_adjust_now"), leaf("vma_adjust_then"), ("mm/a.c", "fs/b.c"), False),
        (leaf("vma_adjust"), leaf("page_clean"), ("mm/a.c", "mm/b.c"), False),
        # One of three words that the other begins with: its callers may be others.
        (
            leaf("__list_add_ok"),
            leaf("__list_add_ok_report_it_all", other_calls=20),
            ("lib/a.c", "lib/b.c"),
            True,
        ),
        (
            leaf("__list_add_ok"),
            leaf("__list_add_ok_report_it_all", other_calls=24),
            ("lib/a.c", "lib/b.c"),
            False,
        ),
        # Hooks of two security modules.
        (leaf("__ipe_mmap_file"), leaf("ipe_mmap_files"), ("security/ipe/a.c", "security/ipe/b.c"), True),
        (leaf("_cap_mmap_file"), leaf("_ipe_mmap_file"), ("security/x/a.c", "security/x/b.c"), False),
    ],
)
def test_a_leaf_in_the_same_place_is_the_same_function_where_name_size_and_file_allow_it(
    old: Profile, new: Profile, files: tuple[str, str], is_one: bool
) -> None:
    left, right = old.region.functions[1].symbol, new.region.functions[1].symbol
    named = {name: file for name, file in zip((left, right), files, strict=True) if file}
    rows = matches(old, new, **named)
    assert (rows.get(f"{left} → {right}") is not None) is is_one
    if is_one:
        assert rows[f"{left} → {right}"].match is Match.PLACED


def test_a_new_name_is_told_with_the_callers_and_callees_in_common() -> None:
    def called(name: str, times: int) -> Profile:
        tree: Tree = [
            (0, "caller", 10, 10),
            (1, name, 50, times),
            (2, "page_clean", 10, 20),
            (2, "page_wait", 10, 10),
        ]
        return a_tree(tree)

    row = matches(called("first_name", 10), called("another", 11))["first_name → another"]
    assert row.evidence == (
        "both are called by caller, 1 and 1.1 times per operation, and call page_clean, page_wait"
    )


def test_two_that_could_be_the_new_one_are_both_left() -> None:
    old = a_tree([(0, "caller", 10, 10), (1, "vma_move_a", 50, 10), (1, "vma_move_b", 50, 10)])
    new = a_tree([(0, "caller", 10, 10), (1, "vma_move_c", 50, 10)])
    assert {row.match for row in matches(old, new).values()} == {Match.SAME, Match.ONLY_FROM, Match.ONLY_TO}


def test_a_leaf_that_its_only_caller_took_in_is_found_by_the_caller_s_growth() -> None:
    """100 instructions per operation are gone, and the caller has so many more."""
    for grown, is_merged in ((50, True), (49, False), (150, True), (151, False)):
        old = a_tree([(0, "caller", 1000, 10), (1, "small_helper", 1000, 10)])
        new = a_tree([(0, "caller", 1000 + 10 * grown, 10)])
        rows = matches(old, new)
        assert ("caller + small_helper → caller" in rows) is is_merged, grown
    row = matches(old, a_tree([(0, "caller", 2000, 10)]))["caller + small_helper → caller"]
    assert (row.match, row.evidence) == (
        Match.MERGED,
        "small_helper is not in the second, where its only caller caller has 100 instructions more, of the "
        "100 it had",
    )


@pytest.mark.parametrize(
    ("instructions", "files", "is_merged"),
    [
        (200, {}, True),
        (190, {}, False),  # below 20 instructions per operation growth is no evidence
        (200, {"caller": "mm/a.c", "small_helper": "mm/b.c"}, True),
        (200, {"caller": "mm/a.c", "small_helper": "fs/b.c"}, False),
    ],
)
def test_growth_is_evidence_only_of_what_is_large_enough_and_near(
    instructions: int, files: dict[str, str], is_merged: bool
) -> None:
    old = a_tree([(0, "caller", 1000, 10), (1, "small_helper", instructions, 10)])
    rows = matches(old, a_tree([(0, "caller", 1000 + instructions, 10)]), **files)
    assert ("caller + small_helper → caller" in rows) is is_merged


def test_one_whose_calls_its_only_caller_makes_now_was_taken_in() -> None:
    old = a_tree(
        [(0, "caller", 100, 10), (1, "helper", 50, 10), (2, "page_clean", 10, 20), (2, "page_wait", 10, 10)]
    )
    new = a_tree([(0, "caller", 140, 10), (1, "page_clean", 10, 20), (1, "page_wait", 10, 10)])
    row = matches(old, new)["caller + helper → caller"]
    assert row.evidence == (
        "helper is not in the second, where its only caller caller itself calls page_clean, page_wait"
    )
    back = matches(new, old)["caller → caller + helper"]
    assert (back.match, back.evidence) == (
        Match.SPLIT,
        "helper is not in the first, where its only caller caller itself calls page_clean, page_wait",
    )


def test_ways_into_the_kernel_come_costliest_first_and_single_system_calls_last() -> None:
    counts = {
        "entry_SYSCALL_64": (100, 5000),
        "__x64_sys_fork": (90, 4000),
        "__ia32_compat_sys_open": (3, 4500),
        "entry_SYSCALL_compat": (3, 4600),
        "asm_exc_page_fault": (40, 9000),
        "asm_sysvec_apic_timer_interrupt": (2, None),
        "asm_common_interrupt": (7, None),
        "asm_exc_debug": (0, 10),
        "do_fork": (5, 100),
    }
    plain = a_profile({(name, ""): 10 for name in counts}).region
    functions = tuple(
        function.model_copy(
            update={"entered": counts[function.symbol][0], "inclusive": counts[function.symbol][1]}
        )
        for function in plain.functions
    )
    of_module = functions[0].model_copy(update={"module": "kvm"})
    seen = kernel_entries(plain.model_copy(update={"functions": (*functions, of_module)}))
    assert [(entry.name, entry.entered, entry.inclusive, entry.system_call) for entry in seen] == [
        ("exception page_fault", 40, 9000, False),
        ("system call", 100, 5000, False),
        ("32-bit system call", 3, 4600, False),
        ("interrupt common", 7, None, False),
        ("interrupt apic_timer_interrupt", 2, None, False),
        ("open", 3, 4500, True),
        ("fork", 90, 4000, True),
    ]
    assert seen[0].function == "asm_exc_page_fault"


def test_both_sides_of_an_explanation_say_what_they_are() -> None:
    before = a_profile({("a", ""): 100}, program=20, operations=10, bundle=3, string_bytes={("a", ""): 640})
    two = a_profile({("a", ""): 300}, kernel="debian:6.12", operations=10)
    seen: Explanation = explain(before.model_copy(update={"release": "6.1.0-1"}), two)
    assert (seen.before.label, seen.before.release, seen.after.label) == (before.label, "6.1.0-1", two.label)
    assert (seen.before.operations, seen.before.instructions, seen.before.string_bytes) == (30, 120, 640)
    assert seen.before.median == pytest.approx(before.region.operations.median / 3)


def test_what_the_program_s_string_instructions_moved_is_the_program_s() -> None:
    plain = a_profile({("a", ""): 100}, program=20)
    pages = tuple(page.model_copy(update={"strings": StringCounts(bytes=77)}) for page in plain.region.pages)
    moved = plain.model_copy(update={"region": plain.region.model_copy(update={"pages": pages})})
    (program,) = [row for row in explain(plain, moved).rows if row.function == "[program]"]
    assert (program.before.string_bytes, program.after.string_bytes) == (0, 77)
    assert (program.after.instructions, program.subsystem, program.match) == (20, "user program", Match.SAME)


WORKERS = ("vm_normal", "folio_remove", "tlb_flush", "rmap_drop")


def zapping(
    name: str, *, between: str = "", instructions: int = 900, callees: tuple[str, ...] = WORKERS
) -> Profile:
    """`unmap_vmas` calls the function, by another one or itself; it calls what unmaps pages."""
    tree: Tree = [(0, "unmap_vmas", 500, 10)]
    if between:
        tree.append((1, between, 40, 10))
    tree.append((len(tree), name, instructions, 10))
    place = len(tree)
    tree += [(place, callee, 100, 20) for callee in callees]
    return a_tree(tree)


@pytest.mark.parametrize(
    ("new", "file", "is_one"),
    [
        (zapping("__zap_vma_range"), "mm/memory.c", True),
        (zapping("__zap_vma_range"), "mm/mmap.c", False),
        (zapping("__zap_vma_range"), "", False),
        (zapping("__zap_vma_range", instructions=1801), "mm/memory.c", False),
        (zapping("__zap_vma_range", callees=(*WORKERS[:2], "more", "others")), "mm/memory.c", False),
        (zapping("__zap_vma_range", between="unmap_vmas_one"), "mm/memory.c", True),
    ],
)
def test_a_function_is_the_same_where_what_was_between_it_and_its_caller_has_gone(
    new: Profile, file: str, is_one: bool
) -> None:
    """6.12's unmap_vmas calls unmap_single_vma, and that unmap_page_range; 7.2's calls __zap_vma_range."""
    old = zapping("unmap_page_range", between="unmap_single_vma")
    named = {"unmap_page_range": "mm/memory.c", "__zap_vma_range": file}
    for before, after, pair in (
        (old, new, "unmap_page_range → __zap_vma_range"),
        (new, old, "__zap_vma_range → unmap_page_range"),
    ):
        rows = matches(before, after, **{name: place for name, place in named.items() if place})
        assert (pair in rows) is is_one
        if is_one:
            assert (rows[pair].match, "both are called by unmap_vmas" in rows[pair].evidence) == (
                Match.PLACED,
                True,
            )


def test_two_callees_in_common_are_too_few_for_that() -> None:
    old = zapping("unmap_page_range", between="unmap_single_vma", callees=WORKERS[:2])
    new = zapping("__zap_vma_range", callees=WORKERS[:2])
    rows = matches(old, new, unmap_page_range="mm/memory.c", __zap_vma_range="mm/memory.c")
    assert "unmap_page_range → __zap_vma_range" not in rows
