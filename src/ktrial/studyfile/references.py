"""Resolves what a study names, once: which kernels and which knobs are meant.

Whether a kernel can be had is found out when the study runs.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ktrial.kernels import kernel_registry
from ktrial.kernels.errors import BadKernelName
from ktrial.kernels.providers import full_name
from ktrial.knobs import catalogue
from ktrial.model.design import FactorKind, LevelValue
from ktrial.model.kernel import Build
from ktrial.model.notation import nearest
from ktrial.model.references import STUDYS_DISK, KernelRef, KnobRef
from ktrial.model.study import Study
from ktrial.model.workload import Parameter, WorkloadDescription, WorkloadUse
from ktrial.studyfile.diagnostics import shown


class KernelReader:
    """Says which kernel a name means: one that the study describes, or one that a provider has."""

    def __init__(
        self,
        reference: Callable[[str], KernelRef],
        described: Collection[str],
        directory: Path,
        *,
        running: bool = False,
    ) -> None:
        """`reference`: see Registry. Relative paths are below `directory`. `running` is a kernel, too."""
        self._running = running
        self._provided = reference
        self._described = described
        self._directory = directory
        self._read: dict[str, KernelRef] = {}

    def problem(self, name: str) -> str:
        """What is wrong with the kernel's name; empty where nothing is."""
        try:
            reference = self.reference(name)
        except BadKernelName as error:
            return f"found {shown(name)}: {error.facts['problem']}; allowed: {error.facts['allowed']}"
        problem = kernel_registry.problem_of_file(reference)
        return f"found {shown(name)}: {problem}" if problem else ""

    def reference(self, name: str) -> KernelRef:
        """Which kernel that is. Each name is looked up once. Raises BadKernelName."""
        final = self.final(name)
        if final not in self._read:
            self._read[final] = self._look_up(final)
        return self._read[final]

    def final(self, name: str) -> str:
        """As a study keeps the name: a kernel of its own as it is, others in full."""
        return name if name in self._described else final_kernel(name, self._directory)

    def _look_up(self, name: str) -> KernelRef:
        if name in self._described or (self._running and name == RUNNING_KERNEL):
            return KernelRef(asked=name, name=name)
        try:
            return self._provided(name)
        except BadKernelName as error:
            tables = ", ".join(self._described)
            of_study = ": ".join(["; or a table [kernels.NAME] of this study", *filter(None, [tables])])
            facts = error.facts | {"allowed": f"{error.facts['allowed']}{of_study}"}
            if self._described and ":" not in name:
                problem = f"this study has no table [kernels.{name}]{nearest(name, self._described)}"
                facts |= {"problem": problem}
            raise BadKernelName(**facts) from None


def final_kernel(name: str, directory: Path) -> str:
    """The name in full (`debian:6.12` for `6.12`), with a path below the directory made absolute."""
    name = full_name(name)
    provider, _, path = name.partition(":")
    if provider != "path" or not path:
        return name
    return f"path:{os.path.normpath(directory / Path(path).expanduser())}"


RUNNING_KERNEL = "running"
"""What studies on it have for a kernel."""


def resolved(study: Study, kernel: Callable[[str], KernelRef] = kernel_registry.lenient_reference) -> Study:
    """The study with a reference for each kernel and knob that it names; those that it has stay.

    `kernel`: which kernel a name means that the study does not describe itself.
    """
    references_so_far = study.references

    def own_or(name: str) -> KernelRef:
        # What another machine runs is not known before it is asked.
        return (
            KernelRef(asked=name, name=name)
            if study.machine.boots and name == RUNNING_KERNEL
            else _kernel(name, kernel)
        )

    targets = (factor.target for factor in study.factors if factor.kind is FactorKind.SETTING)
    references = references_so_far.model_copy(
        update={
            "kernels": {
                name: references_so_far.kernels.get(name) or own_or(name) for name in _kernels(study)
            },
            "knobs": {
                target: references_so_far.knobs.get(target) or _knob(target, study) for target in targets
            },
        }
    )
    return study.model_copy(update={"references": references})


def _knob(target: str, study: Study) -> KnobRef:
    """The knob, and where it names the study's own disk, that one's."""
    named, disk = catalogue.lenient_reference(target), study.machine.disk
    return named.model_copy(update={"instance": disk.device}) if disk and of_studys_disk(named) else named


def of_studys_disk(named: KnobRef) -> bool:
    """Whether a knob is said to be that of the study's own disk: `queue/scheduler@disk`."""
    is_a_disks = named.knob is not None and named.knob.instance == STUDYS_DISK and not named.path
    return is_a_disks and named.instance == STUDYS_DISK


def _kernels(study: Study) -> Iterable[str]:
    levels = (factor.levels for factor in study.factors if factor.kind is FactorKind.KERNEL)
    names = (study.machine.kernel, *(str(level) for levels_of_factor in levels for level in levels_of_factor))
    return dict.fromkeys(name for name in names if name not in study.builds)


def _kernel(name: str, kernel: Callable[[str], KernelRef]) -> KernelRef:
    if name in {"", RUNNING_KERNEL}:
        return KernelRef(asked=name, name=name, release=os.uname().release if name else "")
    return kernel(name)


# What names a study may use.


class Requests(Protocol):
    """Makes a Build of what a user writes; `ktrial.kernels.build.requests.requested` is one."""

    def __call__(
        self,
        source: str,
        *,
        config: str = "guest",
        options: Mapping[str, str] | Sequence[str] = (),
        patches: Sequence[str] = (),
        make: Mapping[str, str] | None = None,
        fuzz: int = 0,
        directory: Path,
    ) -> Build:
        """Relative paths are below `directory`. Raises BuildError; compiles nothing."""
        ...


@dataclass(frozen=True)
class Registry:
    """The names that a study may use."""

    workloads: Mapping[str, WorkloadDescription]
    machines: Collection[str]
    kernel: Callable[[str], KernelRef]
    """Which kernel a name means. Raises BadKernelName; looks at nothing but the name."""
    check: Callable[[WorkloadUse], object]
    """The workload's own last word on a use. Raises WorkloadError."""
    build: Requests
    """What a study's table of a kernel asks for. Raises BuildError."""
    monitors: Collection[str] = ()
    """Those that watch programs from outside."""

    def kernel_name(self, name: str) -> str:
        """A kernel's name, written in one way. Raises BadKernelName."""
        return self.kernel(name).name


def parameter_problem(parameter: Parameter, value: LevelValue) -> str:
    """Why the parameter cannot have this value, as what is allowed; empty where it can."""
    if parameter.choices:
        return "" if value in parameter.choices else f"one of {', '.join(parameter.choices)}"
    if isinstance(parameter.default, str):
        return "" if isinstance(value, str) else 'text: "…"'
    number = "a whole number" if isinstance(parameter.default, int) else "a number"
    wrong_kind = isinstance(value, str) or (isinstance(parameter.default, int) and isinstance(value, float))
    return f"{number}{_bounds(parameter)}" if wrong_kind or not _inside(parameter, float(value)) else ""


def _inside(parameter: Parameter, value: float) -> bool:
    low = parameter.minimum is None or value >= parameter.minimum
    return low and (parameter.maximum is None or value <= parameter.maximum)


def _bounds(parameter: Parameter) -> str:
    low = "" if parameter.minimum is None else f" from {parameter.minimum:g}"
    high = "" if parameter.maximum is None else f" up to {parameter.maximum:g}"
    return low + high
