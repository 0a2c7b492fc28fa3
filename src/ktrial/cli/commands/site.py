"""`ktrial site`: a static site of everything in the store."""

from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.common import Json, StoreOption


@examples("ktrial site public")
def site(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory, or an earlier site's.")],
    whys: Annotated[
        bool, typer.Option("--whys/--no-whys", help="Say what changes are made of; kept for the next time.")
    ] = True,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Write a static site of all results.

    An index, a matrix, a history for each workload, a page for each result.

    All links are relative: it opens from disk, and any web server can show it.
    """
    from ktrial.cli.console import print_json, say
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.report.site.site import build

    with open_existing(store) as opened:
        built = build(opened, directory.expanduser().absolute(), reasons=whys, tell=say)
    if json:
        print_json({"index": str(built.front), "pages": built.pages, "made": built.made})
    else:
        print(f"site: {built.front} ({built.pages} pages)")
