"""Errors about the machines that trials run on."""

from ktrial.errors import KtrialError
from ktrial.package_names import INSTALL


class MachineError(KtrialError):
    text = "Machine {machine}: {problem}"


class MachineUsageError(MachineError):
    """The command was given something that it cannot take."""

    exit_code = 2


class HostProblem(MachineError):
    """This host keeps ktrial from it, or what is booted is not what it was: no treatment is to blame."""


class HostUsageProblem(HostProblem):
    """This host cannot do, or may not do, what the study or the command asks of it."""

    exit_code = 2


class MachineStopped(MachineError):
    text = "Machine {machine} was stopped."


class MachineToolMissing(HostProblem):
    text = "Machine {machine} needs {program}, which is not {where}."
    hint = f"install it: {INSTALL} {{package}}"


class VariableNamesNoProgram(MachineToolMissing):
    """A variable of the environment names a program that is not there: nothing has to be installed."""

    text = "{variable} names {program}, which is not a program."
    hint = "let {variable} name QEMU, or unset it: the one in PATH is then taken"


class QemuUnusable(HostProblem):
    text = "Machine {machine}: {program} {problem}"
    hint = f"{INSTALL} --reinstall qemu-system-x86; another program can be named with KTRIAL_QEMU"


class FileToCarry(HostProblem):
    text = "Machine {machine} cannot carry {path} into the guest: {problem}."


class QemuGone(MachineError):
    text = "Machine {machine}: QEMU ended, or stopped answering, while ktrial waited for {command}."


class HostHoldsUp(HostProblem):
    text = "QEMU was kept from going on by this host for {seconds} s (states of its threads: {states})."
    hint = (
        "R: it got no CPU; D: a disk did not answer; T: somebody stopped it. That trial is not stored; run "
        "the same command again when this host has time"
    )


class QemuRefused(MachineError):
    """QEMU's monitor answers with an error."""

    def __init__(self, machine: str, command: str, problem: str) -> None:
        self.problem = problem
        super().__init__(f"Machine {machine}: QEMU refused {command}: {problem}")


class CannotSaveState(MachineError):
    """A guest cannot become a snapshot."""

    def __init__(self, machine: str, problem: str) -> None:
        self.problem = problem
        super().__init__(f"Machine {machine}: the guest's state cannot be saved: {problem}")


class CannotLoadState(MachineError):
    """A snapshot cannot become a guest."""

    def __init__(self, machine: str, problem: str) -> None:
        self.problem = problem
        super().__init__(f"Machine {machine}: a snapshot cannot be loaded: {problem}")


class NoPluginHere(MachineError):
    """This QEMU does not load the plugin that counts by function."""

    hint = (
        "QEMU has to be built with plugins (Debian's is); another can be named with KTRIAL_QEMU; "
        "without it: --count clock"
    )

    def __init__(self, machine: str, program: object, problem: str) -> None:
        self.problem = problem
        super().__init__(f"Machine {machine} cannot count by function with {program}: {problem}")


class PluginCountsUnreadable(MachineError):
    text = "Machine {machine}: what the plugin counted, in {path}, cannot be read: line {line}: {problem}"


class HostChangeForbidden(HostUsageProblem):
    text = "Machine {machine} may not change this system: it was about to {what}."
    hint = "add --allow-host-changes; what is changed is journaled first, and put back at the end"


class CgroupUnusable(HostProblem):
    text = "Machine {machine}: the control group that the study needs is not available: {problem}."


# Errors about machines that are reached by ssh.


class NotReached(MachineError):
    text = "Machine {machine}: {host} cannot be reached: {problem}"
    hint = (
        "ssh {host} true must succeed without a question: the host key is known, and the key is in the "
        "agent or has no passphrase"
    )


class ConnectionLost(MachineError):
    text = "Machine {machine}: the connection to {host} was lost: {problem}"
    hint = "what was set there is put back by {host} itself; the same command again goes on where this ended"


class MachineInUse(MachineError):
    text = (
        "Machine {machine}: {host} is in use by another ktrial{who}: one trial at a time runs on a machine."
    )
    hint = "try again when it has ended, or --wait 2h; ssh {host} ps -ef | grep ktrial shows whose it is"


class BadOwnCommand(HostUsageProblem):
    text = "{file} cannot be used: {problem}."
    hint = 'for example: [machines.lab1] power = "ipmitool -H bmc1 power"'


class CannotBoot(HostUsageProblem):
    text = "Machine {machine}: {host} cannot be booted into other kernels: {problem}."
    hint = "nothing was changed there; ktrial help ssh says what it needs"
