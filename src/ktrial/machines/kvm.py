"""The machine `kvm`: the kernels, the agent and the workloads of exact mode, in real time.

Each `perform` is one boot, so that no workload finds what another left behind, and every boot draws its own
address-space layout. Where KVM is of no use here, and the study says that this will do, the guest is
emulated: its times say little about any hardware, and every number is marked so.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ktrial.machines import PreparationProgress, guest_programs
from ktrial.machines.errors import HostProblem, MachineError
from ktrial.machines.host import check_pin, cpu_list, cpu_model
from ktrial.machines.qemu import initramfs, program
from ktrial.machines.qemu import outcome as outcome
from ktrial.machines.qemu import program as qemu
from ktrial.machines.qemu.boot import (
    BOARD,
    DEVICES,
    HEADLESS,
    BootFiles,
    TooSmall,
    Unstarted,
    boot_files,
    check_memory,
    date_arguments,
    initrd_arguments,
    kernel_arguments,
    negotiate,
    plan_arguments,
    size_arguments,
    snapshot_point_arguments,
    with_files,
)
from ktrial.machines.qemu.process import Children, QemuProcess, memory_file
from ktrial.machines.qemu.program import Qemu
from ktrial.machines.qemu.snapshot import GuestTarget
from ktrial.machines.qemu.watchdog import Limits
from ktrial.model.machine import NO_FILES, Boot, FileSet, MachineIdentity
from ktrial.model.workload import Mode
from ktrial.system_tools import Tool
from ktrial.target import Step, StepResult
from ktrial.text_lines import lines_of

NAME = "kvm"


@dataclass(frozen=True)
class KvmProbe:
    """What the probe found."""

    usable: bool
    reason: str
    """One sentence: why not, or how it was found out."""


@dataclass(frozen=True)
class RealTimeSetup:
    """A boot, ready to be started."""

    machine: str
    boot: Boot
    qemu: Qemu
    files: BootFiles
    arguments: tuple[str, ...]
    """QEMU's, without those that name files."""
    identity: MachineIdentity
    accelerated: bool
    """By KVM; else emulated."""

    @property
    def limits(self) -> Limits:
        """Guest nanoseconds and host seconds, which are the same here."""
        return Limits(self.boot.limit_instructions, self.boot.limit_seconds, in_real_time=True)


class RealTimeTarget(GuestTarget):
    """A system that boots for every `perform`."""

    def __init__(self, setup: RealTimeSetup, children: Children) -> None:
        super().__init__(setup)
        self._setup = setup
        self._children = children

    @property
    def identity(self) -> MachineIdentity:
        """What of the machine can change a result."""
        return self._setup.identity

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Boot, do the steps, and end. Raises GuestEnded or MachineError."""
        plan = self._plan(steps)
        try:
            with switched_on(self._setup, self._children, plan) as process:
                ending, report = self._run(process)
                return self._results(process, ending, report, ready=report.ready is not None)
        except Unstarted as error:
            raise self._ended(outcome.judge_unstarted(error.status, error.messages)) from None
        except TooSmall as error:
            raise self._ended(outcome.too_small(error.needed, error.memory)) from None


class KvmMachine:
    """Trials in QEMU, in real time."""

    name = NAME
    host_matters = True
    """What else this host does can change the numbers: it is looked at before each trial."""

    def __init__(self, guest: Path | None = None, probe: KvmProbe | None = None) -> None:
        """`guest`: another place for the guest programs. `probe`: what is known of KVM already."""
        self._guest = guest or guest_programs.directory()
        self._children = Children(NAME)
        self._probed = probe

    @property
    def needed_tools(self) -> tuple[Tool, ...]:
        """Programs of this system."""
        return program.qemu_tools(program.TASKSET)

    @property
    def mode(self) -> Mode:
        """Timed where KVM is of use, else emulated time. The first look tries KVM, for some seconds."""
        return Mode.TIMED if self.probe.usable else Mode.EMULATED_TIME

    @property
    def probe(self) -> KvmProbe:
        """Whether KVM is of use here, and how that was found out."""
        if self._probed is None:
            self._probed = probe_kvm()
        return self._probed

    def check(self) -> None:
        """Raise MachineError or GuestProgramsMissing where something is missing; KVM is tried."""
        self._children.check()
        program.check(NAME, program.TASKSET)
        guest_programs.programs(self._guest)
        _ = self.probe

    def prepare(self, boot: Boot, progress: PreparationProgress) -> None:
        """Find and check everything; nothing is kept. Raises MachineError, GuestEnded."""
        progress("checking the kernel")
        self._set_up(boot)

    @contextmanager
    def start(self, boot: Boot, carried: FileSet = NO_FILES) -> Iterator[RealTimeTarget]:
        """Yield a target whose every `perform` is a boot. Raises MachineError, GuestEnded.

        The initial RAM disk has the files: what is booted each time is of this workload alone.
        """
        yield RealTimeTarget(self._set_up(with_files(boot, carried)), self._children)

    def stop(self) -> None:
        """End all at once; this machine is of no more use."""
        self._children.stop()

    def _set_up(self, boot: Boot) -> RealTimeSetup:
        self._children.check()
        if not self.probe.usable and not boot.allow_emulated_time:
            raise HostProblem(
                f"Machine {NAME} has no KVM: {self.probe.reason}.",
                hint=(
                    "the machine exact needs none; or allow times under emulation, which say little about "
                    "any hardware: [machine] allow_emulated_time = true"
                ),
            )
        check_pin(boot.pin, NAME)
        return set_up(boot, qemu.find(NAME), self._guest, NAME, accelerated=self.probe.usable)


MACHINE = KvmMachine


# The target that the machine `kvm` yields: each `perform` is one boot in real time.
#
# What QEMU and the kernel are given for it is here as well.

_ACCELERATED = ("-accel", "kvm", "-cpu", "host,migratable=off,+invtsc")
"""The host's own CPU, with the time-stamp counter that it shares with the host."""
_EMULATED = ("-accel", "tcg,thread=multi", "-cpu", "max")
_PARAMETERS = ("console=ttyS0", "panic=-1", "quiet", "cryptomgr.notests")
_WHEN_EMULATED = ("no_timer_check",)
"""A busy host may keep the emulated timer from ticking while the kernel looks whether it does."""


def kernel_parameters(boot: Boot, *, accelerated: bool) -> str:
    """The kernel's command line: few parameters of the machine's own, then those of the boot.

    Address-space layouts stay random, of the kernel (KASLR) and of programs: each boot draws one, and what
    a layout does to a number averages out over boots instead of being mistaken for a treatment's effect.
    """
    words = _PARAMETERS if accelerated else _PARAMETERS + _WHEN_EMULATED
    return " ".join((*words, *boot.parameters))


def machine_arguments(boot: Boot, *, accelerated: bool) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files.

    The guest's memory is there from the start: no page of it is found by a fault while a workload runs.
    """
    memory = f"memory-backend-ram,id=ram,size={boot.memory_mib}M,prealloc=on"
    return (
        *HEADLESS,
        *(_ACCELERATED if accelerated else _EMULATED),
        *BOARD,
        *("-object", memory),
        *size_arguments(boot),
        *date_arguments("host"),
        *DEVICES,
    )


def set_up(boot: Boot, qemu: Qemu, guest: Path, machine: str, *, accelerated: bool) -> RealTimeSetup:
    """Find and check everything. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    files = boot_files(boot, guest, machine)
    arguments = machine_arguments(boot, accelerated=accelerated)
    pinned = (f"pin={cpu_list(set(boot.pin))}",) if boot.pin else ()
    identity = MachineIdentity(
        machine=machine,
        mode=Mode.TIMED if accelerated else Mode.EMULATED_TIME,
        qemu=qemu.build,
        cpu_model=cpu_model() if accelerated else "max (emulated)",
        arguments=(*arguments, *pinned),
        command_line=kernel_parameters(boot, accelerated=accelerated),
        agent_digest=files.agent_digest,
        executed=files.executed,
    )
    return RealTimeSetup(machine, boot, qemu, files, arguments, identity, accelerated)


@contextlib.contextmanager
def switched_on(setup: RealTimeSetup, children: Children, plan: bytes) -> Iterator[QemuProcess]:
    """A guest at its first instruction, stopped; once it runs it does the plan.

    Raises Unstarted or TooSmall.
    """
    with memory_file("ktrial-initrd") as initrd, memory_file("ktrial-plan", plan) as planned:
        initramfs.write(setup.files.entries, initrd, setup.machine)
        check_memory(setup.boot, initrd)
        arguments = (
            *setup.arguments,
            *kernel_arguments(setup.files.kernel, setup.identity.command_line),
            *initrd_arguments(initrd),
            *plan_arguments(planned),
            *snapshot_point_arguments(stops=False),
        )
        files, cpus = (initrd, planned), setup.boot.pin
        with QemuProcess(
            setup.qemu,
            arguments,
            files,
            children,
            memory=setup.boot.memory_mib << 20,
            files=(setup.files.kernel,),
            cpus=cpus,
            kvm=setup.accelerated,
        ) as process:
            negotiate(process)
            yield process


# Whether KVM can be used here. Only looking does not tell: it can be there and yet be of no use, so try it.
#
# The probe boots a boot sector under KVM, which counts to fifty million and leaves. It needs no kernel.
# QEMU's firmware runs before it, and where a restricted KVM hangs, it hangs there. Where a KVM without
# hardware behind it interprets the guest's instructions one by one, counting takes a minute instead of a
# tenth of a second.

DEVICE = Path("/dev/kvm")
SECONDS = 5.0
"""How long the probe guest may take; where KVM works it takes less than one."""
_VIRTUALIZATION = {"vmx", "svm"}
_EXIT = 0x2A
_LOOPS = 50_000_000
_BOOT_SECTOR = bytes(
    (
        *(0x66, 0xB9, *_LOOPS.to_bytes(4, "little")),  # mov ecx, _LOOPS
        *(0x66, 0x49),  # dec ecx
        *(0x75, 0xFC),  # jnz to the dec
        *(0xBA, 0xF4, 0x00),  # mov dx, 0xf4   (isa-debug-exit)
        *(0xB0, _EXIT),  # mov al, 0x2a
        0xEE,  # out dx, al
        0xF4,  # hlt
        *(0xEB, 0xFD),  # jmp to the hlt
    )
)


def probe_kvm(seconds: float = SECONDS) -> KvmProbe:
    """Try KVM, for at most `seconds`. Raises nothing: what is wrong is the reason."""
    reason = _missing()
    if reason:
        return KvmProbe(False, reason)
    try:
        program = qemu.find("kvm").program
    except MachineError as error:
        return KvmProbe(False, f"{DEVICE} is there, but could not be tried: {error.message}")
    return run_boot_sector(program, "kvm", seconds)


def _missing() -> str:
    if not DEVICE.exists():
        has = _VIRTUALIZATION & _cpu_flags()
        why = "is the module kvm_intel or kvm_amd loaded?" if has else "this CPU shows neither VMX nor SVM"
        return f"there is no {DEVICE}: {why}"
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        group = " (is the user in the group kvm?)" if isinstance(error, PermissionError) else ""
        return f"{DEVICE} cannot be opened: {error.strerror}{group}"
    return ""


def _cpu_flags() -> set[str]:
    for line in lines_of(Path("/proc/cpuinfo").read_text()):
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def run_boot_sector(program: Path, accelerator: str, seconds: float) -> KvmProbe:
    """Boot the probe's boot sector with QEMU's accelerator `kvm` (or `tcg`, which works everywhere)."""
    with tempfile.NamedTemporaryFile(prefix="ktrial-kvm-probe-") as disk:
        disk.write(_BOOT_SECTOR.ljust(510, b"\0") + b"\x55\xaa")
        disk.flush()
        try:
            finished = subprocess.run(
                _command(program, accelerator, disk.name),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"did not get through a hundred million instructions within {seconds:g} s"
            return KvmProbe(False, f"{DEVICE} exists but a probe guest {problem}")
    if finished.returncode == _EXIT << 1 | 1:
        return KvmProbe(True, "a probe guest ran")
    lines = lines_of(finished.stderr.strip())
    return KvmProbe(
        False, f"QEMU cannot use {DEVICE}: {lines[-1] if lines else f'status {finished.returncode}'}"
    )


def _command(program: Path, accelerator: str, disk: str) -> tuple[str, ...]:
    return (
        *(str(program), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "pc", "-accel", accelerator, "-m", "32M"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
        *("-drive", f"file={disk},format=raw,if=ide,snapshot=on"),
    )
