"""Where the lines of a history change, and which way."""

from collections.abc import Iterator, Sequence

from ktrial.analysis.history.machine_label import is_plain
from ktrial.model.comparison import Verdict
from ktrial.model.history import ChangeKind, ChangePoint, Line, Point
from ktrial.model.workload import EXACT_MODES, Direction, Mode
from ktrial.stats.change_points import steps


def with_changes(lines: Sequence[Line], margin: float, alpha: float) -> tuple[Line, ...]:
    """The lines with their changes. Timed lines are judged together: one rate of false alarms for all."""
    timed = {place: line for place, line in enumerate(lines) if line.mode not in EXACT_MODES}
    shifted: dict[int, tuple[ChangePoint, ...]] = {}
    if timed:
        # What is exact needs no numpy, which takes a fifth of the time in which `ktrial history` starts.
        from ktrial.analysis.history.timed_change_points import changes_of_all

        shifted = changes_of_all(timed, alpha)

    def changes(place: int, line: Line) -> tuple[ChangePoint, ...]:
        if place in shifted:
            return shifted[place]
        return steps([point.by_perturbation for point in line.points], margin)

    return tuple(
        line.model_copy(update={"changes": tuple(_described(changes(place, line), line))})
        for place, line in enumerate(lines)
    )


def _described(changes: Sequence[ChangePoint], line: Line) -> Iterator[ChangePoint]:
    """With the versions on the two sides, the verdict, and where the reason is to be found."""
    begin = 0
    for change in changes:
        first = begin if change.kind is ChangeKind.CREEP else change.place - 1
        before = _with_values(line.points, first, change.kind)
        after = line.points[change.place]
        worse = (change.after > change.before) == (line.direction is Direction.LOWER)
        yield change.model_copy(
            update={
                "since": before.version,
                "version": after.version,
                "verdict": Verdict.WORSE if worse else Verdict.BETTER,
                "why": _why(line, before, after),
            }
        )
        begin = change.place


def _with_values(points: Sequence[Point], place: int, kind: ChangeKind) -> Point:
    """The point itself; or, where it has no numbers, the next one before it that has."""
    while place > 0 and not points[place].values and kind is not ChangeKind.CREEP:
        place -= 1
    return points[place]


def _why(line: Line, before: Point, after: Point) -> str:
    if line.mode is not Mode.EXACT_PLUGIN:
        return ""
    if before.study_id == after.study_id:
        ends = f"--from '{before.treatment}' --to '{after.treatment}'"
        return f"ktrial explain {after.study_id} --workload '{line.workload}' {ends}"
    if line.workload.endswith(")") or not is_plain(line.system.settings):
        return ""  # `explain --kernel` counts a workload as it is by default, on a machine that nobody set
    ends = f"--kernel {before.version} --kernel {after.version}"
    return f"ktrial explain --workload '{line.workload}' {ends}"
