"""A referee's faults, planted in the stored records of a series: each is found before an answer is given."""

import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.profiles import a_profile
from tests.support.scripted import ScriptedMachine
from tests.support.series import SeriesBuilder, a_series, answer, names_in, runs
from typer.testing import CliRunner

from ktrial.cli.app import app
from ktrial.kernels.patch_series import series_in_quilt
from ktrial.model.kernel import Build, CodeDifference
from ktrial.model.machine import Boot
from ktrial.model.profile import Profile
from ktrial.model.regression_check import Decision
from ktrial.model.series_result import SeriesResult
from ktrial.model.study import Measurement
from ktrial.model.trial import Trial
from ktrial.model.workload import WorkloadUse
from ktrial.report.patch_series import answer as answer_of
from ktrial.report.patch_series import exercised
from ktrial.series.errors import SeriesError
from ktrial.series.run import COVERAGE, NAME, SeriesRun
from ktrial.store.errors import StoreDamaged
from ktrial.store.store import Store, open_store
from ktrial.target import Run, StepResult

SOURCE = "debian:linux-source-6.1"
FORK, PIPE = WorkloadUse(name="fork"), WorkloadUse(name="pipe")
PATCHES = ("cost-fork-10", "cost-fork-20", "cost-fork-30")
FUNCTIONS = {"fork": "do_fork", "pipe": "pipe_write", "nqueens": "sys_brk"}
BILLION = 10**9

Change = Callable[[Trial], Trial]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a series of three patches, all of whose trials have profiles."""
    made = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        in_place(patch, made)
        with open_store(str(made / "plain.db")) as store:
            series_of(made, store).run()
        # With profiles coverage chooses fork alone: the trials of that are run, and get their profiles too.
        copied(made / "plain.db", made / "chosen.db", with_profiles, but=NAME)
        with open_store(str(made / "chosen.db")) as store:
            series_of(made, store).run()
        copied(made / "chosen.db", made / "x.db", with_profiles)
    return made


@pytest.fixture
def place(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, for faults."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    in_place(monkeypatch, tmp_path)
    return tmp_path


def in_place(patch: pytest.MonkeyPatch, place: Path) -> None:
    patch.setenv("KTRIAL_CACHE", str(place / "cache"))
    differing = CodeDifference(functions=("do_fork",))
    patch.setattr("ktrial.series.building.code_difference", lambda _before, _after: differing)


def series_of(
    place: Path, store: Store, machine: ScriptedMachine | None = None, uses: tuple[WorkloadUse, ...] = ()
) -> SeriesRun:
    series = series_in_quilt(a_series(place / "q", *PATCHES), SOURCE)
    measurement = Measurement(uses, perturbations=2)
    series_runs = runs(store, SeriesBuilder(), machine or ScriptedMachine(answer))
    return SeriesRun(series, Build(source=SOURCE), measurement, series_runs, lambda _: None, (FORK, PIPE))


def copied(source: Path, target: Path, change: Change, but: str = "") -> None:
    """Every trial of a store into a new one, changed, with digests that fit; `but` those of a study."""
    with open_store(str(source)) as store, open_store(str(target)) as changed:
        for stored in store.studies():
            if stored.study.name == but:
                continue
            number = changed.study(stored.study)
            for trial in store.trials(stored.id):
                changed.add_trial(number, change(trial))


def with_profiles(trial: Trial) -> Trial:
    profiles = tuple(a_profile_of(sample.workload, int(sample.value)) for sample in trial.samples)
    return trial.model_copy(update={"profiles": profiles})


def a_profile_of(workload: str, instructions: int) -> Profile:
    """Ten operations, each of so many instructions, all of them in one function."""
    profile = a_profile({(FUNCTIONS[workload], ""): 10 * instructions})
    return profile.model_copy(update={"workload": workload})


def measured(place: Path) -> SeriesResult:
    with open_store(str(place / "x.db")) as store:
        return series_of(place, store).run()


def of_step(number: int) -> str:
    """The trials that measured this step; 0: the base."""
    measuring = "study_id IN (SELECT id FROM studies WHERE name = 'series' ORDER BY id LIMIT 1 OFFSET {})"
    return f"trial_id IN (SELECT id FROM trials WHERE {measuring.format(number)})"


OF_COVERAGE = (
    "trial_id IN (SELECT trials.id FROM trials JOIN studies ON study_id = studies.id "
    f"WHERE name = '{COVERAGE}')"
)
BIT = "UPDATE profiles SET content = fault(content) WHERE "
FAULTS = {
    "a cell: the second patch's number": f"UPDATE samples SET value = value + 1 WHERE {of_step(2)}",
    "a sum: what the tip is measured to": f"UPDATE samples SET value = value - 3 WHERE {of_step(3)}",
    "a middle measurement of a billion": f"UPDATE samples SET value = {BILLION} WHERE {of_step(1)}",
    "a cell: where it is made": f"{BIT}{of_step(2)}",
    "the coverage": f"{BIT}{OF_COVERAGE}",
    "an option of the kernel that is measured": "UPDATE trials SET provenance = "
    'replace(provenance, \'"config_digest": "\', \'"config_digest": "0\')',
    "an option of what is asked for": "UPDATE studies SET spec = replace(spec, 'exact', 'Exact')",
    "a step that is not there": "DELETE FROM trials WHERE id IN "
    f"(SELECT trial_id FROM samples WHERE {of_step(1)})",
}


def fault(content: bytes) -> bytes:
    """A profile in which another function runs as often."""
    text = zlib.decompress(content).replace(b"do_fork", b"do_exit").replace(b"pipe_write", b"do_fork")
    return zlib.compress(text)


def plant(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / "x.db")) as connection, connection:
        connection.create_function("fault", 1, fault)
        connection.execute("PRAGMA foreign_keys = ON")
        assert connection.execute(statement).rowcount


def verified(place: Path) -> tuple[int, str]:
    shown = CliRunner().invoke(app, ["store", "verify", "--store", str(place / "x.db")])
    return shown.exit_code, shown.stdout


def test_whole_records_are_told_as_they_are(place: Path) -> None:
    result = measured(place)
    assert [cell.difference for cell in result.cells if cell.workload == "fork"] == [10, 20, 30]
    assert exercised(result) == "The one function that this series changes, do_fork, is executed by fork."
    assert verified(place)[0] == 0


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_in_the_records_is_told_and_no_answer_comes_of_it(what: str, place: Path) -> None:
    plant(place, FAULTS[what])
    code, text = verified(place)
    assert code == 1
    assert "damaged: series" in text or "missing: series" in text
    with pytest.raises(StoreDamaged):
        measured(place)


def test_a_forger_who_writes_digests_too_has_to_change_every_part_alike(place: Path) -> None:
    """The store is whole then, and numbers in it cannot be of one measurement."""

    def with_a_sum(trial: Trial) -> Trial:
        profiled = with_profiles(trial)
        profiles = tuple(
            profile.model_copy(update={"region": profile.region.model_copy(update={"instructions": BILLION})})
            for profile in profiled.profiles
        )
        return profiled.model_copy(update={"profiles": profiles})

    def with_a_sample(trial: Trial) -> Trial:
        samples = tuple(sample.model_copy(update={"value": float(BILLION)}) for sample in trial.samples)
        return with_profiles(trial).model_copy(update={"samples": samples})

    for change, contradiction in (
        (with_a_sum, r"its functions and programs come to \d+,\d+ instructions, not to 1,000,000,000"),
        (with_a_sample, "its sample is 1,000,000,000 instructions per operation, its longest"),
    ):
        for file in place.glob("x.db*"):
            file.unlink()
        copied(place / "chosen.db", place / "x.db", change)
        assert verified(place)[0] == 0
        with pytest.raises(SeriesError, match=f"contradicts itself: {contradiction}"):
            measured(place)


def test_a_machine_that_measures_a_billion_in_the_middle_is_told_by_both_neighbours(tmp_path: Path) -> None:
    """From base to tip alone all would be as it was."""

    def broken(boot: Boot, run: Run) -> StepResult:
        result = answer(boot, run)
        patches = boot.kernel.origin.build.patches if boot.kernel.origin.build else ()
        is_middle = len(names_in(patches)) == 2 and run.argv[0] == "fork"
        return result.model_copy(update={"stdout": str(BILLION)}) if is_middle else result

    with open_store(str(tmp_path / "x.db")) as store:
        series_run = series_of(tmp_path, store, ScriptedMachine(broken), uses=(FORK,))
        result = series_run.run()
    differences = {cell.number: int(cell.difference) for cell in result.cells}
    assert differences == {1: 10, 2: BILLION - 1010, 3: 1060 - BILLION}
    assert [int(total.difference) for total in result.totals] == [60]
    assert result.decision is Decision.BEYOND
    assert "patch 2 in fork" in answer_of(result)
