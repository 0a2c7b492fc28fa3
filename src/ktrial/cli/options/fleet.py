"""The option `--fleet` of commands that measure: their trials are performed by many machines."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Annotated

import typer

from ktrial.cli.options.added_option import with_added

_OPTION = typer.Option(
    "--fleet",
    metavar="local:N|ADDRESS|FILE",
    help="Who performs the trials: ktrial help fleet. Else KTRIAL_FLEET; none: this system.",
)


def on_fleet(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option; its trials are performed by the fleet that is named there."""
    return _with_option(command, nullcontext)


def on_fleet_in_bisection(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command whose exit code is a verdict: a fleet that cannot be had is none."""

    def endings() -> AbstractContextManager[object]:
        from ktrial.cli.git_bisect import Endings

        return Endings()

    return _with_option(command, endings)


def _with_option(
    command: Callable[..., None], around: Callable[[], AbstractContextManager[object]]
) -> Callable[..., None]:
    @contextmanager
    def performed(fleet: str | None) -> Iterator[None]:
        with around(), _performed_by(fleet):
            yield

    return with_added(command, "fleet", Annotated[str | None, _OPTION], performed)


@contextmanager
def _performed_by(named: str | None) -> Iterator[None]:
    from ktrial.fleet.settings import asked_for

    settings = asked_for(named)
    if settings is None:
        yield
        return
    from ktrial.cli.console import say
    from ktrial.experiment.executor import performed_by
    from ktrial.fleet.fleet import Fleet

    with Fleet(settings, say) as fleet, performed_by(fleet):
        yield
