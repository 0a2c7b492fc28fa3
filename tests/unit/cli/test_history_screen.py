"""`ktrial history` on the terminal: at most 25 lines, no number cut, and the answer last, as everywhere."""

import io
import re
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

from ktrial.analysis.history.answer import with_answer
from ktrial.analysis.history.change_points import with_changes
from ktrial.cli.render.history import print_history
from ktrial.cli.render.screen import LINES
from ktrial.model.design import Perturbation
from ktrial.model.history import History, Line, Point, SystemIdentity
from ktrial.model.workload import Direction, Mode
from ktrial.report.history import history_page
from ktrial.stats.verdict_rules import mean_value, paired_ratio

MORE = "ktrial history fork -v"
UNDER = tuple(Perturbation(number=number, layout_seed=number) for number in range(3))


def a_line(values: list[float], *, alone: str = "", mode: Mode = Mode.EXACT_PLUGIN, name: str = "6.") -> Line:
    """A version for each value; what perturbations do is a thousandth of it, and not the same everywhere."""
    points: list[Point] = []
    for place, value in enumerate(values):
        numbers = tuple(
            value * (1 + number * 1e-3 + (place % 3) * number * 1e-4) for number in range(len(UNDER))
        )
        mean = mean_value(dict(enumerate(numbers)))
        version = f"debian:{name}{place}"
        point = Point(
            version=version,
            study_id=1,
            study="many",
            treatment=version,
            values=numbers,
            perturbations=UNDER,
            value=mean,
        )
        ratio = paired_ratio(points[-1].by_perturbation, point.by_perturbation) if points else None
        points.append(point.model_copy(update={"ratio": ratio}))
    ends = (points[0].by_perturbation, points[-1].by_perturbation)
    return Line(
        workload="fork",
        metric="instructions",
        unit="instructions/operation",
        direction=Direction.LOWER,
        mode=mode,
        system=SystemIdentity(machine="exact", cpu_model="max,-erms,-fsrm", settings="512 MiB, 1 CPU"),
        trials=f"{3 * len(values)} trials, 3 perturbations of each kernel: study 1 (many)",
        points=tuple(points),
        ratio=paired_ratio(*ends) if len(values) > 1 else None,
        alone=alone,
    )


def a_history(*lines: Line, missing: tuple[str, ...] = ()) -> History:
    judged = with_changes(lines, 0.01, 0.05)
    past = History(workload="fork", margin=0.01, alpha=0.05, lines=judged, missing=missing)
    return with_answer(past)


def course(count: int) -> list[float]:
    """Most versions are as the one before; every third is 5 % worse, every seventh 3 % better."""
    values = [163_150.0]
    for place in range(1, count):
        step = 1.05 if place % 3 == 0 else 0.97 if place % 7 == 0 else 1.0
        values.append(values[-1] * step)
    return values


APART = "measured with a different QEMU build"
HISTORIES = {
    "1 version": a_history(a_line(course(1))),
    "4 versions": a_history(a_line(course(4))),
    "40 versions": a_history(a_line(course(40))),
    "no change": a_history(a_line([1000.0] * 4)),
    "long names": a_history(a_line(course(9), name="6.1.0-rc1-of-a-branch-with-a-long-name-and-")),
    "60 lines": a_history(a_line(course(4)), *(a_line(course(3), alone=APART) for _ in range(59))),
    "missing": a_history(a_line(course(12)), missing=tuple(f"debian:7.{number}" for number in range(30))),
}


def shown(past: History, width: int, *, whole: bool = False) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, markup=False, highlight=False, emoji=False)
    print_history(past, console, whole=whole, more=MORE, notes=["page: /r/history.html"])
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_is_25_lines_and_ends_with_its_answer(name: str, width: int) -> None:
    past = HISTORIES[name]
    lines = shown(past, width)
    assert sum(-(-max(1, len(line)) // width) for line in lines) <= LINES, "\n".join(lines)
    text = " ".join(" ".join(lines).split())
    assert text.endswith(past.answer) or (text.endswith(" …") and (name == "long names" or width == 60))
    assert not [line for line in lines if re.search(r"[\d.,]…|…[\d.,]", line)], "a number is cut"
    assert not [line for line in lines if len(line) > width and "ktrial" not in line]
    assert sum(line.startswith("next: ") for line in lines) == bool(past.lines[0].changes)


@pytest.mark.parametrize("name", HISTORIES)
def test_the_page_and_the_whole_have_the_same_answer(name: str) -> None:
    past = HISTORIES[name]
    assert past.answer in history_page(past)
    whole = shown(past, 100, whole=True)
    assert " ".join(" ".join(whole).split()).endswith(past.answer)
    rows = [point for line in past.lines for point in line.points]
    assert sum(bool(re.match(r"debian:\S+ +\d", line)) for line in whole) >= min(len(rows), 40)


def test_versions_that_have_no_room_are_counted_and_changes_are_shown_first() -> None:
    past = HISTORIES["40 versions"]
    lines = shown(past, 80)
    rows = [line.split()[0] for line in lines if re.match(r"debian:6\.\d+ ", line)]
    (left_out,) = [line for line in lines if line.startswith("not shown: ")]
    assert left_out == f"not shown: {40 - len(rows)} more versions: {MORE}"
    largest = [change.version for change in past.lines[0].changes if (change.ratio or 0) > 1.04]
    assert {*rows} <= {*largest, rows[0]} or {*largest} <= {*rows}
    assert rows == sorted(rows, key=lambda version: int(version.rpartition(".")[2]))


def test_below_80_columns_a_version_takes_two_lines() -> None:
    lines = shown(HISTORIES["4 versions"], 60)
    at = next(place for place, line in enumerate(lines) if line.startswith("debian:6.3 "))
    assert re.fullmatch(r"debian:6\.3 +\+4\.98 %  ✗ worse", lines[at].rstrip())
    assert re.fullmatch(r"  171,4\d\d", lines[at + 1].rstrip())


def test_a_change_is_told_with_its_size_and_its_interval() -> None:
    assert HISTORIES["4 versions"].answer.startswith(
        "By instructions counted, not time: fork got 4.98 % worse from debian:6.2 to debian:6.3 "
        "(+4.96 … +5); "
        "from debian:6.0 to debian:6.3 in all +5 %"
    )
    better = a_history(a_line([100.0, 93.1])).answer
    assert "fork got 6.89 % better from debian:6.0 to debian:6.1 (−6.9 … −6.88)." in better
    both = a_history(a_line([100.0, 106.0, 101.0])).answer
    assert re.search(r"fork got 6\.01 % worse from \S+ to \S+ \([^)]+\) and 4\.71 % better from", both)
    many = HISTORIES["40 versions"].answer
    assert "fork got worse 13 times and better 4 times in 40 versions; most worse: 4.98 %" in many
    assert "in all +" in many


def test_what_did_not_change_what_is_alone_and_what_is_missing_is_told() -> None:
    assert "no change of fork beyond 1 % is shown from debian:6.0 to debian:6.3 (4 versions)" in (
        HISTORIES["no change"].answer
    )
    assert HISTORIES["1 version"].answer.endswith(
        "fork has a number of debian:6.0 alone: there is nothing to compare it with yet."
    )
    assert HISTORIES["60 lines"].answer.endswith("59 more lines stand apart, without changes.")
    of_many = " ".join(" ".join(shown(HISTORIES["60 lines"], 120)).split())
    assert HISTORIES["60 lines"].lines[1].answer in of_many
    missing = shown(HISTORIES["missing"], 80)
    assert any(line.startswith("30 kernels without a number: debian:7.0, ") for line in missing)
    assert f"next: {MORE}" in missing, "a command of 30 kernels is in -v"
    assert "next: ktrial matrix --kernels debian:6.0,debian:7.0 --workloads fork" in shown(
        a_history(a_line(course(2)), missing=("debian:7.0",)), 80
    )


def test_from_nothing_to_something_is_told_without_a_ratio() -> None:
    risen = a_history(a_line([0.0, 272.0])).answer
    assert "fork got worse from debian:6.0 to debian:6.1, from 0 to 272" in risen


def test_steps_are_named_in_the_order_of_versions() -> None:
    text = a_history(a_line([100.0, 110.0, 100.0])).answer
    places = [text.index(f"from debian:6.{first} to debian:6.{last}") for first, last in pairwise(range(3))]
    assert places == sorted(places)


def test_numbers_in_real_time_that_wander_are_not_judged_and_a_short_excursion_is() -> None:
    rng = np.random.default_rng(8)
    walk = a_history(a_line(list(1000 + 5 * rng.standard_normal(60).cumsum()), mode=Mode.TIMED))
    assert walk.answer.startswith(
        "whether fork changed is not judged: its numbers wander like a random walk, without a level"
    )
    slow = a_line(
        [*(1000 + rng.standard_normal(30)), *[1008.0] * 5, *(1000 + rng.standard_normal(30))], mode=Mode.TIMED
    )
    assert [change.version for change in a_history(slow).lines[0].changes] == ["debian:6.30", "debian:6.35"]
