"""Studies that a command makes for itself are that command's own, and a study of no trials is not kept."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.databases import Backend
from tests.support.making import a_study, a_trial, planned
from tests.support.scripted import ScriptedMachine, a_kernel, not_found, scripted_resources

import ktrial
from ktrial.analysis.history.series import history
from ktrial.analysis.history.stored_numbers import stored_numbers
from ktrial.bisect.measurement import candidate_study
from ktrial.cli.options.completion import study_names
from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment.observer import Observer
from ktrial.experiment.session import run
from ktrial.kernels.errors import KernelNotFound
from ktrial.model.design import Plan
from ktrial.model.machine import Activity
from ktrial.model.study import Measurement, Study
from ktrial.model.workload import WorkloadUse
from ktrial.report.site.site import build
from ktrial.store.errors import StudyNotStored
from ktrial.store.store import Store, open_store

KERNELS = ("debian:6.1", "debian:6.12")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    return CommandLine(monkeypatch, capsys)


def with_trials(store: Store, study: Study, value: float = 1000.0) -> int:
    number = store.study(study)
    for place, kernel in enumerate(KERNELS):
        store.add_trial(number, a_trial(planned(kernel, 0, place), {"fork": value + place}))
    return number


def own_studies(name: str = "compare") -> list[Study]:
    """Of each command that makes some for itself; those of bisect with several treatments, too."""
    commands = ("explain", "bisect", "check", "baseline", "calibrate", "series-boot", "series-coverage")
    return [a_study(name, KERNELS, ("fork",), made_by=command) for command in commands]


def test_what_a_command_made_for_itself_is_nowhere_but_in_list_all(cli: CommandLine, tmp_path: Path) -> None:
    with open_store() as store:
        users = with_trials(store, a_study("compare", KERNELS, ("fork",)))
        own = [with_trials(store, study, 2000.0) for study in own_studies()]
        hidden = with_trials(store, a_study("hidden", KERNELS, ("fork",), made_by="explain"))
        assert (store.find("compare").id, store.newest()) == (users, store.find(users))
        assert store.names() == {"compare"}
        with pytest.raises(StudyNotStored):
            store.find("hidden")
        assert store.find(hidden).study.made_by == "explain", "its number is its own"
        (line,) = history(stored_numbers(store), "fork").lines
        assert {point.study_id for point in line.points} == {users}
        site = build(store, tmp_path / "site")
        assert (site.results, sorted((tmp_path / "site" / "results").glob("*.html"))) == (
            1,
            [tmp_path / "site" / "results" / f"{users}.html"],
        )
    with ktrial.open_store() as opened:
        assert opened.studies == ("compare",)
    assert study_names("") == ["compare"]
    listed = cli("list", "--json")
    assert [study["id"] for study in json.loads(listed.output)] == [users]
    told = "8 more studies that commands made (baseline 1, bisect 1, calibrate 1"
    assert told in cli("list").messages
    every = json.loads(cli("list", "--all", "--json").output)
    assert [study["id"] for study in every] == [users, *own, hidden]
    assert [study["made_by"] for study in every][:3] == ["", "explain", "bisect"]
    assert json.loads(cli("show", "--json").output)["id"] == users
    assert json.loads(cli("show", "compare", "--json").output)["id"] == users
    assert json.loads(cli("show", str(own[0]), "--json").output)["id"] == own[0]


def test_what_series_and_watch_measure_is_in_histories_and_not_in_the_list(cli: CommandLine) -> None:
    with open_store() as store:
        numbers = [
            with_trials(store, a_study(name, KERNELS, ("fork",), made_by=name), 1000.0 + place)
            for place, name in enumerate(("series", "watch"))
        ]
        (line,) = history(stored_numbers(store), "fork", by_time=True).lines
        assert {point.study_id for point in line.points} == set(numbers)
    assert cli("list").output == ""


def test_a_candidate_of_a_bisection_is_the_bisections() -> None:
    measurement = Measurement((WorkloadUse(name="fork"),))
    assert candidate_study(a_kernel("debian:6.1"), measurement, {}).made_by == "bisect"


class Interrupting(Observer):
    """Ends a run before its first trial."""

    def study_planned(self, plan: Plan, finished: int) -> None:
        raise KeyboardInterrupt


def ran(store: Store, study: Study, missing: Sequence[str] = (), observer: Observer | None = None) -> None:
    resources = scripted_resources(missing={name: not_found(name) for name in missing})
    run(study, store=store, machine=ScriptedMachine(), resources=resources, observer=observer)


def test_a_study_of_no_trials_is_not_kept_and_takes_no_name(backend: Backend) -> None:
    with open_store(backend.location) as store:
        ran(store, a_study("compare", KERNELS))
        (good,) = store.studies()
        mistyped = a_study("compare", ("debian:6.1", "debian:9"))
        with pytest.raises(KernelNotFound):
            ran(store, mistyped, missing=("debian:6.1", "debian:9"))
        with pytest.raises(Interrupted):
            ran(store, a_study("compare", KERNELS, perturbations=7), observer=Interrupting())
        assert store.studies() == (good,)
        assert store.find("compare") == good
        left = store.study(mistyped)  # as by a run that was killed before its first trial
        assert (store.find("compare"), store.newest()) == (good, good)
        assert store.find(left).study == mistyped
        ran(store, mistyped)
        assert store.find("compare").id == left


def test_a_study_without_trials_stays_while_somebody_runs_it(backend: Backend) -> None:
    with open_store(backend.location) as store:
        number, now = store.study(a_study()), datetime.now(UTC)
        activity = Activity(
            key="run", host="lab", user="me", process=1, born="1", started=now, heard=now,
            silence_seconds=60.0, finished=0, planned=6,
        )  # fmt: skip
        assert store.tell_activity(number, activity)
        assert not store.remove_if_empty(number)
        with pytest.raises(KtrialError):
            ran(store, a_study(), missing=KERNELS)
        assert [study.id for study in store.studies()] == [number]
        store.forget_activities("run")
        assert store.remove_if_empty(number)
        assert (store.studies(), store.remove_if_empty(number)) == ((), False)


def test_a_run_whose_study_was_taken_away_as_it_began_stores_it_anew(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(backend.location) as store:
        stored = store.study
        taken: list[bool] = []

        def study(asked: Study) -> int:
            number = stored(asked)
            if (
                not taken
            ):  # another run of it ends just now; a third one gets the number, where they are reused
                taken.append(store.remove_if_empty(number))
                stored(a_study("another"))
            return number

        monkeypatch.setattr(store, "study", study)
        ran(store, a_study("quick"))
        assert taken == [True]
        finished = {study.study.name: study.finished for study in store.studies()}
        assert finished == {"another": 0, "quick": 6}
