"""The command lines, QEMU's and the kernel's, of a guest in real time."""

from ktrial.machines.exact.command_line import CLOCK_BASE
from ktrial.model.boot import Boot

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
    own = _PARAMETERS if accelerated else _PARAMETERS + _WHEN_EMULATED
    return " ".join((*own, *boot.parameters))


def machine_arguments(boot: Boot, *, accelerated: bool) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files.

    The guest's memory is there from the start: no page of it is found by a fault while a workload runs.
    """
    memory = f"memory-backend-ram,id=ram,size={boot.memory_mib}M,prealloc=on"
    return (
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *(_ACCELERATED if accelerated else _EMULATED),
        *("-machine", "pc,hpet=off,memory-backend=ram", "-object", memory),
        *("-smp", str(boot.cpus), "-m", f"{boot.memory_mib}M"),
        *("-rtc", f"clock=host,base={CLOCK_BASE:%Y-%m-%dT%H:%M:%S}"),
        *("-device", "pvpanic,ioport=0x505", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
    )
