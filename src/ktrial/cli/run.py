"""`ktrial run`: run a study's trials, and print the verdicts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.options import Count, Html, Jobs, Json, NoHtml, Perturbations, StoreOption, study_files
from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.model.study import Study


class NothingToCount(KtrialError):
    """--count {count}: the machine {machine} measures time, and counts no instructions."""

    exit_code = 2


def run(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY",
            help="A study file (TOML).",
            autocompletion=study_files,
            readable=False,  # `load` says better what is wrong
        ),
    ],
    json: Json = False,
    store: StoreOption = None,
    html: Html = None,
    no_html: NoHtml = False,
    jobs: Jobs = None,
    perturbations: Perturbations = None,
    count: Count = None,
    patch: Annotated[
        list[str] | None,
        typer.Option(
            "--patch",
            metavar="[FACTOR=]FILE",
            help='The patch that a study leaves to you (its level "?").',
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run trials again that failed before.")
    ] = False,
    allow_host_changes: Annotated[
        bool,
        typer.Option(
            "--allow-host-changes",
            help="Machine host: this system's settings may be changed; they are put back.",
        ),
    ] = False,
    confirm: Annotated[
        int | None,
        typer.Option(
            "--confirm",
            min=3,
            max=10_000,
            metavar="N",
            help="In real time: then run N fresh blocks, for the size of the effects.",
        ),
    ] = None,
) -> None:
    """Run a study, and print the verdicts.

    Trials that the store has already are not run again: interrupted (Ctrl-C) or killed, the same command
    goes on where it stopped.
    """
    from ktrial.cli.known import known
    from ktrial.cli.running import Ways, run_and_print
    from ktrial.runner.confirmation import confirmation_of
    from ktrial.runner.study_file import load

    loaded = load(study, known(), patch or ())
    if perturbations is not None:
        loaded = loaded.model_copy(update={"perturbations": perturbations})
    if count is not None:
        loaded = _counted_by(loaded, count)
    confirmation = confirmation_of(loaded, confirm) if confirm else None
    run_and_print(
        loaded,
        confirmation=confirmation,
        ways=Ways(
            json=json,
            store=store,
            html=html,
            no_html=no_html,
            jobs=jobs,
            retry_failed=retry_failed,
            allow_host_changes=allow_host_changes,
        ),
    )


def _counted_by(study: "Study", count: str) -> "Study":
    from ktrial.model.workload import CountedBy

    if study.machine.kind != "exact":
        raise NothingToCount(count=count, machine=study.machine.kind)
    machine = study.machine.model_copy(update={"count": CountedBy(count)})
    return study.model_copy(update={"machine": machine})
