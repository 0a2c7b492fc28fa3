"""Options that say on which machine instructions are counted by function."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ktrial.cli.command_line import BadOption

if TYPE_CHECKING:
    from ktrial.model.study import MachineSettings

_EXACT = "exact"
_PARALLEL = "exact-parallel"

CountedOn = Annotated[
    Literal["exact", "exact-parallel"] | None,
    typer.Option(
        "--machine",
        metavar="exact|exact-parallel",
        help="One CPU; or several in simulated time, with what waits and idles. Else exact.",
    ),
]
CountedCpus = Annotated[
    int | None,
    typer.Option("--cpus", min=1, metavar="N", help="CPUs, of the machine exact-parallel; else 1."),
]
CountedModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Model cycles, too: desktop, server, zen4, small, FILE; machine exact.",
    ),
]
RankedBy = Annotated[
    Literal[
        "cycles",
        "code-misses",
        "data-misses",
        "second-misses",
        "last-misses",
        "translation-misses",
        "walks",
        "mispredictions",
    ]
    | None,
    typer.Option(
        "--by", metavar="KIND", help="Of modelled cycles: rank by cycles, walks, mispredictions, …-misses."
    ),
]


def on_model(settings: "MachineSettings", model: str | None) -> "MachineSettings":
    """The settings with the machine that cycles are modelled on. Raises BadOption, StudyError."""
    from ktrial.studyfile.machine_models import machine_model

    if model is None:
        return settings
    if settings.kind != _EXACT:
        raise BadOption(option="--model", problem=f"cycles are modelled on the machine {_EXACT}, on one CPU")
    return settings.model_copy(update={"model": machine_model(model, Path.cwd())})


def on_machine(settings: "MachineSettings", machine: str | None, cpus: int | None) -> "MachineSettings":
    """The settings with the machine that was asked for. Raises BadOption."""
    machine = machine or (_EXACT if cpus is None else _PARALLEL)
    if cpus is not None and machine == _EXACT:
        problem = f"the machine {_EXACT} counts on one CPU; several are for --machine {_PARALLEL}"
        raise BadOption(option="--cpus", problem=problem)
    return settings.model_copy(update={"kind": machine, "cpus": cpus or 1})


def with_model(settings: "MachineSettings", model: str) -> "MachineSettings":
    """The settings with what cycles are modelled on. Raises BadOption, StudyError for a file's mistakes."""
    from pathlib import Path

    from ktrial.model.machine_model import NO_MODEL
    from ktrial.studyfile.machine_models import machine_model

    if model == NO_MODEL:
        return settings
    if settings.kind != _EXACT or settings.cpus > 1:
        problem = f"cycles are modelled on the machine {_EXACT}, with one CPU"
        raise BadOption(option="--model", problem=problem)
    return settings.model_copy(update={"model": machine_model(model, Path.cwd())})
