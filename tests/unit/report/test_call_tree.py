"""The net difference along the tree of calls: what cancels is one row; the rows' own parts sum to it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.profiles import with_calls

from ktrial.analysis.attribution.decomposition import explain
from ktrial.report.call_tree import CallTree, call_tree, call_tree_table

Calls = dict[tuple[str, ...], int]
Rows = list[tuple[int, str, float]]


def tree_of(before: Calls, after: Calls, most: int = 20) -> CallTree | None:
    """Instructions by stack, in ten operations."""
    old, new = (
        with_calls({stack: Fraction(count) for stack, count in stacks.items()}) for stacks in (before, after)
    )
    return call_tree(old, new, explain(old, new), most)


def shown(tree: CallTree | None) -> list[tuple[int, str, float]]:
    assert tree is not None
    return [(row.depth, " > ".join(row.functions), row.difference) for row in tree.rows]


SYSCALL = ("entry", "syscall")
CASES: dict[str, tuple[Calls, Calls, Rows]] = {
    "a function that only leads on is no row": (
        {(*SYSCALL, "read"): 1000, (*SYSCALL, "write"): 1000},
        {(*SYSCALL, "read"): 1500, (*SYSCALL, "write"): 1000},
        [(0, "entry > syscall > read", 50)],
    ),
    "inlined into its caller: they cancel": (
        {(*SYSCALL, "read"): 1000, (*SYSCALL, "read", "copy"): 9000, (*SYSCALL, "fault"): 100},
        {(*SYSCALL, "read"): 10_100, (*SYSCALL, "fault"): 900},
        [(0, "entry > syscall", 90), (1, "fault", 80), (1, "read", 10)],
    ),
    "another of its name in its place, which calls the same": (
        {(*SYSCALL, "munmap", "do_mas"): 9000, (*SYSCALL, "munmap", "do_mas", "free_pages"): 5000},
        {(*SYSCALL, "munmap", "do_vmi"): 9500, (*SYSCALL, "munmap", "do_vmi", "free_pages"): 6000},
        [(0, "entry > syscall > munmap > do_vmi", 150), (1, "free_pages", 100)],
    ),
    "others in their place": (
        {(*SYSCALL, "x"): 10, (*SYSCALL, "munmap", "prepare"): 4000, (*SYSCALL, "munmap", "walk"): 5000},
        {(*SYSCALL, "x"): 10, (*SYSCALL, "munmap", "gather", "y"): 9500, (*SYSCALL, "fault"): 400},
        [
            (0, "entry > syscall", 90),
            (1, "munmap > walk + prepare → gather", 50),
            (2, "y", 950),
            (1, "fault", 40),
        ],
    ),
    "something new stands by itself": (
        {(*SYSCALL, "read"): 1000},
        {(*SYSCALL, "read"): 1000, (*SYSCALL, "read", "audit"): 700},
        [(0, "entry > syscall > read > audit", 70)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_are_net(case: str) -> None:
    before, after, rows = CASES[case]
    assert shown(tree_of(before, after)) == rows


def test_parts_that_cancel_everywhere_are_told_by_their_sum() -> None:
    before, after, _ = CASES["inlined into its caller: they cancel"]
    tree = tree_of(before, after)
    assert tree is not None
    assert tree.gross == 910 + 900 + 80
    assert sum(row.remainder for row in tree.rows) + tree.remainder == pytest.approx(90)
    remainders = sum(abs(row.remainder) for row in tree.rows)
    assert remainders < tree.gross / 10


def test_nothing_is_shown_where_calls_were_not_followed_or_nothing_differs() -> None:
    same: Calls = {(*SYSCALL, "read"): 1000}
    assert tree_of(same, same) is None


def test_the_table_ends_with_the_sum_of_what_no_other_row_has() -> None:
    before, after, _ = CASES["something new stands by itself"]
    tree = tree_of(before, after)
    assert tree is not None
    texts = [[cell.text for cell in row.cells] for row in call_tree_table(tree, ("6.1", "6.12")).rows]
    assert texts[0][0] == "entry › … › audit"
    assert texts[-1] == ["the sum of own", "100", "170", "+70", "100.0", "+70"]


@given(
    st.dictionaries(
        st.lists(st.sampled_from("abcde"), min_size=1, max_size=4).map(tuple), st.integers(1, 9999)
    ),
    st.dictionaries(
        st.lists(st.sampled_from("bcdef"), min_size=1, max_size=4).map(tuple), st.integers(1, 9999)
    ),
    st.integers(1, 12),
)
def test_own_parts_sum_to_the_difference_whatever_is_shown(before: Calls, after: Calls, most: int) -> None:
    tree = tree_of(before, after, most)
    difference = (sum(after.values()) - sum(before.values())) / 10
    if tree is None:
        assert difference == 0
        return
    assert len(tree.rows) <= most
    assert sum(row.remainder for row in tree.rows) + tree.remainder == pytest.approx(difference)
