"""Checks the machine that a study asks for, together with the factors that change it."""

from collections.abc import Sequence
from pathlib import Path

from ktrial.model import machine, notation
from ktrial.model.design import BUILD_KINDS, Factor, FactorKind
from ktrial.model.machine import NO_MODEL, CgroupLimits, ModelledMachine
from ktrial.model.parallel import MONITORS, MOST_CPUS, MemoryModel, Topology
from ktrial.model.study import REAL_MACHINES, SMALLEST_DISK_MIB, Disk, DiskKind, MachineSettings
from ktrial.model.workload import CountedBy, WorkloadUse
from ktrial.studyfile.diagnostics import Mistakes, shown
from ktrial.studyfile.machine_model_files import machine_model
from ktrial.studyfile.references import RUNNING_KERNEL, KernelReader, Registry, absolute_kernel
from ktrial.studyfile.tables import DiskTable, MachineTable
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
_FOR_HOST = frozenset({"kind", "pin", "cgroup", "limit_seconds", "sample_every", "monitors"})
_ONLY_SSH = frozenset({"host", "boot_seconds"})
_BOOTED_SSH = frozenset({"kernel", "boot", "settle_seconds"})
_FOR_SSH = frozenset({"kind", "pin", "limit_seconds", "sample_every"}) | _ONLY_SSH | _BOOTED_SSH
_OF_EXACT = frozenset({"count", "model"})
_OF_PARALLEL = frozenset({"quantum", "memory_model", "topology"})
_NOT_FOR = {
    HOST: frozenset(MachineTable.model_fields) - _FOR_HOST,
    SSH: frozenset(MachineTable.model_fields) - _FOR_SSH,
    "exact": frozenset({"pin", "allow_emulated_time", "monitors"}) | _ONLY_SSH | _OF_PARALLEL,
    "exact-parallel": frozenset({"pin", "allow_emulated_time"}) | _ONLY_SSH | _OF_EXACT,
    "kvm": frozenset({"monitors"}) | _ONLY_SSH | _OF_EXACT | _OF_PARALLEL,
}
"""Machine → keys of `[machine]` that mean nothing there."""
_SYSTEM = {HOST: "this system, as it runs", SSH: "another system, with the hardware that it has"}
_ANOTHER_KERNEL = frozenset({FactorKind.KERNEL, FactorKind.BOOT}) | BUILD_KINDS
"""Factors that a real machine can be booted for."""
_BOOTED = _ANOTHER_KERNEL | {FactorKind.MEMORY, FactorKind.CPUS}
"""Factors that change what is booted."""


def machine_settings(
    table: MachineTable,
    factors: Sequence[Factor],
    registry: Registry,
    kernels: KernelReader,
    directory: Path,
    mistakes: Mistakes,
) -> MachineSettings:
    """The machine's settings; `directory` is where relative files are looked for."""
    if table.kind not in registry.machines:
        mistakes.unknown(("machine", "kind"), "machine", table.kind, sorted(registry.machines))
    _check_keys(table, mistakes)
    _check_monitors(table, registry, mistakes)
    _check_host(table, mistakes)
    if table.kernel and (problem := kernels.problem(table.kernel)):
        mistakes.add(("machine", "kernel"), problem)
    return MachineSettings(
        kind=table.kind,
        host=table.host,
        count=CountedBy(table.count) if table.count else None,
        boots=_boots(table, factors),
        boot_seconds=table.boot_seconds,
        kernel=_kernel(table, factors, directory),
        memory_mib=notation.memory_mib(table.memory),
        cpus=table.cpus,
        boot=tuple(table.boot),
        modules=tuple(table.modules),
        files=existing_files(table.files, directory, ("machine", "files"), mistakes),
        settle_ns=round(table.settle_seconds * 1e9),
        limit_instructions=table.limit_instructions,
        limit_seconds=table.limit_seconds,
        disk=_disk(table.disk, mistakes),
        pin=tuple(table.pin),
        cgroup=_cgroup(table, mistakes),
        allow_emulated_time=table.allow_emulated_time,
        quantum_ns=table.quantum,
        memory_model=MemoryModel(table.memory_model),
        topology=_topology(table, factors, mistakes),
        sample_ns=round(notation.interval(table.sample_every) * 1e9) if table.sample_every else 0,
        monitors=tuple(table.monitors),
        model=_model(table, directory, mistakes),
    )


def _boots(table: MachineTable, factors: Sequence[Factor]) -> bool:
    """Whether the machine is another system that has to be booted for this study."""
    fixed = table.kernel not in {"", RUNNING_KERNEL} or table.boot
    return table.kind == SSH and bool(fixed or any(factor.kind in _ANOTHER_KERNEL for factor in factors))


def _kernel(table: MachineTable, factors: Sequence[Factor], directory: Path) -> str:
    """Empty where a factor says it."""
    is_factor = any(factor.kind is FactorKind.KERNEL for factor in factors)
    if table.kind == HOST or (table.kind == SSH and not table.kernel and not is_factor):
        return RUNNING_KERNEL
    return absolute_kernel(table.kernel, directory)


def _model(table: MachineTable, directory: Path, mistakes: Mistakes) -> ModelledMachine | None:
    """What cycles are modelled on. Raises what is wrong with its file, by that file's name and lines."""
    if table.model != NO_MODEL:
        if table.cpus > 1:
            mistakes.add(("machine", "model"), f"cycles are modelled with one CPU, and cpus = {table.cpus}")
        if table.count == CountedBy.CLOCK.value:
            mistakes.add(("machine", "model"), 'cycles are modelled by the plugin, and count = "clock"')
    return machine_model(table.model, directory)


def _disk(table: DiskTable | None, mistakes: Mistakes) -> Disk | None:
    if table is None:
        return None
    if not table.path.startswith("/") or set(Path(table.path).parts) & {".", ".."} or table.path == "/":
        mistakes.add(("machine", "disk", "path"), 'a directory of the guest\'s, from its root: "/mnt"')
    _check_disk(table, mistakes)
    return Disk(
        kind=DiskKind(table.kind),
        rotational=table.rotational,
        size_mib=notation.memory_mib(table.size),
        path=table.path,
        filesystem=table.filesystem,
        bandwidth_mib=notation.memory_mib(table.bandwidth, smallest=1) if table.bandwidth else 0,
        latency_us=table.latency_us,
    )


def _check_disk(table: DiskTable, mistakes: Mistakes) -> None:
    """Bandwidth, latency and turning are null_blk's; a file system needs some room."""
    if table.kind != DiskKind.NULL_BLK.value:
        for key in sorted(table.model_fields_set & {"bandwidth", "latency_us", "rotational"}):
            problem = f'"{key}" is for kind = "null_blk" only: {table.kind} is as fast as memory'
            mistakes.add(("machine", "disk", key), problem)
    smallest = SMALLEST_DISK_MIB[table.filesystem]
    if notation.memory_mib(table.size) < smallest:
        mistakes.add(("machine", "disk", "size"), f"{table.filesystem} is not made below {smallest}M")


def _topology(machine: MachineTable, factors: Sequence[Factor], mistakes: Mistakes) -> Topology | None:
    """None, too, where the CPUs are a factor: that is told with the factor."""
    if machine.topology is None or any(factor.kind is FactorKind.CPUS for factor in factors):
        return None
    nodes = tuple(map(notation.memory_mib, machine.topology.nodes))
    topology = Topology(**machine.topology.model_dump(exclude={"nodes"}), nodes_mib=nodes)
    if topology.cpus != machine.cpus:
        problem = f"{topology} are {topology.cpus} CPUs, and cpus = {machine.cpus}"
        mistakes.add(("machine", "topology"), problem)
    elif problem := topology.nodes_problem(notation.memory_mib(machine.memory)):
        mistakes.add(("machine", "topology", "nodes"), problem)
    return topology


def _cgroup(machine: MachineTable, mistakes: Mistakes) -> CgroupLimits | None:
    table = machine.cgroup
    if table is None:
        return None
    if machine.kind != HOST:
        for key in sorted(table.model_fields_set - {"memory"}):
            problem = f'"{key}" is for the machine {HOST}: in a guest it is the memory that is limited'
            mistakes.add(("machine", "cgroup", key), problem)
    memory = None if table.memory is None else notation.memory_mib(table.memory, smallest=1)
    return CgroupLimits(cpus=table.cpus, memory_mib=memory, io=tuple(table.io))


def _check_keys(table: MachineTable, mistakes: Mistakes) -> None:
    """Keys that mean nothing on this kind of machine; and CPUs that are named twice."""
    for key in sorted(table.model_fields_set & _NOT_FOR.get(table.kind, frozenset())):
        mistakes.add(
            ("machine", key), f'"{key}" means nothing on the machine {table.kind}: {_WHY[table.kind]}'
        )
    if table.kind == "exact-parallel" and table.cpus > MOST_CPUS:
        mistakes.add(("machine", "cpus"), f"the machine {table.kind} has at most {MOST_CPUS} CPUs")
    for place, cpu in enumerate(table.pin):
        if cpu in table.pin[:place]:
            mistakes.add(("machine", "pin", place), f"CPU {cpu} is here twice")


def _check_monitors(table: MachineTable, registry: Registry, mistakes: Mistakes) -> None:
    monitors = {HOST: registry.monitors, "exact-parallel": MONITORS}.get(table.kind)
    for place, name in enumerate(table.monitors if monitors is not None else ()):
        if name not in (monitors or ()):
            mistakes.unknown(("machine", "monitors", place), "monitor", name, sorted(monitors or ()))
        elif name in table.monitors[:place]:
            mistakes.add(("machine", "monitors", place), f"{name} is here twice")


def _check_host(table: MachineTable, mistakes: Mistakes) -> None:
    if table.kind == SSH and not machine.is_host_name(table.host):
        found_text = f"found {shown(table.host)}; " if table.host else ""
        where = ("machine", "host") if table.host else ("machine",)
        mistakes.add(where, f"which machine? {found_text}host = {machine.ALLOWED}")


def check_against_factors(table: MachineTable, factors: Sequence[Factor], mistakes: Mistakes) -> None:
    """What a factor changes cannot also be fixed; the kernel must be one of the two.

    Memory may be both: what `[machine]` says then holds for no treatment.
    """
    if table.kind in REAL_MACHINES:
        _check_run_time_only(table.kind, factors, mistakes)
    if table.kind == HOST:
        return
    kernel_factor = any(factor.kind is FactorKind.KERNEL for factor in factors)
    if kernel_factor and table.kernel:
        mistakes.add(("machine", "kernel"), "the kernel is a factor here, and fixed too: it can be one only")
    if not kernel_factor and not table.kernel and table.kind != SSH:
        mistakes.add(
            ("machine",),
            'which kernel? No factor is the kernel: name it, [machine] kernel = "debian:6.12", '
            "or make it a factor, [factors.kernel]",
        )
    fixed = {parameter.partition("=")[0]: index for index, parameter in enumerate(table.boot)}
    for factor in factors:
        if factor.kind is FactorKind.CPUS and table.kind != SSH:
            _check_cpus(table, factor, mistakes)
        if factor.kind is FactorKind.BOOT and factor.target in fixed:
            where = ("machine", "boot", fixed[factor.target])
            mistakes.add(where, f"{factor.target} is a factor here, and fixed too: it can be one only")


def _check_cpus(table: MachineTable, factor: Factor, mistakes: Mistakes) -> None:
    if table.model != NO_MODEL:
        mistakes.add(("machine", "model"), "cycles are modelled with one CPU, and the CPUs are a factor here")
    if table.cpus != 1:
        mistakes.add(("machine", "cpus"), "the CPUs are a factor here, and fixed too: they can be one only")
    if table.topology:
        problem = "the CPUs are a factor here: a topology says how a fixed number of them belongs together"
        mistakes.add(("machine", "topology"), problem)
    for place, level in enumerate(factor.levels):
        if table.kind == "exact-parallel" and isinstance(level, int) and level > MOST_CPUS:
            where = ("factors", factor.name, "levels", place)
            mistakes.add(where, f"the machine {table.kind} has at most {MOST_CPUS} CPUs")


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
