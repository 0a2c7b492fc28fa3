"""Settings that no kernel of a study has: refused before a trial is run or stored."""

import pytest
from tests.support.making import a_study
from tests.support.scripted import ScriptedMachine, ends, scripted_resources

from ktrial.experiment.errors import StudyRefused
from ktrial.experiment.session import run
from ktrial.knobs.catalogue import lenient_reference
from ktrial.machines.errors import MachineToolMissing
from ktrial.machines.fake import FakeMachine, agreeable
from ktrial.model.design import Factor, FactorKind
from ktrial.model.machine import Boot
from ktrial.model.study import Study
from ktrial.model.trial import Outcome
from ktrial.store.store import Store
from ktrial.target import Failure, Read, Run, Step, StepResult, Write

TYPO = "vm.no_such_thing"


def a_setting(target: str, *levels: int | str) -> Factor:
    levels = levels or (1, 2)
    return Factor(name=target, kind=FactorKind.SETTING, levels=levels, baseline=levels[0], target=target)


def of_settings(*targets: str, kernels: tuple[str, ...] = ("debian:6.1", "debian:6.12")) -> Study:
    return a_study(kernels=kernels, workloads=("fork",), factors=tuple(map(a_setting, targets)))


class Kernels:
    """Which writes fail, by kernel and path, and how; all else is as it should be."""

    def __init__(self, *refusals: tuple[str, str, str], value: str = "") -> None:
        self._refusals, self._value = refusals, value

    def __call__(self, boot: Boot, step: Step) -> StepResult:
        if isinstance(step, Read) and step.path.endswith("osrelease"):
            return StepResult(step=0, do="read", content=f"{boot.kernel.release}\n")
        if isinstance(step, Write) and (errno := self._refusal(boot, step)):
            failure = Failure(name=errno, text=f"write {step.path}: {errno}")
            return StepResult(step=0, do="write", failure=failure)
        if isinstance(step, Run):
            return StepResult(step=0, do="run", exit=0, stdout="1000")
        return agreeable(boot, step)

    def _refusal(self, boot: Boot, step: Write) -> str:
        if self._value not in {"", step.value}:
            return ""
        named = [
            (kernel, name, errno) for kernel, name, errno in self._refusals if kernel in boot.kernel.name
        ]
        return next((errno for _, name, errno in named if step.path.endswith(name)), "")


def programs(machine: FakeMachine) -> list[Run]:
    return [step for batch in machine.performed for step in batch.steps if isinstance(step, Run)]


@pytest.mark.parametrize(
    ("name", "errno", "says"),
    [
        (TYPO, "ENOENT", "there is no /proc/sys/vm/no_such_thing"),
        ("kernel.osrelease", "EACCES", "writing it is forbidden (EACCES)"),
        ("net.core.no/there", "ENOTDIR", "there is no /proc/sys/net/core/no.there"),
        ("/sys/kernel/mm", "EISDIR", "/sys/kernel/mm is a directory"),
    ],
)
def test_a_setting_that_no_kernel_has_is_refused_before_any_trial(
    name: str, errno: str, says: str, store: Store
) -> None:
    file = lenient_reference(name).path_in().rpartition("/")[2]
    machine = FakeMachine(Kernels(("", f"/{file}", errno)))
    study = of_settings("vm.swappiness", name)
    with pytest.raises(StudyRefused) as refused:
        run(study, store=store, machine=machine, resources=scripted_resources())
    assert says in refused.value.message
    assert "(debian:6.1, debian:6.12)" in refused.value.message
    assert refused.value.exit_code == 2
    assert not programs(machine)
    assert store.studies() == ()


def test_a_word_that_is_nearly_a_knob_names_it(store: Store) -> None:
    machine = FakeMachine(Kernels(("", "swapiness", "ENOENT")))
    with pytest.raises(StudyRefused, match=r"did you mean vm\.swappiness"):
        run(of_settings("vm.swapiness"), store=store, machine=machine, resources=scripted_resources())


def test_what_one_kernel_has_is_tried_and_an_outcome_in_the_other(store: Store) -> None:
    machine = FakeMachine(Kernels(("6.1", "no_such_thing", "ENOENT")))
    kernels = ("debian:6.1", "debian:5.10")
    record = run(
        of_settings(TYPO, kernels=kernels), store=store, machine=machine, resources=scripted_resources()
    )
    outcomes = {(trial.planned.treatment.levels["kernel"], trial.outcome) for trial in record.trials}
    assert outcomes == {("debian:6.1", Outcome.REFUSED), ("debian:5.10", Outcome.COMPLETED)}


def test_a_search_takes_what_no_kernel_has_for_an_outcome(store: Store) -> None:
    machine = FakeMachine(Kernels(("", "no_such_thing", "ENOENT")))
    record = run(
        of_settings(TYPO), store=store, machine=machine, resources=scripted_resources(), any_settings=True
    )
    assert {trial.outcome for trial in record.trials} == {Outcome.REFUSED}


@pytest.mark.parametrize("errno", ["EPERM", "EINVAL"])
def test_a_value_that_is_refused_is_an_outcome_of_its_treatment(errno: str, store: Store) -> None:
    machine = FakeMachine(Kernels(("", "no_such_thing", errno), value="1"))
    record = run(of_settings(TYPO), store=store, machine=machine, resources=scripted_resources())
    of_value = {trial.planned.treatment.levels[TYPO]: trial.outcome for trial in record.trials}
    assert of_value == {1: Outcome.REFUSED, 2: Outcome.COMPLETED}


def test_a_guest_that_ends_is_an_outcome_too(store: Store) -> None:
    def panics(boot: Boot, step: Step) -> StepResult:
        raise ends(Outcome.PANICKED, "Fatal exception")

    record = run(of_settings(TYPO), store=store, machine=FakeMachine(panics), resources=scripted_resources())
    assert {trial.outcome for trial in record.trials} == {Outcome.PANICKED}


def test_what_the_catalogue_knows_is_not_asked_for_and_the_rest_once(store: Store) -> None:
    catalogued, probed = FakeMachine(Kernels()), FakeMachine(Kernels())
    run(of_settings("vm.swappiness"), store=store, machine=catalogued, resources=scripted_resources())
    run(of_settings(TYPO), store=store, machine=probed, resources=scripted_resources())
    assert len(catalogued.performed) == len(programs(catalogued)) == 12
    assert len(programs(probed)) == 12
    assert len(probed.performed) == 12 + 1, "the first kernel has it"


def test_a_study_that_goes_on_is_not_asked_again(store: Store) -> None:
    study = of_settings(TYPO)
    run(study, store=store, machine=FakeMachine(Kernels()), resources=scripted_resources())
    (stored,) = store.studies()
    store.remove_trials_of(stored.id, {store.trials(stored.id)[0].planned.key})
    machine = FakeMachine(Kernels())
    run(study, store=store, machine=machine, resources=scripted_resources())
    assert len(machine.performed) == 1


def test_what_this_host_lacks_ends_the_run(store: Store) -> None:
    def full(_boot: Boot) -> None:
        raise MachineToolMissing(machine="exact", program="mke2fs", where="on PATH", package="e2fsprogs")

    with pytest.raises(MachineToolMissing):
        run(
            of_settings(TYPO),
            store=store,
            machine=ScriptedMachine(on_prepare=full),
            resources=scripted_resources(),
        )
    assert store.studies() == ()
