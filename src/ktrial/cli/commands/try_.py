"""`ktrial try`: a first result, without a study, and without a word to learn."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Html, Jobs, Json, NoHtml, Perturbations, StoreOption
from ktrial.cli.options.completion import kernel_names, workload_names
from ktrial.cli.options.fleet import on_fleet

_WORKLOAD, _PERTURBATIONS = "pipe", 2
_OPTIONS = {"factors": "--kernel", "workloads": "--workload", "perturbations": "--perturbations"}
"""Key of a study file → the option that stands for it, for messages."""

Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="A kernel; twice: old, new. Else the oldest and the newest in the cache, or Debian's two.",
        autocompletion=kernel_names,
    ),
]
Workload = Annotated[
    str, typer.Option("--workload", metavar="W1,W2…", help="Workloads.", autocompletion=workload_names)
]


@examples("ktrial try", "ktrial try --workload fork --kernel debian:6.1 --kernel debian:6.12")
@on_fleet
def try_(
    workload: Workload = _WORKLOAD,
    kernel: Kernels = None,
    perturbations: Perturbations = _PERTURBATIONS,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Compare two kernels in one workload, at once.

    Nothing has to be written or chosen: each trial's number is told as it ends, then the verdict, the report,
    and what to do next.
    """
    from ktrial.cli.command_line import BadOption
    from ktrial.cli.installed import registry
    from ktrial.cli.running.first_result import run_and_advise
    from ktrial.cli.running.study import RunOptions
    from ktrial.experiment.kernel_choice import two_kernels
    from ktrial.kernels.providers.git import pinned
    from ktrial.studyfile import StudySource, study_from

    if len(kernel or ()) > 2:
        raise BadOption(option="--kernel", problem="ktrial try compares two; ktrial compare takes more")
    kernels = [pinned(name) for name in two_kernels(kernel or ())]
    data: dict[str, Any] = {
        "question": f"How does {kernels[1]} compare with {kernels[0]}?",
        "factors": {"kernel": {"levels": kernels}},
        "workloads": [name.strip() for name in workload.split(",")],
        "perturbations": perturbations,
    }
    study = study_from(data, StudySource("command line", options=_OPTIONS), "try", Path.cwd(), registry())
    run_and_advise(
        study, RunOptions(json=json, store=store, html=html, no_html=no_html, jobs=jobs, each_trial=True)
    )
