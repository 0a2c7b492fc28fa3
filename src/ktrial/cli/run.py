"""`ktrial run`: run a study's trials, and print the verdicts."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.options import Html, Jobs, Json, NoHtml, Perturbations, StoreOption, study_files


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
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run trials again that failed before.")
    ] = False,
) -> None:
    """Run a study, and print the verdicts.

    Trials that the store has already are not run again: interrupted (Ctrl-C) or killed, the same command
    goes on where it stopped.
    """
    from ktrial.cli.known import known
    from ktrial.cli.running import Ways, run_and_print
    from ktrial.runner.study_file import load

    loaded = load(study, known())
    if perturbations is not None:
        loaded = loaded.model_copy(update={"perturbations": perturbations})
    run_and_print(
        loaded,
        Ways(json=json, store=store, html=html, no_html=no_html, jobs=jobs, retry_failed=retry_failed),
    )
