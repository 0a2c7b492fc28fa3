"""What a command leaves on the terminal: at most 25 lines, no number cut, the answer last; all with -v."""

import io
import re
from functools import partial

import pytest
from rich.console import Console
from tests.support import report_records as records
from tests.unit.stats.test_stats_answer import change

from ktrial.analysis.answer import answer
from ktrial.cli.render.screen import LINES, Screen
from ktrial.cli.render.study_result import print_answer
from ktrial.format.table import of_texts
from ktrial.model.comparison import Result
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Mode
from ktrial.report.provenance import releases, releases_of

MORE = "ktrial show 1 -v"
RECORDS = records.Records(
    {
        "one treatment": lambda: records.a_record(workloads=("fork", "pipe", "nqueens")),
        "counted by function": records.a_counted_record,
        "many workloads": lambda: records.a_record(workloads=(*records.MORE, *records.FOUR_MORE)),
        "four treatments": records.a_matrix,
        "four treatments, counted": records.a_counted_matrix,
        "failures": records.a_study_with_failures,
        "gaps": records.a_study_with_gaps,
        "two factors": records.a_factorial,
        "hostile": records.a_hostile_record,
        "an endless question": records.an_endless_question,
        "no comparison": records.a_study_without_comparisons,
        "empty": records.an_empty_study,
    }
)


def with_changes(treatments: int, workloads: int) -> StudyRecord:
    """So many treatments of so many workloads, made up."""
    names = [f"w{number}" for number in range(workloads)]
    changes = [
        change(workload, 1 + (at - workloads / 2) / 100 + by / 1000, f"debian:6.{by}", spread=1.004)
        for at, workload in enumerate(names)
        for by in range(2, treatments + 2)
    ]
    record = records.a_record()
    result = Result(study="many", question="", answer=answer(changes, 0.01), comparisons=tuple(changes))
    return record.model_copy(update={"result": result, "trials": (), "warnings": ()})


MADE = records.Records(
    {
        f"{treatments} by {workloads}": partial(with_changes, treatments, workloads)
        for treatments in (1, 4, 40)
        for workloads in (1, 60)
    }
)


def shown(record: StudyRecord, width: int) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, markup=False, highlight=False, emoji=False)
    modes = {comparison.mode for comparison in record.result.comparisons}
    whys = records.whys_for(record) if modes == {Mode.EXACT_PLUGIN} else ()
    print_answer(record, whys, console, more=MORE, next_step="ktrial report", report="/r/page.html")
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", [*RECORDS, *MADE])
def test_a_result_is_25_lines_and_ends_with_its_answer(name: str, width: int) -> None:
    record = RECORDS.get(name) or MADE[name]
    lines = shown(record, width)
    assert len(lines) <= LINES, "\n".join(lines)
    result = record.result.answer or "There are no numbers yet."
    if name == "hostile":  # one word of 200 letters is broken
        return
    assert " ".join(" ".join(lines).split()).endswith(" ".join(result.split())[-60:])
    in_rows = [line for line in lines if re.search(r"\d %|\d …", line)]
    assert not [line for line in in_rows if re.search(r"[\d.,]…|…[\d.,]", line)], "a number is cut"
    assert not [line for line in lines if len(line) > width and "ktrial" not in line]


def test_rows_that_have_no_room_are_counted_and_those_that_changed_most_are_shown() -> None:
    lines = shown(MADE["1 by 60"], 80)
    rows = [line for line in lines if re.match(r"w\d+ ", line)]
    (left_out,) = [line for line in lines if line.startswith("not shown: ")]
    assert left_out == f"not shown: {60 - len(rows)} more rows: {MORE}"
    assert {"w0", "w1", "w58", "w59"} <= {line.split()[0] for line in rows}
    assert [line.split()[0] for line in rows] == sorted((line.split()[0] for line in rows), key=len)


def test_below_80_columns_a_row_takes_two_lines() -> None:
    lines = shown(RECORDS["one treatment"], 60)
    at = next(place for place, line in enumerate(lines) if line.startswith("fork "))
    assert re.fullmatch(r"fork +\+13\.78 %  ✗ worse", lines[at].rstrip())
    assert re.fullmatch(r"  143,423 → 163,183 +\+13\.78 … \+13\.78", lines[at + 1].rstrip())


def test_of_many_treatments_each_has_a_row_with_its_mean_and_what_changed_most() -> None:
    lines = shown(MADE["4 by 60"], 80)
    assert next(line for line in lines if line.startswith("treatment")).split()[:3] == [
        "treatment",
        "geometric",
        "mean",
    ]
    row = next(line for line in lines if line.startswith("debian:6.5 "))
    assert re.search(r"w59 \+29\.\d+ % +w0 −29\.\d+ % +✗ \d+ ✓ \d+ ≈ \d+", row)


def test_the_net_causes_of_a_change_do_not_cancel() -> None:
    text = "\n".join(shown(RECORDS["counted by function"], 120))
    causes = re.findall(r"^  \w+ ([+−][\d,.]+) \([\d,.]+ → [\d,.]+\): (.*)$", text, re.M)
    assert causes, text
    for total, parts in causes:
        numbers = [
            float(part.replace("−", "-").replace(",", "")) for part in re.findall(r"[+−][\d,.]*\d", parts)
        ]
        whole = float(total.replace("−", "-").replace(",", ""))
        assert sum(numbers) == pytest.approx(whole, abs=max(2, abs(whole) * 0.01))
        assert not [(a, b) for a in numbers for b in numbers if a * b < 0 and abs(a + b) < 0.3 * abs(a)]


def test_what_gives_way_is_counted_and_with_v_all_is_printed() -> None:
    texts = [f"line {number}" for number in range(40)]

    def printed(*, whole: bool) -> list[str]:
        text = io.StringIO()
        screen = Screen(Console(file=text, width=80), whole=whole, more=MORE)
        screen.title("a question")
        screen.rows(of_texts(("name",), [(f"row {number}",) for number in range(40)]))
        screen.lines(texts, "note", least=2)
        screen.print("the answer")
        return text.getvalue().splitlines()

    short, all_lines = printed(whole=False), printed(whole=True)
    assert (len(short), short[-1]) == (LINES, "the answer")
    rows, notes = (sum(line.startswith(word) for line in short) for word in ("row", "line"))
    assert notes == 2
    assert f"not shown: {40 - rows} more rows, 38 more notes: {MORE}" in short
    assert (len(all_lines), all_lines[-1]) == (86, "the answer")


def test_a_result_says_once_which_release_and_flavour_a_name_stands_for() -> None:
    record = RECORDS["one treatment"]
    lines = shown(record, 120)
    kernels = "debian:6.1 is 6.1.0-50-cloud-amd64, debian:6.12 is 6.12.57+deb13-cloud-amd64"
    assert releases_of(record) == kernels
    assert lines.count(kernels) == 1
    assert "\n".join(lines).count("-cloud-amd64") == 2


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ((("debian:6.1", "6.1.0-56-cloud-amd64"),), "debian:6.1 is 6.1.0-56-cloud-amd64"),
        ((("6.1.0-56-cloud-amd64", "6.1.0-56-cloud-amd64"), ("host", "")), ""),
        ((("debian:6.1 a=0", "6.1.0-56"), ("debian:6.1 a=1", "6.1.0-56")), "all are 6.1.0-56"),
        (
            tuple((f"k{n}", f"6.{n}") for n in range(5)),
            "k0 is 6.0, k1 is 6.1, k2 is 6.2, 2 more are in the report",
        ),
    ],
    ids=str,
)
def test_releases_are_told_of_names_that_do_not_say_them(
    named: tuple[tuple[str, str], ...], said: str
) -> None:
    assert releases(named) == said
