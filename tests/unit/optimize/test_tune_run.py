"""Searches as trials, on a machine whose numbers follow from its knobs: stored, interrupted, gone on with."""

import os
import random
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.killing import forked
from tests.support.scripted import ends, scripted_resources
from tests.support.tuning import TunableMachine, a_search

from ktrial.experiment.observer import Observer
from ktrial.machines.errors import HostProblem
from ktrial.machines.kvm import KvmMachine, KvmProbe
from ktrial.model.comparison import Verdict
from ktrial.model.machine import Boot
from ktrial.model.study import Search, Study
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Budget, Purpose, Tuned
from ktrial.model.workload import Mode
from ktrial.optimize.revalidation import RevalidationOutcome, judged, revalidation_of
from ktrial.optimize.search_space import with_space
from ktrial.optimize.session import ended, run_search
from ktrial.store.store import Store, open_store
from ktrial.studyfile.errors import (
    BaselineFailed,
    NotTheSameSearch,
    SearchFailed,
    TuningError,
)

PRESSURE, SWAPPINESS = "/proc/sys/vm/vfs_cache_pressure", "/proc/sys/vm/swappiness"
KNOBS = ("vm.vfs_cache_pressure", "vm.swappiness", "vm.numa_stat")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "trials.db") as opened:
        yield opened


def planted(boot: Boot, written: Mapping[str, str]) -> float:
    """A fifth fewer instructions where the pressure is high; nothing else matters."""
    return 800.0 if int(written.get(PRESSURE, "100")) > 300 else 1000.0


def searched_on(machine: TunableMachine, *knobs: str, runs: int = 30, **changes: object) -> Study:
    study = with_space(a_search(*(knobs or KNOBS)), machine, scripted_resources(), Observer())
    assert study.search
    update = {"budget": Budget(runs=runs), **changes}
    return study.model_copy(update={"search": Search.model_validate({**dict(study.search), **update})})


class Whole(NamedTuple):
    """A search that has ended; several tests look at it, since it takes its time."""

    study: Study
    machine: TunableMachine
    tuned: Tuned
    trials: tuple[Trial, ...]
    store: Store


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    machine = TunableMachine(planted)
    study = searched_on(machine)
    with open_store(tmp_path_factory.mktemp("whole") / "trials.db") as opened:
        tuned = run_search(study, store=opened, machine=machine, resources=scripted_resources())
        yield Whole(study, machine, tuned, opened.trials(opened.study(study)), opened)


def test_a_planted_gain_is_found_and_confirmed_and_only_what_matters_stays(whole: Whole) -> None:
    assert whole.tuned.confirmed is not None
    assert list(whole.tuned.confirmed) == ["vm.vfs_cache_pressure"]
    comparison = whole.tuned.comparisons[0]
    assert comparison.verdict is Verdict.BETTER
    assert comparison.ratio == pytest.approx(0.8)
    assert len(whole.machine.ran) <= 30


def test_every_run_is_a_trial_in_the_store_with_what_it_is_for(whole: Whole) -> None:
    observed = whole.tuned.observations
    assert [trial.planned.order for trial in whole.trials] == [one.order for one in observed]
    assert [trial.planned.purpose for trial in whole.trials] == [one.purpose.value for one in observed]
    assert whole.trials[0].planned.purpose == Purpose.CALIBRATE.value
    assert not whole.trials[0].settings, "the baseline is the system as it is: nothing is written"
    assert all(trial.planned.treatment.levels == trial.settings for trial in whole.trials)


def kept(store: Store, study: Study, trials: Iterable[Trial]) -> int:
    """The id of the study, with these trials and no answer."""
    number = store.study(study)
    for trial in trials:
        store.add_trial(number, trial)
    return number


@pytest.mark.parametrize("runs", [3, 17])
def test_interrupted_it_goes_on_with_the_same_answer_and_repeats_nothing(
    whole: Whole, store: Store, runs: int
) -> None:
    # Two at once: the one that was asked for later may have ended before.
    there = (*whole.trials[:runs], *whole.trials[runs + 1 : runs + 2])
    number = kept(store, whole.study, there)
    stored = store.trials(number)
    assert ended(store, store.find(number)) is None
    machine = TunableMachine(planted)
    tuned = run_search(whole.study, store=store, machine=machine, resources=scripted_resources())
    assert len(stored) + len(machine.ran) == len(whole.trials)
    assert (tuned.confirmed, tuned.answer) == (whole.tuned.confirmed, whole.tuned.answer)
    asked, expected = ([one.configuration for one in each.observations] for each in (tuned, whole.tuned))
    assert asked == expected


@pytest.mark.parametrize("kills", [3, pytest.param(25, marks=pytest.mark.nightly)], ids=["some", "many"])
def test_killed_at_any_instant_it_goes_on_with_the_same_answer_and_repeats_nothing(
    whole: Whole, kills: int, tmp_path: Path
) -> None:
    """Some 2 s of CPU time for each kill."""
    file = tmp_path / "trials.db"

    def search() -> None:
        with open_store(file) as opened:
            machine = TunableMachine(planted)
            run_search(whole.study, store=opened, machine=machine, resources=scripted_resources())

    begin = time.monotonic()
    search()
    seconds, draw = time.monotonic() - begin, random.Random(kills)
    ends_early = 0
    for _ in range(kills):
        file.unlink()
        for left in tmp_path.glob("trials.db?*"):
            left.unlink()
        for _attempt in range(2):  # what goes on is killed, too
            process = forked(search)
            time.sleep(draw.uniform(0, seconds))
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        with open_store(file) as opened:
            number = opened.study(whole.study)
            before = opened.trials(number)
            ends_early += len(before) < len(whole.trials)
            machine = TunableMachine(planted)
            tuned = run_search(whole.study, store=opened, machine=machine, resources=scripted_resources())
            assert len(before) + len(machine.ran) == len(whole.trials), "no run is lost, and none repeated"
            assert opened.check_whole().is_whole
        assert (tuned.confirmed, tuned.answer) == (whole.tuned.confirmed, whole.tuned.answer)
        assert [run.configuration for run in tuned.observations] == [
            run.configuration for run in whole.tuned.observations
        ]
    assert ends_early, "no kill came while it searched"


def test_the_answer_is_stored_and_no_optimiser_is_asked_for_it_again(
    whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newer(*_arguments: object, **_named: object) -> Tuned:
        raise NotTheSameSearch(3)

    monkeypatch.setattr("ktrial.optimize.tune", newer)
    stored = whole.store.find(whole.study.name)
    assert ended(whole.store, stored) == whole.tuned
    again = run_search(whole.study, store=whole.store, machine=whole.machine, resources=scripted_resources())
    assert again == whole.tuned


def test_an_answer_that_is_not_stored_follows_from_the_runs(whole: Whole, store: Store) -> None:
    number = kept(store, whole.study, whole.trials)
    assert store.answer(number) is None
    assert ended(store, store.find(number)) == whole.tuned


def test_runs_that_this_ktrial_would_not_ask_for_are_no_answer(whole: Whole, store: Store) -> None:
    other = whole.study.model_copy(update={"seed": whole.study.seed + 1})
    number = kept(store, other, whole.trials)
    assert ended(store, store.find(number)) is None
    with pytest.raises(NotTheSameSearch):
        run_search(other, store=store, machine=TunableMachine(planted), resources=scripted_resources())


def test_runs_that_fail_are_outcomes_with_their_reasons(store: Store) -> None:
    def crashes(boot: Boot, written: Mapping[str, str]) -> float:
        if int(written.get(SWAPPINESS, "60")) > 150:
            raise ends(Outcome.PANICKED, "Fatal exception")
        return planted(boot, written)

    machine = TunableMachine(crashes)
    machine.refuses = lambda step: step.path.endswith("/dirty_ratio") and int(step.value) > 85
    study = searched_on(machine, "vm.vfs_cache_pressure", "vm.swappiness", "vm.dirty_ratio", runs=40)
    tuned = run_search(study, store=store, machine=machine, resources=scripted_resources())
    failed = {one.failure for one in tuned.observations if one.failure}
    assert any("Fatal exception" in failure for failure in failed)
    assert all("Fatal exception" in failure or "was refused" in failure for failure in failed)
    trials = {trial.planned.order: trial for trial in store.trials(store.study(study))}
    outcomes = {trials[one.order].outcome for one in tuned.observations if one.failure}
    assert outcomes <= {Outcome.PANICKED, Outcome.REFUSED}
    assert not any(one.values for one in tuned.observations if one.failure)
    assert tuned.confirmed is not None
    assert list(tuned.confirmed) == ["vm.vfs_cache_pressure"]


def test_what_the_machine_could_not_run_is_run_again_and_answers_nothing(whole: Whole, store: Store) -> None:
    """Of fourteen boots nine failed for this host's sake, and the answer was: no gain, exit 0."""
    failures: dict[tuple[tuple[str, str], ...], int] = {}

    def fails_twice(boot: Boot, written: Mapping[str, str]) -> float:
        asked = tuple(sorted(written.items()))
        failures[asked] = failures.get(asked, 0) + 1
        if asked and failures[asked] < 3:
            raise ends(Outcome.MACHINE_FAILED, "QEMU was ended by SIGKILL: it said nothing")
        return planted(boot, written)

    machine = TunableMachine(fails_twice)
    study = searched_on(machine)
    tuned = run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert any(times > 2 for times in failures.values())
    assert tuned.confirmed == whole.tuned.confirmed
    trials = store.trials(store.study(study))
    assert {trial.outcome for trial in trials} == {Outcome.COMPLETED}


def test_a_machine_that_fails_again_and_again_ends_the_search_which_goes_on_later(store: Store) -> None:
    broken = True

    def fails(boot: Boot, written: Mapping[str, str]) -> float:
        if broken and int(written.get(PRESSURE, "100")) > 300:
            raise ends(Outcome.MACHINE_FAILED, "QEMU ended with status 1: cannot allocate memory")
        return planted(boot, written)

    machine = TunableMachine(fails)
    study = searched_on(machine)
    with pytest.raises(SearchFailed, match=r"3 times with .*cannot allocate memory") as raised:
        run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert "tune --resume" in raised.value.advice
    number = store.study(study)
    assert {trial.outcome for trial in store.trials(number)} == {Outcome.COMPLETED}
    assert ended(store, store.find(number)) is None, "it has no answer"
    broken = False
    tuned = run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert tuned.confirmed is not None
    assert list(tuned.confirmed) == ["vm.vfs_cache_pressure"]


def test_where_most_runs_failed_it_is_not_said_that_nothing_is_better(store: Store) -> None:
    def hangs(boot: Boot, written: Mapping[str, str]) -> float:
        if written:
            raise ends(Outcome.HUNG, "300 s of CPU time went by before the steps were done")
        return 1000.0

    machine = TunableMachine(hangs)
    study = searched_on(machine)
    with pytest.raises(SearchFailed, match=r"Of (\d+) runs with other settings \1 failed.*300 s of CPU"):
        run_search(study, store=store, machine=machine, resources=scripted_resources())
    with pytest.raises(SearchFailed):
        ended(store, store.find(store.study(study)))


def test_a_knob_that_the_kernel_never_takes_is_soon_left_alone(store: Store) -> None:
    machine = TunableMachine(planted)
    study = searched_on(machine, runs=30)
    machine.refuses = lambda step: step.path == SWAPPINESS
    tuned = run_search(study, store=store, machine=machine, resources=scripted_resources())
    refused = [one for one in tuned.observations if one.failure]
    assert {one.refused for one in refused} == {"vm.swappiness"}
    assert 2 <= len(refused) <= 9, "six, and those that were asked for together"
    assert tuned.confirmed is not None
    assert list(tuned.confirmed) == ["vm.vfs_cache_pressure"]


def test_a_workload_that_fails_at_the_baseline_ends_the_search_at_once(store: Store) -> None:
    def fails(boot: Boot, written: Mapping[str, str]) -> float:
        raise ends(Outcome.HUNG, "no end")

    machine = TunableMachine(fails)
    study = searched_on(machine)
    with pytest.raises(BaselineFailed, match="no end"):
        run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert len(machine.ran) == 1
    assert store.studies() == (), "a study of no trials is not kept"


def test_an_objective_that_is_not_measured_ends_the_search_at_once(store: Store) -> None:
    machine = TunableMachine(planted)
    study = searched_on(machine)
    assert study.search
    goal = study.search.goal
    other = goal.model_copy(update={"objectives": (goal.objectives[0].model_copy(update={"metric": "rps"}),)})
    study = study.model_copy(update={"search": study.search.model_copy(update={"goal": other})})
    with pytest.raises(TuningError, match="does not measure 'rps'"):
        run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert len(machine.ran) == 1


def test_without_kvm_the_reason_is_told_before_anything_is_measured(store: Store) -> None:
    machine = KvmMachine(probe=KvmProbe(usable=False, reason="a probe guest got nowhere"))
    with pytest.raises(HostProblem, match="a probe guest got nowhere"):
        with_space(a_search("vm.swappiness", kind="kvm"), machine, scripted_resources(), Observer())
    # For a boot parameter alone no guest is looked into.
    study = with_space(a_search("boot:nohz=off", kind="kvm"), machine, scripted_resources(), Observer())
    with pytest.raises(HostProblem, match="a probe guest got nowhere"):
        run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert store.studies() == (), "a study of no trials is not kept"


def test_a_boot_parameter_boots_a_system_of_its_own(store: Store) -> None:
    machine = TunableMachine(lambda boot, _: 900.0 if "nohz=off" in boot.parameters else 1000.0)
    study = searched_on(machine, "boot:nohz=off", "vm.swappiness", runs=20)
    tuned = run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert tuned.confirmed == {"boot:nohz": "off"}
    assert {boot.parameters for boot in machine.prepared} == {(), ("nohz=off",)}


@pytest.mark.nightly
def test_in_real_time_noise_is_reckoned_with(store: Store) -> None:
    chance = random.Random(4)

    def noisy(boot: Boot, written: Mapping[str, str]) -> float:
        return planted(boot, written) * chance.lognormvariate(0, 0.02)

    machine = TunableMachine(noisy, mode=Mode.TIMED)
    study = searched_on(machine, runs=50, at_once=1)
    tuned = run_search(study, store=store, machine=machine, resources=scripted_resources())
    assert tuned.confirmed is not None
    assert "vm.vfs_cache_pressure" in tuned.confirmed
    comparison = tuned.comparisons[0]
    assert comparison.verdict is Verdict.BETTER
    assert comparison.ratio == pytest.approx(0.8, rel=0.05)
    assert 0.005 < tuned.noise < 0.06


def test_measured_again_the_answer_holds_or_not(whole: Whole) -> None:
    tuned = whole.tuned
    again = revalidation_of(whole.study, tuned, blocks=10)
    assert again.listed == ({"vm.vfs_cache_pressure": (tuned.confirmed or {})["vm.vfs_cache_pressure"]},)
    assert again.factors[0].baseline == "100", "the old value is written, whatever is there now"
    before = tuned.comparisons[0]
    smaller = before.model_copy(update={"ratio": 0.95, "low": 0.94, "high": 0.96})
    gone = before.model_copy(update={"ratio": 1.0, "verdict": Verdict.EQUIVALENT})
    unknown = before.model_copy(update={"verdict": Verdict.INCONCLUSIVE})
    judgements = [judged(tuned, (one,)) for one in (before, smaller, gone, unknown)]
    assert judgements == [
        RevalidationOutcome.YES,
        RevalidationOutcome.SMALLER,
        RevalidationOutcome.NO,
        RevalidationOutcome.UNKNOWN,
    ]
