"""The preflight of commands that trace, build or fetch before they have a study: else it is the study's."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from ktrial.cli.console import say
from ktrial.cli.options.workloads import workload_names_of
from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.model.kernel import Build
    from ktrial.model.references import KernelRef
    from ktrial.model.study import MachineSettings
    from ktrial.model.workload import WorkloadUse
    from ktrial.system_tools import Tool


def check_first(
    *,
    kind: str = "exact",
    settings: "MachineSettings | None" = None,
    kernels: Iterable[str] = (),
    builds: "Iterable[Build]" = (),
    workloads: Iterable[str] | None = (),
    words: tuple[str, ...] = (),
    tools: "Iterable[Tool]" = (),
    similar_builds: bool = False,
    confined: bool = False,
    jobs: int | None = None,
) -> None:
    """Raise SystemNotReady where this system lacks what the command is going to need.

    `kind`: the machine; empty: nothing is run. `words`: a command of the user's, which is traced.
    `similar_builds`: kernels are built that are like the builds. What is wrong with a name is told where the
    name is used.
    """
    from ktrial import machines
    from ktrial.experiment.preflight import Undertaking, check
    from ktrial.model.study import MachineSettings
    from ktrial.workloads.strace import STRACE

    undertaking = Undertaking(
        machine=machines.find(kind) if kind else None,
        settings=settings or MachineSettings(kind=kind),
        kernels=tuple(_references(kernels)),
        builds=tuple(builds),
        anew=similar_builds,
        uses=tuple(_uses(workloads or ())),
        jobs=jobs,
        tools=(*tools, *((STRACE,) if words else ())),
        confined=confined,
    )
    check(undertaking, say)


def fetching_tools() -> "tuple[Tool, ...]":
    """What looks for a distribution's kernels, and brings them."""
    from ktrial.kernels.depmod import DEPMOD
    from ktrial.kernels.packages.apt import APT
    from ktrial.kernels.packages.deb import DPKG_DEB

    return (APT, DPKG_DEB, DEPMOD)


def _references(names: Iterable[str]) -> "Iterable[KernelRef]":
    from ktrial.kernels import kernel_registry

    for name in names:
        with suppress(KtrialError):
            yield kernel_registry.lenient_reference(name)


def _uses(names: Iterable[str]) -> "Iterable[WorkloadUse]":
    from ktrial import workloads
    from ktrial.model.workload import WorkloadUse

    descriptions, texts = workloads.descriptions(), list(names)
    for name in workload_names_of(texts) if texts else ():
        workload = name.partition("(")[0]
        if workload in descriptions:
            yield WorkloadUse(name=workload)
