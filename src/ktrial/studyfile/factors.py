"""Checks the factors of a study and their levels, makes Factors of them, and the design that combines them.

Levels are kept the same wherever the file lies that they were read from. Whether a scheduler loads is found
out in the guest.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from ktrial.knobs import catalogue
from ktrial.model import quantities
from ktrial.model.design import (
    BUILD_KINDS,
    KERNELS_OWN_SCHEDULER,
    Design,
    Factor,
    FactorKind,
    scheduler_argv,
)
from ktrial.model.levels import AS_IT_IS, LevelValue
from ktrial.model.study import Study
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, shown, unknown
from ktrial.studyfile.kernel_builds import BuildReader, lists_options, short_levels
from ktrial.studyfile.knob_values import setting_problem
from ktrial.studyfile.references import KernelReader, absolute_kernel
from ktrial.studyfile.registry import Registry, parameter_problem
from ktrial.studyfile.schema import FactorTable, StudyTable
from ktrial.studyfile.value_types import boot_text, plain_text

_PLAIN = (
    {FactorKind.KERNEL, FactorKind.MEMORY, FactorKind.CPUS, FactorKind.NOTHING, FactorKind.SCHEDULER}
    | BUILD_KINDS
) - {FactorKind.KCONFIG}
"""Kinds that need no target."""
MOST_CPUS_OF_ANY = 256
_ONCE = {
    FactorKind.KERNEL: "the kernel",
    FactorKind.SCHEDULER: "the scheduler",
    FactorKind.CPUS: "the number of CPUs",
    FactorKind.SOURCE: "the source",
    FactorKind.COMPILER_FLAGS: "the compiler's flags",
}


class FactorReader:
    """Makes Factors of the study's tables; needs the workloads, whose parameters can be factors."""

    def __init__(
        self,
        registry: Registry,
        uses: Sequence[WorkloadUse],
        kernels: KernelReader,
        builds: BuildReader,
        mistakes: Mistakes,
    ) -> None:
        self._registry = registry
        self._builds = builds
        self._uses = {use.name: use for use in uses}
        self._mistakes = mistakes
        self._kernels = kernels
        self._compared: dict[str, str] = {}
        self._checks: dict[FactorKind, Callable[[KeyPath, str, LevelValue], None]] = {
            FactorKind.KERNEL: self._kernel_level,
            FactorKind.MEMORY: self._memory_level,
            FactorKind.CPUS: self._cpus_level,
            FactorKind.PARAMETER: self._parameter_level,
            FactorKind.BOOT: self._boot_level,
            FactorKind.SETTING: self._setting_level,
            FactorKind.NOTHING: _any_level,
            FactorKind.SCHEDULER: self._scheduler_level,
            FactorKind.MODULE: _any_level,
            FactorKind.ENVIRONMENT: self._environment_level,
            # Their levels are checked as changes of a build.
            **dict.fromkeys(BUILD_KINDS, _any_level),
        }

    def read(self, tables: dict[str, FactorTable]) -> tuple[Factor, ...]:
        """All factors, in the order of the file."""
        if not tables:
            self._mistakes.add(("factors",), "there is no factor: a study compares levels of at least one")
        factors = [self._factor(name, table) for name, table in tables.items()]
        for kind, what in _ONCE.items():
            first, *others = [factor.name for factor in factors if factor.kind is kind] or [""]
            for name in others:
                self._mistakes.add(("factors", name), f"{first} is {what} already; there can be one only")
        return tuple(factors)

    def _factor(self, name: str, table: FactorTable) -> Factor:
        path: KeyPath = ("factors", name)
        try:
            plain_text(name)
        except ValueError as error:
            self._mistakes.add(path, f"a factor cannot have this name: {error}")
        target = table.target or name
        kind = self._kind(target, table, path)
        self._target(kind, target, path)
        self._levels(table.levels, path)
        for index, level in enumerate(table.levels):
            self._checks[kind]((*path, "levels", index), target, level)
        baseline = self._baseline(table, path)
        if kind in _PLAIN or (
            kind is FactorKind.KCONFIG and not table.target and lists_options(table.levels)
        ):
            target = ""
        changes = self._builds.changes(kind, target, table.levels, path) if kind in BUILD_KINDS else {}
        return Factor(
            name=name,
            kind=kind,
            levels=tuple(table.levels),
            baseline=baseline,
            target=target,
            changes={str(level): change for level, change in changes.items()},
        )

    def _kind(self, target: str, table: FactorTable, path: KeyPath) -> FactorKind:
        if table.kind:
            return FactorKind(table.kind)
        if target in {"kernel", "memory", "cpus", "scheduler"}:
            return FactorKind(target)
        if "." in target and target.partition(".")[0] in self._uses:
            return FactorKind.PARAMETER
        if knob := catalogue.known(target.partition("@")[0]):
            return FactorKind.BOOT if knob.needs_reboot else FactorKind.SETTING
        if "." not in target and not target.startswith("/"):
            self._mistakes.add(
                path,
                f'what is {shown(target)}? Give its kind: "boot" for a boot parameter, "setting" for a file '
                'below /proc/sys or /sys, "kernel", "memory", "cpus", "scheduler", "parameter" of a workload',
            )
        return FactorKind.SETTING

    def _target(self, kind: FactorKind, target: str, path: KeyPath) -> None:
        """Check what is changed."""
        workload, dot, parameter = target.partition(".")
        if kind is FactorKind.BOOT and any(letter in target for letter in ' \t="'):
            self._mistakes.add(
                path, f"found {shown(target)}: a boot parameter's name has no space, = or quote"
            )
        if kind is FactorKind.SETTING and (problem := setting_problem(target)):
            self._mistakes.add(path, problem)
        if kind is FactorKind.ENVIRONMENT:
            self._variable(target, path)
        if kind is not FactorKind.PARAMETER:
            return
        if not dot or workload not in self._uses:
            problem = unknown("workload in this study called", workload, self._uses)
            self._mistakes.add(path, f"a parameter is named workload.parameter; {problem}")
            return
        description = self._registry.workloads.get(workload)
        names = [each.name for each in description.parameters] if description else []
        if parameter not in names:
            self._mistakes.unknown(path, f"parameter of {workload}", parameter, names)
        elif parameter in self._uses[workload].parameters:
            self._mistakes.add(path, f"{target} is a factor here, and fixed in workloads: it can be one only")

    def _variable(self, name: str, path: KeyPath) -> None:
        """Check that it can be a variable of the commands' environment, and is not fixed there."""
        commands = [use for use in self._uses.values() if use.command]
        if not name or "=" in name:
            self._mistakes.add(path, f"found {shown(name)}: a variable's name has no =")
        if not commands:
            self._mistakes.add(path, "no workload of this study is a command, whose environment it would be")
        for use in commands:
            if use.command and name in use.command.environment:
                self._mistakes.add(
                    path, f"{name} is a factor here, and fixed in {use.name}: it can be one only"
                )

    def _levels(self, levels: list[LevelValue], path: KeyPath) -> None:
        """Check what holds for the levels of any factor."""
        where: KeyPath = (*path, "levels")
        if len(levels) < 2:
            count = "one level" if levels else "no level"
            self._mistakes.add(where, f"{count}: there is nothing to compare; give at least two")
        if len({isinstance(level, str) for level in levels}) > 1:
            self._mistakes.add(where, "numbers and text are mixed: levels are all numbers, or all text")
        for index, level in enumerate(levels):
            if level in levels[:index]:
                self._mistakes.add((*where, index), f"{shown(level)} is here twice")

    def _baseline(self, table: FactorTable, path: KeyPath) -> LevelValue:
        if table.baseline is None:
            return table.levels[0] if table.levels else ""
        if table.baseline not in table.levels:
            allowed = ", ".join(shown(level) for level in table.levels)
            self._mistakes.wrong((*path, "baseline"), table.baseline, f"one of the levels: {allowed}")
        return table.baseline

    def _kernel_level(self, path: KeyPath, _target: str, level: LevelValue) -> None:
        if not isinstance(level, str):
            self._mistakes.wrong(path, level, 'a kernel\'s name, as text: "debian:6.12"')
        elif problem := self._kernels.problem(level):
            self._mistakes.add(path, problem)
        else:
            self._same_kernel(path, level)

    def _same_kernel(self, path: KeyPath, name: str) -> None:
        """`debian:6.1` and `debian:6.1:cloud` are one kernel: a comparison of the two says nothing."""
        other = self._compared.setdefault(self._kernels.reference(name).name, name)
        if other != name:
            self._mistakes.add(path, f"{shown(name)} and {shown(other)} are the same kernel")

    def _boot_level(self, path: KeyPath, _target: str, level: LevelValue) -> None:
        """An empty level leaves the parameter out."""
        if level == AS_IT_IS:
            return
        try:
            boot_text(str(level))
        except ValueError as error:
            self._mistakes.add(path, f"found {shown(level)}: {error}")

    def _environment_level(self, path: KeyPath, _target: str, level: LevelValue) -> None:
        try:
            plain_text(str(level))
        except ValueError as error:
            self._mistakes.add(path, f"found {shown(level)}: {error}")

    def _setting_level(self, path: KeyPath, _target: str, level: LevelValue) -> None:
        if level == "":
            self._mistakes.add(path, 'found "": only a boot parameter can be left out')

    def _scheduler_level(self, path: KeyPath, _target: str, level: LevelValue) -> None:
        if problem := scheduler_problem(level):
            self._mistakes.add(path, problem)

    def _memory_level(self, path: KeyPath, _target: str, level: LevelValue) -> None:
        if not isinstance(level, str):
            self._mistakes.wrong(path, level, 'a size as text, with M or G: "512M", "1G"')
            return
        try:
            quantities.memory_mib(level)
        except ValueError as error:
            self._mistakes.add(path, f"found {shown(level)}: {error}")

    def _cpus_level(self, path: KeyPath, _target: str, level: LevelValue) -> None:
        if not isinstance(level, int) or not 1 <= level <= MOST_CPUS_OF_ANY:
            self._mistakes.wrong(path, level, f"whole numbers of CPUs from 1 to {MOST_CPUS_OF_ANY}")

    def _parameter_level(self, path: KeyPath, target: str, level: LevelValue) -> None:
        workload, _, name = target.partition(".")
        description = self._registry.workloads.get(workload)
        for parameter in description.parameters if description else ():
            if parameter.name == name and (problem := parameter_problem(parameter, level)):
                self._mistakes.wrong(path, level, problem)


def _any_level(_path: KeyPath, _target: str, _level: LevelValue) -> None:
    """A name that changes nothing may be any."""


Listed = tuple[dict[str, LevelValue], ...]


def design_of(tables: StudyTable, factors: tuple[Factor, ...], mistakes: Mistakes) -> tuple[Design, Listed]:
    """The design, and the treatments that are listed instead of one."""
    if tables.treatments is None:
        return Design(tables.design or Design.FULL), ()
    if tables.design:
        mistakes.add(("design",), "the treatments are listed here: that is the design; take one of the two")
    if not tables.treatments:
        mistakes.add(("treatments",), "the list is empty: there is nothing to compare with the baseline")
    for place, row in enumerate(tables.treatments):
        _check_row(place, row, factors, mistakes)
    return Design.LISTED, tuple(tables.treatments)


def _check_row(
    place: int, row: dict[str, LevelValue], factors: tuple[Factor, ...], mistakes: Mistakes
) -> None:
    by_name = {factor.name: factor for factor in factors}
    for name, level in row.items():
        if name not in by_name:
            mistakes.unknown(("treatments", place, name), "factor", name, by_name)
        elif level not in by_name[name].levels:
            levels = ", ".join(shown(each) for each in by_name[name].levels)
            mistakes.add(
                ("treatments", place, name), f"{shown(level)} is no level of it; its levels are {levels}"
            )
    known = row.keys() <= by_name.keys()
    if known and all(row.get(factor.name, factor.baseline) == factor.baseline for factor in factors):
        mistakes.add(("treatments", place), "this is the baseline, which is run in any case")


def scheduler_problem(level: LevelValue) -> str:
    """What is wrong with a level; empty where nothing is."""
    own = KERNELS_OWN_SCHEDULER[1]
    allowed = f'allowed: "{own}" (the kernel\'s own), or a program with its arguments: "./scx_simple -v"'
    if not isinstance(level, str):
        return f"found {shown(level)}; {allowed}"
    try:
        scheduler_argv(level)
    except ValueError as error:
        return f"found {shown(level)}: {error}; {allowed}".replace("No closing", "no closing")
    return ""


def absolute_scheduler(level: str, directory: Path) -> str:
    """The level with a relative path of its program made absolute; one with a mistake in it as it is."""
    argv = () if scheduler_problem(level) else scheduler_argv(level)
    if not argv or "/" not in argv[0]:
        return level
    return shlex.join((os.path.normpath(directory / Path(argv[0]).expanduser()), *argv[1:]))


def with_final_levels(study: Study, directory: Path) -> Study:
    """The study with paths made absolute, and patches called by their files' names."""
    names = {factor.name: _names(factor, directory) for factor in study.factors}

    def final(name: str, level: LevelValue) -> LevelValue:
        return names[name].get(level, level) if name in names else level

    listed = tuple({name: final(name, level) for name, level in row.items()} for row in study.listed)
    factors = tuple(_renamed(factor, names[factor.name]) for factor in study.factors)
    return study.model_copy(update={"factors": factors, "listed": listed})


def _names(factor: Factor, directory: Path) -> dict[LevelValue, LevelValue]:
    """Level as written → as it is kept, where the two differ."""
    if factor.kind is FactorKind.KERNEL:
        return {level: absolute_kernel(str(level), directory) for level in factor.levels}
    if factor.kind is FactorKind.SCHEDULER:
        return {level: absolute_scheduler(str(level), directory) for level in factor.levels}
    return short_levels(factor) if factor.kind in BUILD_KINDS else {}


def _renamed(factor: Factor, names: dict[LevelValue, LevelValue]) -> Factor:
    if not names:
        return factor
    changes = {str(names.get(level, level)): change for level, change in factor.changes.items()}
    return factor.model_copy(
        update={
            "levels": tuple(names.get(level, level) for level in factor.levels),
            "baseline": names.get(factor.baseline, factor.baseline),
            "changes": changes,
        }
    )
