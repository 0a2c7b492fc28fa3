"""The command lines, QEMU's and the kernel's, that make a boot the same to the last instruction."""

from ktrial.machines.qemu.arguments import (
    BOARD,
    DEVICES,
    EXACT_CPU,
    EXACT_PARAMETERS,
    EXACT_SEED,
    HEADLESS,
    date_arguments,
    size_arguments,
)
from ktrial.model.boot import Boot

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
