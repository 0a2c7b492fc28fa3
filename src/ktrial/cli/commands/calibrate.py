"""`ktrial calibrate`: what a machine in real time can tell apart, from trials in which nothing differs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import AllowHostChanges, BootParameters, Html, Jobs, Json, NoHtml, StoreOption
from ktrial.cli.options.completion import kernel_names, machine_names, study_names, workload_names

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.model.comparison import Calibration, MetricCalibration
    from ktrial.model.fidelity import FidelityResult
    from ktrial.model.study import MachineSettings, Study


_OPTIONS = {
    "workloads": "--workload",
    "margin": "--margin",
    "timed.blocks": "--blocks",
    "machine.kind": "--machine",
    "machine.kernel": "--kernel",
    "timed": "--machine",
}


@examples(
    "ktrial calibrate --workload fork,pipe",
    "ktrial calibrate --workload fork --machine kvm --kernel debian:6.12",
)
def calibrate(
    workload: Annotated[
        list[str], typer.Option(metavar="W1,W2…", help="Workloads.", autocompletion=workload_names)
    ],
    machine: Annotated[
        str,
        typer.Option(metavar="NAME", help="A machine in real time: host, kvm.", autocompletion=machine_names),
    ] = "host",
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The kernel, where one is booted.", autocompletion=kernel_names),
    ] = None,
    blocks: Annotated[int, typer.Option(min=10, max=10_000, metavar="N", help="Blocks of two trials.")] = 20,
    margin: Annotated[
        str | None, typer.Option(metavar="1%", help="The smallest change that will matter; else 1%.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Learn what this machine can tell apart in real time.

    Runs the same treatment under two names.

    Prints each metric's noise, how often such studies find a difference where none is, the smallest change
    that they can show, and how many blocks a change of the margin's size needs.
    """
    from ktrial.analysis.calibration import calibration_of, calibration_study, next_calibration
    from ktrial.cli.console import output, print_json
    from ktrial.cli.progress import progress
    from ktrial.cli.studies import registry
    from ktrial.experiment.session import run
    from ktrial.store.location import default_location
    from ktrial.store.store import open_store
    from ktrial.studyfile.diagnostics import StudySource
    from ktrial.studyfile.reader import study_from

    data: dict[str, Any] = {
        "factors": {"arm": {"kind": "nothing", "levels": ["A", "B"]}},
        "workloads": [name.strip() for names in workload for name in names.split(",")],
        "machine": {"kind": machine, **({"kernel": kernel} if kernel else {})},
        "timed": {"stopping": "fixed", "blocks": blocks},
        **({"margin": margin} if margin else {}),
    }
    source = StudySource("command line", options=_OPTIONS)
    study = calibration_study(study_from(data, source, "calibration", Path.cwd(), registry()), blocks)
    with open_store(store or default_location()) as opened:
        with progress() as observer:
            study_record = run(next_calibration(opened, study), store=opened, observer=observer)
        calibration = calibration_of(study_record)
    if json:
        print_json(calibration.model_dump(mode="json"))
    else:
        _print(calibration, output())


def _print(calibration: "Calibration", console: "Console") -> None:
    from ktrial.cli.render.table import rendered
    from ktrial.format import number_format
    from ktrial.format.table import Field, number_field, table, text_field

    fields: tuple[Field[MetricCalibration], ...] = (
        text_field("workload", lambda one: f"{one.workload} {one.metric}"),
        number_field("noise of a ratio, %", lambda one: f"{one.ratio_spread * 100:.2f}"),
        number_field("false alarms, %", lambda one: f"{one.false_alarms * 100:.1f}"),
        number_field("smallest change, %", lambda one: f"{one.smallest_effect * 100:.2f}"),
        number_field("blocks for the margin", lambda one: str(one.suggested_blocks or "too many")),
    )
    blocks = number_format.counted(calibration.metrics[0].blocks, "block")
    console.print(f"{calibration.machine}: {blocks}, the same treatment twice in each")
    console.print(rendered(table(fields, calibration.metrics)))
    console.print(
        f"Smallest change: what 95 of 100 studies of at most 60 blocks find. "
        f"Blocks: what 95 of 100 studies need for {calibration.margin * 100:.3g} %."
    )


# `ktrial plan`: how many blocks, and hours, a timed study needs.


@examples(
    "ktrial plan --effect 1% --sd 1.2% --block-time 10min", "ktrial plan --effect 2% --from-calibration host"
)
def plan(
    effect: Annotated[str, typer.Option(metavar="1%", help="The change that has to be found.")] = "1%",
    sd: Annotated[
        str | None, typer.Option(metavar="1.2%", help="Standard deviation of a trial of one treatment.")
    ] = None,
    from_calibration: Annotated[
        str | None,
        typer.Option(
            metavar="MACHINE|FILE",
            help="In place of --sd: a machine that was calibrated, a calibration, or A/A blocks as CSV.",
        ),
    ] = None,
    margin: Annotated[str, typer.Option(metavar="1%", help="The smallest change that matters.")] = "1%",
    power: Annotated[str, typer.Option(metavar="95%", help="How surely it has to be found.")] = "95%",
    block_time: Annotated[
        str | None, typer.Option(metavar="10min", help="What one block takes: every treatment once.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Say how many blocks, and hours, a timed study needs.

    To find a change of a given size, and to show that there is none.
    """
    from dataclasses import asdict

    from ktrial.analysis.calibration import plan_from, spread_of
    from ktrial.cli.console import output, print_json
    from ktrial.cli.options.common import duration, share
    from ktrial.cli.render.power_plan import print_plan
    from ktrial.store.location import default_location

    smallest = share("--margin", margin, least=1e-6, most=0.99)
    scatter = share("--sd", sd, least=1e-6, most=10.0) if sd is not None else None
    spread = spread_of(scatter, from_calibration, smallest, store or default_location())
    planned = plan_from(
        effect=share("--effect", effect, least=-0.99, most=100.0),
        spread=spread,
        margin=smallest,
        power=share("--power", power, least=0.5, most=0.999),
        block_seconds=duration("--block-time", block_time, bare=True) if block_time else None,
    )
    if json:
        print_json(asdict(planned))
    else:
        print_plan(planned, output())


# `ktrial fidelity STUDY`: do changes that exact mode counts agree with those in real time?

Studies = Annotated[
    list[str],
    typer.Argument(
        metavar="STUDY...",
        help="Study files in real time, whose missing trials are run; or stored studies: of one in real time "
        "NAME-counted is the other side, or EXACT TIMED name both.",
        autocompletion=study_names,
    ),
]


Kernel = Annotated[
    str,
    typer.Option(
        metavar="KERNEL",
        help="What the counting side boots, for studies of host and ssh.",
        autocompletion=kernel_names,
    ),
]


Model = Annotated[
    str, typer.Option(metavar="MODEL", help="What cycles are modelled on: none, default, FILE.")
]


Modules = Annotated[
    list[str] | None, typer.Option("--module", metavar="NAME", help="A module for it; may be repeated.")
]


@examples(
    "ktrial fidelity fidelity-host.toml --kernel debian:6.18",
    "ktrial fidelity fidelity-exact fidelity-host --json",
)
def fidelity(
    studies: Studies,
    kernel: Kernel = "debian:6.18",
    model: Model = "default",
    memory: Annotated[str, typer.Option(metavar="1G", help="Its memory.")] = "1G",
    boot: BootParameters = None,
    module: Modules = None,
    perturbations: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Perturbations that are counted.")
    ] = 1,
    fit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a machine model fitted to half of the treatments."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Draws the half that is held out, and the bootstrap.")
    ] = 1,
    allow_host_changes: AllowHostChanges = False,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Compare counted changes with those in real time.

    The same treatments and workloads on the machine exact and in real time: signs, correlations, error,
    disagreements, and what of the machine model could explain them.
    """
    from ktrial.cli.console import output, print_json, print_link
    from ktrial.cli.running.fidelity import FidelityRequest, compared, written
    from ktrial.cli.studies import registry
    from ktrial.studyfile import toml_files
    from ktrial.studyfile.reader import load

    def loaded(path: Path) -> "Study":
        return load(toml_files.file_of(path), registry())

    machine = _machine(kernel, model, memory, tuple(boot or ()), tuple(module or ()))
    result = compared(
        FidelityRequest(studies, machine, perturbations, seed, store, jobs, allow_host_changes, fit, loaded)
    )
    name = " and ".join(Path(one).stem for one in studies)
    path = None if no_html and not html else written(result, name, html or _default_page(name, store))
    if json:
        sentences = [one.sentence for one in result.all]
        print_json({**result.model_dump(mode="json"), "sentences": sentences})
        return
    _fidelity_print(result)
    if path:
        print_link("page", path, output())


def _machine(
    kernel: str, model: str, memory: str, boot: tuple[str, ...], modules: tuple[str, ...]
) -> "MachineSettings":
    from ktrial.cli.command_line import BadOption
    from ktrial.model.notation import memory_mib
    from ktrial.model.study import MachineSettings
    from ktrial.studyfile.machine_model_files import machine_model

    try:
        mib = memory_mib(memory)
    except ValueError as error:
        raise BadOption(option="--memory", problem=str(error)) from None
    modelled = machine_model(model, Path.cwd())
    return MachineSettings(kernel=kernel, memory_mib=mib, boot=boot, modules=modules, model=modelled)


def _default_page(name: str, store: str | None) -> Path:
    from ktrial.cli.running.reports import reports_beside
    from ktrial.store.location import default_location

    return reports_beside(store or default_location()) / f"fidelity-{name.replace(' ', '-')}.html"


def _fidelity_print(result: "FidelityResult") -> None:
    from ktrial.cli.console import output
    from ktrial.format.sanitize import one_line
    from ktrial.report.fidelity import lines

    console = output()
    for line in lines(result):
        console.print(one_line(line), style="bold" if line.endswith(":") and line[0] != " " else "")
