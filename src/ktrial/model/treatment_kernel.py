"""Which kernel a treatment of a study boots: its name, or how it is built."""

from collections.abc import Iterable

from ktrial.model.design import FactorKind, Treatment
from ktrial.model.kernel_build import Build
from ktrial.model.references import KernelRef, built_kernel
from ktrial.model.study import Study


def kernel_name(study: Study, treatment: Treatment) -> str:
    """The name of the treatment's kernel: as the study has it, or `Build.name` where it is built."""
    build = build_of(study, treatment)
    return build.name if build else named_kernel(study, treatment)


def kernel_of(study: Study, treatment: Treatment) -> KernelRef:
    """Which kernel the treatment boots, of a study whose references are resolved."""
    name, build = named_kernel(study, treatment), build_of(study, treatment)
    return built_kernel(name, build) if build else study.references.kernels[name]


def build_of(study: Study, treatment: Treatment) -> Build | None:
    """How the treatment's kernel is built, with what the factors change; None where it is not built."""
    build = study.builds.get(named_kernel(study, treatment))
    if build is None:
        return None
    for factor in study.factors:
        if change := factor.changes.get(str(treatment.levels[factor.name])):
            build = build.changed(change)
    return build


def builds_of(study: Study, treatments: Iterable[Treatment]) -> dict[str, Build]:
    """Every kernel to build that the treatments need, by its name, in their order."""
    found = (build_of(study, treatment) for treatment in treatments)
    return {build.name: build for build in found if build}


def named_kernel(study: Study, treatment: Treatment) -> str:
    """What the treatment, or the study, calls its kernel."""
    for factor in study.factors:
        if factor.kind is FactorKind.KERNEL:
            return str(treatment.levels[factor.name])
    return study.machine.kernel


def kernel_names(study: Study, treatments: Iterable[Treatment]) -> tuple[str, ...]:
    """Every kernel that the treatments need, once, in their order."""
    return tuple(dict.fromkeys(kernel_name(study, treatment) for treatment in treatments))
