"""Real kernels, 5.10 and 6.12: which functions are taken for one, by what evidence, and which are not."""

import pytest
from tests.support.profiles import a_profile, real_profile

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.function_matching import function_map
from ktrial.analysis.attribution.subsystems import OTHER, subsystem
from ktrial.model.attribution import Explanation, FunctionDifference, Match
from ktrial.model.profile import CallNode, FunctionFiles


def explained(workload: str) -> Explanation:
    (before, files_before), (after, files_after) = (
        real_profile(workload, version) for version in ("5.10", "6.12")
    )
    return explain(before, after, files_before, files_after)


@pytest.fixture(scope="module")
def fork() -> Explanation:
    return explained("fork")


@pytest.fixture(scope="module")
def pipe() -> Explanation:
    return explained("pipe")


def row(explanation: Explanation, name: str) -> FunctionDifference:
    (the_row,) = (row for row in explanation.rows if row.name == name)
    return the_row


@pytest.mark.parametrize("workload", ["fork", "pipe"])
def test_whatever_is_matched_the_rows_add_up_and_hold_each_symbol_once(workload: str) -> None:
    explanation = explained(workload)
    assert explanation.unexplained == 0
    for side, kernel in (("before", "5.10"), ("after", "6.12")):
        profile, _ = real_profile(workload, kernel)
        pieces = {function.symbol for function in profile.region.functions}
        named = [name for row in explanation.rows for name in getattr(row, side).names if name in pieces]
        assert len(named) == len(set(named))
        counted = sum(getattr(row, side).instructions for row in explanation.rows)
        assert counted == profile.region.instructions


# Each of these was checked by what is known of the kernel, not in its source.
@pytest.mark.parametrize(
    ("name", "match", "evidence"),
    [
        (
            "flush_tlb_func_common.constprop.0 → flush_tlb_func",
            Match.PLACED,
            "both are called by flush_tlb_mm_range, 4 and 4 times per operation, and call native_flush_tlb_",
        ),
        ("__send_signal → __send_signal_locked", Match.PLACED, "both are called by do_notify_parent"),
        ("alloc_set_pte → set_pte_range", Match.PLACED, "both are called by filemap_map_pages"),
        ("__list_add_valid → __list_add_valid_or_report", Match.PLACED, "both are called by "),
        (
            "handle_mm_fault → handle_mm_fault + __handle_mm_fault",
            Match.SPLIT,
            "__handle_mm_fault is not in the first, where its only caller handle_mm_fault itself calls do_wp",
        ),
        ("do_wait → do_wait + __do_wait", Match.SPLIT, "itself calls wait_consider_task"),
        (
            "filp_close → filp_close + filp_flush",
            Match.SPLIT,
            "itself calls dnotify_flush, locks_remove_posix",
        ),
        (
            "prep_new_page + kernel_init_free_pages → prep_new_page",
            Match.MERGED,
            "kernel_init_free_pages is not in the second, where its only caller prep_new_page itself calls "
            "clear_page_erms",
        ),
        (
            "__kmalloc + kmalloc_slab → __kmalloc_noprof",
            Match.MERGED,
            "its only caller __kmalloc has 50 instructions more, of the 42 it had",
        ),
        ("kmem_cache_alloc → kmem_cache_alloc_noprof", Match.RENAMED, "_noprof"),
    ],
)
def test_functions_of_fork_that_are_one(fork: Explanation, name: str, match: Match, evidence: str) -> None:
    pair = row(fork, name)
    assert pair.match is match
    assert evidence in pair.evidence


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("vfs_read + new_sync_read → vfs_read", Match.MERGED),
        ("vfs_write + new_sync_write → vfs_write", Match.MERGED),
        ("__wake_up_sync_key + __wake_up_common_lock → __wake_up_sync_key", Match.MERGED),
        ("__list_add_valid → __list_add_valid_or_report", Match.PLACED),
    ],
)
def test_functions_of_pipe_that_are_one(pipe: Explanation, name: str, match: Match) -> None:
    assert row(pipe, name).match is match


@pytest.mark.parametrize(
    ("function", "match", "evidence"),
    [
        # New in 6.1: nothing of 5.10 did its work under another name.
        ("mas_next_slot", Match.ONLY_TO, "the first has none of that name"),
        # A lock of each memory area, since 6.4: it looks like a part of its caller, but it is new.
        ("lock_vma_under_rcu", Match.ONLY_TO, "the first has none of that name"),
        # Memory that the hypervisor has not accepted yet, since 6.5.
        ("cond_accept_memory", Match.ONLY_TO, "the first has none of that name"),
        # Their names have nothing in common, and their callers are others.
        ("__vma_link_rb", Match.ONLY_FROM, "the second has none of that name"),
        ("memset_orig", Match.ONLY_TO, "the first has it too: not called there"),
        ("release_pages", Match.ONLY_FROM, "the second has it too: not called there"),
        ("lock_page_memcg", Match.ONLY_FROM, "the second has none of that name"),
    ],
)
def test_what_has_no_counterpart_is_given_none(
    fork: Explanation, function: str, match: Match, evidence: str
) -> None:
    pair = row(fork, function)
    assert (pair.match, pair.evidence) == (match, evidence)


@pytest.mark.parametrize(
    ("names", "files", "match"),
    [
        # Two hooks of one caller: of two security modules, and of one.
        (("cap_mmap_file", "ipe_mmap_file"), ("security/", "security/ipe/"), Match.ONLY_FROM),
        (("ipe_mmap_file", "ipe_mmap_files"), ("security/ipe/", "security/ipe/"), Match.PLACED),
        # Of two directories.
        (("foo_mmap_file", "foo_mmap_files"), ("mm/mmap.c", "fs/read_write.c"), Match.ONLY_FROM),
        (("foo_mmap_file", "foo_mmap_files"), ("mm/", "mm/mmap.c"), Match.PLACED),
        # Called from everywhere.
        (("__cond_resched", "cond_resched_now"), ("kernel/", "kernel/"), Match.ONLY_FROM),
    ],
)
def test_a_place_is_evidence_only_where_the_source_allows_it(
    names: tuple[str, str], files: tuple[str, str], match: Match
) -> None:
    sides = []
    for name, file in zip(names, files, strict=True):
        profile = a_profile({("caller", ""): 100, (name, ""): 50})
        tree = (
            CallNode(parent=0, function=-1, instructions=0, entered=0),
            CallNode(parent=0, function=-1, instructions=0, entered=0),
            CallNode(parent=0, function=0, instructions=100, entered=10),
            CallNode(parent=2, function=1, instructions=50, entered=10),
        )
        region = profile.region.model_copy(update={"nodes": tree})
        functions_known = FunctionFiles(files={name: file}, functions=frozenset({"caller", name}))
        sides.append((profile.model_copy(update={"region": region}), functions_known))
    (before, files_before), (after, files_after) = sides
    rows = explain(before, after, files_before, files_after).rows
    assert {row.match for row in rows if row.before.names[:1] == (names[0],)} == {match}


def test_a_caller_has_one_place_for_functions_of_like_names_that_do_other_work() -> None:
    """`mas_wr_store_setup` was inlined, `mas_wr_store_type` is new: `mas_store` called each of them once."""
    sides = []
    for name, instructions, extra in (
        ("mas_wr_store_setup", 200, "mas_is_span_wr"),
        ("mas_wr_store_type", 1300, ""),
    ):
        functions = {("mas_store", ""): 500, (name, ""): instructions} | ({(extra, ""): 60} if extra else {})
        nodes = [CallNode(parent=0, function=-1, instructions=0, entered=0)] * 2
        nodes.append(CallNode(parent=0, function=0, instructions=500, entered=10))
        nodes.append(CallNode(parent=2, function=1, instructions=instructions, entered=10))
        if extra:
            nodes.append(CallNode(parent=3, function=2, instructions=60, entered=10))
        profile = a_profile(functions)
        region = profile.region.model_copy(update={"nodes": tuple(nodes)})
        names = frozenset(symbol for symbol, _ in functions)
        functions_known = FunctionFiles(files=dict.fromkeys(names, "lib/maple_tree.c"), functions=names)
        sides.append((profile.model_copy(update={"region": region}), functions_known))
    (before, files_before), (after, files_after) = sides
    rows = explain(before, after, files_before, files_after).rows
    assert {row.name: row.match for row in rows if row.name.startswith("mas_wr")} == {
        "mas_wr_store_setup": Match.ONLY_FROM,
        "mas_wr_store_type": Match.ONLY_TO,
    }


def test_without_the_tree_of_calls_only_names_are_evidence() -> None:
    profiles = []
    for kernel in ("5.10", "6.12"):
        profile, _ = real_profile("fork", kernel)
        region = profile.region.model_copy(update={"nodes": None})
        profiles.append(profile.model_copy(update={"region": region}))
    explanation = explain(profiles[0], profiles[1])
    kinds = {row.match for row in explanation.rows}
    assert kinds == {Match.SAME, Match.RENAMED, Match.ONLY_FROM, Match.ONLY_TO}
    assert explanation.unexplained == 0
    assert {row.evidence for row in explanation.rows if row.match is Match.ONLY_TO} == {""}


@pytest.mark.parametrize("workload", ["fork", "pipe"])
def test_nearly_every_instruction_has_a_subsystem(workload: str) -> None:
    explanation = explained(workload)
    for side in ("before", "after"):
        counts = {row: getattr(row, side).instructions for row in explanation.rows}
        nowhere = sum(count for row, count in counts.items() if row.subsystem == OTHER)
        assert nowhere <= 0.005 * sum(counts.values())


@pytest.mark.parametrize("workload", ["fork", "pipe"])
@pytest.mark.parametrize("kernel", ["5.10", "6.12"])
def test_nearly_every_instruction_has_a_subsystem_where_no_source_is_known(
    workload: str, kernel: str
) -> None:
    profile, _ = real_profile(workload, kernel)
    nowhere = sum(
        function.instructions
        for function in profile.region.functions
        if subsystem(function.symbol, function.module) == OTHER
    )
    assert nowhere <= 0.01 * profile.region.instructions


def test_functions_are_mapped_once_for_two_kernels_over_all_workloads() -> None:
    sides = {
        workload: (real_profile(workload, "5.10"), real_profile(workload, "6.12"))
        for workload in ("fork", "pipe")
    }
    functions_known = [
        FunctionFiles(
            files={name: file for both in sides.values() for name, file in both[side][1].files.items()},
            functions=frozenset().union(*(both[side][1].functions for both in sides.values())),
        )
        for side in (0, 1)
    ]
    mapped = function_map(
        [(old[0], new[0]) for old, new in sides.values()], functions_known[0], functions_known[1]
    )
    partners: dict[str, set[tuple[str, ...]]] = {}
    for (before, _), (after, _) in sides.values():
        explanation = explain(before, after, functions_known[0], functions_known[1], mapped=mapped)
        assert explanation.unexplained == 0
        for row in explanation.rows:
            if row.before.names and row.after.names and row.match in {Match.RENAMED, Match.PLACED}:
                partners.setdefault(row.before.names[0], set()).add(row.after.names)
    assert partners["find_first_bit"] == {("_find_first_bit",)}
    assert max(map(len, partners.values())) == 1


def test_the_source_of_a_function_is_told(fork: Explanation) -> None:
    assert row(fork, "mas_next_slot").file == "lib/maple_tree.c"
    assert row(fork, "mas_next_slot").subsystem == "maple tree"
