"""Errors about the machines that trials run on."""

from ktrial.errors import KtrialError
from ktrial.package_names import INSTALL


class MachineError(KtrialError):
    """Machine {machine}: {problem}"""


class UnknownMachine(MachineError):
    """There is no machine {machine}{similar}; there are: {known}."""

    exit_code = 2


class MachineStopped(MachineError):
    """Machine {machine} was stopped."""


class MachineToolMissing(MachineError):
    """Machine {machine} needs {program}, which is not {where}."""

    hint = f"install it: {INSTALL} {{package}}"


class QemuTooOld(MachineError):
    """Machine {machine} needs QEMU {needed} or later; {program} is {found}."""

    hint = "install a later one; one that is not the first in PATH is named with KTRIAL_QEMU=/path/to/program"


class QemuUnusable(MachineError):
    """Machine {machine}: {program} {problem}"""

    hint = f"{INSTALL} --reinstall qemu-system-x86; another program can be named with KTRIAL_QEMU"


class TooManyCpus(MachineError):
    """Machine {machine} runs {cpus} CPUs only with QEMU {needed} or later: {program} is {found}, which hangs
    with more than one CPU when it counts instructions.
    """

    hint = "cpus = 1 in [machine]; or name a later QEMU: KTRIAL_QEMU=/path/to/program"


class CpusBeyondMachine(MachineError):
    """Machine {machine} has at most {most} CPUs: {cpus} are asked for."""

    hint = "cpus = {most} or fewer in [machine]"
    exit_code = 2


class CpusBeyondKernel(MachineError):
    """Machine {machine}: {cpus} CPUs are asked for, and {kernel} is built for {most} (CONFIG_NR_CPUS)."""

    hint = "cpus = {most} or fewer in [machine], or a kernel that was built for more"
    exit_code = 2


class TopologyOfOtherCpus(MachineError):
    """Machine {machine}: {topology} are {product} CPUs, and {cpus} are asked for."""

    hint = "sockets times cores times threads is the number of CPUs"
    exit_code = 2


class NodesImpossible(MachineError):
    """Machine {machine}: {problem}."""

    hint = 'nodes = ["256M", "256M"] in the topology: one size for each node, and together the memory'
    exit_code = 2


class QemuInsideUnknown(MachineError):
    """Machine {machine} works with the inside of QEMU, and knows that of {known}: {program} is {found}."""

    hint = (
        "Debian 12 has 7.2, and 10.0 in bookworm-backports; Debian 13 has 10.0; another than the first in"
        " PATH is named with KTRIAL_QEMU=/path/to/program"
    )


class FileToCarry(MachineError):
    """Machine {machine} cannot carry {path} into the guest: {problem}."""


class NoSpaceForSnapshot(MachineError):
    """Machine {machine} cannot write the snapshot below {directory}: {problem}."""

    hint = "free about {mib} MiB there, or put the cache elsewhere: KTRIAL_CACHE=/some/directory"


class FileChanged(MachineError):
    """Machine {machine}: {path} is not what it was when it was looked at: SHA-256 {before}…, now {now}…"""

    hint = "nothing was booted from it; the same command again makes it whole, or says why it cannot"


class BootChanged(MachineError):
    """Machine {machine}: what it boots has changed while it was in use: {what}."""

    hint = "the trials stored before are safe; run the same command again"


class BadSetting(MachineError):
    """The environment variable {variable} is {value!r}: {problem}."""

    exit_code = 2


class QemuGone(MachineError):
    """Machine {machine}: QEMU ended, or stopped answering, while ktrial waited for {command}."""


class HostHoldsUp(MachineError):
    """QEMU was kept from going on by this host for {seconds} s (states of its threads: {states})."""

    hint = (
        "R: it got no CPU; D: a disk did not answer; T: somebody stopped it. That trial is not stored; run "
        "the same command again when this host has time"
    )


class QemuRefused(MachineError):
    """Machine {machine}: QEMU refused {command}: {problem}"""


class CannotSaveState(MachineError):
    """Machine {machine}: the guest's state cannot be saved: {problem}"""


class CannotLoadState(MachineError):
    """Machine {machine}: a snapshot cannot be loaded: {problem}"""


class PluginCountsUnreadable(MachineError):
    """Machine {machine}: what the plugin counted, in {path}, cannot be read: line {line}: {problem}"""


class NoPluginHere(MachineError):
    """Machine {machine} cannot count by function with {program}: {problem}"""

    hint = (
        "QEMU has to be built with plugins (Debian's is); another can be named with KTRIAL_QEMU; "
        "without it: --count clock"
    )


class HostChangeForbidden(MachineError):
    """Machine {machine} may not change this system: it was about to {what}."""

    hint = "add --allow-host-changes; what is changed is journaled first, and put back at the end"
    exit_code = 2


class NoSuchUser(MachineError):
    """Machine {machine}: a program is to run as {user}, and there is no such user on this system."""

    hint = (
        "name another user beside the command in the study file (getent passwd lists them), or leave it out"
    )
    exit_code = 2


class UserNotTaken(MachineError):
    """Machine {machine} cannot run a program as {user}: ktrial itself runs as user {own}, not as root."""

    hint = "run ktrial as root (sudo ktrial …), or leave user out: the program then runs as ktrial does"
    exit_code = 2


class BadPin(MachineError):
    """Machine {machine}: CPU {cpu} is not among those that ktrial may use: {allowed}."""

    hint = "name others in [machine] pin; taskset -pc $$ shows what this shell may use"
    exit_code = 2


class CgroupUnusable(MachineError):
    """Machine {machine}: the control group that the study asks for cannot be had: {problem}."""


class KvmUnusable(MachineError):
    """Machine {machine} has no KVM: {reason}."""

    hint = (
        "the machine exact needs none; or, where the time that emulation takes will do, which says little "
        "about any hardware: [machine] allow_emulated_time = true"
    )
