"""The table of verdicts: what is in it, how wide it is, without colour; tables of hundreds of rows."""

import io
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.support import report_records as records

from ktrial.cli.render.study_result import print_result
from ktrial.cli.render.table import print_table
from ktrial.model.comparison import Comparison
from ktrial.model.study import StudyRecord
from ktrial.model.workload import STRING_BYTES


def _printed(record: StudyRecord, width: int = 80, *, colour: bool = False) -> str:
    text = io.StringIO()
    console = Console(
        file=text,
        width=width,
        markup=False,
        highlight=False,
        emoji=False,
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    print_result(record, console)
    return text.getvalue()


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_two_kernels_stand_side_by_side() -> None:
    rows = _rows(_printed(records.a_record(workloads=("fork", "pipe", "nqueens"))))
    assert ["workload", "debian:6.1", "debian:6.12", "change", "interval,", "%", "verdict"] in rows
    assert ["fork", "143,423", "163,183", "+13.78", "%", "+13.78", "…", "+13.78", "✗", "worse"] in rows
    assert ["nqueens", "1,840,211", "1,840,211", "0.00", "%", "0.00", "…", "0.00", "≈", "equivalent"] in rows


def test_several_kernels_stand_below_their_baseline() -> None:
    rows = _rows(_printed(records.a_matrix()))
    at = rows.index(["fork", "debian:5.10", "120,161", "baseline"])
    assert [row[0] for row in rows[at + 1 : at + 5]] == [
        "debian:6.1",
        "debian:6.12",
        "debian:6.18",
        "debian:7.2",
    ]
    assert rows[at + 1][-2:] == ["✗", "worse"]


def test_what_failed_is_listed_with_the_command_that_tells_more() -> None:
    text = " ".join(_printed(records.a_study_with_failures()).split())
    assert "3 trials of 11 failed:" in text
    assert "debian:6.12, perturbation 0: the kernel panicked: Unable to mount root fs" in text
    assert "ktrial show 7 --console" in text
    assert text.count("there are no numbers yet") <= 2, "one reason is told once, and in the answer"


def test_a_reason_is_told_below_the_table() -> None:
    text = " ".join(_printed(records.a_record()).split())
    assert "inconclusive: open-close: the interval reaches across the edge of the margin (1 %)" in text


def test_a_reason_names_what_is_counted_beside_the_workload_s_own_metric() -> None:
    text, comparison = _with_a_second_metric(STRING_BYTES.name)
    assert f"inconclusive: {comparison.workload}: the interval reaches" in text
    assert f"inconclusive: {comparison.workload}, {STRING_BYTES.name}: they weigh little" in text


def test_a_reason_names_the_metric_where_a_workload_has_several_of_its_own() -> None:
    text, comparison = _with_a_second_metric("p99")
    assert f"inconclusive: {comparison.workload}, {comparison.metric}: the interval reaches" in text
    assert f"inconclusive: {comparison.workload}, p99: they weigh little" in text


def _with_a_second_metric(name: str) -> tuple[str, Comparison]:
    """What is printed, and the comparison whose reason was there before."""
    record = records.a_record()
    (printed, *_) = [row for row in record.result.comparisons if row.reason]
    second = printed.model_copy(update={"metric": name, "reason": "they weigh little"})
    result = record.result.model_copy(update={"comparisons": (*record.result.comparisons, second)})
    return " ".join(_printed(record.model_copy(update={"result": result})).split()), printed


@pytest.mark.parametrize(
    "record",
    [
        records.a_record,
        records.a_matrix,
        records.a_single_comparison,
        records.a_study_without_comparisons,
        records.an_empty_study,
        records.a_study_with_failures,
        records.an_endless_question,
        records.a_hostile_record,
    ],
)
@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_verdicts_are_whole(
    record: Callable[[], StudyRecord], width: int
) -> None:
    stored = record()
    text = _printed(stored, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    for comparison in stored.result.comparisons:
        assert comparison.verdict.value in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_colour_adds_nothing_but_colour() -> None:
    coloured = _printed(records.a_record(), colour=True)
    assert "\x1b[31m✗ worse" in coloured
    assert "\x1b[32m✓ better" in coloured


@pytest.mark.parametrize("width", [70, 60])
def test_a_narrow_terminal_keeps_the_workloads_names_whole(width: int) -> None:
    text = _printed(records.a_record(workloads=("context-switch", "fork")), width)
    lines = [line.strip() for line in text.splitlines()]
    for name, baseline in (("context-switch", "631,783"), ("fork", "143,423")):
        assert lines[lines.index(name) + 1].startswith(baseline)
    assert max(cell_len(line) for line in text.splitlines()) <= width


def test_a_terminal_of_80_columns_has_names_beside_their_numbers() -> None:
    rows = _rows(_printed(records.a_record(workloads=("context-switch",)), 80))
    assert any(row[:2] == ["context-switch", "631,783"] for row in rows)


HEADINGS = ("id", "study", "question")


def printed(rows: list[tuple[str, str, str]], width: int) -> list[str]:
    text = io.StringIO()
    print_table(HEADINGS, rows, Console(file=text, width=width, markup=False, highlight=False))
    return text.getvalue().splitlines()


def test_a_long_table_is_laid_out_like_a_short_one() -> None:
    rows = [(str(number), f"größe-{number % 7}", "" if number % 3 else "漢字?") for number in range(199)]
    rows.append(("200", "the longest name of all", ""))
    short = printed(rows[-30:], 80)
    long = printed(rows * 2, 80)
    assert len(long) == 1 + 2 * len(rows)
    assert [line.rstrip() for line in short[1:]] == long[-30:]


def test_a_long_row_is_cut_at_the_width() -> None:
    rows = [("1", "quick", "漢" * 60)] * 300
    lines = printed(rows, 41)
    assert {cell_len(line) for line in lines[1:]} <= {40, 41}
    assert all(line.endswith("…") for line in lines[1:])
