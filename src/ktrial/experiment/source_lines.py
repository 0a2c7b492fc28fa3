"""Count one function of a kernel by source line: a run in which each address of it is counted by itself.

The same run by function gives the same sum, since the guest does the same.
"""

from collections import Counter
from pathlib import Path

from ktrial.experiment.jobs import obtained
from ktrial.experiment.observer import Observer
from ktrial.experiment.profile import profile
from ktrial.experiment.resources import Resources, default_resources
from ktrial.kernels.debug_info import debug_file
from ktrial.kernels.source_lines import Stretch, address_in, at, stretches
from ktrial.machines.exact import ExactMachine
from ktrial.model.design import Treatment
from ktrial.model.profile import Profile
from ktrial.model.source_lines import FunctionLines, SourceLine
from ktrial.model.study import MachineSettings, Study
from ktrial.model.workload import WorkloadUse
from ktrial.studyfile.references import resolved


def function_lines(
    settings: MachineSettings,
    use: WorkloadUse,
    function: str,
    *,
    machine: ExactMachine | None = None,
    observer: Observer | None = None,
    resources: Resources | None = None,
) -> FunctionLines:
    """The function by source line, on one CPU. Debugging information is looked for before anything is booted.

    Raises what `profile` raises; NoDebugInfo; NoSuchFunction where the kernel's image has none of that name.
    """
    observer, resources = observer or Observer(), resources or default_resources()
    study = resolved(Study(name="profile", machine=settings, factors=(), workloads=(use,)))
    progress = observer.progress_of(settings.kernel)
    information = debug_file(obtained(study, Treatment(levels={}), resources, progress), progress)
    counted = profile(
        settings, use, machine=machine, observer=observer, resources=resources, by_address_of=function
    )
    return lines_of(counted, function, information)


def lines_of(counted: Profile, function: str, information: Path) -> FunctionLines:
    """The lines of a function whose addresses were counted. Raises NoDebugInfo."""
    by_address = {
        place[1]: count.instructions
        for count in counted.region.functions
        if (place := address_in(count.symbol)) and count.instructions
    }
    by_line: Counter[tuple[str, int, tuple[str, ...]]] = Counter()
    known: tuple[Stretch, ...] = ()
    for address, instructions in sorted(by_address.items()):
        stretch = at(known, address)
        if not stretch.file:  # of another piece of the function, or of another function of that name
            known = stretches(information, address)
            stretch = at(known, address)
        by_line[stretch.file, stretch.line, stretch.inlined] += instructions
    ranked = sorted(by_line.items(), key=lambda row: (-row[1], row[0]))
    return FunctionLines(
        kernel=counted.label,
        workload=counted.workload,
        function=function,
        operations=counted.operations,
        instructions=sum(by_address.values()),
        lines=tuple(
            SourceLine(file=file, line=line, inlined=inlined, instructions=count)
            for (file, line, inlined), count in ranked
        ),
    )
