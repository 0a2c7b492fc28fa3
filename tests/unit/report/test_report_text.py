"""Markdown and CSV: the same answer for pull requests and for other programs."""

import csv
import io

from markdown_it import MarkdownIt
from tests.support.report_records import (
    HOSTILE,
    a_hostile_record,
    a_matrix,
    a_record,
    a_study_with_failures,
    an_empty_study,
)

from ktrial import report
from ktrial.report.markdown import code, prose


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark").enable("table").render(text))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_markdown_holds_the_answer_and_a_row_for_every_comparison() -> None:
    record = a_record()
    text = report.study_markdown(record)
    assert record.result.answer in text
    for comparison in record.result.comparisons:
        assert f"| `{comparison.workload}` | `instructions/operation` |" in text
    fork = "| `fork` | `instructions/operation` | exact-clock | ✗ worse | 143,423 | 163,183 | +13.78\u00a0% |"
    assert fork in text


def test_markdown_of_several_treatments_has_one_table_of_all() -> None:
    text = report.study_markdown(a_matrix())
    assert (
        "| Workload | `debian:5.10` | `debian:6.1` | `debian:6.12` | `debian:6.18` | `debian:7.2` |" in text
    )
    html = rendered(text)
    assert html.count("<table>") == 1 + 4
    assert html.count("<tr>") == 22 * 5


def test_markdown_folds_what_failed_with_the_end_of_its_console() -> None:
    text = report.study_markdown(a_study_with_failures())
    assert "<summary>3\u00a0failed trials</summary>" in text
    assert "---[ end Kernel panic - not syncing ]---" in text
    assert "> ⚠ The study is not complete: 9 of 11\u00a0trials ended." in text
    assert text.count("<details>") == text.count("</details>")


def test_markdown_of_hostile_text_has_no_markup_in_it() -> None:
    html = rendered(report.study_markdown(a_hostile_record()))
    assert "<script" not in html
    assert "<a " not in html
    assert "@everyone" not in rendered(prose(HOSTILE))


def test_prose_reads_as_it_was_written() -> None:
    for text in (
        "1 % of [a](b) *x* `y` <b> & _z_ #1 ~~no~~ a|b",
        "- not a list",
        "1. neither",
        "# no heading",
    ):
        assert rendered(prose(text)).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == (
            f"<p>{text}</p>\n"
        )


def test_code_spans_hold_backticks() -> None:
    assert rendered(code("a `b` ``c``")) == "<p><code>a `b` ``c``</code></p>\n"
    assert rendered(code("`")) == "<p><code>`</code></p>\n"


def test_csv_has_one_row_a_comparison_with_all_digits() -> None:
    record = a_matrix()
    text = report.comparisons_csv(record)
    assert text.count("\r\n") == 1 + len(record.result.comparisons)
    for row, comparison in zip(rows(text), record.result.comparisons, strict=True):
        assert row["workload"] == comparison.workload
        assert (row["baseline"], row["treatment"]) == (comparison.baseline, comparison.treatment)
        assert float(row["ratio"]) == comparison.ratio
        assert float(row["low"]) == comparison.low
        assert (row["verdict"], row["mode"]) == (comparison.verdict.value, "exact-clock")


def test_csv_leaves_a_missing_number_empty() -> None:
    missing = [
        row
        for row in rows(report.comparisons_csv(a_study_with_failures()))
        if row["treatment"] == "debian:6.12"
    ]
    assert len(missing) == 6
    assert {(row["value"], row["ratio"], row["low"]) for row in missing} == {("", "", "")}


def test_csv_of_samples_has_one_row_a_sample() -> None:
    record = a_record()
    lines = rows(report.samples_csv(record))
    assert len(lines) == sum(len(trial.samples) for trial in record.trials) == 36
    assert lines[0]["treatment"] == "debian:6.1"
    assert [row["perturbation"] for row in lines[::12]] == ["0", "1", "2"]
    assert float(lines[0]["value"]) == record.trials[0].samples[0].value


def test_csv_of_hostile_text_keeps_its_rows() -> None:
    lines = rows(report.comparisons_csv(a_hostile_record()))
    assert len(lines) == 1
    assert lines[0]["verdict"] == "worse"


def test_csv_does_not_hand_formulas_to_a_spreadsheet() -> None:
    record = a_record(workloads=("fork",))
    comparison = record.result.comparisons[0].model_copy(update={"metric": '=HYPERLINK("x")'})
    result = record.result.model_copy(update={"comparisons": (comparison,)})
    assert (
        rows(report.comparisons_csv(record.model_copy(update={"result": result})))[0]["metric"]
        == '\'=HYPERLINK("x")'
    )


def test_an_empty_study_has_only_headers() -> None:
    assert rows(report.comparisons_csv(an_empty_study())) == []
    assert rows(report.samples_csv(an_empty_study())) == []
    assert "Nothing was compared." in report.study_markdown(an_empty_study())
