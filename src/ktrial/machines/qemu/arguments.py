"""QEMU's arguments that its machines share; what differs is in each machine's own arguments.py."""

from datetime import UTC, datetime
from pathlib import Path

from ktrial.machines.qemu.process import inherited_path
from ktrial.model.boot import Boot
from ktrial.target.guest_plan import PLAN_FW_CFG_NAME

CLOCK_BASE = datetime(2024, 1, 1, tzinfo=UTC)
"""The guest's date when it is switched on."""


HEADLESS = ("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot")


BOARD = ("-machine", "pc,hpet=off,memory-backend=ram")


DEVICES = ("-device", "pvpanic,ioport=0x505", "-device", "isa-debug-exit,iobase=0xf4,iosize=4")
"""By which the guest says that it panicked, or that it is done."""


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
