"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ktrial.cli.options.completion import format_names, study_names, workload_names

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="FILE|URL", help="The store; else KTRIAL_STORE, else the user's own."),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Where to write the report; else reports/ beside the store."),
]
NoHtml = Annotated[bool, typer.Option("--no-html", help="Write no report.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, metavar="N", help="Trials at once; else one a core."),
]
Perturbations = Annotated[
    int | None,
    typer.Option(
        min=1, max=1000, metavar="N", help="Perturbations of each treatment; else 3, or the study's."
    ),
]
Margin = Annotated[
    str | None, typer.Option("--margin", metavar="1%", help="The smallest change that matters; else 1%.")
]
GuestMemory = Annotated[
    str | None, typer.Option("--memory", metavar="512M", help="The guest's memory; else 512M.")
]
AllowHostChanges = Annotated[
    bool, typer.Option("--allow-host-changes", help="Machine host: settings are changed, and put back.")
]
Count = Annotated[
    Literal["plugin", "clock"] | None,
    typer.Option(
        metavar="plugin|clock",
        help="What counts instructions: the QEMU plugin where it loads, else the clock.",
    ),
]
StoredStudyName = Annotated[
    str | None,
    typer.Argument(
        metavar="[STUDY]", help="A study's name, number or file; else the latest.", autocompletion=study_names
    ),
]
WorkloadName = Annotated[
    str,
    typer.Option(
        "--workload", metavar="W", help="A workload: ktrial workload list.", autocompletion=workload_names
    ),
]
OwnWorkloadName = Annotated[
    str | None,
    typer.Option(
        "--workload",
        metavar="W",
        help="A workload (ktrial workload list), or the file of one; else -- COMMAND.",
        autocompletion=workload_names,
    ),
]
OwnMetrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="FORMAT",
        help="What the command prints: fio-json… (ktrial workload formats).",
        autocompletion=format_names,
    ),
]
Top = Annotated[int, typer.Option(min=1, metavar="N", help="How many functions to show.")]
Memory = Annotated[str, typer.Option(metavar="512M", help="The guest's memory.")]
BootParameters = Annotated[
    list[str] | None, typer.Option("--boot", metavar="PARAMETER", help="A boot parameter; may be repeated.")
]
