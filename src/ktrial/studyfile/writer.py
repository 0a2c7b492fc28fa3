"""A study as the TOML file that repeats it: all settings written out, so that no later default changes it."""

import shlex
from collections.abc import Mapping
from typing import Any

import tomli_w

from ktrial.model import notation
from ktrial.model.design import Factor, FactorKind, LevelValue
from ktrial.model.kernel import Build
from ktrial.model.parallel import QUANTUM_NS, MemoryModel, Topology
from ktrial.model.study import EXACT_MACHINES, REAL_MACHINES, Disk, DiskKind, MachineSettings, Study, Timing
from ktrial.model.workload import Command, MetricRule, WorkloadUse


def study_toml(study: Study) -> str:
    """The study as `ktrial run` reads it."""
    return tomli_w.dumps(_filled(_study(study)))


def _study(study: Study) -> dict[str, Any]:
    return {
        "name": study.name,
        "question": study.question,
        "margin": notation.percentage(study.margin),
        "perturbations": _perturbations(study),
        "design": "" if study.listed else study.design.value,
        "treatments": [_row(study, row) for row in study.listed],
        "seed": study.seed,
        "machine": _machine(study.machine),
        "timed": _timed(study.timing) if study.timing else "",
        "kernels": {name: _kernel(study, build) for name, build in study.builds.items()},
        "factors": {factor.name: _factor(factor) for factor in study.factors},
        "workloads": [_workload(use) for use in study.workloads],
    }


def _perturbations(study: Study) -> int | str:
    by_seeds = study.timing is not None and study.machine.kind in EXACT_MACHINES
    return "auto" if by_seeds else study.perturbations


def _timed(timing: Timing) -> dict[str, Any]:
    return {
        "blocks": timing.blocks,
        "stopping": timing.stopping.value,
        "alpha": timing.alpha,
        "budget": f"{timing.budget_seconds:g} s" if timing.budget_seconds else "",
        "primary": timing.primary,
    }


def _machine(machine: MachineSettings) -> dict[str, Any]:
    if machine.kind in REAL_MACHINES:
        named = {"host": machine.host} if machine.host else {}
        booted = _booted(machine) if machine.boots else {}
        common = {"limit_seconds": machine.limit_seconds, **_real_time(machine)}
        return {"kind": machine.kind, **named, **booted, **common}
    return {
        "kind": machine.kind,
        "count": machine.count.value if machine.count else "",
        "kernel": machine.kernel,
        "memory": f"{machine.memory_mib}M",
        "cpus": machine.cpus,
        "boot": machine.boot,
        "modules": machine.modules,
        "files": machine.files,
        "settle_seconds": machine.settle_ns / 1e9,
        "limit_instructions": machine.limit_instructions,
        "limit_seconds": machine.limit_seconds,
        **({"disk": _disk(machine.disk)} if machine.disk else {}),
        **_real_time(machine),
    }


def _booted(machine: MachineSettings) -> dict[str, Any]:
    return {
        "kernel": machine.kernel,
        "boot": machine.boot,
        "settle_seconds": machine.settle_ns / 1e9,
        "boot_seconds": machine.boot_seconds,
    }


def _disk(disk: Disk) -> dict[str, Any]:
    return {
        "size": f"{disk.size_mib}M",
        "path": disk.path,
        "filesystem": disk.filesystem,
        "bandwidth": f"{disk.bandwidth_mib}M" if disk.bandwidth_mib else "",
        "latency_us": disk.latency_us,
        **({"rotational": True} if disk.rotational else {}),
        **({"kind": disk.kind.value} if disk.kind is not DiskKind.NULL_BLK else {}),
    }


def _topology(topology: Topology) -> dict[str, Any]:
    nodes = {"nodes": [f"{size}M" for size in topology.nodes_mib]} if topology.nodes_mib else {}
    return topology.model_dump(exclude={"nodes_mib"}) | nodes


def _real_time(machine: MachineSettings) -> dict[str, Any]:
    """Keys that not all machines have, and only where they say something."""
    table: dict[str, Any] = {"pin": machine.pin}
    if machine.quantum_ns != QUANTUM_NS:
        table["quantum"] = machine.quantum_ns
    if machine.topology:
        table["topology"] = _topology(machine.topology)
    if machine.memory_model is not MemoryModel.NONE:
        table["memory_model"] = machine.memory_model.value
    if machine.model:
        table["model"] = machine.model.reference
    if machine.sample_ns:
        table["sample_every"] = f"{machine.sample_ns / 1e6!r} ms"
    if machine.monitors:
        table["monitors"] = machine.monitors
    if machine.allow_emulated_time:
        table["allow_emulated_time"] = True
    if machine.cgroup:
        limits = machine.cgroup
        memory = "" if limits.memory_mib is None else f"{limits.memory_mib}M"
        cpus = {} if limits.cpus is None else {"cpus": limits.cpus}
        table["cgroup"] = {**cpus, "memory": memory, "io": limits.io}
    return table


def _kernel(study: Study, build: Build) -> dict[str, Any]:
    """Without what a factor of the study decides."""
    factors = {factor.kind for factor in study.factors}
    return {
        "source": "" if FactorKind.SOURCE in factors else build.source,
        "config": build.config,
        "options": build.options,
        "patches": [patch.path for patch in build.patches],
        "make": build.make,
        "fuzz": build.fuzz or "",
    }


def _factor(factor: Factor) -> dict[str, Any]:
    own_name = factor.kind in {FactorKind.KERNEL, FactorKind.MEMORY, FactorKind.CPUS}
    return {
        "kind": factor.kind.value,
        "target": "" if own_name else factor.target,
        "levels": [_level(factor, level) for level in factor.levels],
        "baseline": _level(factor, factor.baseline),
    }


def _level(factor: Factor, level: LevelValue) -> LevelValue:
    """The level as the file has to have it: a patch by its whole path."""
    patched = factor.kind is FactorKind.PATCH and factor.changes.get(str(level))
    return shlex.join(patch.path for patch in patched.patches) if patched else level


def _row(study: Study, row: Mapping[str, LevelValue]) -> dict[str, LevelValue]:
    factors = {factor.name: factor for factor in study.factors}
    return {name: _level(factors[name], level) for name, level in row.items()}


def _workload(use: WorkloadUse) -> dict[str, Any] | str:
    command = _command(use.command) if use.command else {}
    return {"name": use.name, **command, **use.parameters} if command or use.parameters else use.name


def _command(command: Command) -> dict[str, Any]:
    return {
        "command": command.argv,
        "files": command.files,
        "directories": command.directories,
        **({"keep_links": True} if command.keep_links else {}),
        "directory": command.directory,
        "environment": command.environment,
        "metrics": [_metric(rule) for rule in command.metrics],
        "repeats": command.repeats,
        "discarded": command.discarded,
        "notes": command.notes,
        "user": command.user,
    }


def _metric(rule: MetricRule) -> dict[str, Any]:
    if rule.format:
        renamed = {"name": rule.name} if rule.name != rule.metric else {}
        return renamed | {"format": rule.format, "metric": rule.metric}
    return {
        "name": rule.name,
        "unit": rule.unit,
        "direction": rule.direction.value,
        "regex": rule.regex,
        "json": rule.json_path,
    }


def _filled(value: Any) -> Any:
    """Without empty texts and lists, which TOML files leave out; tuples become lists."""
    if isinstance(value, dict):
        return {
            key: inner if key == "environment" else _filled(inner)
            for key, inner in value.items()
            if inner not in ("", (), [], {})
        }
    if isinstance(value, list | tuple):
        return [_filled(inner) for inner in value]
    return value
