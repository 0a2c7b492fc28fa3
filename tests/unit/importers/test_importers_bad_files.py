"""What each importer says about files that are not what they should be."""

import os
from pathlib import Path

import pytest
from tests.support.places import FOREIGN
from tests.support.program_texts import read_file, table, written

from ktrial.importers.errors import ImportFailed


@pytest.mark.parametrize(
    "document",
    [
        '<!DOCTYPE x [<!ENTITY a "b">]><PhoronixTestSuite>&a;</PhoronixTestSuite>',
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
        '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><PhoronixTestSuite>&c;</PhoronixTestSuite>',
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><PhoronixTestSuite>&f;</PhoronixTestSuite>',
        '<!DOCTYPE x SYSTEM "http://example.invalid/x.dtd"><PhoronixTestSuite></PhoronixTestSuite>',
    ],
)
def test_xml_that_could_do_harm_is_refused(tmp_path: Path, document: str) -> None:
    with pytest.raises(ImportFailed, match="declares a document type"):
        read_file(written(tmp_path, document, "composite.xml"))


def test_xml_that_was_cut_short_is_told_with_its_line(tmp_path: Path) -> None:
    whole = (FOREIGN / "composite.xml").read_text()
    with pytest.raises(ImportFailed, match="line 28"):
        read_file(written(tmp_path, "\n".join(whole.splitlines()[:28]), "composite.xml"))


def test_xml_nested_a_hundred_thousand_deep_does_no_harm(tmp_path: Path) -> None:
    deep = "<PhoronixTestSuite>" + "<a>" * 100_000 + "</a>" * 100_000 + "</PhoronixTestSuite>"
    with pytest.raises(ImportFailed):
        read_file(written(tmp_path, deep, "composite.xml"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"results": [{"command": "x", "times": [1, 2', "line 1, column"),
        ('{"results": "command"}', "a list of objects was expected"),
        ('{"results": [1], "command": 1}', "a list of objects was expected"),
        ('{"results": [{"command": "x", "times": [NaN]}]}', "a time is NaN, which is no number"),
        ('{"results": ' + "[" * 100_000 + ' "command"', "nested too deeply"),
        ('{"benchmarks": [{"runs": 3}]}', r"benchmarks\[0\].runs: a list of objects"),
        ('{"benchmarks": [3], "real_time": 0}', "a list of objects was expected"),
    ],
)
def test_damaged_json_is_told(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ImportFailed, match=problem):
        read_file(written(tmp_path, text, "results.json"))


@pytest.mark.parametrize(
    "text",
    [
        '{"results": [{"command": "x", "times": []}]}',
        '{"results": [{"command": "x", "times": ["fast", null, true, 1e400]}]}'.replace("1e400", "null"),
        '{"benchmarks": [{"runs": [{"values": []}]}]}',
        '{"benchmarks": [{"name": "x", "real_time": "soon"}]}',
        "<PhoronixTestSuite></PhoronixTestSuite>",
        "System Benchmarks Index Values               BASELINE       RESULT    INDEX\n",
    ],
)
def test_files_without_any_number_are_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(ImportFailed):
        read_file(written(tmp_path, text, "results"))


def test_a_file_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.truncate(1024**3)
    with pytest.raises(ImportFailed, match="1024 MiB, where 32 MiB are the most"):
        read_file(path)


def test_a_device_a_pipe_and_a_directory_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(ImportFailed, match="not a regular file"):
            read_file(path)
    with pytest.raises(ImportFailed, match="is a directory, and no result of"):
        read_file(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (b"level,value\na,\x81\n", "byte 14 is not UTF-8"),
        (b"\x1f\x8babc", "packed, and damaged"),
        (b"a\0b", "it is binary"),
    ],
)
def test_what_cannot_be_text_is_told(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(ImportFailed, match=problem):
        read_file(path)


def test_a_file_that_is_not_there_and_a_name_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="No such file") as missing:
        read_file(tmp_path / "nothing")
    assert (
        missing.value.advice == "give a file that holds results; ktrial workload formats lists what is read"
    )
    with pytest.raises(ImportFailed, match="null"):
        read_file(Path("a\0b"))


def test_a_study_file_is_none_of_results(tmp_path: Path) -> None:
    study = written(tmp_path, 'workloads = ["fork"]\n\n[factors.kernel]\nlevels = ["a", "b"]\n', "my.toml")
    with pytest.raises(ImportFailed, match=r"my\.toml is TOML: a study file has questions") as refused:
        read_file(study)
    assert refused.value.advice.startswith(f"ktrial run {study} ")


def test_a_format_that_nobody_knows_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="in no format that ktrial reads") as error:
        read_file(written(tmp_path, "just some words\n", "notes.txt"))
    assert isinstance(error.value, ImportFailed)
    assert error.value.exit_code == 2
    assert len(error.value.message.replace(str(tmp_path), "")) + len(error.value.advice) < 200


UNIXBENCH = (FOREIGN / "unixbench-6.0.0-01.txt").read_text()


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("705597.0    567.2", "     0.0      0.0", "without a result: Pipe Throughput"),
        ("705597.0    567.2", "     ---      ---", "without a result: Pipe Throughput"),
        (UNIXBENCH[UNIXBENCH.index("   ====") :], "", "no score ends the table: the report may be cut short"),
        (
            "Non-Index Benchmarks Index Score (Partial Only)                        79.1",
            "Benchmark Run: Sun Nov 22 2026 11:49:48 - 12:51:04\nrunning 64 parallel copies of tests\n",
            "the run of 64 copies printed no results",
        ),
    ],
)
def test_a_unixbench_run_that_failed_or_was_cut_short_is_told(
    tmp_path: Path, before: str, after: str, text: str
) -> None:
    path = written(tmp_path, UNIXBENCH.replace(before, after, 1), "report.txt")
    assert any(text in warning.text for warning in read_file(path).warnings)
    assert not any(text in warning.text for warning in read_file(FOREIGN / "unixbench-6.0.0-01.txt").warnings)


@pytest.mark.parametrize("header", ["seconds", "time_ms", "rate_tx_s"])
def test_a_time_below_zero_is_refused_with_its_line(tmp_path: Path, header: str) -> None:
    with pytest.raises(ImportFailed, match=f"line 3: {header} is -2: below zero"):
        read_file(table(tmp_path, f"kernel,{header}", "a,1", "b,-2"))
