"""`ktrial calibrate`: what a machine in real time can tell apart, from trials in which nothing differs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption
from ktrial.cli.options.completion import kernel_names, machine_names, workload_names

if TYPE_CHECKING:
    from rich.console import Console

    from ktrial.model.calibration import Calibration, MetricCalibration

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
    from ktrial.analysis.aa_calibration import calibration_of, calibration_study, next_calibration
    from ktrial.cli.console import output, print_json
    from ktrial.cli.installed import registry
    from ktrial.cli.running.progress import progress
    from ktrial.experiment.session import run
    from ktrial.store import default_location, open_store
    from ktrial.studyfile import StudySource, study_from

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
