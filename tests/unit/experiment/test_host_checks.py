"""What a study asks of this system: refused before its first trial, or told."""

import os
from pathlib import Path

import pytest
from tests.support.knob_tree import Tree, made
from tests.support.making import a_study

from ktrial.errors import KtrialError
from ktrial.experiment.preflight import check_host_settings
from ktrial.experiment.session import run
from ktrial.knobs.errors import BadKnob, KnobAbsent, KnobForbidden
from ktrial.machines.errors import HostUsageProblem
from ktrial.machines.host import HostMachine
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import MachineSettings, Study, StudyRecord, Timing
from ktrial.model.warnings import WarningKind
from ktrial.model.workload import Command, MetricRule, WorkloadUse
from ktrial.store.store import Store
from ktrial.studyfile.references import resolved

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as somebody else")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return made(tmp_path)


def a_setting(target: str, *levels: int | str) -> Factor:
    return Factor(name=target, kind=FactorKind.SETTING, levels=levels, baseline=levels[0], target=target)


def a_host_study(*factors: Factor, user: str = "", argv: tuple[str, ...] = ("/usr/bin/id", "-u")) -> Study:
    command = Command(argv=argv, metrics=(MetricRule(name="uid", regex=r"^(\d+)$"),), user=user)
    arms = Factor(name="arm", kind=FactorKind.NOTHING, levels=("a", "b"), baseline="a")
    return a_study(kernels=("host",), timing=Timing()).model_copy(
        update={
            "machine": MachineSettings(kind="host", kernel="host"),
            "factors": factors or (arms,),
            "workloads": (WorkloadUse(name="mine", command=command),),
        }
    )


@pytest.mark.parametrize(
    ("target", "levels", "error", "says"),
    [
        ("vm.no_such_knob", (1, 2), KnobAbsent, "there is no /proc/sys/vm/no_such_knob"),
        ("kernel.osrelease", (1, 2), KnobForbidden, "writing it is forbidden"),
        ("vm.swappiness", (10, 100_000), BadKnob, "100000"),
    ],
)
def test_a_setting_that_cannot_be_made_is_refused(
    target: str, levels: tuple[int, int], error: type[KtrialError], says: str, tree: Tree
) -> None:
    (tree.root / "system/proc/sys/kernel/osrelease").chmod(0o444)
    study = resolved(a_host_study(a_setting("vm.swappiness", 10, 20), a_setting(target, *levels)))
    with pytest.raises(error, match=says):
        check_host_settings(study, tree.target)
    check_host_settings(resolved(a_host_study(a_setting("vm.swappiness", 10, 20))), tree.target)


def test_a_name_with_a_slip_is_told_with_the_knob_that_was_probably_meant(tree: Tree) -> None:
    with pytest.raises(KnobAbsent) as raised:
        check_host_settings(resolved(a_host_study(a_setting("vm.swapiness", 10, 20))), tree.target)
    assert "did you mean vm.swappiness" in raised.value.advice


@pytest.mark.parametrize(
    ("study", "error"),
    [
        (a_host_study(a_setting("vm.no_such_knob", 1, 2)), KnobAbsent),
        (a_host_study(a_setting("kernel.ostype", 1, 2)), KnobForbidden),
        (a_host_study(user="no-such-user"), HostUsageProblem),
    ],
)
def test_nothing_runs_before_all_treatments_are_known_to_be_possible(
    study: Study, error: type[KtrialError], store: Store
) -> None:
    with pytest.raises(error):
        run(study, store=store, machine=HostMachine(allow_changes=True))
    assert not store.studies(), "it was not even begun"


def test_who_is_not_root_runs_programs_as_nobody_else(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostUsageProblem, match="not as root") as raised:
        run(a_host_study(user="nobody"), store=store, machine=HostMachine())
    assert "sudo" in raised.value.advice


def ran(store: Store, user: str, *argv: str) -> StudyRecord:
    study = a_host_study(user=user, argv=argv) if argv else a_host_study(user=user)
    return run(study, store=store, machine=HostMachine(), until=1)


@ROOT_ONLY
@pytest.mark.parametrize(("user", "uid", "warns"), [("nobody", 65534, 0), ("root", 0, 0), ("", 0, 1)])
def test_a_command_runs_as_its_user_and_as_root_only_with_a_warning(
    user: str, uid: int, warns: int, store: Store
) -> None:
    record = ran(store, user)
    assert {sample.value for trial in record.trials for sample in trial.samples} == {uid}
    warnings = [warning for warning in record.result.warnings if warning.kind is WarningKind.RUNS_AS_ROOT]
    assert len(warnings) == warns
    assert all("user = " in warning.advice for warning in warnings)


@ROOT_ONLY
def test_groups_are_the_users_own(store: Store) -> None:
    record = ran(store, "nobody", "/usr/bin/id", "-G")
    assert {sample.value for trial in record.trials for sample in trial.samples} == {65534}
