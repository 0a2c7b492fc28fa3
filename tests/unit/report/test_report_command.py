"""`ktrial report`: what is in the store, as a page, as Markdown, as CSV."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.report_records import a_record

from ktrial import report
from ktrial.analysis.result import load_record
from ktrial.model.study import StudyRecord
from ktrial.store.store import open_store


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyRecord:
    """A study that has run, in the store that KTRIAL_STORE names."""
    record = a_record(workloads=("fork", "pipe"))
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    with open_store(tmp_path / "ktrial.db") as store:
        number = store.study(record.study)
        for trial in record.trials:
            assert store.add_trial(number, trial)
        return load_record(store, number)


def test_the_page_goes_beside_the_store(cli: CommandLine, stored: StudyRecord, tmp_path: Path) -> None:
    answer = cli("report")
    page = tmp_path / "reports" / "quick-1.html"
    assert (answer.status, answer.output) == (0, f"report: {page}\n")
    assert page.read_text() == report.study_html(stored)


def test_the_page_goes_where_it_is_told(cli: CommandLine, stored: StudyRecord, tmp_path: Path) -> None:
    answer = cli("report", "quick", "--html", tmp_path / "new" / "page.html")
    assert answer.status == 0
    assert (tmp_path / "new" / "page.html").read_text() == report.study_html(stored)


def test_markdown_is_printed(cli: CommandLine, stored: StudyRecord) -> None:
    assert cli("report", "1", "--markdown").output == report.study_markdown(stored)


def test_csv_is_printed_a_comparison_or_a_sample_a_row(cli: CommandLine, stored: StudyRecord) -> None:
    assert cli("report", "--csv").output == report.comparisons_csv(stored)
    assert cli("report", "--csv", "--samples").output == report.samples_csv(stored)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--csv", "--markdown"), "--markdown and --csv: give one of them: one report at a time"),
        (("--html", "x.html", "--csv"), "--html and --csv: give one of them: one report at a time"),
        (("--samples",), "--samples: it goes with --csv"),
        (("nothing-of-that-name",), "nothing-of-that-name"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cli: CommandLine, stored: StudyRecord, options: tuple[str, ...], message: str
) -> None:
    answer = cli("report", *options)
    assert answer.status != 0
    assert message in answer.messages
    assert answer.output == ""


def test_a_page_that_cannot_be_written_says_why(
    cli: CommandLine, stored: StudyRecord, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    answer = cli("report", "--html", tmp_path / "file" / "page.html")
    assert answer.status == 1
    assert "page.html cannot be written" in answer.messages


def test_a_page_is_written_through_a_link_and_into_a_pipe_which_stay_what_they_are(
    cli: CommandLine, stored: StudyRecord, tmp_path: Path
) -> None:
    link, pipe = tmp_path / "link.html", tmp_path / "pipe"
    link.symlink_to("page.html")
    assert cli("report", "--html", link).status == 0
    assert link.is_symlink()
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<html" in page
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text, encoding="utf-8")
        assert cli("report", "--html", pipe).status == 0
        assert read.result(timeout=60) == page
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("list",),
        ("report",),
        ("history", "fork"),
        ("matrix", "recommend", "--workloads", "fork"),
        ("matrix", "systems", "debian:6.1", "debian:6.12"),
        ("explain", "counters"),
        ("explain",),
        ("matrix", "--study", "quick"),
        ("check", "baseline", "list"),
        ("tune", "revalidate"),
        ("site", "pages"),
    ],
)
@pytest.mark.usefixtures("stored")
def test_a_mistyped_store_is_an_error_and_makes_none(
    cli: CommandLine, command: tuple[str, ...], tmp_path: Path
) -> None:
    answer = cli(*command, "--store", tmp_path / "ktrail.db")
    assert answer.status == 2
    assert f"There is no store {tmp_path / 'ktrail.db'} (did you mean ktrial.db?)." in answer.messages
    assert not (tmp_path / "ktrail.db").exists()
