"""`--user NAME`: as whom a study's own commands run, where ktrial is root."""

from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadOption

if TYPE_CHECKING:
    from ktrial.model.study import Study

User = Annotated[
    str | None,
    typer.Option(
        "--user", metavar="NAME", help="Machine host, as root: your own commands run as this user (nobody)."
    ),
]


def with_user(study: "Study", user: str | None) -> "Study":
    """The study, each command that names no user of its own with this one. Raises BadOption."""
    if user is None:
        return study
    if study.machine.kind != "host":
        problem = f"it is for the machine host; a guest on the machine {study.machine.kind} has only its root"
        raise BadOption(option="--user", problem=problem)
    if not any(use.command for use in study.workloads):
        raise BadOption(option="--user", problem="no workload of the study is a command of yours")
    uses = tuple(
        use.model_copy(update={"command": use.command.model_copy(update={"user": use.command.user or user})})
        if use.command
        else use
        for use in study.workloads
    )
    return study.model_copy(update={"workloads": uses})
