"""What `ktrial serve` listens with: an optional part of ktrial, which needs packages of its own."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from ktrial.cli import bug_report
from ktrial.cli.error_handling import tell
from ktrial.cli.running.reports import explain
from ktrial.serve.errors import ServeError
from ktrial.store.errors import StoreForbidden
from ktrial.store.location import default_location
from ktrial.store.store import Store, open_store

if TYPE_CHECKING:
    from ktrial.serve.server import Server

_PACKAGES = ("starlette", "uvicorn")


@contextmanager
def serving(
    store: str | None,
    address: str,
    port: int,
    names: Collection[str],
    ended: Callable[[], None],
    *,
    reasons: bool,
) -> "Iterator[Server]":
    """A server of the store that listens, to be started. It has stopped, and the store is closed, at the end.

    Raises ServeExtraMissing, BadAddress, AddressNotHad, StoreError.
    """
    _check_packages()
    from ktrial.serve.content import Content
    from ktrial.serve.live import Live
    from ktrial.serve.server import Served, Server, application, is_loopback

    if not is_loopback(address):
        tell(
            f"whoever reaches {address} can read all that is in the store: there is no login",
            "a reverse proxy can ask for one: ktrial help serve",
            kind="warning",
        )
    opener = _opener(store)
    served = Served(Content(opener, explain if reasons else None), Live(opener), names, _tell_bug)
    server = Server(application(served), address, port, ended)
    try:
        yield server
    finally:
        served.stopping.set()
        server.stop()
        served.content.close()
        served.live.close()


def _check_packages() -> None:
    for package in _PACKAGES:
        try:
            import_module(package)
        except ImportError as error:
            raise ServeError(
                f"ktrial serve needs {package}, which is not installed.",
                hint="install what belongs to it: pip install 'ktrial[serve]'",
            ) from error


def _opener(location: str | None) -> Callable[[], Store]:
    """What opens the store for reading, once it is there and up to date."""
    chosen = location or default_location()
    with suppress(StoreForbidden):  # one that may only be read stays as it is
        open_store(chosen, existing=location is not None).close()

    def opened() -> Store:
        return open_store(chosen, read_only=True, followed=True)

    opened().close()
    return opened


def _tell_bug(error: Exception) -> None:
    what, place = bug_report.save(error)
    tell(f"this is a bug in ktrial: {what}", f"please report it, with the traceback in {place}")
