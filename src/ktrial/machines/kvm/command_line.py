"""The command lines, QEMU's and the kernel's, of a guest in real time."""

from ktrial.machines.qemu.command_line import BOARD, DEVICES, HEADLESS, date_arguments, size_arguments
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
        *HEADLESS,
        *(_ACCELERATED if accelerated else _EMULATED),
        *BOARD,
        *("-object", memory),
        *size_arguments(boot),
        *date_arguments("host"),
        *DEVICES,
    )
