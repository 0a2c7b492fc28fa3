"""A row of the ranking of functions, opened into source lines, with those of both sides beside each other.

Lines of one image are themselves. Between two kernels line numbers move, and no source is at hand. There the
lines of each function, inlined or not, are taken in their order, as diff(1) takes them, and those whose
counts are alike stand beside each other. So lines of equal counts drop out, and what is left is where the
function does something else. Whatever stands beside what, the pairs add up to the function's difference.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fractions import Fraction

from ktrial.analysis.attribution.function_matching import functions_of, source_name
from ktrial.analysis.errors import AnalysisUsageError
from ktrial.model.attribution import Attribution, Count, Explanation, FunctionDifference
from ktrial.model.notation import nearest
from ktrial.model.profile import PROGRAM, FunctionFiles, Profile
from ktrial.model.source_lines import (
    FramePair,
    FunctionLines,
    InlinedElsewhere,
    LineDifference,
    LinePair,
    LineSide,
    SourceLine,
    counts_of,
)

Sides = tuple[Sequence[FunctionLines], Sequence[FunctionLines]]
"""The functions of a row, by line, in the first and in the second treatment."""
_MOST_NAMED = 5


def row_named(explanation: Explanation, function: str) -> FunctionDifference:
    """The row of a function, by its name on either side; the heaviest where there are several.

    Raises AnalysisUsageError: it ran on neither side, or no source lines are known of what it is.
    """
    rows = [row for row in explanation.rows if function in _names(row)]
    if not rows:
        with_lines = [row for row in explanation.rows if _has_lines(row)]
        names = [name for row in with_lines for name in _names(row)]
        shown = ", ".join(row.function for row in with_lines[:_MOST_NAMED])
        raise AnalysisUsageError(
            f"{function} ran in {explanation.workload} on neither side{nearest(function, names)}.",
            hint=f"the heaviest rows are {shown}; all of them: ktrial explain --all",
        )
    named = next((row for row in rows if _has_lines(row)), None)
    if named is None:
        what = f"of the module {rows[0].module}" if rows[0].module else "no function of the kernel's"
        raise AnalysisUsageError(
            f"{function} is {what}: it cannot be opened into source lines.",
            hint="lines are known of functions of the kernel's image",
        )
    return named


def _names(row: FunctionDifference) -> set[str]:
    symbols = {*row.before.names, *row.after.names}
    return {row.function, *symbols, *map(source_name, symbols)}


def _has_lines(row: FunctionDifference) -> bool:
    return not row.module and row.function != PROGRAM and not row.function.startswith("[")


def line_difference(
    attribution: Attribution, row: FunctionDifference, sides: Sides, *, same_code: bool
) -> LineDifference:
    """The row, opened. `sides`: its functions by line, as they were counted for it."""
    explanation = attribution.explanation
    first, second = (
        _side(side.label, side.operations, count, functions)
        for side, count, functions in zip(
            (explanation.before, explanation.after), (row.before, row.after), sides, strict=True
        )
    )
    opened = LineDifference(
        workload=explanation.workload,
        function=row.name,
        before=first,
        after=second,
        whole=float(explanation.total),
        frames=(),
        lines=(),
        same_code=same_code,
    )
    old, new = (
        _by_frame(functions, _called(count, row.function))
        for functions, count in zip(sides, (row.before, row.after), strict=True)
    )
    pairs = [
        pair
        for frame in dict.fromkeys((*old, *new))
        for pair in _paired(frame, old.get(frame, []), new.get(frame, []), opened)
    ]
    frames = [
        FramePair(function=frame, before=_sum(old.get(frame, [])), after=_sum(new.get(frame, [])))
        for frame in dict.fromkeys((*old, *new))
    ]
    profiles = (attribution.before, attribution.after)
    return opened.model_copy(
        update={
            "frames": tuple(
                sorted(
                    frames,
                    key=lambda frame: (-abs(opened.more(frame.before, frame.after)), -frame.after),
                )
            ),
            "lines": tuple(
                sorted(pairs, key=lambda pair: (-abs(opened.of_pair(pair)), -sum(counts_of(pair))))
            ),
            "elsewhere": tuple(_elsewhere(opened, frames, sides, profiles)),
        }
    )


def _side(label: str, operations: int, count: Count, functions: Sequence[FunctionLines]) -> LineSide:
    counted = functions[0].operations if functions else operations
    return LineSide(
        label=label,
        operations=counted,
        instructions=sum(function.instructions for function in functions),
        in_ranking=round(Fraction(count.instructions * counted, operations)),
        symbols=tuple(function.function for function in functions),
    )


def _called(count: Count, function: str) -> dict[str, str]:
    """A renamed function's name on this side → the row's: its own lines are one frame on both sides."""
    return {source_name(count.names[0]): source_name(function)} if count.names else {}


def _by_frame(functions: Iterable[FunctionLines], called: Mapping[str, str]) -> dict[str, list[SourceLine]]:
    """Function, inlined or not → its lines, in the order of the source, each line once."""
    lines: dict[str, dict[tuple[str, int], SourceLine]] = defaultdict(dict)
    for function in functions:
        name = source_name(function.function)
        itself = called.get(name, name)
        for line in function.lines:
            own = lines[line.inlined[-1] if line.inlined else itself]
            same = own.get((line.file, line.line))
            total = line.instructions + (same.instructions if same else 0)
            own[line.file, line.line] = (same or line).model_copy(update={"instructions": total})
    return {
        frame: [line for _, line in sorted(by_place.items(), key=lambda item: item[0])]
        for frame, by_place in lines.items()
    }


def _sum(lines: Iterable[SourceLine]) -> int:
    return sum(line.instructions for line in lines)


def _paired(
    frame: str, old: Sequence[SourceLine], new: Sequence[SourceLine], opened: LineDifference
) -> Iterator[LinePair]:
    """The lines of one frame: each of them in one pair."""
    if opened.same_code:
        before, after = ({(line.file, line.line): line for line in lines} for lines in (old, new))
        for place in dict.fromkeys((*before, *after)):
            yield LinePair(function=frame, before=before.get(place), after=after.get(place))
        return
    first = [Fraction(line.instructions, opened.before.operations) for line in old]
    second = [Fraction(line.instructions, opened.after.operations) for line in new]
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        if end - start == new_end - new_start:
            for left, right in zip(old[start:end], new[new_start:new_end], strict=True):
                yield LinePair(function=frame, before=left, after=right)
        else:
            yield from (LinePair(function=frame, before=line) for line in old[start:end])
            yield from (LinePair(function=frame, after=line) for line in new[new_start:new_end])


def _elsewhere(
    opened: LineDifference, frames: Iterable[FramePair], sides: Sides, profiles: tuple[Profile, Profile]
) -> Iterator[InlinedElsewhere]:
    """Frames of one side that are functions of their own on the other, and not part of this row there."""
    nothing = FunctionFiles()
    counts = [functions_of(profile, nothing).counts for profile in profiles]
    labelled = (opened.before, opened.after)
    for frame in frames:
        for within, apart, there in ((0, 1, frame.after), (1, 0, frame.before)):
            inlined = _sum(
                line for part in sides[within] for line in part.lines if frame.function in line.inlined
            )
            own = counts[apart].get((frame.function, ""))
            if inlined and not there and own and own.instructions:
                yield InlinedElsewhere(
                    function=frame.function,
                    within=labelled[within].label,
                    inlined=inlined / labelled[within].operations,
                    apart=labelled[apart].label,
                    own=own.instructions / profiles[apart].operations,
                )
