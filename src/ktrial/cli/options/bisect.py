"""The options of `ktrial bisect`."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.options.completion import machine_names, metric_names, study_files

Margin = Annotated[
    str | None, typer.Option(metavar="1%", help="The smallest change that matters (else 1 %).")
]
MetricNames = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Explain this metric; else each workload's first.",
        autocompletion=metric_names,
    ),
]
Limit = Annotated[int | None, typer.Option(min=3, metavar="N", help="Measure at most so many candidates.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and measure nothing.")]
MachineName = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="exact; in real time: kvm, or host for knobs.",
        autocompletion=machine_names,
    ),
]
Alpha = Annotated[
    float,
    typer.Option(min=0.0001, max=0.3, metavar="P", help="In real time: chance of a wrong answer, at most."),
]
FirstBlocks = Annotated[
    int, typer.Option("--blocks", min=6, max=480, metavar="N", help="In real time: blocks of A and B first.")
]
AllowHostChanges = Annotated[
    bool, typer.Option("--allow-host-changes", help="With --machine host: change this system's settings.")
]
StudyFile = Annotated[
    Path | None,
    typer.Option("--study", metavar="FILE", help="Measure as this study does.", autocompletion=study_files),
]
TopFunctions = Annotated[
    int, typer.Option("--top", min=0, metavar="N", help="Functions to show for each metric.")
]
