"""`ktrial compare`: compare kernels without a study file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import (
    Count,
    GuestMemory,
    Html,
    Jobs,
    Json,
    Margin,
    NoHtml,
    OwnMetrics,
    Perturbations,
    StoreOption,
)
from ktrial.cli.options.completion import kernel_names, workload_names
from ktrial.cli.options.fleet import on_fleet

_OPTIONS = {
    "factors": "--kernel",
    "workloads": "--workload",
    "margin": "--margin",
    "perturbations": "--perturbations",
    "machine.count": "--count",
    "machine.memory": "--memory",
    "machine.boot": "--boot",
    "machine.cpus": "--cpus",
}
"""Key of a study file → the option that stands for it, for messages."""


@examples(
    "ktrial compare --kernel debian:6.1 --kernel debian:6.12 --workload fork,pipe",
    "ktrial compare --kernel debian:6.1 --kernel debian:6.12 -- ./bench.sh",
)
@on_fleet
def compare(
    context: typer.Context,
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="A kernel, at least two; the first is the baseline.",
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
    perturbations: Perturbations = None,
    count: Count = None,
    margin: Margin = None,
    memory: GuestMemory = None,
    cpus: Annotated[int | None, typer.Option(metavar="N", help="The guest's CPUs; else 1.")] = None,
    boot: Annotated[
        list[str] | None, typer.Option(metavar="PARAMETER", help="A boot parameter; may be repeated.")
    ] = None,
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
) -> None:
    """Compare kernels without a study file.

    In workloads; or with a command of your own, which runs once here, to find what it needs, then on the
    kernels.
    """
    from ktrial.cli.installed import registry
    from ktrial.cli.options.own_command import asked, memory_for, own_words
    from ktrial.cli.running.preflight import check_first
    from ktrial.cli.running.study import RunOptions, run_and_print
    from ktrial.kernels.providers.git import pinned
    from ktrial.studyfile import StudySource, study_from

    words = own_words(context)
    if words:
        check_first(kernels=kernel, workloads=workload, words=words, jobs=jobs)
    wanted = asked(workload, words).printing(metrics)
    kernel = [pinned(name) for name in kernel]
    tables = wanted.tables()
    memory = memory_for(words, memory)
    machine = {"count": count, "memory": memory, "boot": boot, "cpus": cpus}
    data: dict[str, Any] = {
        "question": _question(kernel),
        "factors": {"kernel": {"levels": kernel}},
        "workloads": tables,
        "machine": _given(machine),
        **_given({"margin": margin, "perturbations": perturbations}),
    }
    source = StudySource("command line", options=_OPTIONS)
    study = study_from(data, source, "compare", Path.cwd(), registry())
    run_and_print(study, RunOptions(json=json, store=store, html=html, no_html=no_html, jobs=jobs))


def _question(kernels: list[str]) -> str:
    verb = "does" if len(kernels) == 2 else "do"
    return f"How {verb} {' and '.join(kernels[1:])} compare with {kernels[0]}?"


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
