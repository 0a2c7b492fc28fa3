"""`ktrial bisect`: which of the differences between A and B explains the one that was measured?"""

from typing import Annotated

import typer

from ktrial.cli.command_line import KtrialCommand, command_group, examples
from ktrial.cli.commands.bisect_builds import config, patches
from ktrial.cli.commands.bisect_knobs import knobs
from ktrial.cli.options.bisect import DryRun, Limit, Margin, MetricNames, StudyFile, TopFunctions
from ktrial.cli.options.common import BootParameters, GuestMemory, Jobs, Json, Perturbations, StoreOption
from ktrial.cli.options.fleet import on_fleet
from ktrial.cli.options.kernel_measurement import Cpus, MeasurementOptions, Workloads

app = command_group("Find which difference between A and B matters.")

app.command("config", cls=KtrialCommand)(config)
app.command("patches", cls=KtrialCommand)(patches)


@app.command("versions", cls=KtrialCommand)
@examples("ktrial bisect versions 6.1..7.2:cloud --workload fork --dry-run")
@on_fleet
def versions(
    releases: Annotated[str, typer.Argument(metavar="A..B[:FLAVOUR]", help="Two releases: 5.10..6.12")],
    study: StudyFile = None,
    workload: Workloads = None,
    metric: MetricNames = None,
    margin: Margin = None,
    limit: Limit = None,
    dry_run: DryRun = False,
    json: Json = False,
    perturbations: Perturbations = None,
    memory: GuestMemory = None,
    cpus: Cpus = None,
    boot: BootParameters = None,
    top: TopFunctions = 5,
    store: StoreOption = None,
    jobs: Jobs = None,
) -> None:
    """Find between which two Debian releases a number changes.

    All releases between A and B that the mirrors hold are candidates; those that are needed are fetched.
    """
    from ktrial.bisect.search import plan_of
    from ktrial.bisect.versions import ReleaseGround, VersionInvestigation
    from ktrial.cli.running.bisection import BisectOptions, progress_of, study_at
    from ktrial.cli.running.preflight import fetching_tools
    from ktrial.kernels.providers.debian_releases import releases_between

    bisection = BisectOptions(
        MeasurementOptions.of(workload, memory, cpus, boot, perturbations),
        study_at(study),
        margin,
        tuple(metric or ()),
        limit,
        json,
        dry_run,
        store,
        jobs,
        top,
    )
    bisection.check_system(tools=fetching_tools())
    with bisection.runs() as runs:
        releases_found = releases_between(releases, progress_of(runs, "releases"))
        names = [one.name for one in releases_found]
        terms = bisection.terms("versions", names[0], names[-1])
        bisection.show_plan(plan_of(terms, names, len(names), runs.store, in_order=True))
        result = VersionInvestigation(ReleaseGround(names, runs.kernel), terms, runs, bisection.show).run()
    bisection.show(result)


app.command("knobs", cls=KtrialCommand)(knobs)
