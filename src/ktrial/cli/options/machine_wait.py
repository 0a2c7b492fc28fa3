"""The option `--wait` of commands that measure on real machines: one that somebody has is waited for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ktrial.cli.options.added_option import with_added
from ktrial.cli.options.duration_size_share import duration

_OPTION = typer.Option(
    "--wait",
    metavar="TIME",
    help="Machine ssh: so long for a machine that somebody else has: 30min, 2h; else that is an error.",
)


def waits_for_machine(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option."""
    return with_added(command, "wait", Annotated[str | None, _OPTION], _waiting)


@contextmanager
def _waiting(given: str | None) -> Iterator[None]:
    if given is None:
        yield
        return
    from ktrial.experiment.machine_lease import waiting

    with waiting(duration("--wait", given)):
        yield
