"""What names a study may use."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ktrial.model.kernel import Build
from ktrial.model.levels import LevelValue
from ktrial.model.references import KernelRef
from ktrial.model.workload import Parameter, WorkloadDescription, WorkloadUse


class Requests(Protocol):
    """Makes a Build of what a user writes; `ktrial.kernels.build.requested` is one."""

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
