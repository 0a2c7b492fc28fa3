"""One boot with all that it needs found and hashed: command lines, files, and the key of its snapshot.

It is the command lines, QEMU's and the kernel's, that make a boot the same to the last instruction.
"""

from dataclasses import dataclass
from pathlib import Path

from ktrial.file_digests import digest_of_file
from ktrial.machines.errors import TooManyCpus
from ktrial.machines.guest_programs import coalesce, lockstep
from ktrial.machines.qemu.arguments import (
    BOARD,
    DEVICES,
    EXACT_CPU,
    EXACT_PARAMETERS,
    EXACT_SEED,
    HEADLESS,
    cpu_model_for,
    date_arguments,
    size_arguments,
)
from ktrial.machines.qemu.boot import boot_files
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot_setup import SnapshotSetup
from ktrial.model.machine import Boot, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.target.guest_plan import PROTOCOL

OLDEST_FOR_CPUS = (10, 0)
"""7.2 hangs with `-icount` and more than one CPU; 10.0 gives the same numbers at 1, 2 and 4 CPUs."""
CPU_MODEL = f"{EXACT_CPU},-erms,-fsrm"
"""TCG counts every iteration of a REP instruction; without ERMS and FSRM kernels copy in plain loops."""

CPU_MODEL_WITH_PLUGIN = f"{EXACT_CPU},+fsrm,x-force-features=on"
"""The plugin counts a REP instruction once, as hardware does: the CPU shows ERMS and FSRM, as new CPUs do.
7.2's TCG runs what FSRM stands for, a short `rep movsb`, but does not show it unless it is forced to."""

_ONE_CPU_ONLY = ("noapictimer",)


def kernel_parameters(boot: Boot, *, quiet: bool = True) -> str:
    """The kernel's command line: the machine's own parameters, then those of the boot.

    Of a parameter that is there twice the kernel takes the last, so that a study can override any.
    Without `quiet` the kernel tells all on its console: slower, and only for finding out why it ended.
    """
    own = EXACT_PARAMETERS + (_ONE_CPU_ONLY if boot.cpus == 1 else ())
    return " ".join([word for word in own if quiet or word != "quiet"] + list(boot.parameters))


def machine_arguments(boot: Boot, cpu_model: str = CPU_MODEL) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files."""
    return (
        *HEADLESS,
        *("-accel", "tcg"),
        *BOARD,
        *("-cpu", cpu_model),
        *size_arguments(boot),
        *("-seed", str(EXACT_SEED)),
        *("-icount", "shift=0,sleep=off"),
        *date_arguments("vm"),
        *DEVICES,
    )


def check_cpus(boot: Boot, qemu: Qemu, machine: str) -> None:
    """Raise TooManyCpus where this QEMU cannot count the instructions of so many CPUs."""
    if boot.cpus > 1 and qemu.version[:2] < OLDEST_FOR_CPUS:
        needed = ".".join(str(part) for part in OLDEST_FOR_CPUS)
        raise TooManyCpus(
            machine=machine, cpus=boot.cpus, needed=needed, program=qemu.program, found=qemu.text
        )


_PRELOADED = {"lockstep": lockstep, "coalesce": coalesce}


@dataclass(frozen=True)
class Setup(SnapshotSetup):
    """A boot of the machine `exact`, ready to be started."""


def prepare(boot: Boot, qemu: Qemu, guest: Path, machine: str, mode: Mode = Mode.EXACT_CLOCK) -> Setup:
    """Find and hash everything. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    check_cpus(boot, qemu, machine)
    cpu_model = cpu_model_for(qemu, CPU_MODEL_WITH_PLUGIN if mode is Mode.EXACT_PLUGIN else CPU_MODEL)
    files = boot_files(boot, guest, machine)
    identity = MachineIdentity(
        machine=machine,
        mode=mode,
        qemu=qemu.build,
        cpu_model=cpu_model,
        arguments=machine_arguments(boot, cpu_model),
        command_line=kernel_parameters(boot),
        agent_digest=files.agent_digest,
        executed=files.executed | {name: digest_of_file(one()) for name, one in _PRELOADED.items()},
        seed=EXACT_SEED,
    )
    facts = {
        "protocol": str(PROTOCOL),
        "qemu": qemu.build,
        "firmware": qemu.firmware,
        "lockstep": identity.executed["lockstep"],
        "cpu model": cpu_model,
        "arguments": " ".join(identity.arguments),
        "command line": identity.command_line,
        "kernel": files.kernel_digest,
        "initial RAM disk": identity.executed["initial RAM disk"],
        "agent": identity.agent_digest,
        "settle": str(boot.settle_ns),
    }
    talkative = kernel_parameters(boot, quiet=False)
    return Setup(machine, boot, qemu, files, facts, identity, lockstep(), talkative)
