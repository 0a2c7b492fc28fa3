"""Checks that what a study says of its kernels' builds fits together: tables, factors, treatments."""

from collections.abc import Iterable, Mapping

from ktrial.model.design import BUILD_KINDS, Factor, FactorKind, Treatment
from ktrial.model.kernel import Build, Change, Patch
from ktrial.model.plan import treatments
from ktrial.model.study import Study
from ktrial.studyfile.diagnostics import Mistakes, shown
from ktrial.studyfile.key_path import KeyPath


def check_builds(study: Study, mistakes: Mistakes) -> None:
    """Note what contradicts itself. The study has no other mistake."""
    changing = [factor for factor in study.factors if factor.kind in BUILD_KINDS]
    _check_named(study, mistakes)
    _check_different(study.builds, mistakes)
    _check_once(study.builds, changing, mistakes)
    if changing:
        _check_built(study, changing, mistakes)


def _check_named(study: Study, mistakes: Mistakes) -> None:
    """A kernel that no treatment has would never be built."""
    levels = {
        str(level) for factor in study.factors if factor.kind is FactorKind.KERNEL for level in factor.levels
    }
    for name in study.builds.keys() - levels - {study.machine.kernel}:
        mistakes.add(
            ("kernels", name),
            f'nothing names this kernel: [machine] kernel = "{name}", or make it a level of [factors.kernel]',
        )


def _check_different(builds: Mapping[str, Build], mistakes: Mistakes) -> None:
    names: dict[str, str] = {}
    for name, build in builds.items():
        other = names.setdefault(build.key, name)
        if other != name:
            mistakes.add(("kernels", name), f"{shown(name)} and {shown(other)} are the same kernel")


def _check_once(builds: Mapping[str, Build], factors: Iterable[Factor], mistakes: Mistakes) -> None:
    """What one factor decides, no other may, nor a kernel's table."""
    decided: dict[str, str] = {}
    for name, build in builds.items():
        for what in _decides(build):
            decided.setdefault(what, f"the kernel {name}")
    for factor in factors:
        path: KeyPath = ("factors", factor.name)
        me = f"the factor {factor.name}"
        for what in dict.fromkeys(what for change in factor.changes.values() for what in _decides(change)):
            other = decided.setdefault(what, me)
            if other != me:
                mistakes.add(path, f"{other} decides about {what} already: it can be one only")


def _decides(one: Build | Change) -> list[str]:
    """What it settles, in words: options, variables of make, patches."""
    return [
        *(f"the option {name}" for name in one.options),
        *(f"{name} of make" for name in one.make),
        *(f"the patch {_file(patch)} (content {patch.digest[:12]})" for patch in one.patches),
    ]


def _file(patch: Patch) -> str:
    return patch.path.rpartition("/")[2]


def _check_built(study: Study, changing: list[Factor], mistakes: Mistakes) -> None:
    """A kernel that is fetched cannot be changed."""
    kernel = next((factor for factor in study.factors if factor.kind is FactorKind.KERNEL), None)
    for treatment in treatments(study):
        name = str(treatment.levels[kernel.name]) if kernel else study.machine.kernel
        changed = _changed_by(treatment, changing)
        if name in study.builds or not changed:
            continue
        path: KeyPath = ("machine", "kernel")
        if kernel:
            path = ("factors", kernel.name, "levels", kernel.levels.index(name))
        mistakes.add(
            path,
            f"the factor {changed.name} changes how a kernel is built, and {shown(name)} is not built here: "
            'name a table, [kernels.mine] with source = "debian:linux-source-6.1"',
        )


def _changed_by(treatment: Treatment, factors: Iterable[Factor]) -> Factor | None:
    """The first factor whose level in this treatment changes a build."""
    return next((one for one in factors if str(treatment.levels[one.name]) in one.changes), None)
