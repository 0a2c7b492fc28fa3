"""Checks that the kernels of a study can take the values that it gives their knobs, as far as that is known.

What the catalogue does not know is left to the kernel, which is asked when the trial runs.
"""

from collections.abc import Iterable, Mapping, Sequence

from ktrial.knobs import catalogue, errno_diagnosis, reference, values
from ktrial.knobs.errors import BadKnobName, KnobError, UnknownKnob
from ktrial.model.design import BUILD_KINDS, Factor, FactorKind, Treatment, level_text
from ktrial.model.knob import Knob, KnobKind, Version
from ktrial.model.levels import AS_IT_IS, LevelValue
from ktrial.model.plan import treatments
from ktrial.model.references import ALL, STUDYS_DISK, KernelRef
from ktrial.model.study import Study, kernel_of
from ktrial.studyfile.diagnostics import KeyPath, Mistakes, shown
from ktrial.studyfile.errors import BadKnobSpace
from ktrial.studyfile.knob_patterns import BOOT, KERNEL, OPTION, searched_knobs
from ktrial.studyfile.references import of_studys_disk

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
        return f"{shown(target)} cannot name a setting: {error.facts['problem']}; {error.advice}"
    if named.knob is None or named.path:
        return ""
    if named.knob.needs_reboot:
        return f'{shown(target)} is a parameter that kernels are booted with: kind = "boot"'
    if named.knob.instance and named.instance in {"", ALL}:
        whose = f"there is one {named.knob.name} for each {named.knob.instance}"
        own = f', or the study\'s own: "{named.knob.name}@{STUDYS_DISK}"'
        own = own if named.knob.instance == STUDYS_DISK else ""
        return f'{whose}, and a factor is one of them: "{named.knob.name}@NAME"{own}'
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
    all_of_them = dict.fromkeys(one for level in levels for one in kernels.get((factor.name, level), ()))
    if not all_of_them or any(_may_have(knob, one) for one in all_of_them):
        return ""
    releases = ", ".join(dict.fromkeys(map(_release_shown, all_of_them)))
    error = errno_diagnosis.of_other_versions(releases, factor.target, knob)
    return f"{error.message.rstrip('.')}; {error.advice}"


def _may_have(knob: Knob, kernel: KernelRef) -> bool:
    known = kernel.version if kernel.provider == _AS_RELEASED else None
    return known is None or bool(knob.places_in(known))


def value_problem(knob: Knob, value: str, kernels: Iterable[KernelRef]) -> str:
    """Why kernels among these refuse the value, and what they take; empty where none is known to."""
    kernels = tuple(kernels)
    problems = {one: _problem(knob, value, one.version) for one in kernels}
    refusing = [one for one in kernels if problems[one]]
    if not refusing:
        return ""
    taken: dict[str, list[str]] = {}
    for one in refusing:
        allowed = values.described(knob, one.version) or _KINDS[knob.kind]
        taken.setdefault(allowed, []).append(_release_shown(one))
    ranges = "; ".join(f"{allowed} ({_listed(releases)})" for allowed, releases in taken.items())
    others = len(refusing) < len(kernels)
    whose = f" for {', '.join(one.label for one in refusing)}" if others else ""
    return f"{problems[refusing[0]]}{whose}; allowed: {ranges}"


def _problem(knob: Knob, value: str, version: Version | None) -> str:
    """Nothing where the version does not have the knob: that is another mistake, and the kernel's to tell."""
    absent = version is not None and not knob.places_in(version)
    return "" if absent else values.problem_of(knob, value, version)


def _release_shown(kernel: KernelRef) -> str:
    return ".".join(map(str, kernel.version)) if kernel.version else ""


def _listed(releases: Sequence[str]) -> str:
    known = list(dict.fromkeys(filter(None, releases)))
    return f"Linux {', '.join(known)}" if known else "whatever the version"


def _knob(study: Study, factor: Factor) -> Knob | None:
    if factor.kind is FactorKind.SETTING:
        return study.references.knobs[factor.target].knob
    if factor.kind is FactorKind.BOOT:
        return _boot_knob(factor.target)
    return None


def _boot_knob(parameter: str) -> Knob | None:
    """Only where the parameter's words are the catalogue's: those of a file are often not the parameter's."""
    knob = catalogue.known(parameter)
    return knob if knob and knob.name == parameter and knob.kind is KnobKind.CHOICE else None


def _is_left_alone(factor: Factor, knob: Knob, value: str) -> bool:
    """Nothing is changed; a parameter is not given, given without a value, or as the catalogue lists none."""
    if value == AS_IT_IS:
        return True
    if factor.kind is not FactorKind.BOOT:
        return False
    is_switch = any(set(one.choices) == {"on", "off"} for one in knob.allowed)
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
    for one in named:
        if one.knob and one.name != KERNEL and not one.name.startswith((BOOT, OPTION)):
            edges = (str(edge) for edge in (one.low, one.high) if edge is not None)
            yield from ((one.knob, value) for value in (*one.values, *edges))
