"""Checks the factors of a study and their levels, makes Factors of them, and the design that combines them.

Levels are kept the same wherever the file lies that they were read from. Whether a scheduler loads is found
out in the guest.
"""

import os
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from ktrial.knobs import catalogue, lookup, values
from ktrial.knobs.catalogue import reference
from ktrial.knobs.errors import BadKnobName, KnobError, UnknownKnob
from ktrial.model import notation
from ktrial.model.design import (
    AS_IT_IS,
    BUILD_KINDS,
    KERNELS_OWN_SCHEDULER,
    Design,
    Factor,
    FactorKind,
    LevelValue,
    Treatment,
    level_text,
    scheduler_argv,
)
from ktrial.model.knob import Knob, KnobKind, Version
from ktrial.model.references import ALL, STUDYS_DISK, KernelRef
from ktrial.model.study import Study, kernel_of, treatments
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, shown, unknown
from ktrial.studyfile.errors import BadKnobSpace
from ktrial.studyfile.kernel_builds import BuildReader, lists_options, short_levels
from ktrial.studyfile.references import (
    KernelReader,
    Registry,
    final_kernel,
    of_studys_disk,
    parameter_problem,
)
from ktrial.studyfile.search import BOOT, KERNEL, OPTION, searched_knobs
from ktrial.studyfile.tables import FactorTable, StudyTable

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

    def read(self, tables: dict[str, FactorTable]) -> tuple[Factor, ...]:
        """All factors, in the order of the file."""
        if not tables:
            self._mistakes.add(("factors",), "there is no factor: a study compares levels of at least one")
        factors = [self._factor(name, table) for name, table in tables.items()]
        for kind, description in _ONCE.items():
            first, *more = [factor.name for factor in factors if factor.kind is kind] or [""]
            for name in more:
                self._mistakes.add(
                    ("factors", name), f"{first} is {description} already; there can be one only"
                )
        return tuple(factors)

    def _factor(self, name: str, table: FactorTable) -> Factor:
        path: KeyPath = ("factors", name)
        try:
            notation.plain_text(name)
        except ValueError as error:
            self._mistakes.add(path, f"a factor cannot have this name: {error}")
        target = table.target or name
        kind = self._kind(target, table, path)
        self._target(kind, target, path)
        self._levels(table.levels, path)
        for index, level in enumerate(table.levels):
            self._check_level(kind, target, (*path, "levels", index), level)
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
        if knob := catalogue.get(target.partition("@")[0]):
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
        names = [known_parameter.name for known_parameter in description.parameters] if description else []
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

    def _check_level(self, kind: FactorKind, target: str, path: KeyPath, level: LevelValue) -> None:
        """Those of builds are checked as their changes; names that change nothing may be any."""
        try:
            match kind:
                case FactorKind.KERNEL:
                    self._check_kernel(path, level)
                case FactorKind.BOOT if level != AS_IT_IS:  # an empty one leaves the parameter out
                    notation.boot_text(str(level))
                case FactorKind.ENVIRONMENT:
                    notation.plain_text(str(level))
                case FactorKind.SETTING if level == "":
                    raise ValueError("only a boot parameter can be left out")
                case FactorKind.SCHEDULER if problem := scheduler_problem(level):
                    self._mistakes.add(path, problem)
                case FactorKind.MEMORY if not isinstance(level, str):
                    self._mistakes.wrong(path, level, 'a size as text, with M or G: "512M", "1G"')
                case FactorKind.MEMORY:
                    notation.memory_mib(str(level))
                case FactorKind.CPUS if not isinstance(level, int) or not 1 <= level <= MOST_CPUS_OF_ANY:
                    self._mistakes.wrong(path, level, f"whole numbers of CPUs from 1 to {MOST_CPUS_OF_ANY}")
                case FactorKind.PARAMETER:
                    workload, _, name = target.partition(".")
                    description = self._registry.workloads.get(workload)
                    for parameter in description.parameters if description else ():
                        if parameter.name == name and (allowed := parameter_problem(parameter, level)):
                            self._mistakes.wrong(path, level, allowed)
        except ValueError as error:
            self._mistakes.add(path, f"found {shown(level)}: {error}")

    def _check_kernel(self, path: KeyPath, level: LevelValue) -> None:
        """`debian:6.1` and `debian:6.1:cloud` are one kernel: a comparison of the two says nothing."""
        if not isinstance(level, str):
            self._mistakes.wrong(path, level, 'a kernel\'s name, as text: "debian:6.12"')
        elif problem := self._kernels.problem(level):
            self._mistakes.add(path, problem)
        else:
            first_name = self._compared.setdefault(self._kernels.reference(level).name, level)
            if first_name != level:
                self._mistakes.add(path, f"{shown(level)} and {shown(first_name)} are the same kernel")


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
            levels = ", ".join(shown(a_level) for a_level in by_name[name].levels)
            mistakes.add(
                ("treatments", place, name), f"{shown(level)} is not a level of it; its levels are {levels}"
            )
    all_are_factors = row.keys() <= by_name.keys()
    if all_are_factors and all(
        row.get(factor.name, factor.baseline) == factor.baseline for factor in factors
    ):
        mistakes.add(("treatments", place), "this is the baseline, which is run in any case")


def scheduler_problem(level: LevelValue) -> str:
    """What is wrong with a level; empty where nothing is."""
    default = KERNELS_OWN_SCHEDULER[1]
    allowed = f'allowed: "{default}" (the kernel\'s own), or a program with its arguments: "./scx_simple -v"'
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
    names = {factor.name: _names(factor, directory, study.builds) for factor in study.factors}

    def final(name: str, level: LevelValue) -> LevelValue:
        return names[name].get(level, level) if name in names else level

    listed = tuple({name: final(name, level) for name, level in row.items()} for row in study.listed)
    factors = tuple(_renamed(factor, names[factor.name]) for factor in study.factors)
    return study.model_copy(update={"factors": factors, "listed": listed})


def _names(factor: Factor, directory: Path, own: Collection[str]) -> dict[LevelValue, LevelValue]:
    """Level as written → as it is kept, where the two differ. `own`: kernels that the study describes."""
    if factor.kind is FactorKind.KERNEL:
        named = [level for level in factor.levels if str(level) not in own]
        return {level: final_kernel(str(level), directory) for level in named}
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


# Checks that the kernels of a study can take the values that it gives their knobs, as far as that is known.
#
# What the catalogue does not know is left to the kernel, which is asked when the trial runs.

_KINDS = {
    KnobKind.INTEGER: "a whole number",
    KnobKind.INTEGERS: "whole numbers, separated by blanks",
    KnobKind.SWITCH: "0 or 1",
    KnobKind.CHOICE: "a word",
    KnobKind.MASK: "a mask in hexadecimal",
    KnobKind.TEXT: "one line of text",
}
"""What a knob takes of which no more is known."""


_AS_RELEASED = "debian"
"""Where kernels come from that have the settings of their version, and no later ones."""


_ATTACK_VECTORS = ";"
"""Since Linux 6.17, `mitigations=auto;no_user_kernel`."""


def check_values(study: Study, mistakes: Mistakes) -> None:
    """Note each value that a kernel of the study would refuse. The study's references are resolved."""
    if study.search:
        _check_searched(study, mistakes)
        return
    for factor in study.factors:
        if factor.kind is FactorKind.SETTING and of_studys_disk(study.references.knobs[factor.target]):
            problem = "@disk is the study's own disk, and it has none: [machine.disk] makes one"
            mistakes.add(("factors", factor.name), problem)
    factors = [(factor, knob) for factor in study.factors if (knob := _knob(study, factor))]
    kernels = _kernels(study, [factor for factor, _ in factors]) if factors else {}
    for factor, knob in factors:
        if problem := _absent_everywhere(study, factor, knob, kernels):
            mistakes.add(("factors", factor.name), problem)
            continue
        for index, level in enumerate(factor.levels):
            if _is_left_alone(factor, knob, level_text(level)):
                continue
            problem = value_problem(knob, level_text(level), kernels.get((factor.name, level), ()))
            if problem:
                path: KeyPath = ("factors", factor.name, "levels", index)
                mistakes.add(path, f"found {shown(level)}: {problem}")


def setting_problem(target: str) -> str:
    """Why no kernel can have this setting; empty where one may. What nobody knows the kernel is asked for."""
    if not target.isprintable():
        return ""  # that is said of the name already
    try:
        named = reference(target)
    except UnknownKnob:
        return ""
    except BadKnobName as error:
        return f"{shown(target)} cannot name a setting: {error.problem}; {error.advice}"
    if named.knob is None or named.path:
        return ""
    if named.knob.needs_reboot:
        return f'{shown(target)} is a parameter that kernels are booted with: kind = "boot"'
    if named.knob.instance and named.instance in {"", ALL}:
        whose = f"there is one {named.knob.name} for each {named.knob.instance}"
        studys_disk = f', or the study\'s own: "{named.knob.name}@{STUDYS_DISK}"'
        studys_disk = studys_disk if named.knob.instance == STUDYS_DISK else ""
        return f'{whose}, and a factor is one of them: "{named.knob.name}@NAME"{studys_disk}'
    return ""


def _absent_everywhere(
    study: Study,
    factor: Factor,
    knob: Knob,
    kernels: Mapping[tuple[str, LevelValue], Iterable[KernelRef]],
) -> str:
    """Why no kernel of the study has the setting; empty where one may.

    Others than Debian may have brought a knob to an older version: they are asked before the first trial.
    """
    if factor.kind is not FactorKind.SETTING or study.references.knobs[factor.target].path:
        return ""
    levels = [level for level in factor.levels if level != AS_IT_IS]
    all_of_them = dict.fromkeys(
        kernel for level in levels for kernel in kernels.get((factor.name, level), ())
    )
    if not all_of_them or any(_may_have(knob, kernel) for kernel in all_of_them):
        return ""
    releases = ", ".join(dict.fromkeys(map(_release_shown, all_of_them)))
    error = lookup.of_other_versions(releases, factor.target, knob)
    return f"{error.message.rstrip('.')}; {error.advice}"


def _may_have(knob: Knob, kernel: KernelRef) -> bool:
    version = kernel.version if kernel.provider == _AS_RELEASED else None
    return version is None or bool(knob.places_in(version))


def value_problem(knob: Knob, value: str, kernels: Iterable[KernelRef]) -> str:
    """Why kernels among these refuse the value, and what they take; empty where none is known to."""
    kernels = tuple(kernels)
    problems = {kernel: _problem(knob, value, kernel.version) for kernel in kernels}
    refusing = [kernel for kernel in kernels if problems[kernel]]
    if not refusing:
        return ""
    taken: dict[str, list[str]] = {}
    for kernel in refusing:
        allowed = values.described(knob, kernel.version) or _KINDS[knob.kind]
        taken.setdefault(allowed, []).append(_release_shown(kernel))
    ranges = "; ".join(f"{allowed} ({_listed(releases)})" for allowed, releases in taken.items())
    some_accept = len(refusing) < len(kernels)
    whose = f" for {', '.join(kernel.label for kernel in refusing)}" if some_accept else ""
    return f"{problems[refusing[0]]}{whose}; allowed: {ranges}"


def _problem(knob: Knob, value: str, version: Version | None) -> str:
    """Nothing where the version does not have the knob: that is another mistake, and the kernel's to tell."""
    absent = version is not None and not knob.places_in(version)
    return "" if absent else values.problem_of(knob, value, version)


def _release_shown(kernel: KernelRef) -> str:
    return ".".join(map(str, kernel.version)) if kernel.version else ""


def _listed(releases: Sequence[str]) -> str:
    versions = list(dict.fromkeys(filter(None, releases)))
    return f"Linux {', '.join(versions)}" if versions else "whatever the version"


def _knob(study: Study, factor: Factor) -> Knob | None:
    if factor.kind is FactorKind.SETTING:
        return study.references.knobs[factor.target].knob
    if factor.kind is FactorKind.BOOT:
        return _boot_knob(factor.target)
    return None


def _boot_knob(parameter: str) -> Knob | None:
    """Only where the parameter's words are the catalogue's: those of a file are often not the parameter's."""
    knob = catalogue.get(parameter)
    return knob if knob and knob.name == parameter and knob.kind is KnobKind.CHOICE else None


def _is_left_alone(factor: Factor, knob: Knob, value: str) -> bool:
    """Nothing is changed; a parameter is not given, given without a value, or as the catalogue lists none."""
    if value == AS_IT_IS:
        return True
    if factor.kind is not FactorKind.BOOT:
        return False
    is_switch = any(set(allowed.choices) == {"on", "off"} for allowed in knob.allowed)
    return value in {"", factor.target} or _ATTACK_VECTORS in value or (is_switch and values.is_switch(value))


def _kernels(study: Study, factors: Sequence[Factor]) -> Mapping[tuple[str, LevelValue], Iterable[KernelRef]]:
    """Factor and level → the kernels that are booted with it."""
    if not any(factor.kind in BUILD_KINDS | {FactorKind.KERNEL} for factor in study.factors):
        baseline = Treatment(levels={factor.name: factor.baseline for factor in study.factors})
        only = (kernel_of(study, baseline),)
        return {(factor.name, level): only for factor in factors for level in factor.levels}
    kernels: dict[tuple[str, LevelValue], dict[KernelRef, None]] = {}
    for treatment in treatments(study):
        kernel = kernel_of(study, treatment)
        for factor in factors:
            kernels.setdefault((factor.name, treatment.levels[factor.name]), {})[kernel] = None
    return kernels


def _check_searched(study: Study, mistakes: Mistakes) -> None:
    """Values and ranges that are given; on the kernel that is booted, where it is not searched as well."""
    kernel = study.references.kernels.get(study.machine.kernel)
    for place, text in enumerate(study.search.knobs if study.search else ()):
        for knob, value in _searched(text):
            if kernel and (problem := value_problem(knob, value, (kernel,))):
                mistakes.add(("search", "knobs", place), f"found {shown(value)}: {problem}")


def _searched(text: str) -> Iterable[tuple[Knob, str]]:
    """What cannot be understood is said when the space is made."""
    try:
        named = searched_knobs([text])
    except (BadKnobSpace, KnobError):
        return
    for searched in named:
        if searched.knob and searched.name != KERNEL and not searched.name.startswith((BOOT, OPTION)):
            edges = (str(edge) for edge in (searched.low, searched.high) if edge is not None)
            yield from ((searched.knob, value) for value in (*searched.values, *edges))
