"""`ktrial scale`: throughput over the number of CPUs, of one kernel or several."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import GuestMemory, Html, Jobs, Json, Margin, NoHtml, OwnMetrics, StoreOption
from ktrial.cli.options.completion import kernel_names, workload_names
from ktrial.cli.options.fleet import on_fleet

_OPTIONS = {
    "factors.kernel": "--kernel",
    "factors.cpus": "--cpus",
    "factors": "--kernel",
    "workloads": "--workload",
    "perturbations": "--seeds",
    "margin": "--margin",
    "machine.kernel": "--kernel",
    "machine.memory": "--memory",
    "machine.boot": "--boot",
    "machine.quantum": "--quantum",
}
"""Key of a study file → the option that stands for it, for messages."""
_CPUS = "1,2,4"


@examples(
    "ktrial scale --kernel debian:6.12 --workload open2,append2",
    "ktrial scale --kernel A --kernel B --workload page-fault1 --cpus 1,2,4,8",
)
@on_fleet
def scale(
    context: typer.Context,
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A kernel; may be repeated: the first is the baseline.",
            autocompletion=kernel_names,
        ),
    ],
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="W1,W2…",
            help="Workloads, or files of such; your own command stands at the end.",
            autocompletion=workload_names,
        ),
    ] = None,
    metrics: OwnMetrics = None,
    cpus: Annotated[
        str, typer.Option(metavar="N1,N2…", help="Numbers of CPUs; from three on a law is fitted.")
    ] = _CPUS,
    seeds: Annotated[
        int, typer.Option(min=1, max=1000, metavar="N", help="Trials at each number of CPUs.")
    ] = 3,
    quantum: Annotated[
        int | None, typer.Option(metavar="NS", help="Nanoseconds of guest time in a round (100).")
    ] = None,
    waits: Annotated[
        bool,
        typer.Option("--waits", help="Also count where the CPUs wait, under the first seed."),
    ] = False,
    margin: Margin = None,
    memory: GuestMemory = None,
    boot: Annotated[
        list[str] | None, typer.Option(metavar="PARAMETER", help="A boot parameter; may be repeated.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Show how throughput grows with CPUs.

    Each kernel runs the workloads on machines of so many CPUs, in simulated time; a table and a chart show
    speed-up, efficiency, and the Universal Scalability Law that comes nearest.
    """
    from ktrial.cli.installed import registry
    from ktrial.cli.options.own_command import asked, memory_for, own_words
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.running.study import RunOptions, run_and_print
    from ktrial.kernels.providers.git import pinned
    from ktrial.model.parallel import WAITS
    from ktrial.studyfile import StudySource, study_from

    words = own_words(context)
    if words:
        check_first(kind="exact-parallel", kernels=kernel, workloads=workload, words=words, jobs=jobs)
    wanted = asked(workload, words).printing(metrics)
    kernels = list(dict.fromkeys(pinned(name) for name in kernel))
    several = len(kernels) > 1
    machine: dict[str, Any] = {"kind": "exact-parallel", "kernel": None if several else kernels[0]}
    machine |= {"memory": memory_for(words, memory), "boot": boot, "quantum": quantum}
    machine |= {"monitors": [WAITS] if waits else None}
    factors = {"kernel": {"levels": kernels}} if several else {}
    data: dict[str, Any] = {
        "question": f"How does throughput grow with CPUs on {' and '.join(kernels)}?",
        "factors": factors | {"cpus": {"levels": _counts(cpus)}},
        "workloads": wanted.tables(),
        "machine": _given(machine),
        "perturbations": seeds,
        **_given({"margin": margin}),
    }
    source = StudySource("command line", options=_OPTIONS)
    study = study_from(data, source, "scale", Path.cwd(), registry())
    options = RunOptions(json=json, store=store, html=html, no_html=no_html, jobs=jobs)
    run_and_print(study, options)


def _counts(text: str) -> list[int | str]:
    """Numbers of CPUs; what is none stays as it is, for the study's own message."""
    words = [word.strip() for word in text.split(",")]
    return [int(word) if word.isdecimal() else word for word in words if word]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
