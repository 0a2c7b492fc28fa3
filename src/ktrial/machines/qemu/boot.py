"""What every machine of QEMU's boots with: kernel and initial RAM disk, hashed; and the start."""

import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ktrial.file_digests import digest_of_file, has_digest
from ktrial.machines.errors import HostProblem, MachineError, QemuGone
from ktrial.machines.guest_programs import (
    AGENT_IN_GUEST,
    AGENT_THAT_WAITS,
    TASKS_IN_GUEST,
    WORK_IN_GUEST,
    programs,
    programs_before_files,
)
from ktrial.machines.qemu import initramfs
from ktrial.machines.qemu.process import QemuProcess, inherited_path
from ktrial.machines.qemu.program import Qemu, cpu_flags
from ktrial.model.machine import Boot, FileSet
from ktrial.model.trial import Outcome
from ktrial.target import PLAN_FW_CFG_NAME, BootModule, BootPlan
from ktrial.target.errors import GuestEnded


@dataclass(frozen=True)
class BootFiles:
    """The files of one boot."""

    kernel: Path
    """What is booted: the ELF image through its PVH note where there is one, else the bzImage."""
    kernel_digest: str
    entries: tuple[initramfs.InitramfsEntry, ...]
    """The initial RAM disk's files."""

    @property
    def agent_digest(self) -> str:
        """Of the guest's first program."""
        paths = (AGENT_THAT_WAITS, AGENT_IN_GUEST)
        by_path = {entry.guest: entry for entry in self.entries}
        return next(by_path[path].digest for path in paths if path in by_path)

    @property
    def executed(self) -> dict[str, str]:
        """The digests of what the guest executes."""
        waits = any(entry.guest == AGENT_THAT_WAITS for entry in self.entries)
        programs = {
            AGENT_IN_GUEST: "unpack" if waits else "agent",
            AGENT_THAT_WAITS: "agent",
            WORK_IN_GUEST: "workloads",
            TASKS_IN_GUEST: "tasks",
        }
        return {
            "image": self.kernel_digest,
            "initial RAM disk": initramfs.manifest_digest(self.entries),
            **{programs[entry.guest]: entry.digest for entry in self.entries if entry.guest in programs},
        }


def with_files(boot: Boot, carried: FileSet) -> Boot:
    """The boot, whose initial RAM disk has these files as well: nothing comes after it."""
    files = tuple(dict.fromkeys((*boot.files, *carried.files)))
    return boot.model_copy(update={"files": files, "awaits_files": False})


def boot_files(boot: Boot, guest: Path, machine: str) -> BootFiles:
    """Find and hash them. Raises MachineError, GuestProgramsMissing, or GuestEnded (not a kernel)."""
    kernel, digest = _kernel(boot, machine)
    own = programs_before_files(guest) if boot.awaits_files else programs(guest)
    return BootFiles(kernel, digest, initramfs.entries(boot, own, _boot_plan(boot), machine))


def _kernel(boot: Boot, machine: str) -> tuple[Path, str]:
    path, recorded = boot.kernel.vmlinux or boot.kernel.image, boot.kernel.boot_image
    try:
        size = path.stat().st_size
        digest = digest_of_file(path)
    except OSError as error:
        text = f"the kernel's image {path} cannot be read: {error.strerror}"
        raise MachineError(machine=machine, problem=text) from None
    if recorded and size < recorded.size:
        reason = f"{path} is not a kernel for this machine: it is cut short: {size} bytes of {recorded.size}"
        raise GuestEnded(outcome=Outcome.NOT_A_KERNEL.value, reason=reason, console="", results=())
    if recorded and recorded.digest and not has_digest(path, recorded.digest):
        raise HostProblem(
            f"Machine {machine}: {path} is not what it was when it was looked at: SHA-256 "
            f"{recorded.digest[:12]}…, now {digest[:12]}…",
            hint="nothing was booted from it; the same command again makes it whole, or says why it cannot",
        )
    return path, digest


def _boot_plan(boot: Boot) -> bytes:
    modules = tuple(BootModule(path=path) for path in initramfs.module_paths(boot))
    return BootPlan(settle_ns=boot.settle_ns, modules=modules).model_dump_json().encode()


# What a machine boots stays what it was while the machine is in use: else a study mixes two systems.

_RAM_DISK = "initial RAM disk"
_NAMED = 3
"""Files that a message names; of more it says how many."""


@dataclass(frozen=True)
class _First:
    """What a boot was made of when it was prepared for the first time."""

    facts: dict[str, str]
    contents: dict[str, str]
    """Of the initial RAM disk: path in the guest → mode and digest."""


@dataclass
class BootsInUse:
    """The boots that one machine has prepared, each with what it was made of."""

    machine: str
    _first: dict[Hashable, _First] = field(default_factory=dict)

    def check(self, boot: Boot, facts: dict[str, str], files: BootFiles, *also: Hashable) -> None:
        """Compare with the first time. `also`: what one boot is prepared for. Raises HostProblem."""
        place = (boot, *also)
        if place not in self._first:
            self._first[place] = _First(facts, _contents(files.entries))
            return
        first = self._first[place]
        changed = [name for name, fact in first.facts.items() if facts[name] != fact]
        if changed:
            differing = list(_differing(first.contents, files.entries)) if _RAM_DISK in changed else []
            names = [
                f"{name} ({_some(differing)})" if name == _RAM_DISK and differing else name
                for name in changed
            ]
            raise HostProblem(
                f"Machine {self.machine}: what it boots has changed while it was in use: {', '.join(names)}.",
                hint="the trials stored before are safe; run the same command again",
            )


def _contents(entries: tuple[initramfs.InitramfsEntry, ...]) -> dict[str, str]:
    return {entry.guest: f"{entry.mode} {entry.digest}" for entry in entries}


def _differing(before: dict[str, str], entries: tuple[initramfs.InitramfsEntry, ...]) -> Iterator[str]:
    after = _contents(entries)
    sources = {entry.guest: entry.source for entry in entries}
    for guest in sorted(before.keys() | after.keys()):
        if before.get(guest) != after.get(guest):
            source = sources.get(guest, b"")
            yield guest if isinstance(source, bytes) else str(source)


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


MOMENT = 2.0
"""Seconds in which a QEMU whose monitor has closed is expected to be gone."""


class Unstarted(Exception):
    """QEMU ended before the guest's first instruction."""

    def __init__(self, status: int, messages: str) -> None:
        super().__init__(messages)
        self.status = status
        self.messages = messages


class TooSmall(Exception):
    """The guest's memory cannot hold kernel and initial RAM disk: QEMU would lay one over the other."""

    def __init__(self, needed: int, memory: int) -> None:
        super().__init__(f"{needed} of {memory} bytes")
        self.needed = needed
        self.memory = memory


def check_memory(boot: Boot, initrd: int) -> None:
    """Raise TooSmall where kernel and initial RAM disk (an open file) do not fit."""
    image = boot.kernel.boot_image
    needed = (image.memory_end if image else 0) + os.fstat(initrd).st_size
    memory = boot.memory_mib << 20
    if needed > memory:
        raise TooSmall(needed, memory)


def negotiate(process: QemuProcess) -> None:
    """Make the process's monitor ready. Raises Unstarted where QEMU ended instead."""
    try:
        process.negotiate()
    except QemuGone:
        process.check_stopped()
        # The connection closes a little before the process ends: its own status tells more than our signal's.
        process.ended_within(MOMENT)
        process.kill()
        raise Unstarted(process.wait(), process.messages()) from None


# QEMU's arguments that its machines share; what differs is in each machine's own module.

CLOCK_BASE = datetime(2024, 1, 1, tzinfo=UTC)
"""The guest's date when it is switched on."""
HEADLESS = ("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot")
BOARD = ("-machine", "pc,hpet=off,memory-backend=ram")
DEVICES = ("-device", "pvpanic,ioport=0x505", "-device", "isa-debug-exit,iobase=0xf4,iosize=4")
"""By which the guest says that it panicked, or that it is done."""
EXACT_CPU = "max,family=15,model=107,stepping=1"
"""What `max` was until QEMU 7.2. In 10.0 its family is 0, which no kernel takes for a CPU that is fast at
`rep movs`: 6.1 then copies to and from user space in loops (+10 % instructions a pipe round trip)."""
_LATER_THAN_FSRM = ("fsrs", "fsrc", "fzrm")
"""Fast short REP stosb, cmpsb and scasb, fast zero-length REP: 7.2 knows none of them, 10.0's `max` has all.
Linux takes FSRS for its memset since 6.4: counted byte by byte, a fork costs a fifth more than on 7.2; by the
plugin, a memset would be one instruction on one QEMU and a loop on the other."""
EXACT_SEED = 1
"""Seeds RDRAND and what else QEMU draws; without it no two boots are alike."""
_SEEDED = "random.trust_cpu=on"
"""Random numbers are seeded from RDRAND at once, as in distributions (CONFIG_RANDOM_TRUST_CPU). Else the
kernel is unseeded until its own timers' jitter is enough, and each draw until then hashes the pool anew:
on 6.1 in the guest configuration 11,000 instructions a fork or thread, or none, by when it starts."""
EXACT_PARAMETERS = (
    "console=ttyS0",
    "panic=-1",
    "quiet",
    "nokaslr",
    "norandmaps",
    "randomize_kstack_offset=off",
    "cryptomgr.notests",
    "tsc_early_khz=1000000",
    "lpj=4000000",
    "tsc=reliable",
    "no_timer_check",
    "rodata=off",
    _SEEDED,
)
"""The kernel's parameters without which two boots are not alike."""


def cpu_model_for(qemu: Qemu, model: str) -> str:
    """The model without what only later QEMUs know of fast REP instructions: one CPU, whatever the QEMU.

    Raises QemuUnusable.
    """
    flags = cpu_flags(qemu.program)
    return ",".join([model, *(f"-{flag}" for flag in _LATER_THAN_FSRM if flag in flags)])


def size_arguments(boot: Boot) -> tuple[str, ...]:
    """CPUs and memory."""
    return ("-smp", str(boot.cpus), "-m", f"{boot.memory_mib}M")


def memory_arguments(boot: Boot, path: str, *, shared: bool) -> tuple[str, ...]:
    """RAM in the file at `path`: shared where it is to be kept, else private to this guest."""
    share = "on" if shared else "off"
    return (
        "-object",
        f"memory-backend-file,id=ram,size={boot.memory_mib}M,mem-path={path},share={share}",
    )


def date_arguments(clock: str) -> tuple[str, ...]:
    """The guest's date, and which clock moves it on: `vm`, `host`."""
    return ("-rtc", f"clock={clock},base={CLOCK_BASE:%Y-%m-%dT%H:%M:%S}")


def kernel_arguments(kernel: Path, parameters: str) -> tuple[str, ...]:
    """The kernel with its command line; the guest waits at its first instruction."""
    return ("-S", "-kernel", str(kernel), "-append", parameters)


def initrd_arguments(initrd: int) -> tuple[str, ...]:
    """The initial RAM disk, in a file without a name."""
    return ("-initrd", inherited_path(initrd))


def plan_arguments(plan: int) -> tuple[str, ...]:
    """What the guest is to do, in a file without a name."""
    return ("-fw_cfg", f"name={PLAN_FW_CFG_NAME},file={inherited_path(plan)}")


def snapshot_point_arguments(*, stops: bool) -> tuple[str, ...]:
    """Whether the guest stops where the agent is ready. A trial that was booted plainly goes right on."""
    return ("-action", "panic=pause" if stops else "panic=none")
