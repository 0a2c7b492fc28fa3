"""How a study sets its machine, in words: numbers under other settings stand in other lines of a history."""

from collections.abc import Iterator

from ktrial.model.boot import CgroupLimits
from ktrial.model.design import BUILD_KINDS, FactorKind, Treatment
from ktrial.model.study import REAL_MACHINES, Disk, MachineSettings, Study

_OF_THE_KERNEL = BUILD_KINDS | {FactorKind.KERNEL}
_MILLISECOND = 1_000_000


def settings_in_words(study: Study, treatment: Treatment) -> str:
    """Memory, CPUs, boot parameters, disk, and the treatment's levels but for those of the kernel itself.

    Not which system it is: that is the machine's name.
    """
    kinds = {factor.name: factor.kind for factor in study.factors}
    levels = [
        f"{name}={level}" for name, level in treatment.levels.items() if kinds[name] not in _OF_THE_KERNEL
    ]
    return ", ".join((*_machine(study.machine), *sorted(levels)))


def is_plain(words: str) -> bool:
    """Whether these are the settings of a machine that nobody set."""
    return words == ", ".join(_machine(MachineSettings()))


def _machine(machine: MachineSettings) -> Iterator[str]:
    if machine.kind not in REAL_MACHINES:
        yield f"{machine.memory_mib} MiB"
        yield f"{machine.cpus} CPU{'s' if machine.cpus > 1 else ''}"
    yield from machine.boot
    if machine.modules:
        yield f"modules {' '.join(machine.modules)}"
    if machine.pin:
        yield f"on CPUs {' '.join(map(str, machine.pin))}"
    if machine.sample_ns:
        yield f"sampled every {machine.sample_ns / _MILLISECOND:g} ms"
    if machine.cgroup:
        yield from _limits(machine.cgroup)
    if machine.disk:
        yield _disk(machine.disk)


def _limits(group: CgroupLimits) -> Iterator[str]:
    if group.cpus:
        yield f"the time of {group.cpus:g} CPUs for the programs"
    if group.memory_mib:
        yield f"{group.memory_mib} MiB for the programs"
    yield from (f"io.max {line}" for line in group.io)


def _disk(disk: Disk) -> str:
    """All that tells two disks apart."""
    parts = (
        f"{disk.kind.value} disk of {disk.size_mib} MiB with {disk.filesystem}",
        f"{disk.bandwidth_mib} MiB/s" if disk.bandwidth_mib else "",
        f"{disk.latency_us:g} µs" if disk.latency_us else "",
        "turning" if disk.rotational else "",
        f"at {disk.path}" if disk.path != Disk().path else "",
    )
    return " ".join(part for part in parts if part)
