"""Checks the machine that a study asks for, together with the factors that change it."""

from collections.abc import Sequence
from pathlib import Path

from ktrial.model import units
from ktrial.model.design import Factor, FactorKind
from ktrial.model.study import MachineSettings
from ktrial.runner.study_file.kernels import absolute_kernel, kernel_problem
from ktrial.runner.study_file.known import Known
from ktrial.runner.study_file.mistakes import Mistakes
from ktrial.runner.study_file.tables import MachineTable
from ktrial.runner.study_file.workloads import resolved


def machine_settings(
    table: MachineTable, known: Known, directory: Path, mistakes: Mistakes
) -> MachineSettings:
    """The machine's settings; `directory` is where relative files are looked for."""
    if table.kind not in known.machines:
        mistakes.unknown(("machine", "kind"), "machine", table.kind, sorted(known.machines))
    if table.kernel and (problem := kernel_problem(table.kernel, known)):
        mistakes.add(("machine", "kernel"), problem)
    return MachineSettings(
        kind=table.kind,
        kernel=absolute_kernel(table.kernel, directory),
        memory_mib=units.memory_mib(table.memory),
        cpus=table.cpus,
        boot=tuple(table.boot),
        modules=tuple(table.modules),
        files=resolved(table.files, directory, ("machine", "files"), mistakes),
        settle_ns=round(table.settle_seconds * 1e9),
        limit_instructions=table.limit_instructions,
        limit_seconds=table.limit_seconds,
    )


def check_against_factors(table: MachineTable, factors: Sequence[Factor], mistakes: Mistakes) -> None:
    """What a factor changes cannot also be fixed; the kernel must be one of the two.

    Memory may be both: what `[machine]` says then holds for no treatment.
    """
    kernel_factor = any(factor.kind is FactorKind.KERNEL for factor in factors)
    if kernel_factor and table.kernel:
        mistakes.add(("machine", "kernel"), "the kernel is a factor here, and fixed too: it can be one only")
    if not kernel_factor and not table.kernel:
        mistakes.add(
            ("machine",),
            'which kernel? No factor is the kernel: name it, [machine] kernel = "debian:6.12", '
            "or make it a factor, [factors.kernel]",
        )
    fixed = {parameter.partition("=")[0]: index for index, parameter in enumerate(table.boot)}
    for factor in factors:
        if factor.kind is FactorKind.BOOT and factor.target in fixed:
            where = ("machine", "boot", fixed[factor.target])
            mistakes.add(where, f"{factor.target} is a factor here, and fixed too: it can be one only")
