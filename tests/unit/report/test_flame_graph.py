"""Flame graphs: what is as wide as what, which colour it has, and that no name becomes markup."""

import re
from fractions import Fraction

import pytest
from defusedxml import ElementTree
from tests.support.places import PLUGIN_COUNTS
from tests.support.profiles import a_profile, with_calls

from ktrial.analysis.attribution.decomposition import explain
from ktrial.machines.qemu import plugin
from ktrial.model.profile import Profile
from ktrial.report import flame_graph
from ktrial.report.call_tree import aligned, folded, folded_pair, stacks, stacks_of_both
from ktrial.report.flame_graph import Width, flame_frames
from ktrial.report.stack_tree import Stacks

SVG = "{http://www.w3.org/2000/svg}"


def told(text: str) -> Stacks:
    """Stacks as the folded format has them."""
    lines = (line.rsplit(" ", 1) for line in text.split("\n") if line.strip())
    return {tuple(stack.strip().split(";")): Fraction(count) for stack, count in lines}


BEFORE = told("entry;fork 10\nentry;fork;copy 40\nentry;fork;gone 30\nentry;exit 20")
AFTER = told("entry;call;fork 10\nentry;call;fork;copy 70\nentry;call 5\nentry;call;exit 15\nentry;new 8")


def bars(svg: str) -> dict[str, dict[str, str]]:
    """Name → the attributes of its bar and the class of its colour."""
    by_name = {}
    for bar in ElementTree.fromstring(svg).iter(f"{SVG}svg"):
        if bar.get("class") == "f":
            title, rect = bar.find(f"{SVG}title"), bar.find(f"{SVG}rect")
            assert title is not None
            assert rect is not None
            name, *numbers = str(title.text).split("\n")
            by_name[name] = {**bar.attrib, "colour": rect.attrib["class"], "said": "\n".join(numbers)}
    return by_name


def drawn(width: Width = Width.AFTER) -> dict[str, dict[str, str]]:
    before, after = with_calls(BEFORE, kernel="debian:6.1"), with_calls(AFTER, kernel="debian:6.12")
    return bars(flame_graph.of_difference(before, after, explain(before, after), width))


def share(bar: dict[str, str]) -> float:
    return float(bar["width"].removesuffix("%"))


def test_stacks_are_told_as_the_plugin_saw_them() -> None:
    profile = with_calls(BEFORE, operations=10)
    assert stacks(profile) == {stack: count / 10 for stack, count in BEFORE.items()}
    assert list(folded(profile)) == [
        "entry;exit 20",
        "entry;fork 10",
        "entry;fork;copy 40",
        "entry;fork;gone 30",
    ]


def test_the_stacks_of_what_the_plugin_wrote_sum_to_the_whole() -> None:
    (region,) = plugin.read(PLUGIN_COUNTS).regions
    count = region.operations.count
    profile = Profile(kernel="debian:6.1", workload="syscall", operations=count, region=region)
    lines = list(folded(profile))
    assert lines[0] == "[program] 650"
    start = "entry_SYSCALL_64;entry_SYSCALL_64_safe_stack;entry_SYSCALL_64_after_hwframe"
    assert f"{start};do_syscall_64 460" in lines
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == region.instructions


def test_without_calls_every_function_and_every_program_is_a_stack() -> None:
    profile = a_profile({("map", "ext4"): 30, ("a;b", ""): 20}, program=50)
    assert list(folded(profile)) == ["[program];work 50", "a:b 20", "map [ext4] 30"]


def test_a_function_that_only_the_second_runs_does_not_part_what_both_run() -> None:
    assert aligned(BEFORE, AFTER) == told(
        "entry;call;fork 10\nentry;call;fork;copy 40\nentry;call;fork;gone 30\nentry;call;exit 20"
    )


def test_callees_of_a_function_that_only_the_first_runs_are_found_again() -> None:
    before, after = told("entry;old 3\nentry;old;copy 40"), told("entry;copy 50")
    assert aligned(before, after) == told("entry;old 3\nentry;copy 40")


@pytest.mark.parametrize(("one", "other"), [(BEFORE, AFTER), (AFTER, BEFORE), (BEFORE, {}), ({}, AFTER)])
def test_nothing_is_lost_by_telling_stacks_as_the_other_does(one: Stacks, other: Stacks) -> None:
    assert sum(aligned(one, other).values()) == sum(one.values())


def test_what_is_taken_for_one_function_has_one_name() -> None:
    before = with_calls(told("entry;kmem_cache_alloc.isra.0 40"))
    after = with_calls(told("entry;kmem_cache_alloc_noprof 30"))
    old, new = stacks_of_both(before, after, explain(before, after))
    assert set(old) == set(new)


def test_a_pair_of_stacks_is_folded_in_three_columns() -> None:
    assert list(folded_pair(told("a;b 3\na 1"), told("a;b 4\nc 2"), 10)) == ["a 10 0", "a;b 30 40", "c 0 20"]


def test_frames_sum_to_the_profile_and_callers_hold_their_callees() -> None:
    graph = flame_frames(BEFORE, AFTER).frames
    assert graph[0].inclusive == (100, 108)
    assert sum(frame.exclusive.before for frame in graph) == 100
    assert sum(frame.exclusive.after for frame in graph) == 108
    for index, frame in enumerate(graph[1:], start=1):
        assert frame.parent < index
        assert frame.depth == graph[frame.parent].depth + 1


def test_small_frames_are_left_out_and_counted_but_not_what_has_changed() -> None:
    before, after = told("a 1000\nb 1\nc 5"), told("a 1000\nb 1\nc 9")
    graph = flame_frames(before, after, 0.01)
    assert [frame.name for frame in graph.frames] == ["all", "a", "c"]
    assert graph.left_out == 1


def test_a_page_has_at_most_so_many_frames() -> None:
    many: Stacks = {("entry", f"f{number}"): Fraction(number) for number in range(1, 2000)}
    graph = flame_frames(many, many, most=100)
    assert len(graph.frames) == 100
    assert graph.left_out + len(graph.frames) == 2001


def test_a_frame_is_as_wide_as_the_second_kernel_and_red_where_it_grew() -> None:
    drawing = drawn()
    assert share(drawing["all"]) == 100
    assert share(drawing["copy"]) == pytest.approx(100 * 70 / 108, rel=1e-4)
    assert drawing["copy"]["colour"].startswith("p")
    assert drawing["exit"]["colour"].startswith("m")
    assert drawing["fork"]["colour"] == "d0"
    assert share(drawing["gone"]) == 0


def test_a_function_that_vanished_is_seen_at_the_first_kernel_s_width() -> None:
    drawing = drawn(Width.BEFORE)
    assert share(drawing["gone"]) == 30
    assert drawing["gone"]["colour"].startswith("m")
    assert share(drawing["new"]) == 0


def test_a_frame_says_both_numbers_its_difference_and_its_share() -> None:
    assert drawn()["copy"]["said"] == "4 → 7, +3; 375.0\u00a0% of the difference\nits own: 4 → 7, +3"


def test_one_profile_tells_kernel_modules_and_programs_apart() -> None:
    svg = flame_graph.of_profile(a_profile({("map", "ext4"): 30, ("fork", ""): 20}, program=50))
    colours = {name: bar["colour"] for name, bar in bars(svg).items()}
    assert colours["map [ext4]"] == "module"
    assert colours["work"] == "user"
    assert re.fullmatch(r"k\d", colours["fork"])
    assert bars(svg)["work"]["said"].startswith("5 instructions per operation; 50.0\u00a0%")


def test_names_stay_names() -> None:
    hostile = "]]></script><script>alert(1)</script>&\"'\x07\u202e"
    svg = flame_graph.of_profile(a_profile({(hostile, hostile): 30}, kernel=hostile))
    root = ElementTree.fromstring(svg)
    assert len(list(root.iter(f"{SVG}script"))) == 1
    assert "alert(1)" not in str(root.findtext(f"{SVG}script"))
    assert any(name.startswith("]]></script><script>alert(1)") for name in bars(svg))
    assert "\x07" not in svg


def test_the_file_needs_nothing_else() -> None:
    svg = flame_graph.of_profile(a_profile({("fork", ""): 20}))
    addresses = set(re.findall(r"https?://[^\"' ]+", svg))
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert not re.search(r"@import|url\(|<image|<use|\bsrc=|\bhref=", svg)


def test_the_same_profiles_give_the_same_picture() -> None:
    assert drawn() == drawn()
