"""What `profile` and `explain` have in common: their options, and counting one kernel by function."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.options.common import workload_names
from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.machines.exact.plugin import CacheShapes
    from ktrial.model.kernel_profile import Profile

WorkloadName = Annotated[
    str,
    typer.Option(
        "--workload", metavar="W", help="A workload: ktrial workload list.", autocompletion=workload_names
    ),
]
Top = Annotated[int, typer.Option(min=1, metavar="N", help="How many functions to show.")]
Memory = Annotated[str, typer.Option(metavar="512M", help="The guest's memory.")]
BootParameters = Annotated[
    list[str] | None, typer.Option("--boot", metavar="PARAMETER", help="A boot parameter; may be repeated.")
]


class BadOption(KtrialError):
    """{option}: {problem}"""

    exit_code = 2


class FileNotWritten(KtrialError):
    """{path} cannot be written: {problem}"""


def count(
    kernels: list[str],
    workload: str,
    memory: str,
    boot: list[str] | None,
    caches: "CacheShapes | None" = None,
) -> "tuple[Profile, ...]":
    """A profile of each kernel. Raises BadOption, and what `ktrial.experiment.profile.profile` raises."""
    from ktrial.cli.installed import registry
    from ktrial.cli.progress import progress
    from ktrial.experiment.profile import profile
    from ktrial.model import quantities
    from ktrial.model.study import MachineSettings
    from ktrial.model.workload import WorkloadUse
    from ktrial.workloads import check

    name_of = registry().kernel_name
    use = check(WorkloadUse(name=workload))
    try:
        common = MachineSettings(memory_mib=quantities.memory_mib(memory), boot=tuple(boot or ()))
    except ValueError as error:
        raise BadOption(option="--memory", problem=error) from None
    settings = [common.model_copy(update={"kernel": name_of(name)}) for name in kernels]
    with progress() as observer:
        return tuple(profile(each, use, observer=observer, caches=caches) for each in settings)
