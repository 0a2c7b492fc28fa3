"""`ktrial matrix` on the terminal: at most 25 lines, no number cut, and the answer last, as everywhere."""

import io
import re
from functools import partial

import pytest
from rich.console import Console
from tests.support import report_records as records
from tests.unit.cli.test_screen import MADE, with_changes

from ktrial.cli.render.matrix import print_matrix
from ktrial.cli.render.screen import LINES
from ktrial.model.study import StudyRecord
from ktrial.report.matrix import matrix, matrix_page

MORE, NEXT = "ktrial matrix --study 1 -v", "ktrial matrix --study 1 --html matrix.html"
RECORDS = records.Records(
    {
        "five kernels, 21 workloads": records.a_matrix,
        "counted by function": records.a_counted_matrix,
        "two factors": records.a_factorial,
        "failures": records.a_study_with_failures,
        "12 by 3": partial(with_changes, 12, 3),
        **MADE.made_by,
    }
)


def shown(record: StudyRecord, width: int, *, whole: bool = False) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, markup=False, highlight=False, emoji=False)
    page = ["page: /r/matrix.html"]
    print_matrix(matrix(record), console, whole=whole, notes=page, more=MORE, next_step=NEXT)
    return text.getvalue().splitlines()


def numbers_of(lines: list[str]) -> set[str]:
    return set(re.findall(r"[+\u2212]?\d[\d,.]* %", "\n".join(lines).replace("\u00a0", " ")))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", RECORDS)
def test_a_matrix_is_25_lines_and_ends_with_its_answer(name: str, width: int) -> None:
    record = RECORDS[name]
    lines = shown(record, width)
    assert sum(-(-max(1, len(line)) // width) for line in lines) <= LINES, "\n".join(lines)
    assert " ".join(" ".join(lines).split()).endswith(" ".join(record.result.answer.split())[-60:])
    assert not [line for line in lines if re.search(r"[\d.,]…|…[\d.,]", line)], "a number is cut"
    assert not [line for line in lines if len(line) > width and "ktrial" not in line]
    assert sum(line.startswith("next: ") for line in lines) == 1


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("five kernels, 21 workloads", 60),
        ("12 by 3", 60),
        ("12 by 3", 120),
        ("two factors", 80),
        ("40 by 1", 80),
    ],
)
def test_with_v_every_cell_is_shown_whole_however_narrow_the_terminal_is(name: str, width: int) -> None:
    record = RECORDS[name]
    lines = shown(record, width, whole=True)
    assert {
        f"{(row.ratio - 1) * 100:.2f}".lstrip("-") + " %" for row in record.result.comparisons if row.ratio
    } <= {number.lstrip("+\u2212") for number in numbers_of(lines)}
    assert not [line for line in lines if re.search(r"[\d.,]…|…[\d.,]", line)], "a number is cut"
    assert " ".join(" ".join(lines).split()).endswith(" ".join(record.result.answer.split()))


def test_rows_that_have_no_room_are_counted_and_those_that_changed_most_are_shown() -> None:
    lines = shown(MADE["4 by 60"], 120)
    rows = [line.split()[0] for line in lines if re.match(r"w\d+ ", line)]
    (left_out,) = [line for line in lines if line.startswith("not shown: ")]
    assert left_out == f"not shown: {60 - len(rows)} more rows: {MORE}"
    assert {"w0", "w1", "w58", "w59"} <= {*rows}


def test_many_versions_of_few_workloads_stand_below_one_another() -> None:
    lines = shown(MADE["40 by 1"], 80)
    assert next(line for line in lines if line.startswith("version")).split() == ["version", "w0"]
    assert any(re.match(r"debian:6\.41 +[+\u2212][\d.]+ % [✗✓≈?]", line) for line in lines)
    assert any(re.match(r"not shown: \d+ more versions: ", line) for line in lines)


def test_of_many_versions_and_many_workloads_each_version_has_a_row_with_what_changed_most() -> None:
    lines = shown(MADE["40 by 60"], 120)
    row = next(line for line in lines if line.startswith("debian:6.5 "))
    assert re.search(r"w59 \+29\.\d+ % +w0 −29\.\d+ % +✗ \d+ ✓ \d+ ≈ \d+", row)
    assert any("2400 cells" in line for line in lines)


def test_below_80_columns_a_row_takes_two_lines() -> None:
    lines = shown(RECORDS["five kernels, 21 workloads"], 60)
    at = lines.index("fork")
    assert re.fullmatch(r" +120,161( +\+[\d.]+ % ✗){4} *", lines[at + 1])


def test_the_page_has_the_same_answer_however_long_it_is() -> None:
    record = RECORDS["five kernels, 21 workloads"]
    long = matrix(record).model_copy(update={"answer": "words " * 200})
    assert "words words" in matrix_page(long)
