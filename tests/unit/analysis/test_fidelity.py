"""`ktrial fidelity`: changes that are counted, beside the same changes in real time."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.support.command_line import CommandLine
from tests.support.making import a_sample
from tests.support.report_records import a_record
from tests.support.stored_results import a_store

from ktrial.analysis.errors import AnalysisUsageError
from ktrial.analysis.fidelity import fidelity, pearson, spearman, with_interval
from ktrial.analysis.fidelity_citation import cite, keep, known, table_of
from ktrial.analysis.result import result
from ktrial.cli.studies import registry
from ktrial.model.fidelity import Fidelity
from ktrial.model.study import StudyRecord, Timing, treatments
from ktrial.model.workload import Mode
from ktrial.store.store import open_store
from ktrial.studyfile.reader import load

KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:6.18", "debian:7.2")
STUDY = Path("studies/fidelity-host.toml")


def measured(kind: str, factors: tuple[float, ...], spread: float = 0.0, cycles: bool = False) -> StudyRecord:
    """Five treatments; `factors` are their costs."""
    record = a_record(KERNELS, ("fork",), perturbations=12)
    timed, rng = kind == "host", np.random.default_rng(3)
    cost = dict(zip(KERNELS, factors, strict=True))
    trials = []
    for trial in record.trials:
        value = 10000 * cost[trial.planned.treatment.label] * math.exp(rng.normal(0, spread))
        options = {"metric": "fork", "unit": "ns" if timed else "instructions"}
        mode = Mode.TIMED if timed else Mode.EXACT_CLOCK
        samples = [a_sample("fork", value, mode=mode, **options)]
        if cycles:
            samples.append(a_sample("fork", 1 / value, mode=mode, metric="modelled-cycles", unit="cycles"))
        trials.append(trial.model_copy(update={"samples": tuple(samples), "counters": ()}))
    machine = record.study.machine.model_copy(update={"kind": kind})
    timing = Timing(blocks=12) if timed else None
    study = record.study.model_copy(update={"machine": machine, "timing": timing})
    answer = result(study, trials)
    return record.model_copy(update={"study": study, "trials": tuple(trials), "result": answer})


def only(exact: StudyRecord, timed: StudyRecord) -> Fidelity:
    return next(of_count for of_count in fidelity([(exact, timed)]).all if of_count.count == "instructions")


COUNTED, LIKE_IT = (1.0, 1.1, 1.2, 0.8, 0.9), (1.0, 1.15, 1.25, 0.75, 0.85)


def test_the_same_changes_agree_in_sign_and_rank() -> None:
    of_count = only(measured("exact", COUNTED), measured("host", LIKE_IT, 0.003))
    assert (of_count.count, of_count.pairs, of_count.decided, of_count.same_sign) == ("instructions", 4, 4, 4)
    assert of_count.spearman.value == pytest.approx(1.0)
    assert of_count.slope == pytest.approx(1.34, abs=0.05)
    assert of_count.rms_error == pytest.approx(0.056, abs=0.01)
    assert "4 of 4" in of_count.sentence


def test_a_change_of_the_other_sign_is_listed() -> None:
    of_count = only(measured("exact", COUNTED), measured("host", (1.0, 0.85, 1.25, 0.75, 0.85), 0.003))
    assert (of_count.decided, of_count.same_sign) == (4, 3)
    assert [pair.treatment for pair in of_count.disagreements] == ["debian:6.1"]


def test_what_noise_hides_is_undecided_and_counts_for_nothing() -> None:
    of_count = only(measured("exact", COUNTED), measured("host", LIKE_IT, 2.0))
    assert of_count.pairs == 4
    assert of_count.undecided_in_time == 4 - of_count.decided - of_count.undecided_in_exact
    assert of_count.undecided_in_time >= 3


def test_what_exact_mode_calls_equivalent_is_told_apart() -> None:
    of_count = only(measured("exact", (1.0, 1.0, 1.2, 0.8, 0.9)), measured("host", LIKE_IT, 0.003))
    assert (of_count.decided, of_count.undecided_in_exact) == (3, 1)


@pytest.mark.nightly
def test_modelled_cycles_are_another_count() -> None:
    compared = fidelity([(measured("exact", COUNTED, cycles=True), measured("host", LIKE_IT, 0.003))])
    by_count = {of_count.count: of_count for of_count in compared.all}
    assert by_count["instructions"].same_sign == 4
    assert by_count["modelled-cycles"].same_sign == 0, "these were made up to go the other way"
    assert {of_count.count for of_count in compared.held_out} == set(by_count)
    assert [of_count.pairs for of_count in compared.held_out] == [2, 2, 2]


def test_two_studies_that_count_are_refused() -> None:
    exact, timed = measured("exact", COUNTED), measured("host", LIKE_IT, 0.003)
    with pytest.raises(AnalysisUsageError, match="in real time"):
        fidelity([(exact, exact)])
    with pytest.raises(AnalysisUsageError, match="that counts"):
        fidelity([(timed, exact)])
    nothing = exact.result.model_copy(update={"comparisons": ()})
    with pytest.raises(AnalysisUsageError, match="no treatment with a number"):
        fidelity([(exact.model_copy(update={"result": nothing}), timed)])


@pytest.mark.nightly
def test_intervals_of_correlations_hold_the_truth_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(5), 0
    for _ in range(40):
        x = rng.normal(size=60)
        y = 0.8 * x + 0.6 * rng.normal(size=60)
        interval = with_interval(pearson, x, y, [str(number) for number in range(60)], 1)
        held += (
            interval.low is not None and interval.high is not None and interval.low <= 0.8 <= interval.high
        )
    assert held >= 33
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([1.0, 8, 27, 64])) == pytest.approx(1)


def test_the_committed_studies_of_built_in_workloads_have_82_pairs() -> None:
    everywhere = load(STUDY, registry())
    settings = sum(len(factor.levels) - 1 for factor in everywhere.factors)
    of_parameters = [
        load(file, registry()) for file in sorted(Path("studies/fidelity/parameters").glob("*.toml"))
    ]
    for study in (everywhere, *of_parameters):
        assert study.machine.kind == "host"
        assert study.timing
        assert study.timing.blocks == 30
    for study in of_parameters:
        (workload,) = study.workloads
        assert {factor.target.split(".")[0] for factor in study.factors} == {workload.name}
    changed = sum(len(treatments(study)) - 1 for study in of_parameters)
    assert settings * len(everywhere.workloads) + changed == 82


def test_fidelity_prints_and_tells_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(monkeypatch, capsys)
    store = a_store(tmp_path / "s", measured("exact", COUNTED), measured("host", LIKE_IT, 0.003))
    result = cli("fidelity", "1", "2", "--store", store)
    assert result.status == 0
    assert "4 of 4 cases" in " ".join(result.output.split())
    reported = json.loads(cli("fidelity", "1", "2", "--json", "--store", store).output)
    assert reported["all"][0]["same_sign"] == 4
    assert cli("fidelity", "2", "1", "--store", store).status == 2


def test_a_result_is_kept_in_the_store_and_cited_by_the_size_of_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = CommandLine(monkeypatch, capsys)
    store = a_store(tmp_path / "s", measured("exact", COUNTED), measured("host", LIKE_IT, 0.003))
    with open_store(store) as opened:
        assert known(opened) == ()
    assert cli("fidelity", "1", "2", "--no-html", "--store", store).status == 0
    with open_store(store) as opened:
        tables = known(opened)
        citation = cite(tables, "instructions", 1 / 1.15)
        assert citation
        assert (citation.band.low, citation.band.decided, citation.machine) == (1.1, 4, "host")
        assert "had the right sign in 4 of 4 cases" in citation.sentence
        large = cite(tables, "instructions", 3.0)
        assert large
        assert "nothing is known of changes of 100 % and more" in large.sentence
        assert cite(tables, "modelled-cycles", 1.15) is None
        assert cite(tables, "instructions", None) is None


def test_a_table_whose_study_has_changed_is_not_cited(tmp_path: Path) -> None:
    exact, timed = measured("exact", COUNTED), measured("host", LIKE_IT, 0.003)
    store = a_store(tmp_path / "s", exact, timed)
    table = table_of(fidelity([(exact, timed)]), [(exact, timed)]).model_copy(update={"studies": ((1, 2),)})
    with open_store(store) as opened:
        assert keep(opened, table)
        assert known(opened) == (table,)
        opened.delete(1)
        assert known(opened) == ()
