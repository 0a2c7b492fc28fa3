"""The command lines, QEMU's and the kernel's, for several CPUs in parallel virtual time."""

from pathlib import Path

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
from ktrial.model.parallel import TRANSFER_NS, MemoryModel

CPU_MODEL = f"{EXACT_CPU},-erms,-fsrm,-monitor,-hypervisor"
"""TCG runs each iteration of a REP instruction by itself; without ERMS and FSRM kernels copy in plain loops.
With several CPUs TCG's `mwait` is a `pause`, and no idle CPU sleeps: without MONITOR kernels halt.
Where they see a hypervisor, kernels take a test-and-set lock in place of queued spin locks
(`virt_spin_lock`): without it they queue, as on hardware."""


def kernel_parameters(boot: Boot, *, quiet: bool = True) -> str:
    """The kernel's command line: the machine's own parameters, then those of the boot."""
    return " ".join([word for word in EXACT_PARAMETERS if quiet or word != "quiet"] + list(boot.parameters))


def machine_arguments(boot: Boot, cpu_model: str) -> tuple[str, ...]:
    """QEMU's arguments that decide what the guest sees, without those that name files."""
    return (
        *HEADLESS,
        *("-accel", "tcg,thread=single"),
        *BOARD,
        *("-cpu", cpu_model),
        *_cpus(boot),
        *("-seed", str(EXACT_SEED)),
        *date_arguments("vm"),
        *DEVICES,
    )


def _cpus(boot: Boot) -> tuple[str, ...]:
    _, cpus, *memory = size_arguments(boot)
    if boot.topology:
        parts = boot.topology.model_dump(exclude={"nodes_mib"})
        cpus = ",".join([cpus, *(f"{name}={count}" for name, count in parts.items())])
    return ("-smp", cpus, *memory)


def plugin_arguments(
    boot: Boot, plugin: Path, *, seed: int, clock: int, out: str = "", symbols: str = ""
) -> tuple[str, ...]:
    """QEMU's arguments that load the plugin; the guest's time starts at `clock` (ns).

    With `symbols` (a file) it counts by function.
    """
    asked: dict[str, object] = {
        "quantum": boot.quantum_ns,
        "seed": seed,
        "clock": clock,
        "limit": boot.limit_instructions,
    }
    if boot.memory_model is MemoryModel.COHERENCE:
        asked["transfer"] = TRANSFER_NS
    asked |= {name: path for name, path in (("out", out), ("symbols", symbols)) if path}
    return ("-plugin", ",".join([str(plugin), *(f"{name}={value}" for name, value in asked.items())]))
