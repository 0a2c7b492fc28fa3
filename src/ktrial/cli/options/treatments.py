"""The treatments and workloads of the study that a command line names, for the shell."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ktrial.errors import KtrialError

if TYPE_CHECKING:
    from ktrial.model.study import Study


def treatment_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the treatments of the study that is named, or of the latest."""
    from ktrial.model.plan import treatments

    study = _study(ctx)
    labels = [one.label for one in treatments(study)] if study else []
    return [label for label in labels if label.startswith(incomplete)]


def workloads_of_study(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the workloads of the study that is named; those of the catalogue where kernels are."""
    from ktrial.cli.options.common import workload_names

    if ctx.params.get("kernel"):
        return [name for name, _ in workload_names(incomplete)]
    study = _study(ctx)
    labels = [use.label for use in study.workloads] if study else []
    return [label for label in labels if label.startswith(incomplete)]


def _study(ctx: typer.Context) -> "Study | None":
    """The study; None where there is none: a message would stand in the middle of a command line."""
    from ktrial.cli.options.stored_study import find
    from ktrial.store import default_location, open_store

    location = str(ctx.params.get("store") or default_location())
    with contextlib.suppress(KtrialError):
        # Opening a store that is not there would make it.
        if Path(location).is_file():
            with open_store(location) as store:
                return find(store, ctx.params.get("study")).study
    return None
