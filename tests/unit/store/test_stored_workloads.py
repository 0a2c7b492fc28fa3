"""A workload that is stored with parameters is found by its plain name, where only one is meant."""

import json
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.report_records import FIVE, a_record
from tests.support.stored_results import a_store

from ktrial.analysis.attribution.question import question
from ktrial.analysis.errors import AnalysisUsageError
from ktrial.analysis.store_queries import label_of, labels_of
from ktrial.cli.options.workloads import workload_names_of
from ktrial.model.study import StudyRecord
from ktrial.model.workload import WorkloadUse

SMALL = WorkloadUse(name="seq-read", parameters={"path": "/mnt", "size": 8})
LARGE = WorkloadUse(name="seq-read", parameters={"path": "/mnt", "size": 64})
FORK = WorkloadUse(name="fork")


def with_uses(*uses: WorkloadUse, number: int = 5) -> StudyRecord:
    """A record of `fork` in some kernels, under the names of the uses: the same numbers for each."""
    record = a_record(FIVE[:number], ("fork",))
    trials = tuple(
        trial.model_copy(
            update={
                "samples": tuple(
                    sample.model_copy(update={"workload": use.label})
                    for use in uses
                    for sample in trial.samples
                )
            }
        )
        for trial in record.trials
    )
    study = record.study.model_copy(update={"workloads": uses})
    return record.model_copy(update={"study": study, "trials": trials})


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def test_a_name_stands_for_the_only_workload_that_has_it() -> None:
    studies = [with_uses(SMALL, FORK).study, with_uses(SMALL).study]
    assert label_of(studies, "seq-read") == SMALL.label == "seq-read(path=/mnt, size=8)"
    assert labels_of(studies, ["fork", "seq-read", SMALL.label]) == ["fork", SMALL.label]
    assert label_of(studies, "tcp") == "tcp", "what no study has is for the caller to tell"


def test_the_plain_workload_goes_before_those_with_parameters() -> None:
    plain = WorkloadUse(name="seq-read")
    assert label_of([with_uses(SMALL, plain).study], "seq-read") == "seq-read"


def test_one_of_several_has_to_be_written_out(tmp_path: Path, cli: CommandLine) -> None:
    record = with_uses(SMALL, LARGE)
    with pytest.raises(AnalysisUsageError, match="workloads are called") as caught:
        label_of([record.study], "seq-read")
    assert caught.value.message.endswith(f"called seq-read: {SMALL.label}; {LARGE.label}.")
    with pytest.raises(AnalysisUsageError, match="workloads are called"):
        question(record.study, "seq-read", *FIVE[:2])
    store = a_store(tmp_path, record)
    assert cli("history", "seq-read", "--store", store).status == 2
    said = cli("history", LARGE.label, "--store", store, "--json")
    assert json.loads(said.output)["workload"] == LARGE.label


def test_commas_inside_parameters_part_no_workloads() -> None:
    assert workload_names_of([f"fork,{SMALL.label}", "pipe"]) == ["fork", SMALL.label, "pipe"]


def test_history_and_recommend_take_the_plain_name(tmp_path: Path, cli: CommandLine) -> None:
    store = a_store(tmp_path, with_uses(SMALL, FORK))
    said = cli("history", "seq-read", "--store", store)
    assert said.status == 0
    assert said.output.startswith(SMALL.label)
    said = cli("matrix", "recommend", "--workloads", "seq-read,fork", "--store", store, "--json")
    assert json.loads(said.output)["workloads"] == [SMALL.label, "fork"]


def test_history_says_what_is_there_instead(tmp_path: Path, cli: CommandLine) -> None:
    store = a_store(tmp_path, with_uses(FORK))
    said = cli("history", "frok", "--store", store)
    assert "did you mean fork or vfork?" in said.messages
    assert "ktrial matrix" not in said.messages, "it cannot be measured either"
    said = cli("history", "fork", "--metric", "instruction", "--store", store)
    assert said.status == 1
    assert "its metrics are instructions" in said.messages
    said = cli("history", "fork", "--kernels", "9.9", "--store", store)
    assert said.status == 1
    assert "kernels 9.9" in said.messages
    assert "measured are debian:5.10, debian:6.1" in said.messages


def test_kernels_that_are_named_and_were_never_measured_are_missing(tmp_path: Path, cli: CommandLine) -> None:
    store = a_store(tmp_path, with_uses(SMALL, number=2))
    said = cli("history", "seq-read", "--kernels", "9.9,5.10,8.1", "--store", store)
    assert said.status == 0
    assert "2 kernels without a number: debian:9.9, debian:8.1" in " ".join(said.output.split())
    assert "add them to the kernels of study quick-0" in said.output, "a matrix has no parameters"
    store = a_store(tmp_path / "plain", with_uses(FORK, number=2))
    said = cli("history", "fork", "--kernels", "5.10,8.1", "--store", store)
    assert "ktrial matrix --kernels debian:5.10,debian:8.1 --workloads fork" in said.output
