"""`ktrial serve`: the store's studies in a browser."""

from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import StoreOption


@examples("ktrial serve", "ktrial serve --store lab.db --port 8001", "ktrial serve --no-whys")
def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Where to listen; 0: at any port that is free.")
    ] = 8000,
    address: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Another address than this machine's own: whoever reaches it reads all."
        ),
    ] = "127.0.0.1",
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="HOST", help="A name that requests may be for, behind a proxy; may be repeated."
        ),
    ] = None,
    whys: Annotated[
        bool, typer.Option("--whys/--no-whys", help="Say what changes are made of; kept for the next time.")
    ] = True,
    store: StoreOption = None,
) -> None:
    """Show the store in a browser; studies that run are live.

    The pages of ktrial site and the reports, made when asked for. Nothing is changed, and nobody logs in.
    Ctrl-C ends it.
    """
    from contextlib import suppress
    from threading import Event

    from ktrial import interruption
    from ktrial.cli.console import say
    from ktrial.cli.running.serving import serving

    stop = Event()
    with (
        serving(store, address, port, names or (), stop.set, reasons=whys) as server,
        suppress(KeyboardInterrupt),
        interruption.listening(stop.set),
    ):
        server.start()
        print(f"serving at {server.url} (Ctrl-C ends it)", flush=True)
        stop.wait()
    say("ktrial: stopped")
