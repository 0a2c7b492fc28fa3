"""`ktrial matrix recommend`, and `ktrial check OLD NEW`."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import CommandLine
from tests.support.report_records import FIVE, a_record
from tests.support.stored_results import WORKLOADS, a_store

from ktrial.analysis.errors import AnalysisError
from ktrial.analysis.history.recommend import dominates, recommend, regrets
from ktrial.format.sanitize import one_line
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Direction
from ktrial.store.store import open_store


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "own" / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def test_regret_is_against_the_best_in_either_direction() -> None:
    values = {"a": {0: 100.0, 1: 100.0}, "b": {0: 110.0, 1: 112.0}}
    centres = {"a": 100.0, "b": 111.0}
    lower = regrets("fork", values, centres, Direction.LOWER)
    assert (lower["a"].ratio, lower["b"].ratio) == (1.0, 1.11)
    assert (lower["b"].low, lower["b"].high) == (1.10, 1.12)
    higher = regrets("fork", values, centres, Direction.HIGHER)
    assert higher["b"].ratio == 1.0
    assert higher["a"].ratio == pytest.approx(1.11)


def test_one_dominates_where_it_is_nowhere_worse() -> None:
    both = {"x": Direction.LOWER, "y": Direction.LOWER}
    good, bad = {"x": {0: 100.0}, "y": {0: 50.0}}, {"x": {0: 120.0}, "y": {0: 50.2}}
    assert dominates(good, bad, both, 0.01)
    assert not dominates(bad, good, both, 0.01)
    assert not dominates(good, {"x": {0: 120.0}, "y": {0: 40.0}}, both, 0.01)
    assert not dominates(good, {"x": {0: 100.5}, "y": {0: 50.2}}, both, 0.01)


def test_one_workload_alone_does_not_decide(tmp_path: Path) -> None:
    """6.18 is best in nearly all; in one workload it is far behind, which made 6.1 the least bad one."""

    def values(number: int, bad: float) -> dict[str, float]:
        return dict.fromkeys(("fork", "pipe", "getppid", "stat"), 100.0 + number) | {"timer": bad}

    every = {"debian:6.1": values(30, 100.0), "debian:6.18": values(0, 140.0)}
    with open_store(str(a_store(tmp_path, a_record_of(every)))) as store:
        recommendation = recommend(store, tuple(every["debian:6.1"]))
        assert recommendation.candidates[0].version == "debian:6.18"
        assert recommendation.candidates[0].mean == pytest.approx(1.4 ** (1 / 5))
        assert recommendation.candidates[1].mean == pytest.approx(1.3 ** (4 / 5))
        assert recommendation.best == ("debian:6.18",)
        assert {without.best for without in recommendation.without} == {("debian:6.18",)}
        assert recommendation.answer.startswith("By instructions counted, not time, debian:6.18 serves")
        assert "so it stays whichever workload is left out" in recommendation.answer
        two = recommend(store, ("fork", "timer"))
        assert two.best == ("debian:6.1",)
        assert [without.best for without in two.without] == [("debian:6.1",), ("debian:6.18",)]
        assert "one workload decides: without timer it is debian:6.18" in two.answer


def a_record_of(values: dict[str, dict[str, float]]) -> StudyRecord:
    """Kernel → workload → value."""
    plain = a_record(tuple(values), tuple(next(iter(values.values()))))
    trials = tuple(
        trial.model_copy(
            update={
                "samples": tuple(
                    sample.model_copy(
                        update={"value": values[trial.planned.treatment.label][sample.workload]}
                    )
                    for sample in trial.samples
                )
            }
        )
        for trial in plain.trials
    )
    return plain.model_copy(update={"trials": trials})


def test_the_kernel_with_the_smallest_mean_regret_is_recommended(tmp_path: Path) -> None:
    with open_store(str(a_store(tmp_path))) as store:
        recommendation = recommend(store, ("fork", "pipe"))
        assert recommendation.candidates[0].version == "debian:5.10"
        assert recommendation.best == ("debian:5.10",)
        # 6.1 and 6.12 cost more than 5.10 in both; 6.18 and 7.2 are the best in pipe.
        assert set(recommendation.avoid) == {"debian:6.1", "debian:6.12", "debian:7.2"}
        alone = recommend(store, ("pipe",))
        assert alone.best[0] == "debian:6.18"


def test_kernels_that_lack_a_workload_are_not_judged(tmp_path: Path) -> None:
    records = a_record(FIVE[:3], WORKLOADS), a_record(FIVE[2:], ("fork",))
    with open_store(str(a_store(tmp_path, *records))) as store:
        recommendation = recommend(store, ("fork", "pipe"))
        assert {candidate.version for candidate in recommendation.candidates} == set(FIVE[:3])
        assert recommendation.incomplete == {"debian:6.18": ("pipe",), "debian:7.2": ("pipe",)}
        # They are the best in fork by far, or the worst: neither moves what is said of the others.
        alone = recommend(store, ("fork", "pipe"))
        assert [candidate.regrets for candidate in recommendation.candidates] == [
            candidate.regrets for candidate in alone.candidates
        ]
        assert min(candidate.regrets[0].ratio for candidate in recommendation.candidates) == 1.0
        left_out = "2 more without comparable numbers of some workload: nothing is said of those"
        assert left_out in recommendation.answer
        with pytest.raises(AnalysisError, match="fewer than two kernels"):
            recommend(store, ("fork", "tcp"))


def test_of_a_set_only_what_was_measured_counts(tmp_path: Path, cli: CommandLine) -> None:
    store = a_store(tmp_path)
    result = cli("matrix", "recommend", "--workloads", "quick", "--store", store)
    assert result.status == 0
    assert "not measured, and left out: syscall" in result.output
    assert cli("matrix", "recommend", "--workloads", "quick,syscall", "--store", store).status == 1, (
        "it was named"
    )
    assert cli("matrix", "recommend", "--workloads", "disk", "--store", store).status == 1


def test_recommend_prints_the_table(tmp_path: Path, cli: CommandLine) -> None:
    store = a_store(tmp_path)
    result = cli("matrix", "recommend", "--workloads", "fork,pipe", "--store", store)
    assert result.status == 0
    assert "worst" in result.output
    assert "By instructions counted, not time, debian:5.10 serves these workloads best" in one_line(
        result.output
    )
    assert "geometric mean" in result.output
    reported = json.loads(
        cli("matrix", "recommend", "--workloads", "fork,pipe", "--store", store, "--json").output
    )
    assert reported["best"] == ["debian:5.10"]
    assert cli("matrix", "recommend", "--workloads", "stat", "--store", store).status == 1


def test_a_check_of_two_kernels_is_of_the_quick_workloads(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    checks: list[tuple[Any, ...]] = []
    monkeypatch.setattr("ktrial.cli.commands.check.check_and_print", lambda *check, **_: checks.append(check))
    assert cli("check", "6.1", "path:vmlinux", "--max", "+2%").status == 0
    ((tested, against, options, maximum),) = checks
    assert (tested.kernel, against, maximum) == ("path:vmlinux", "debian:6.1", ["+2%"])
    assert "fork" in options.workload_names
    assert cli("check", "6.1").status == 2
