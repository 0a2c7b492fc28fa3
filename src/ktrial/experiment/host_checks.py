"""What a study asks of this system, looked at before its first trial: settings, and as whom programs run."""

import os
import pwd
import stat

from ktrial.experiment import guest_storage
from ktrial.experiment.jobs import Job
from ktrial.knobs import System, find, values
from ktrial.knobs.errors import KnobForbidden
from ktrial.knobs.lookup import KnobInstance
from ktrial.machines import Machine
from ktrial.machines.errors import NoSuchUser, UserNotTaken
from ktrial.machines.host import HostMachine
from ktrial.machines.ssh import SshMachine
from ktrial.model.design import FactorKind, level_text
from ktrial.model.study import Study
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import WorkloadUse
from ktrial.target import LocalTarget

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def check(study: Study, machine: Machine) -> None:
    """Raise what would keep a treatment from being tried here, before one is; elsewhere nothing is looked at.

    Of settings: what `ktrial knob set` raises before it writes. Of programs: NoSuchUser, UserNotTaken. Of a
    guest's disk: MachineToolMissing. Of another system: HostChangeForbidden, CannotBoot, UnlikeSystem.
    """
    if study.machine.disk:
        guest_storage.program(study.machine.disk)
    if isinstance(machine, SshMachine):
        _check_other(study, machine)
    if isinstance(machine, HostMachine):
        for user in dict.fromkeys(use.command.user for use in study.workloads if use.command):
            _check_user(machine.name, user)
        check_settings(study, LocalTarget())


def _check_other(study: Study, machine: SshMachine) -> None:
    """What another system has to be able to do. Raises HostChangeForbidden, CannotBoot, UnlikeSystem."""
    if study.machine.boots:
        machine.check_boots()
    if study.machine.pin:
        machine.check_is_linux("pinning to CPUs")
    if any(factor.kind is FactorKind.SETTING for factor in study.factors):
        machine.check_is_linux("settings")
    if own := [use.label for use in study.workloads if use.command is None]:
        machine.check_is_linux(f"workloads of its own ({own[0]})")


def check_settings(study: Study, target: LocalTarget) -> None:
    """Find every setting of every treatment, and look whether it may be written. Raises KnobError."""
    system = System(target)
    for factor in study.factors:
        if factor.kind is FactorKind.SETTING:
            for setting in find(system, study.references.knobs[factor.target]):
                _check_writable(setting, target)
                for level in factor.levels:
                    values.check(setting.name, setting.knob, level_text(level), system.version)


def _check_writable(instance: KnobInstance, target: LocalTarget) -> None:
    if not target.mode(instance.path) & _WRITABLE:
        advice = "even root may not: the file is read-only; ktrial knob list names what can be changed"
        raise KnobForbidden(
            knob=instance.name, action="writing it", answer="no bit of its mode allows it", next=advice
        )


def _check_user(machine: str, user: str) -> None:
    if not user:
        return
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise NoSuchUser(machine=machine, user=user) from None
    if os.geteuid() not in {0, account.pw_uid}:
        raise UserNotTaken(machine=machine, user=user, own=os.geteuid())


def warnings_of(machine: Machine, job: Job) -> tuple[DataWarning, ...]:
    """A command of the user's that has all rights here, without having been given them by name."""
    return of_use(machine, job.use)


def of_use(machine: Machine, use: WorkloadUse) -> tuple[DataWarning, ...]:
    """The same of a workload of the study's, before it runs."""
    command = use.command
    if not isinstance(machine, HostMachine) or command is None or command.user or os.geteuid() != 0:
        return ()
    text = f"{use.name} runs as root: ktrial does, and its command names no user"
    advice = (
        '--user nobody (or root), or user = "nobody" beside its command in the study file, says as whom it '
        "is to run"
    )
    return (DataWarning(kind=WarningKind.RUNS_AS_ROOT, text=text, advice=advice),)
