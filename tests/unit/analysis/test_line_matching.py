"""A row of the ranking of functions, opened: lines of both sides beside each other, which add up to it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.profiles import a_profile

from ktrial.analysis.attribution.decomposition import explain
from ktrial.analysis.attribution.line_matching import line_difference, row_named
from ktrial.analysis.errors import AnalysisUsageError
from ktrial.model.attribution import Attribution, Differences
from ktrial.model.source_lines import FunctionLines, LineDifference, LinePair, SourceLine, counts_of

Lines = Mapping[tuple[int, str], int]
"""Line and innermost inlined function (empty: the function itself) → instructions in the region."""


def an_attribution(before: dict[str, int], after: dict[str, int]) -> Attribution:
    """Of functions of the kernel's image, in ten operations."""
    old, new = (a_profile({(name, ""): count for name, count in side.items()}) for side in (before, after))
    return Attribution(before=old, after=new, explanation=explain(old, new), differences=Differences())


def by_line(lines: Lines, function: str = "do_mmap") -> FunctionLines:
    return FunctionLines(
        kernel="debian:6.1",
        workload="fork",
        function=function,
        operations=10,
        instructions=sum(lines.values()),
        lines=tuple(
            SourceLine(file="mm/mmap.c", line=line, inlined=(inlined,) if inlined else (), instructions=count)
            for (line, inlined), count in lines.items()
        ),
    )


def opened(before: Lines, after: Lines, *, same_code: bool = False) -> LineDifference:
    old, new = by_line(before), by_line(after)
    attribution = an_attribution({"do_mmap": old.instructions}, {"do_mmap": new.instructions})
    row = row_named(attribution.explanation, "do_mmap")
    return line_difference(attribution, row, ([old], [new]), same_code=same_code)


def numbers(pair: LinePair) -> tuple[str, int | None, int | None]:
    """Function, line before, line after."""
    return pair.function, *(line.line if line else None for line in (pair.before, pair.after))  # type: ignore[return-value]


def test_lines_that_moved_and_count_alike_stand_beside_each_other() -> None:
    before = {(10, ""): 30, (11, ""): 40, (14, ""): 20}
    after = {(110, ""): 30, (111, ""): 40, (112, ""): 70, (115, ""): 20}
    assert [numbers(pair) for pair in opened(before, after).lines] == [
        ("do_mmap", None, 112),
        ("do_mmap", 11, 111),
        ("do_mmap", 10, 110),
        ("do_mmap", 14, 115),
    ]


def test_a_loop_that_runs_more_often_has_its_lines_beside_each_other() -> None:
    before = {(10, ""): 30, (11, ""): 100, (12, ""): 200, (13, ""): 30}
    after = {(20, ""): 30, (21, ""): 150, (22, ""): 300, (23, ""): 30}
    assert [numbers(pair) for pair in opened(before, after).lines][:2] == [
        ("do_mmap", 12, 22),
        ("do_mmap", 11, 21),
    ]


def test_lines_of_one_image_are_themselves() -> None:
    before, after = {(10, ""): 30, (11, ""): 40}, {(10, ""): 40, (12, ""): 40}
    pairs = opened(before, after, same_code=True).lines
    assert sorted(map(numbers, pairs), key=str) == [
        ("do_mmap", 10, 10),
        ("do_mmap", 11, None),
        ("do_mmap", None, 12),
    ]


def test_inlined_functions_are_paired_by_their_names() -> None:
    difference = opened({(10, "map"): 30, (50, ""): 5}, {(90, "map"): 60, (50, ""): 5})
    assert [(frame.function, frame.before, frame.after) for frame in difference.frames] == [
        ("map", 30, 60),
        ("do_mmap", 5, 5),
    ]
    assert numbers(difference.lines[0]) == ("map", 10, 90)


some_lines = st.dictionaries(
    st.tuples(st.integers(1, 60), st.sampled_from(["", "map", "unmap"])), st.integers(1, 5), max_size=30
)


@given(before=some_lines, after=some_lines, same_code=st.booleans())
def test_frames_and_lines_add_up_to_the_function_and_each_line_is_there_once(
    before: Lines, after: Lines, same_code: bool
) -> None:
    if not (before or after):
        return
    difference = opened(before or {(1, ""): 1}, after or {(1, ""): 1}, same_code=same_code)
    sides = difference.before.instructions, difference.after.instructions
    assert tuple(map(sum, zip(*map(counts_of, difference.lines), strict=True))) == sides
    frames = [(frame.before, frame.after) for frame in difference.frames]
    assert tuple(map(sum, zip(*frames, strict=True))) == sides
    assert sum(map(difference.of_pair, difference.lines)) == difference.difference
    for side in range(1, 3):
        places = [(numbers(pair)[0], numbers(pair)[side]) for pair in difference.lines]
        named = [place for place in places if place[1]]
        assert len(named) == len(set(named))


def test_what_one_side_inlined_is_a_function_of_its_own_on_the_other() -> None:
    attribution = an_attribution({"do_mmap": 50, "map": 120}, {"do_mmap": 90})
    row = row_named(attribution.explanation, "do_mmap")
    nested = SourceLine(file="mm/mm.h", line=4, inlined=("map", "is_mapped"), instructions=10)
    after = by_line({(1, ""): 40, (9, "map"): 40})
    after = after.model_copy(update={"lines": (*after.lines, nested), "instructions": 90})
    sides = [by_line({(1, ""): 50})], [after]
    (part,) = line_difference(attribution, row, sides, same_code=False).elsewhere
    assert (part.function, part.inlined, part.own) == ("map", 5.0, 12.0)
    assert (part.within, part.apart) == (
        attribution.explanation.after.label,
        attribution.explanation.before.label,
    )


def test_pieces_that_the_compiler_made_are_one_frame() -> None:
    attribution = an_attribution({"do_mmap.cold": 20, "do_mmap": 30}, {"do_mmap": 60})
    row = row_named(attribution.explanation, "do_mmap")
    pieces = [by_line({(1, ""): 30}), by_line({(1, ""): 5, (2, ""): 15}, "do_mmap.cold")]
    difference = line_difference(attribution, row, (pieces, [by_line({(1, ""): 60})]), same_code=False)
    assert [(frame.function, frame.before, frame.after) for frame in difference.frames] == [
        ("do_mmap", 50, 60)
    ]
    assert difference.before.symbols == ("do_mmap", "do_mmap.cold")


def test_a_row_is_found_by_its_name_on_either_side() -> None:
    explanation = an_attribution({"__do_mmap": 50}, {"do_mmap": 90}).explanation
    (row, _) = explanation.rows
    assert row_named(explanation, "__do_mmap") == row_named(explanation, "do_mmap") == row


def test_a_function_that_ran_on_neither_side_is_refused_with_those_that_did() -> None:
    explanation = an_attribution({"do_mmap": 50, "map": 5}, {"do_mmap": 90, "map": 5}).explanation
    with pytest.raises(AnalysisUsageError, match=r"ran in fork on neither side \(did you mean do_mmap"):
        row_named(explanation, "do_mmpa")
    with pytest.raises(AnalysisUsageError, match="xyzzy ran in fork on neither side") as raised:
        row_named(explanation, "xyzzy")
    assert "the heaviest rows are do_mmap, map" in raised.value.advice


@pytest.mark.parametrize(
    ("function", "what"), [("[program]", "no function of the kernel's"), ("map", "of the module ext4")]
)
def test_programs_and_modules_are_not_opened(function: str, what: str) -> None:
    old, new = (a_profile({("map", "ext4"): count}, program=5) for count in (30, 40))
    with pytest.raises(AnalysisUsageError, match=f"is {what}"):
        row_named(explain(old, new), function)
