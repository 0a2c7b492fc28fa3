"""Count a function of a kernel by source line: a run in which each address of it is counted by itself.

The same run by function gives the same sum, since the guest does the same. Of a difference, the function is
counted so on both sides.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

from ktrial import machines
from ktrial.analysis.attribution.line_matching import line_difference, row_named
from ktrial.analysis.attribution.question import AttributionQuestion
from ktrial.analysis.errors import ExplanationError
from ktrial.experiment import preflight
from ktrial.experiment.explain import Guests, job_of, kernel_of_treatment
from ktrial.experiment.jobs import obtained
from ktrial.experiment.observer import Observer
from ktrial.experiment.profile import profile, profile_job
from ktrial.experiment.resources import Resources, default_resources
from ktrial.kernels.debug_info import debug_file
from ktrial.kernels.source_lines import Stretch, address_in, at, stretches
from ktrial.machines.exact import ExactMachine
from ktrial.model.attribution import Attribution
from ktrial.model.design import Treatment
from ktrial.model.profile import Profile
from ktrial.model.source_lines import FunctionLines, LineDifference, SourceLine
from ktrial.model.study import MachineSettings, Study, kernel_name
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
        settings, use, machine=machine, observer=observer, resources=resources, by_address_of=(function,)
    )
    return lines_of(counted, function, information)


def lines_of(counted: Profile, function: str, information: Path) -> FunctionLines:
    """The lines of a function whose addresses were counted. Raises NoDebugInfo."""
    by_address = {
        place[1]: count.instructions
        for count in counted.region.functions
        if (place := address_in(count.symbol)) and place[0] == function and count.instructions
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


# Of a difference: the function, or those that are one row of the ranking, on both sides.


def debug_files(query: AttributionQuestion, guests: Guests) -> tuple[Path, Path]:
    """The debugging information of both treatments' kernels: looked for before anything is booted.

    Raises ExplanationError where lines are not counted on the study's machine; NoDebugInfo, KernelError.
    """
    if query.study.machine.kind != ExactMachine.name:
        raise ExplanationError(
            f"{query.study.name} ran on the machine {query.study.machine.kind}, which counts no lines.",
            hint=f"functions are opened into lines on the machine {ExactMachine.name}",
        )
    observer = guests.observer or Observer()
    files = []
    for treatment in (query.before, query.after):
        name = kernel_name(query.study, treatment)
        progress = observer.progress_of(name)
        files.append(debug_file(kernel_of_treatment(query, name, progress, guests), progress))
    first, second = files
    return first, second


def difference_by_line(
    query: AttributionQuestion,
    attribution: Attribution,
    function: str,
    information: tuple[Path, Path],
    guests: Guests,
) -> LineDifference:
    """One row of an explanation, opened: each side runs once more. `information`: see `debug_files`.

    Raises AnalysisUsageError for a function that cannot be opened, before anything is booted; and as
    `profile_job`.
    """
    row = row_named(attribution.explanation, function)
    query = replace(query, study=resolved(query.study))
    machine = cast(ExactMachine, guests.machine or machines.find(ExactMachine.name))
    observer, resources = guests.observer or Observer(), guests.resources or default_resources()
    preflight.check(preflight.undertaking(query.study, machine, resources, 1), observer.notice)
    machine.check()
    sides: list[list[FunctionLines]] = []
    for treatment, count, file in zip(
        (query.before, query.after), (row.before, row.after), information, strict=True
    ):
        if not count.names:
            sides.append([])
            continue
        progress = observer.progress_of(kernel_name(query.study, treatment))
        job = job_of(query, treatment, obtained(query.study, treatment, resources, progress), resources)
        observer.preparing(job.boot, f"counting {row.function} by line")
        counted = profile_job(machine, job, by_address_of=count.names)
        sides.append([lines_of(counted, name, file) for name in count.names])
    return line_difference(attribution, row, (sides[0], sides[1]), same_code=information[0] == information[1])
