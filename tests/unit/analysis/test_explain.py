"""What a difference is made of: the rows add up to it, and functions are matched by evidence only."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.support.profiles import a_profile

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.function_matching import function_map
from ktrial.analysis.attribution.subsystems import PREFIXES, subsystem
from ktrial.model.attribution import Explanation, FunctionDifference, Match
from ktrial.model.profile import FunctionFiles, Profile

PIECES = ("foo", "_foo", "__foo", "foo_noprof", "foo.isra.0", "foo.part.0.cold", "mas_find", "[unknown]")
FUNCTIONS = some.dictionaries(
    some.tuples(some.sampled_from(PIECES), some.sampled_from(["", "ext4", "xfs"])),
    some.integers(0, 10**9),
    max_size=12,
)
PROFILES = some.builds(
    a_profile,
    functions=FUNCTIONS,
    program=some.integers(0, 10**6),
    operations=some.integers(1, 500),
    bundle=some.integers(1, 3),
)


def explained(old: dict[str, int], new: dict[str, int]) -> Explanation:
    """Functions of the image, each with its instructions per operation, before and after."""
    before, after = (
        a_profile({(name, ""): 10 * count for name, count in counts.items()}) for counts in (old, new)
    )
    return explain(before, after)


def matched(explanation: Explanation) -> dict[tuple[str, ...], Match]:
    """The names that each function has before and after → how they were matched; without the program."""
    rows = (row for row in explanation.rows if row.function != "[program]")
    return {(*row.before.names, "→", *row.after.names): row.match for row in rows}


def row(explanation: Explanation, function: str) -> FunctionDifference:
    (the_row,) = (row for row in explanation.rows if row.function == function)
    return the_row


def test_functions_that_lock_memory_have_a_share_of_all_that_differs_whatever_its_sign() -> None:
    """fput +30 and read −10 lock on one side or both; the program and stat, +60, do not."""
    counts = ({"fput": 10, "read": 20, "stat": 0}, {"fput": 40, "read": 10, "stat": 60})
    before, after = (a_profile({(name, ""): 10 * n for name, n in side.items() if n}) for side in counts)
    sides = FunctionFiles(locking=frozenset({"fput", "read"})), FunctionFiles(locking=frozenset({"fput"}))
    explanation = explain(before, after, *sides)
    assert explanation.locking_share == pytest.approx(40 / 100)
    assert [row.function for row in explanation.rows if row.is_locking] == ["fput", "read"]
    assert explain(before, after).locking_share == 0, "of kernels of which nothing is known"
    assert explain(before, before, *sides).locking_share == 0, "where nothing differs"


def test_a_module_s_function_is_not_taken_for_the_image_s_of_that_name() -> None:
    before, after = a_profile({("fput", "ext4"): 10}), a_profile({("fput", "ext4"): 40})
    assert explain(before, after, FunctionFiles(locking=frozenset({"fput"}))).locking_share == 0


@given(PROFILES, PROFILES)
def test_the_rows_and_the_subsystems_add_up_to_the_whole_difference(before: Profile, after: Profile) -> None:
    explanation = explain(before, after)
    complete = Fraction(after.region.instructions, after.operations) - Fraction(
        before.region.instructions, before.operations
    )
    assert explanation.total == complete
    assert sum(explanation.difference(row) for row in explanation.rows) == complete
    assert sum(explanation.subsystems.values()) == complete
    assert explanation.unexplained == 0


@given(PROFILES, PROFILES)
def test_every_function_is_in_one_row(before: Profile, after: Profile) -> None:
    rows = explain(before, after).rows
    for profile, of_side in ((before, "before"), (after, "after")):
        named = sorted(name for row in rows for name in getattr(row, of_side).names)
        assert named == sorted(["[program]", *(function.symbol for function in profile.region.functions)])


@given(PROFILES, PROFILES)
def test_the_other_way_round_it_is_the_same_with_the_other_sign(before: Profile, after: Profile) -> None:
    forth, back = explain(before, after), explain(after, before)
    assert [abs(forth.difference(row)) for row in forth.rows] == [
        abs(back.difference(row)) for row in back.rows
    ]
    assert forth.total == -back.total


def test_what_counts_are_lost_is_said() -> None:
    before, after = a_profile({("foo", ""): 100}), a_profile({("foo", ""): 300})
    more = after.region.model_copy(update={"instructions": 350})
    explanation = explain(before, after.model_copy(update={"region": more}))
    assert explanation.total == 25
    assert explanation.unexplained == 5


def test_the_largest_difference_comes_first_whatever_its_sign() -> None:
    explanation = explained({"a": 100, "b": 50, "c": 7}, {"a": 90, "b": 0, "c": 27})
    assert [row.function for row in explanation.rows] == ["b", "c", "a", "[program]"]
    assert explanation.share(explanation.difference(row(explanation, "b"))) == pytest.approx(50 / 40)


def test_a_page_that_one_instruction_clears_weighs_what_its_bytes_cost() -> None:
    functions = {("clear_page_erms", ""): 100, ("kfree", ""): 100}
    before = a_profile(functions)
    after = a_profile(
        {("clear_page_erms", ""): 120, ("kfree", ""): 700}, string_bytes={("clear_page_erms", ""): 40_960}
    )
    explanation = explain(before, after)
    clearing, freeing, _ = explanation.rows
    assert (clearing.function, freeing.function) == ("clear_page_erms", "kfree")
    assert explanation.weight(clearing) == 2 + Fraction(4096, 32)
    assert explanation.weight(freeing) == explanation.difference(freeing) == 60
    assert explanation.byte_total == explanation.byte_difference(clearing) == 4096
    assert explanation.share(explanation.difference(clearing)) == pytest.approx(2 / 62)


def test_without_a_difference_there_are_no_shares() -> None:
    explanation = explained({"a": 5, "b": 6}, {"a": 6, "b": 5})
    assert explanation.total == 0
    assert explanation.share(Fraction(1)) is None


def test_pieces_that_the_compiler_made_of_one_function_are_one() -> None:
    explanation = explained({"foo": 10, "foo.cold": 1}, {"foo.isra.0": 8, "foo.part.0.cold": 1})
    assert matched(explanation) == {("foo", "foo.cold", "→", "foo.isra.0", "foo.part.0.cold"): Match.SAME}
    assert explanation.difference(row(explanation, "foo")) == -2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_cond_resched", "__cond_resched"),
        ("__get_vma_policy", "get_vma_policy"),
        ("kmem_cache_alloc", "kmem_cache_alloc_noprof"),
        ("sys_fork", "__x64_sys_fork"),
    ],
)
def test_a_function_that_got_another_name_is_found_and_marked(old: str, new: str) -> None:
    explanation = explained({old: 10}, {new: 12})
    assert matched(explanation) == {(old, "→", new): Match.RENAMED}
    assert row(explanation, new).name == f"{old} → {new}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("find_bit", "_find_bit"), ("__find_bit",)),
        (("_find_bit",), ("find_bit", "__find_bit")),
        (("alloc_set_pte",), ("set_pte_range",)),
        (("__do_sys_fork",), ("__x64_sys_fork",)),
    ],
)
def test_what_could_be_two_functions_or_another_is_not_matched(
    old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    matches = matched(explained(dict.fromkeys(old, 10), dict.fromkeys(new, 12)))
    assert set(matches.values()) == {Match.ONLY_FROM, Match.ONLY_TO}


def test_the_exact_name_with_noprof_is_taken_before_one_with_other_underscores() -> None:
    old = {"__alloc_pages": 100, "alloc_pages": 30}
    new = {"__alloc_pages_noprof": 110, "alloc_pages_noprof": 40, "_alloc_pages_noprof": 5}
    assert matched(explained(old, new)) == {
        ("__alloc_pages", "→", "__alloc_pages_noprof"): Match.RENAMED,
        ("alloc_pages", "→", "alloc_pages_noprof"): Match.RENAMED,
        ("→", "_alloc_pages_noprof"): Match.ONLY_TO,
    }


def test_a_name_that_both_kernels_have_is_not_taken_for_another_where_it_did_not_run() -> None:
    files = FunctionFiles(functions=frozenset({"vm_area_free", "__vm_area_free"}))
    before, after = a_profile({("vm_area_free", ""): 100}), a_profile({("__vm_area_free", ""): 90})
    assert set(matched(explain(before, after, files, files)).values()) == {Match.ONLY_FROM, Match.ONLY_TO}


def test_a_function_s_source_is_told_by_the_other_kernel_where_its_own_says_nothing() -> None:
    elsewhere = FunctionFiles(files={"frobnicate": "mm/slub.c"}, functions=frozenset({"frobnicate"}))
    explanation = explain(a_profile({}), a_profile({("frobnicate", ""): 10}), elsewhere)
    assert row(explanation, "frobnicate").subsystem == "slab"


def test_a_function_s_own_name_is_all_that_is_known_of_a_workload_that_was_not_mapped() -> None:
    mapped = function_map([(a_profile({("foo", ""): 10}), a_profile({("foo_noprof", ""): 10}))])
    before = a_profile({("foo", ""): 10, ("bar", ""): 10, ("gone", ""): 1})
    after = a_profile({("bar", ""): 20, ("come", ""): 1})
    explanation = explain(before, after, mapped=mapped)
    assert matched(explanation) == {
        ("foo", "→"): Match.ONLY_FROM,
        ("bar", "→", "bar"): Match.SAME,
        ("gone", "→"): Match.ONLY_FROM,
        ("→", "come"): Match.ONLY_TO,
    }
    assert row(explanation, "foo").evidence == "the second has it as foo_noprof: not called there"
    assert explanation.unexplained == 0


@given(PROFILES, PROFILES, PROFILES, PROFILES)
def test_whatever_the_map_was_made_of_the_rows_add_up_and_hold_each_function_once(
    before: Profile, after: Profile, other_before: Profile, other_after: Profile
) -> None:
    explanation = explain(before, after, mapped=function_map([(before, after), (other_before, other_after)]))
    assert explanation.unexplained == 0
    for profile, side in ((before, "before"), (after, "after")):
        named = sorted(name for row in explanation.rows for name in getattr(row, side).names)
        assert named == sorted(["[program]", *(function.symbol for function in profile.region.functions)])


def test_a_function_whose_own_name_is_there_is_not_taken_for_another() -> None:
    matches = matched(explained({"foo": 10}, {"foo": 9, "__foo": 3}))
    assert matches == {("foo", "→", "foo"): Match.SAME, ("→", "__foo"): Match.ONLY_TO}


def test_a_function_that_went_from_a_module_into_the_image_is_found() -> None:
    explanation = explain(a_profile({("map", "ext4"): 10}), a_profile({("map", ""): 10}))
    assert matched(explanation) == {("map", "→", "map"): Match.MOVED}


def test_functions_of_the_same_name_in_two_modules_stay_apart() -> None:
    explanation = explain(
        a_profile({("init", "ext4"): 10, ("init", "xfs"): 20}), a_profile({("init", "btrfs"): 30})
    )
    assert set(matched(explanation).values()) == {Match.ONLY_FROM, Match.ONLY_TO}


def test_profiles_of_two_workloads_are_not_compared() -> None:
    profile = a_profile({})
    with pytest.raises(ValueError, match="not one workload"):
        explain(profile, profile.model_copy(update={"workload": "exec"}))


@pytest.mark.parametrize(
    ("function", "module", "expected"),
    [
        ("mas_next_slot", "", "maple tree"),
        ("__mt_dup", "", "maple tree"),
        ("folio_add_lru", "", "mm"),
        ("kmem_cache_alloc_noprof", "", "slab"),
        ("clear_page_erms", "", "string operations"),
        ("complete_signal", "", "signals"),
        ("complete", "", "wait queues"),
        ("pte_offset_map", "", "page tables"),
        ("__fdget_pos", "", "file systems"),
        ("current_time", "", "file systems"),
        ("wait_consider_task", "", "processes"),
        ("chacha_permute", "", "random numbers"),
        ("__mem_cgroup_charge", "", "memory control groups"),
        ("ext4_map_blocks", "ext4", "module ext4"),
        ("[unknown]", "", "other"),
        ("[generated: ftrace]", "", "tracing"),
        ("[bpf: probe]", "", "BPF"),
        ("frobnicate", "", "other"),
    ],
)
def test_a_function_s_subsystem_is_told_by_its_name(function: str, module: str, expected: str) -> None:
    assert subsystem(function, module) == expected


def test_no_beginning_stands_for_two_subsystems() -> None:
    beginnings = [beginning for its in PREFIXES.values() for beginning in its]
    assert sorted(beginnings) == sorted(set(beginnings))
