"""Checks the machine that a study asks for, together with the factors that change it."""

from collections.abc import Sequence
from pathlib import Path

from ktrial.model.design import BUILD_KINDS, Factor, FactorKind
from ktrial.model.machine import ALLOWED, is_host_name
from ktrial.model.parallel import MONITORS, MOST_CPUS, Topology
from ktrial.model.study import (
    MEANINGLESS_KEYS,
    REAL_MACHINES,
    SMALLEST_DISK_MIB,
    Disk,
    DiskKind,
    MachineSettings,
)
from ktrial.model.workload import CountedBy, WorkloadUse
from ktrial.studyfile.diagnostics import Mistakes, shown
from ktrial.studyfile.references import RUNNING_KERNEL, KernelReader, Registry
from ktrial.studyfile.workloads import existing_files

HOST = "host"
"""The machine that is this system: it is not booted."""

SSH = "ssh"
"""The machine that is another system: as it runs, or booted into a study's kernels."""

_WHY = {
    SSH: "it is another system (its keys are host, kernel, boot, boot_seconds, settle_seconds, pin, "
    "limit_seconds, sample_every)",
    HOST: "it is this system, as it runs (its keys are pin, cgroup, limit_seconds, sample_every, monitors)",
    "exact": "it counts instructions, wherever it runs",
    "exact-parallel": "it has a simulated time of its own, wherever it runs, and counts in no other way",
    "kvm": "its programs run in a guest; pin holds QEMU, and monitors watch programs of this system",
}
_SYSTEM = {HOST: "this system, as it runs", SSH: "another system, with the hardware that it has"}
_ANOTHER_KERNEL = frozenset({FactorKind.KERNEL, FactorKind.BOOT}) | BUILD_KINDS
"""Factors that a real machine can be booted for."""
_BOOTED = _ANOTHER_KERNEL | {FactorKind.MEMORY, FactorKind.CPUS}
"""Factors that change what is booted."""


def machine_settings(
    machine: MachineSettings,
    factors: Sequence[Factor],
    registry: Registry,
    kernels: KernelReader,
    directory: Path,
    mistakes: Mistakes,
) -> MachineSettings:
    """What the file says of the machine, completed; `directory` is where relative files are looked for."""
    if machine.kind not in registry.machines:
        mistakes.unknown(("machine", "kind"), "machine", machine.kind, sorted(registry.machines))
    _check_keys(machine, mistakes)
    _check_monitors(machine, registry, mistakes)
    if machine.kind == SSH and not is_host_name(machine.host):
        found_text = f"found {shown(machine.host)}; " if machine.host else ""
        where = ("machine", "host") if machine.host else ("machine",)
        mistakes.add(where, f"which machine? {found_text}host = {ALLOWED}")
    if machine.kernel and (problem := kernels.problem(machine.kernel)):
        mistakes.add(("machine", "kernel"), problem)
    if machine.model and machine.cpus > 1:
        mistakes.add(("machine", "model"), f"cycles are modelled with one CPU, and cpus = {machine.cpus}")
    if machine.model and machine.count is CountedBy.CLOCK:
        mistakes.add(("machine", "model"), 'cycles are modelled by the plugin, and count = "clock"')
    if machine.disk:
        _check_disk(machine.disk, mistakes)
    if machine.swap_mib and machine.disk and machine.disk.kind is DiskKind.PMEM:
        problem = "a guest with swap has its persistent memory for that: take null_blk or brd"
        mistakes.add(("machine", "disk", "kind"), problem)
    if machine.topology and not _has(FactorKind.CPUS, factors):
        _check_topology(machine, machine.topology, mistakes)
    if machine.cgroup and machine.kind != HOST:
        for key in sorted(machine.cgroup.model_fields_set - {"memory_mib"}):
            problem = f'"{key}" is for the machine {HOST}: in a guest it is the memory that is limited'
            mistakes.add(("machine", "cgroup", key), problem)
    kernel = kernels.final(machine.kernel)
    if machine.kind == HOST or (
        machine.kind == SSH and not machine.kernel and not _has(FactorKind.KERNEL, factors)
    ):
        kernel = RUNNING_KERNEL
    fixed = machine.kernel not in {"", RUNNING_KERNEL} or machine.boot
    changed = any(factor.kind in _ANOTHER_KERNEL for factor in factors)
    return machine.model_copy(
        update={
            "kernel": kernel,
            "boots": machine.kind == SSH and bool(fixed or changed),
            "files": existing_files(machine.files, directory, ("machine", "files"), mistakes),
        }
    )


def _has(kind: FactorKind, factors: Sequence[Factor]) -> bool:
    return any(factor.kind is kind for factor in factors)


def _check_keys(machine: MachineSettings, mistakes: Mistakes) -> None:
    """Keys that mean nothing on this kind of machine; and CPUs that are named twice."""
    fields = MachineSettings.model_fields
    keys = {fields[name].serialization_alias or name for name in machine.model_fields_set}
    for key in sorted(keys & MEANINGLESS_KEYS.get(machine.kind, frozenset())):
        mistakes.add(
            ("machine", key), f'"{key}" means nothing on the machine {machine.kind}: {_WHY[machine.kind]}'
        )
    if machine.kind == "exact-parallel" and machine.cpus > MOST_CPUS:
        mistakes.add(("machine", "cpus"), f"the machine {machine.kind} has at most {MOST_CPUS} CPUs")
    for place, cpu in enumerate(machine.pin):
        if cpu in machine.pin[:place]:
            mistakes.add(("machine", "pin", place), f"CPU {cpu} is here twice")


def _check_disk(disk: Disk, mistakes: Mistakes) -> None:
    """Bandwidth, latency and turning are null_blk's; a file system needs some room."""
    if not disk.path.startswith("/") or set(Path(disk.path).parts) & {".", ".."} or disk.path == "/":
        mistakes.add(("machine", "disk", "path"), 'a directory of the guest\'s, from its root: "/mnt"')
    if disk.kind is not DiskKind.NULL_BLK:
        for name in sorted(disk.model_fields_set & {"bandwidth_mib", "latency_us", "rotational"}):
            key = name.removesuffix("_mib")
            problem = f'"{key}" is for kind = "null_blk" only: {disk.kind.value} is as fast as memory'
            mistakes.add(("machine", "disk", key), problem)
    smallest = SMALLEST_DISK_MIB[disk.filesystem]
    if disk.size_mib < smallest:
        mistakes.add(("machine", "disk", "size"), f"{disk.filesystem} is not made below {smallest}M")


def _check_topology(machine: MachineSettings, topology: Topology, mistakes: Mistakes) -> None:
    if topology.cpus != machine.cpus:
        problem = f"{topology} are {topology.cpus} CPUs, and cpus = {machine.cpus}"
        mistakes.add(("machine", "topology"), problem)
    elif problem := topology.nodes_problem(machine.memory_mib):
        mistakes.add(("machine", "topology", "nodes"), problem)


def _check_monitors(machine: MachineSettings, registry: Registry, mistakes: Mistakes) -> None:
    monitors = {HOST: registry.monitors, "exact-parallel": MONITORS}.get(machine.kind)
    for place, name in enumerate(machine.monitors if monitors is not None else ()):
        if name not in (monitors or ()):
            mistakes.unknown(("machine", "monitors", place), "monitor", name, sorted(monitors or ()))
        elif name in machine.monitors[:place]:
            mistakes.add(("machine", "monitors", place), f"{name} is here twice")


def check_against_factors(machine: MachineSettings, factors: Sequence[Factor], mistakes: Mistakes) -> None:
    """What a factor changes cannot also be fixed; the kernel must be one of the two.

    Memory may be both: what `[machine]` says then holds for no treatment.
    """
    if machine.kind in REAL_MACHINES:
        _check_run_time_only(machine.kind, factors, mistakes)
    if machine.kind == HOST:
        return
    kernel_factor = _has(FactorKind.KERNEL, factors)
    if kernel_factor and machine.kernel:
        mistakes.add(("machine", "kernel"), "the kernel is a factor here, and fixed too: it can be one only")
    if not kernel_factor and not machine.kernel and machine.kind != SSH:
        mistakes.add(
            ("machine",),
            'which kernel? No factor is the kernel: name it, [machine] kernel = "debian:6.12", '
            "or make it a factor, [factors.kernel]",
        )
    fixed = {parameter.partition("=")[0]: index for index, parameter in enumerate(machine.boot)}
    for factor in factors:
        if factor.kind is FactorKind.CPUS and machine.kind != SSH:
            _check_cpus(machine, factor, mistakes)
        if factor.kind is FactorKind.BOOT and factor.target in fixed:
            where = ("machine", "boot", fixed[factor.target])
            mistakes.add(where, f"{factor.target} is a factor here, and fixed too: it can be one only")


def _check_cpus(machine: MachineSettings, factor: Factor, mistakes: Mistakes) -> None:
    if machine.model:
        mistakes.add(("machine", "model"), "cycles are modelled with one CPU, and the CPUs are a factor here")
    if machine.cpus != 1:
        mistakes.add(("machine", "cpus"), "the CPUs are a factor here, and fixed too: they can be one only")
    if machine.topology:
        problem = "the CPUs are a factor here: a topology says how a fixed number of them belongs together"
        mistakes.add(("machine", "topology"), problem)
    for place, level in enumerate(factor.levels):
        if machine.kind == "exact-parallel" and isinstance(level, int) and level > MOST_CPUS:
            where = ("factors", factor.name, "levels", place)
            mistakes.add(where, f"the machine {machine.kind} has at most {MOST_CPUS} CPUs")


def _check_run_time_only(kind: str, factors: Sequence[Factor], mistakes: Mistakes) -> None:
    for factor in factors:
        if factor.kind is FactorKind.SCHEDULER:
            where = ("factors", factor.name)
            problem = "schedulers are loaded into guests only: take the machine kvm or exact"
            mistakes.add(where, problem)
        if factor.kind in _BOOTED and not (kind == SSH and factor.kind in _ANOTHER_KERNEL):
            mistakes.add(
                ("factors", factor.name),
                f"a factor of kind {factor.kind.value} needs a boot, and the machine {kind} is "
                f"{_SYSTEM[kind]}: take a setting or a parameter, or the machine kvm or exact",
            )


def check_users(uses: tuple[WorkloadUse, ...], machine: str, mistakes: Mistakes) -> None:
    """A guest has no users but its root."""
    for index, use in enumerate(uses):
        if use.command and use.command.user and machine != HOST:
            only = "programs run as whom ssh logs in" if machine == SSH else "a guest has only its root"
            problem = f'"user" is for the machine {HOST}; on the machine {machine} {only}'
            mistakes.add(("workloads", index, "user"), problem)
