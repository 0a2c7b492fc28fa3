"""Errors about the machines that trials run on."""

from ktrial.errors import KtrialError
from ktrial.package_names import INSTALL


class MachineError(KtrialError):
    text = "Machine {machine}: {problem}"


class MachineUsageError(MachineError):
    """The command was given something that it cannot take."""

    exit_code = 2


class MachineStopped(MachineError):
    text = "Machine {machine} was stopped."


class MachineToolMissing(MachineError):
    text = "Machine {machine} needs {program}, which is not {where}."
    hint = f"install it: {INSTALL} {{package}}"


class QemuTooOld(MachineError):
    text = "Machine {machine} needs QEMU {needed} or later; {program} is {found}."
    hint = "install a later one; one that is not the first in PATH is named with KTRIAL_QEMU=/path/to/program"


class QemuUnusable(MachineError):
    text = "Machine {machine}: {program} {problem}"
    hint = f"{INSTALL} --reinstall qemu-system-x86; another program can be named with KTRIAL_QEMU"


class TooManyCpus(MachineError):
    text = (
        "Machine {machine} runs {cpus} CPUs only with QEMU {needed} or later: {program} is {found}, "
        "which hangs with more than one CPU when it counts instructions."
    )
    hint = "cpus = 1 in [machine]; or name a later QEMU: KTRIAL_QEMU=/path/to/program"


class FileToCarry(MachineError):
    text = "Machine {machine} cannot carry {path} into the guest: {problem}."


class NoSpaceForSnapshot(MachineError):
    text = "Machine {machine} cannot write the snapshot below {directory}: {problem}."
    hint = "free about {mib} MiB there, or put the cache elsewhere: KTRIAL_CACHE=/some/directory"


class FileChanged(MachineError):
    text = "Machine {machine}: {path} is not what it was when it was looked at: SHA-256 {before}…, now {now}…"
    hint = "nothing was booted from it; the same command again makes it whole, or says why it cannot"


class BootChanged(MachineError):
    text = "Machine {machine}: what it boots has changed while it was in use: {what}."
    hint = "the trials stored before are safe; run the same command again"


class BadSetting(MachineError):
    text = "The environment variable {variable} is {value!r}: {problem}."
    exit_code = 2


class QemuGone(MachineError):
    text = "Machine {machine}: QEMU ended, or stopped answering, while ktrial waited for {command}."


class HostHoldsUp(MachineError):
    text = "QEMU was kept from going on by this host for {seconds} s (states of its threads: {states})."
    hint = (
        "R: it got no CPU; D: a disk did not answer; T: somebody stopped it. That trial is not stored; run "
        "the same command again when this host has time"
    )


class QemuRefused(MachineError):
    text = "Machine {machine}: QEMU refused {command}: {problem}"


class CannotSaveState(MachineError):
    text = "Machine {machine}: the guest's state cannot be saved: {problem}"


class CannotLoadState(MachineError):
    text = "Machine {machine}: a snapshot cannot be loaded: {problem}"


class PluginCountsUnreadable(MachineError):
    text = "Machine {machine}: what the plugin counted, in {path}, cannot be read: line {line}: {problem}"


class NoPluginHere(MachineError):
    text = "Machine {machine} cannot count by function with {program}: {problem}"
    hint = (
        "QEMU has to be built with plugins (Debian's is); another can be named with KTRIAL_QEMU; "
        "without it: --count clock"
    )


class HostChangeForbidden(MachineError):
    text = "Machine {machine} may not change this system: it was about to {what}."
    hint = "add --allow-host-changes; what is changed is journaled first, and put back at the end"
    exit_code = 2


class NoSuchUser(MachineError):
    text = "Machine {machine}: a program is to run as {user}, and there is no such user on this system."
    hint = (
        "name another user beside the command in the study file (getent passwd lists them), or leave it out"
    )
    exit_code = 2


class UserNotTaken(MachineError):
    text = "Machine {machine} cannot run a program as {user}: ktrial itself runs as user {own}, not as root."
    hint = "run ktrial as root (sudo ktrial …), or leave user out: the program then runs as ktrial does"
    exit_code = 2


class BadPin(MachineError):
    text = "Machine {machine}: CPU {cpu} is not among those that ktrial may use: {allowed}."
    hint = "name others in [machine] pin; taskset -pc $$ shows what this shell may use"
    exit_code = 2


class CgroupUnusable(MachineError):
    text = "Machine {machine}: the control group that the study asks for cannot be had: {problem}."


class KvmUnusable(MachineError):
    text = "Machine {machine} has no KVM: {reason}."
    hint = (
        "the machine exact needs none; or, where the time that emulation takes will do, which says little "
        "about any hardware: [machine] allow_emulated_time = true"
    )


# Errors about machines that are reached by ssh.


class NotReached(MachineError):
    text = "Machine {machine}: {host} cannot be reached: {problem}"
    hint = (
        "ssh {host} true has to succeed without a question: host key known, key in the agent or without words"
    )


class ConnectionLost(MachineError):
    text = "Machine {machine}: the connection to {host} was lost: {problem}"
    hint = "what was set there is put back by {host} itself; the same command again goes on where this ended"


class MachineInUse(MachineError):
    text = (
        "Machine {machine}: {host} is in use by another ktrial{who}: one trial at a time runs on a machine."
    )
    hint = "try again when it has ended, or --wait 2h; ssh {host} ps -ef | grep ktrial shows whose it is"


class UnlikeSystem(MachineError):
    text = "Machine {machine}: {host} is {system} on {architecture}, where ktrial has no {what}."
    hint = "commands, with their wall time, are what it measures on systems other than Linux on x86_64"
    exit_code = 2


class BadOwnCommand(MachineError):
    text = "{file} cannot be used: {problem}."
    hint = 'for example: [machines.lab1] power = "ipmitool -H bmc1 power"'
    exit_code = 2


class CannotBoot(MachineError):
    text = "Machine {machine}: {host} cannot be booted into other kernels: {problem}."
    hint = "nothing was changed there; ktrial help ssh says what it needs"
    exit_code = 2


class ReleaseTaken(MachineError):
    text = (
        "Machine {machine}: {host} has a kernel {release} of its own, whose modules lie where those "
        "of {kernel} would have to."
    )
    hint = 'nothing of it is overwritten: if that kernel is meant, its level is "running"'
    exit_code = 2


class MachineStuck(MachineError):
    text = "Machine {machine}: {host} has not answered for {seconds:g} s: somebody has to press its button."
    hint = (
        "whatever starts it, its own kernel comes up; then the same command goes on. With a command for its "
        'power ktrial does that itself: [machines.NAME] power = "…" in ~/.config/ktrial/config.toml'
    )
