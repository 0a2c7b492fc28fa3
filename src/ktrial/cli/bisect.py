"""`ktrial bisect`: which of the differences between A and B explains the one that was measured?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.bisecting import DryRun, Limit, Margin, MetricNames, StudyFile, TopFunctions, Wanted, study_at
from ktrial.cli.counting import BootParameters
from ktrial.cli.measuring import Cpus, Given, MemorySize, Workloads
from ktrial.cli.options import Jobs, Json, Perturbations, StoreOption, kernel_names

if TYPE_CHECKING:
    from ktrial.search.bisect.knobs import KnobRange

app = typer.Typer(
    help="Find which difference between A and B matters.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("knobs")
def knobs(
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="The kernel.", autocompletion=kernel_names)
    ] = None,
    knob: Annotated[
        list[str] | None,
        typer.Option("--knob", metavar="NAME=a..b", help="A knob and its values in A and B; repeated."),
    ] = None,
    before: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="A: NAME = VALUE lines, like sysctl.conf.")
    ] = None,
    after: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="B, with the same knobs.")
    ] = None,
    study: StudyFile = None,
    workload: Workloads = None,
    metric: MetricNames = None,
    margin: Margin = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: MemorySize = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find which of several knobs matters, or which matter together.

    A sets each knob to its first value, B to its second. With --study, the knobs may be the study's factors
    of two levels, and its machine, disk and workloads are used.
    """
    from ktrial.search.bisect.investigation import Investigation
    from ktrial.search.bisect.knobs import KnobGround
    from ktrial.search.bisect.plan import plan_of

    told = study_at(study)
    wanted = Wanted(
        Given.of(workload, memory, cpus, boot, perturbations),
        told,
        margin,
        tuple(metric or ()),
        limit,
        json,
        dry_run,
        store,
        jobs,
        top,
    )
    ranges = _ranges(knob or [], before, after, wanted)
    name = _kernel(kernel, wanted)
    terms = wanted.terms("knobs", "A", "B")
    with wanted.runs() as runs:
        wanted.show_plan(plan_of(terms, [one.name for one in ranges], len(ranges), runs.store))
        ground = KnobGround(runs.kernel(name), ranges)
        result = Investigation(ground, terms, runs).run()
    wanted.show(result)


def _ranges(
    knobs: list[str], before: Path | None, after: Path | None, wanted: Wanted
) -> "tuple[KnobRange, ...]":
    from ktrial.cli.counting import BadOption
    from ktrial.errors import NothingDiffers
    from ktrial.search.bisect.knobs import knob_ranges, knobs_of_files, knobs_of_study

    if bool(before) != bool(after):
        raise BadOption(option="--from and --to", problem="give both, or none")
    if before and after:
        found = knobs_of_files(before, after)
    else:
        found = knob_ranges(knobs) if knobs else knobs_of_study(wanted.study) if wanted.study else ()
    if not found and not (knobs or before or wanted.study):
        raise BadOption(
            option="--knob", problem="which knobs? --knob vm.dirty_ratio=20..40, or --from and --to"
        )
    if not found:
        raise NothingDiffers(before="A", after="B", what="knob", advice="give two values that differ")
    return found


def _kernel(kernel: str | None, wanted: Wanted) -> str:
    from ktrial.cli.counting import BadOption
    from ktrial.cli.known import known

    name = kernel or (wanted.study.machine.kernel if wanted.study else "")
    if not name:
        raise BadOption(option="--kernel", problem="which kernel? ktrial kernel list")
    return known().kernel_name(name)
