"""A study as the TOML file that repeats it: all settings written out, so that no later default changes it."""

import shlex
from collections.abc import Mapping
from typing import Any

import tomli_w

from ktrial.model import notation
from ktrial.model.base import Model, StudyFile, keys_of
from ktrial.model.design import Factor, FactorKind, LevelValue
from ktrial.model.kernel import Build
from ktrial.model.study import EXACT_MACHINES, MEANINGLESS_KEYS, MachineSettings, Study
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
        "timed": _table(study.timing) if study.timing else "",
        "kernels": {name: _kernel(study, build) for name, build in study.builds.items()},
        "factors": {factor.name: _factor(factor) for factor in study.factors},
        "workloads": [_workload(use) for use in study.workloads],
    }


def _perturbations(study: Study) -> int | str:
    by_seeds = study.timing is not None and study.machine.kind in EXACT_MACHINES
    return "auto" if by_seeds else study.perturbations


def _table(data: Model) -> dict[str, Any]:
    return data.model_dump(mode="json", by_alias=True, context=StudyFile())


def _machine(machine: MachineSettings) -> dict[str, Any]:
    """The keys that say something on this machine."""
    meaningless = MEANINGLESS_KEYS.get(machine.kind, frozenset())
    if machine.kind == "ssh" and not machine.boots:
        meaningless |= {"kernel", "boot", "settle_seconds"}
    table = _table(machine) | ({"boot_seconds": machine.boot_seconds} if machine.boots else {})
    return {key: table[key] for key in keys_of(MachineSettings) if key in table.keys() - meaningless}


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
    metrics = [_metric(rule) for rule in command.metrics]
    table = _table(command) | {"metrics": metrics, "discarded": command.discarded}
    return {key: table[key] for key in keys_of(Command) if key in table}


def _metric(rule: MetricRule) -> dict[str, Any]:
    if rule.format:
        renamed = {"name": rule.name} if rule.name != rule.metric else {}
        return renamed | {"format": rule.format, "metric": rule.metric}
    return _table(rule)


def _filled(value: Any) -> Any:
    """Without what is empty or false, which TOML files leave out; tuples become lists."""
    if isinstance(value, dict):
        return {
            key: inner if key == "environment" else _filled(inner)
            for key, inner in value.items()
            if inner is not None and inner is not False and inner not in ("", (), [], {})
        }
    if isinstance(value, list | tuple):
        return [_filled(inner) for inner in value]
    return value
