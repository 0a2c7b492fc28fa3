"""One boot, with all that it needs found and hashed: what QEMU is given, and the key of its snapshot."""

from dataclasses import dataclass
from pathlib import Path

from ktrial.machines.errors import MachineError
from ktrial.machines.exact import snapshot_cache
from ktrial.machines.exact.command_line import (
    CPU_MODEL,
    CPU_MODEL_WITH_PLUGIN,
    SEED,
    check_cpus,
    cpu_model_for,
    kernel_parameters,
    machine_arguments,
)
from ktrial.machines.file_digests import digest_of_file
from ktrial.machines.guest_programs import lockstep, programs
from ktrial.machines.qemu import initramfs, kernel_image
from ktrial.machines.qemu.initramfs import Entry
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.watchdog import Limits
from ktrial.model.boot import Boot, MachineIdentity
from ktrial.model.trial import Outcome
from ktrial.model.workload import Mode
from ktrial.target.errors import GuestEnded
from ktrial.target.guest_plan import PROTOCOL, BootModule, BootPlan


@dataclass(frozen=True)
class Setup:
    """A boot, ready to be started."""

    machine: str
    boot: Boot
    qemu: Qemu
    kernel: Path
    """What is booted: the ELF image through its PVH note where there is one, else the bzImage."""
    entries: tuple[Entry, ...]
    """The initial RAM disk's files."""
    facts: dict[str, str]
    """What the snapshot's key is made from."""
    identity: MachineIdentity
    cpu_model: str = CPU_MODEL
    plugin: tuple[str, ...] = ()
    """QEMU's arguments that load the plugin. It changes nothing in the guest: no part of the key."""
    inherited: tuple[int, ...] = ()
    """Files without a name that those arguments mean (`inherited_path`)."""

    @property
    def key(self) -> str:
        """The snapshot's."""
        return snapshot_cache.key(self.facts)

    @property
    def limits(self) -> Limits:
        """For the boot, and for each trial."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds)


def prepare(boot: Boot, qemu: Qemu, guest: Path, machine: str, mode: Mode = Mode.EXACT_CLOCK) -> Setup:
    """Find and hash everything. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    check_cpus(boot, qemu, machine)
    plain = CPU_MODEL_WITH_PLUGIN if mode is Mode.EXACT_PLUGIN else CPU_MODEL
    cpu_model = cpu_model_for(qemu, plain)
    kernel, kernel_digest = _kernel(boot, machine)
    found = initramfs.entries(boot, programs(guest), _boot_file(boot), machine)
    agent = next(entry.digest for entry in found if entry.guest == "/init")
    facts = {
        "protocol": str(PROTOCOL),
        "qemu": qemu.build,
        "firmware": qemu.firmware,
        "lockstep": digest_of_file(lockstep()),
        "cpu model": cpu_model,
        "arguments": " ".join(machine_arguments(boot, cpu_model)),
        "command line": kernel_parameters(boot),
        "kernel": kernel_digest,
        "initial RAM disk": initramfs.manifest_digest(found),
        "agent": agent,
        "settle": str(boot.settle_ns),
    }
    identity = _identity(boot, qemu, agent, machine).model_copy(
        update={"mode": mode, "cpu_model": cpu_model, "arguments": machine_arguments(boot, cpu_model)}
    )
    return Setup(machine, boot, qemu, kernel, found, facts, identity, cpu_model)


def _kernel(boot: Boot, machine: str) -> tuple[Path, str]:
    path = boot.kernel.vmlinux or boot.kernel.image
    try:
        problem = kernel_image.problem(path)
        digest = digest_of_file(path)
    except OSError as error:
        text = f"the kernel's image {path} cannot be read: {error.strerror}"
        raise MachineError(machine=machine, problem=text) from None
    if problem:
        reason = f"{path} is not a kernel for this machine: {problem}"
        raise GuestEnded(outcome=Outcome.NOT_A_KERNEL.value, reason=reason, console="", results=())
    return path, digest


def _boot_file(boot: Boot) -> bytes:
    modules = tuple(BootModule(path=path) for path in initramfs.module_paths(boot))
    return BootPlan(settle_ns=boot.settle_ns, modules=modules).model_dump_json().encode()


def _identity(boot: Boot, qemu: Qemu, agent: str, machine: str) -> MachineIdentity:
    return MachineIdentity(
        machine=machine,
        mode=Mode.EXACT_CLOCK,
        qemu=qemu.build,
        cpu_model=CPU_MODEL,
        arguments=machine_arguments(boot),
        command_line=kernel_parameters(boot),
        agent_digest=agent,
        seed=SEED,
    )
