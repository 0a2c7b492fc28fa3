"""Resolves what a study names, once: which kernels and which knobs are meant."""

import os
from collections.abc import Callable, Iterable

from ktrial import kernels, knobs
from ktrial.model.design import FactorKind
from ktrial.model.references import KernelRef
from ktrial.model.study import Study
from ktrial.studyfile.machine import RUNNING_KERNEL


def resolved(study: Study, kernel: Callable[[str], KernelRef] = kernels.lenient_reference) -> Study:
    """The study with a reference for each kernel and knob that it names; those that it has stay.

    `kernel`: which kernel a name means that the study does not describe itself.
    """
    known = study.references
    targets = (factor.target for factor in study.factors if factor.kind is FactorKind.SETTING)
    found = known.model_copy(
        update={
            "kernels": {name: known.kernels.get(name) or _kernel(name, kernel) for name in _kernels(study)},
            "knobs": {
                target: known.knobs.get(target) or knobs.lenient_reference(target) for target in targets
            },
        }
    )
    return study.model_copy(update={"references": found})


def _kernels(study: Study) -> Iterable[str]:
    levels = (one.levels for one in study.factors if one.kind is FactorKind.KERNEL)
    names = (study.machine.kernel, *(str(level) for each in levels for level in each))
    return dict.fromkeys(name for name in names if name not in study.builds)


def _kernel(name: str, kernel: Callable[[str], KernelRef]) -> KernelRef:
    if name in {"", RUNNING_KERNEL}:
        return KernelRef(asked=name, name=name, release=os.uname().release if name else "")
    return kernel(name)
