"""The HTML report: whole, self-contained, escaped, the same every time."""

import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from tests.support.drawings import assert_only_its_own_script_runs, without_its_script
from tests.support.drawn_charts import assert_charts_are_true
from tests.support.report_records import (
    ALL,
    FIVE,
    MORE,
    VALUES,
    a_matrix,
    a_record,
    in_plugin_mode,
)

from ktrial import report
from ktrial.format import labels, number_format
from ktrial.model.comparison import Verdict
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Outcome
from ktrial.model.workload import Mode
from ktrial.report import overview_chart, study_summary
from ktrial.report.csv_and_json import record_as_json

_VOID = {"meta", "br", "col", "wbr", "hr", "img", "link", "input"}
_LOADS = {"src", "srcset", "data", "poster", "action", "background", "xlink:href"}
"""Attributes that make a browser load something; `href` does on <link>, <use> and <image>."""


class _Page(HTMLParser):
    """Reads a page as strictly as HTML's own rules: every element ends where it should."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.misplaced: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.misplaced.append(tag)

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: report.study_html(record()) for name, record in ALL.items()}


@pytest.mark.parametrize("name", ALL)
def test_elements_end_where_they_should_have_ids_of_their_own_and_load_nothing(
    pages: dict[str, str], name: str
) -> None:
    page = _Page(pages[name])
    assert (page.misplaced, page.open) == ([], [])
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [str(attributes["href"])[1:] for _, attributes in page.elements if "href" in attributes]
    labels = [
        label
        for _, attributes in page.elements
        for label in str(attributes.get("aria-labelledby") or "").split()
    ]
    parts = re.findall(r"url\(#([^)]*)\)", pages[name])
    assert {*links, *labels, *parts} <= set(ids)
    assert_only_its_own_script_runs(pages[name])
    for tag, attributes in page.elements:
        assert tag not in {"iframe", "object", "embed", "link", "base", "form", "image", "use"}
        assert not _LOADS & set(attributes)
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
        assert str(attributes.get("href", "#")).startswith("#")
    styles = " ".join(re.findall(r"<style>(.*?)</style>", pages[name], re.DOTALL))
    assert "@import" not in styles
    assert "url(" not in styles


@pytest.mark.nightly
def test_another_process_draws_the_same_pages(pages: dict[str, str]) -> None:
    names = ("quick", "failures", "hostile")
    program = (
        "import sys; from ktrial import report; from tests.support.report_records import ALL; "
        f"sys.stdout.buffer.write(''.join(report.study_html(ALL[name]()) for name in {names}).encode())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout.decode() == "".join(pages[name] for name in names)


@pytest.mark.nightly
def test_five_kernels_and_25_workloads_stay_under_a_megabyte() -> None:
    many = a_record(FIVE, (*VALUES, *MORE))
    assert len(report.study_html(many).encode()) < 1_000_000 * 21 / 25


def test_a_page_is_drawn_without_altair_and_vl_convert() -> None:
    program = (
        "import sys; from ktrial import report; from tests.support.report_records import ALL; "
        "report.study_html(ALL['quick']()); print(*sorted({'altair', 'vl_convert'} & set(sys.modules)))"
    )
    drawn_by = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert drawn_by.split() == []


def test_importing_the_report_does_not_import_what_draws_it() -> None:
    program = (
        "import sys, ktrial.report; print(*sorted({'altair', 'vl_convert', 'jinja2'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout.split() == []
    )


@pytest.mark.parametrize("name", ["quick", "matrix", "failures"])
def test_every_comparison_is_there(pages: dict[str, str], name: str) -> None:
    record = ALL[name]()
    text = _Page(pages[name]).text
    assert record.result.answer in text
    assert record.study.question in text
    for comparison in record.result.comparisons:
        row = [
            *(comparison.workload, r"instructions/\s?operation", comparison.mode.value),
            *(number_format.number(comparison.baseline_value), number_format.number(comparison.value)),
            *(
                number_format.change(comparison.ratio),
                number_format.interval(comparison.low, comparison.high),
            ),
        ]
        plain = [part if "\\s" in part else re.escape(part.replace("\u00a0", " ")) for part in row]
        sought = r"\s*".join(plain) + rf"\s*\S\s+{comparison.verdict}"
        assert re.search(sought, text.replace("\u00a0", " ")), (comparison, sought)


@pytest.mark.parametrize("name", ALL)
def test_every_mark_of_every_chart_is_where_its_number_is(pages: dict[str, str], name: str) -> None:
    assert_charts_are_true(pages[name], ALL[name]())


def test_several_treatments_are_shown_at_once_and_every_workload_has_a_chart(pages: dict[str, str]) -> None:
    page = pages["matrix"]
    matrix = page[page.index('<table class="matrix sorts">') :].split("</table>")[0]
    assert matrix.count("<tr>") == 1 + 21
    assert matrix.count('scope="col"') == 1 + 5
    charts = re.findall(r'<svg [^>]*aria-labelledby="levels-\d+-title.*?</svg>', page, re.DOTALL)
    assert len(charts) == 21
    for chart in charts:
        assert all(f">{kernel}</text>" in chart for kernel in FIVE)


def test_what_the_numbers_mean_is_said(pages: dict[str, str]) -> None:
    text = _Page(pages["quick"]).text
    assert "Instructions, not time." in text
    assert "not the time a given CPU takes for it" in text
    assert "instructions read from the guest’s clock" in text
    assert "hides ERMS and FSRM" in text


def test_the_plugin_s_numbers_are_not_said_to_come_from_the_clock() -> None:
    record = a_record()
    comparisons = tuple(
        comparison.model_copy(update={"mode": Mode.EXACT_PLUGIN}) for comparison in record.result.comparisons
    )
    result = record.result.model_copy(update={"comparisons": comparisons})
    text = _Page(report.study_html(in_plugin_mode(record).model_copy(update={"result": result}))).text
    assert "counted by the QEMU plugin" in text
    assert "a metric of their own, string-bytes" in text
    assert "guest’s clock" not in text
    assert "hides ERMS" not in text


def with_string_bytes(record: StudyRecord, verdict: Verdict) -> StudyRecord:
    """The same with bytes of string instructions beside each workload's instructions."""
    beside = tuple(
        comparison.model_copy(
            update={
                "metric": "string-bytes",
                "unit": "bytes",
                "baseline_value": 4096.0,
                "value": 8192.0,
                "ratio": 2.0,
                "low": 2.0,
                "high": 2.0,
                "verdict": verdict,
            }
        )
        for comparison in record.result.comparisons
    )
    result = record.result.model_copy(update={"comparisons": (*record.result.comparisons, *beside)})
    return record.model_copy(update={"result": result})


@pytest.mark.parametrize("record", [a_record, pytest.param(a_matrix, marks=pytest.mark.nightly)])
def test_bytes_of_string_instructions_are_part_of_the_row_of_the_instructions(
    record: Callable[[], StudyRecord],
) -> None:
    plain = record()
    note = "bytes that string instructions worked on: 4,096 → 8,192, +100.00 %, worse"
    light, heavy = (with_string_bytes(plain, verdict) for verdict in (Verdict.EQUIVALENT, Verdict.WORSE))
    for written, a_row in ((report.study_html, "</tr>"), (report.study_markdown, "|\n")):
        assert written(light).count(a_row) == written(heavy).count(a_row) == written(plain).count(a_row)
        assert note not in written(light).replace("\u00a0", " ")
        assert written(heavy).replace("\u00a0", " ").count(note) == len(plain.result.comparisons)
    # The axis and the counts of verdicts are those of the instructions.
    assert study_summary.verdict_counts(heavy) == study_summary.verdict_counts(plain)
    axes = {
        overview_chart.ratio_axis(study_summary.groups(studied), 0.01, 420)
        for studied in (plain, light, heavy)
    }
    assert len(axes) == 1
    rows = record_as_json(heavy, "")["comparisons"]
    assert {row["metric"] for row in rows} == {"instructions", "string-bytes"}


def test_failed_trials_show_their_outcome_reason_and_console(pages: dict[str, str]) -> None:
    page = pages["failures"]
    text = _Page(page).text
    assert "the kernel panicked" in text
    assert "no end after 200,000,000,000 instructions" in text
    assert "---[ end Kernel panic - not syncing ]---" in text
    assert "There is no console log." in text
    assert "The study is not complete: 9 of" in text.replace("</b>", "")
    assert "Look at the console log: ktrial show quick --console" in text
    assert "\x1b" not in page


def test_counters_that_differ_are_there_and_those_that_do_not_are_not(pages: dict[str, str]) -> None:
    page = pages["quick"]
    assert "vmstat.pgfault" in page
    assert "vmstat.numa_hit" not in page


def test_the_environment_is_complete(pages: dict[str, str]) -> None:
    record = a_record()
    text = _Page(pages["quick"]).text
    for trial in record.trials:
        provenance = trial.provenance
        for fact in (
            provenance.kernel_release,
            provenance.kernel_package,
            provenance.kernel_digest,
            provenance.config_digest,
            provenance.qemu,
            provenance.cpu_model,
            provenance.command_line,
            provenance.agent_digest,
            provenance.snapshot,
        ):
            assert fact in text
        assert " ".join(provenance.machine_arguments) in text


def test_a_study_without_comparisons_or_trials_says_so(pages: dict[str, str]) -> None:
    page = pages["no-comparisons"]
    assert "Nothing was compared." in page
    assert page.count('aria-labelledby="levels-') == len(VALUES)
    text = _Page(pages["empty"]).text
    assert "0 of 6\u00a0trials ended" in text or "0 of 6 trials ended" in text
    assert "ktrial run quick.toml" in text


def test_hostile_text_stays_text(pages: dict[str, str]) -> None:
    page = pages["hostile"]
    parsed = _Page(page)
    assert "<script>alert('1')</script>" in parsed.text
    page = without_its_script(page)
    assert "<script" not in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert r"\x07\u202egnp" in parsed.text


def test_every_verdict_mode_and_outcome_has_its_words() -> None:
    assert set(labels.VERDICTS) == set(Verdict)
    assert set(labels.MODES) == set(labels.MODE_NAMES) == set(Mode)
    assert set(labels.OUTCOMES) == set(Outcome)
