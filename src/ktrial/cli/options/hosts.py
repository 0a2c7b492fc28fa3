"""`--host H1,H2`: on which machines, that ssh reaches, a study is run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadOption
from ktrial.cli.options.completion import own_hosts

if TYPE_CHECKING:
    from ktrial.model.study import Study

Hosts = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="H1,H2…",
        help="Machine ssh: this one in place of the study's; several: on all at once, and compared.",
        autocompletion=own_hosts,
    ),
]
_SSH = "ssh"


def on_hosts(study: "Study", given: Sequence[str]) -> "dict[str, Study]":
    """Each of the machines → the study there. Raises BadOption."""
    from ktrial.experiment.single_kernel import study_on
    from ktrial.model import host_name

    if study.machine.kind != _SSH:
        raise BadOption(
            option="--host",
            problem=f'the study\'s machine is {study.machine.kind}; it goes with kind = "ssh"',
        )
    hosts = [host for text in given for host in text.split(",")]
    for place, host in enumerate(hosts):
        if not host_name.is_host_name(host):
            raise BadOption(option="--host", problem=f"{host!r} is no name of a machine: {host_name.ALLOWED}")
        if _machine(host) in map(_machine, hosts[:place]):
            raise BadOption(option="--host", problem=f"{_machine(host)} is named twice")
    return {host: study_on(study, host) for host in hosts}


def _machine(host: str) -> str:
    """Without the user."""
    return host.rpartition("@")[2]
