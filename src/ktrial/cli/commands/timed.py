"""`ktrial timed` and `fidelity`: what real time tells apart here, and how counts agree with it."""

from pathlib import Path
from typing import TYPE_CHECKING

from ktrial.cli.command_line import Argument, Option, command_group, examples
from ktrial.cli.console import output, print_json, print_link, print_texts, write_page
from ktrial.cli.options.arguments import WorkloadArguments, named_by
from ktrial.cli.options.common import (
    AllowHostChanges,
    BootParameters,
    EstimandOption,
    Html,
    Jobs,
    Json,
    Margin,
    NoHtml,
    StoreOption,
    duration,
    memory_of,
    share,
)
from ktrial.cli.options.completion import kernel_names, machine_names, study_names, workload_names
from ktrial.cli.options.workloads import named_workloads
from ktrial.cli.studies import open_store, study_of_options
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.store.location import default_location

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.analysis.calibration import PowerPlan
    from ktrial.model.comparison import Calibration
    from ktrial.stats.sequential.power import Power


app = command_group("Measure this machine's noise, and plan studies in real time.")


@app.declare("calibrate")
@examples(
    "ktrial timed calibrate fork,pipe",
    "ktrial timed calibrate fork --machine kvm --kernel 6.12",
)
def calibrate(
    arguments: WorkloadArguments = None,
    workload: list[str] | None = Option(
        None, metavar="W1,W2…", help="Workloads.", autocompletion=workload_names
    ),
    machine: str = Option(
        "host", metavar="NAME", help="A machine in real time: host, kvm.", autocompletion=machine_names
    ),
    kernel: str | None = Option(
        None, metavar="NAME", help="The kernel, where one is booted.", autocompletion=kernel_names
    ),
    blocks: int = Option(20, min=10, max=10_000, metavar="N", help="Blocks of two trials."),
    margin: Margin = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Learn what this machine can tell apart in real time.

    Runs the same treatment under two names.

    Prints for each metric: its noise, the rate of false alarms, the smallest change that a study can show,
    and the number of blocks that a change of the margin's size needs.
    """
    from ktrial.analysis.calibration import calibration_of, calibration_study, next_calibration
    from ktrial.cli.progress import progress
    from ktrial.experiment.session import run

    workloads = named_by(arguments).with_options((), workload).only_workloads("--kernel names it")
    study = study_of_options(
        {
            "factors": {"arm": {"kind": "nothing", "levels": ["A", "B"]}},
            "workloads": named_workloads(workloads, ()).tables(),
            "machine": {"kind": machine, "kernel": kernel},
            "timed": {"stopping": "fixed", "blocks": blocks},
            "margin": margin,
        },
        "calibration",
        {
            "workloads": "--workload",
            "margin": "--margin",
            "timed.blocks": "--blocks",
            "machine.kind": "--machine",
            "machine.kernel": "--kernel",
            "timed": "--machine",
        },
    )
    study = calibration_study(study, blocks)
    with open_store(store) as opened:
        with progress() as observer:
            record = run(next_calibration(opened, study), store=opened, observer=observer)
        calibration = calibration_of(record)
    if json:
        print_json(calibration.model_dump(mode="json"))
    else:
        _print_calibration(calibration)


def _print_calibration(calibration: "Calibration") -> None:
    console = output()
    numbers = ("noise of a ratio, %", "false alarms, %", "smallest change, %", "blocks for the margin")
    rows = (
        (
            f"{metric.workload} {metric.metric}",
            f"{metric.ratio_spread * 100:.2f}",
            f"{metric.false_alarms * 100:.1f}",
            f"{metric.smallest_effect * 100:.2f}",
            str(metric.suggested_blocks or "too many"),
        )
        for metric in calibration.metrics
    )
    blocks = number_format.counted(calibration.metrics[0].blocks, "block")
    console.print(f"{calibration.machine}: {blocks}, the same treatment twice in each")
    print_texts(("workload", *numbers), rows, numeric=numbers)
    console.print(
        f"Smallest change: what 95 of 100 studies of at most 60 blocks find. "
        f"Blocks: what 95 of 100 studies need for {calibration.margin * 100:.3g} %."
    )


@app.declare("plan")
@examples(
    "ktrial timed plan --effect 1% --sd 1.2% --block-time 10min",
    "ktrial timed plan --effect 2% --from-calibration host",
)
def plan(
    effect: str = Option("1%", metavar="1%", help="The change to find."),
    sd: str | None = Option(None, metavar="1.2%", help="Standard deviation of a trial of one treatment."),
    from_calibration: str | None = Option(
        None,
        metavar="MACHINE|FILE",
        help="In place of --sd: a machine that was calibrated, a calibration, or A/A blocks as CSV.",
    ),
    margin: str = Option("1%", metavar="1%", help="The smallest change that matters."),
    estimand: EstimandOption = None,
    power: str = Option("95%", metavar="95%", help="The chance of finding it."),
    block_time: str | None = Option(
        None, metavar="10min", help="The duration of one block: every treatment once."
    ),
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say how many blocks, and hours, a timed study needs.

    It says this for finding a change of this size, and for showing that there is none.
    """
    from dataclasses import asdict

    from ktrial.analysis.calibration import plan_from, spread_of
    from ktrial.model.comparison import Estimand

    smallest = share("--margin", margin, least=1e-6, most=0.99)
    scatter = share("--sd", sd, least=1e-6, most=10.0) if sd is not None else None
    spread = spread_of(scatter, from_calibration, smallest, store or default_location())
    planned = plan_from(
        effect=share("--effect", effect, least=-0.99, most=100.0),
        spread=spread,
        margin=smallest,
        power=share("--power", power, least=0.5, most=0.999),
        block_seconds=duration("--block-time", block_time, bare=True) if block_time else None,
        estimand=Estimand(estimand or Estimand.TYPICAL),
    )
    if json:
        print_json(asdict(planned))
    else:
        _print_plan(planned, output())


def _print_plan(plan: "PowerPlan", console: "Console") -> None:
    """Two sentences, and a table of when studies stop."""
    from rich.text import Text

    from ktrial.cli.render.table import rendered
    from ktrial.format.table import of_texts

    shares = (plan.ratio_spread, plan.effect, plan.margin)
    spread, effect, margin = (f"{share * 100:.3g} %" for share in shares)
    console.print(Text(f"A block's ratio scatters by {spread} (standard deviation); margin {margin}."))
    aims = (
        (f"find a change of {effect}", plan.find_the_effect),
        ("show that there is no change", plan.show_equivalence),
    )
    for aim, power in aims:
        console.print(Text(_aim_sentence(aim, power, plan), style="bold"))
    if plan.find_the_effect and plan.find_if_independent:
        console.print(
            Text(
                "The interval allows for neighbouring blocks that are alike: if they were independent, "
                f"{plan.find_if_independent.average_blocks:.0f} on average would be enough instead of "
                f"{plan.find_the_effect.average_blocks:.0f}."
            )
        )
    console.print()
    # Looks across, aims down: the share of studies that have their verdict by then.
    reachable = [(aim, power) for aim, power in aims if power is not None]
    looks = sorted({look for _, power in reachable for look in power.stopped_by})

    def share(power: "Power", look: int) -> str:
        return f"{power.stopped_by[look] * 100:.0f} %" if look in power.stopped_by else ""

    rows = ((aim, *(share(power, look) for look in looks)) for aim, power in reachable)
    console.print(rendered(of_texts(("verdict by block", *map(str, looks)), rows)))


def _aim_sentence(aim: str, power: "Power | None", plan: "PowerPlan") -> str:
    from ktrial.stats.sequential.power import MOST_BLOCKS

    studies = f"{plan.power * 100:g} % of studies"
    if power is None:
        more = f"more than {MOST_BLOCKS} blocks are needed: make the trials steadier first"
        return f"To {aim} in {studies}, {more}."

    def time(blocks: float) -> str:
        seconds = plan.block_seconds
        return "" if seconds is None else f" ({number_format.duration(blocks * seconds)})"

    return (
        f"To {aim} in {studies}: up to {power.blocks} blocks{time(power.blocks)}, "
        f"on average {power.average_blocks:.0f}{time(power.average_blocks)}."
    )


@examples(
    "ktrial fidelity fidelity-host.toml --kernel debian:6.18",
    "ktrial fidelity fidelity-exact fidelity-host --json",
)
def fidelity(
    studies: list[str] = Argument(
        ...,
        metavar="STUDY...",
        help=(
            "Study files in real time, whose missing trials are run; or stored studies: one in real time, "
            "to compare with NAME-counted, or both: EXACT TIMED."
        ),
        autocompletion=study_names,
    ),
    kernel: str = Option(
        "debian:6.18",
        metavar="KERNEL",
        help="The kernel to count, for studies of host and ssh.",
        autocompletion=kernel_names,
    ),
    model: str = Option(
        "default", metavar="MODEL", help=("The machine model for cycles: none, default, FILE.")
    ),
    memory: str = Option("1G", metavar="1G", help="Its memory."),
    boot: BootParameters = None,
    module: list[str] | None = Option(None, metavar="NAME", help="A module for it; may be repeated."),
    perturbations: int = Option(1, min=1, max=1000, metavar="N", help="Perturbations that are counted."),
    fit: Path | None = Option(
        None, metavar="FILE", help="Write a machine model fitted to half of the treatments."
    ),
    seed: int = Option(1, metavar="N", help="The seed of the held-out half and of the bootstrap."),
    allow_host_changes: AllowHostChanges = False,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Compare counted changes with those in real time.

    Compares the same treatments and workloads on the machine exact and in real time: signs, correlations,
    errors, disagreements, and what the machine model can explain of them.
    """
    from ktrial.cli.running.fidelity import FidelityRequest, compared
    from ktrial.cli.running.reports import reports_beside
    from ktrial.model.study import MachineSettings
    from ktrial.report.fidelity import fidelity_page, lines
    from ktrial.studyfile.machine_model_files import machine_model

    machine = MachineSettings(
        kernel=kernel,
        memory_mib=memory_of(memory),
        boot=tuple(boot or ()),
        modules=tuple(module or ()),
        model=machine_model(model, Path.cwd()),
    )
    result = compared(
        FidelityRequest(studies, machine, perturbations, seed, store, jobs, allow_host_changes, fit)
    )
    name = " and ".join(Path(study).stem for study in studies)
    file = None
    if html or not no_html:
        directory = reports_beside(store or default_location())
        file = html or directory / f"fidelity-{name.replace(' ', '-')}.html"
        file = write_page(file, fidelity_page(result, name), "ktrial fidelity … --html FILE")
    if json:
        sentences = [band.sentence for band in result.all]
        print_json({**result.model_dump(mode="json"), "sentences": sentences})
        return
    console = output()
    for line in lines(result):
        console.print(one_line(line), style="bold" if line.endswith(":") and line[0] != " " else "")
    if file:
        print_link("page", file, console)
