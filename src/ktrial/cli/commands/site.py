"""`ktrial site`: a static site of everything in the store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import BadOption, examples
from ktrial.cli.options.common import Json, StoreOption

if TYPE_CHECKING:
    from ktrial.report.site.site import Site


@examples("ktrial site public", "ktrial site public --full all")
def site(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory, or an earlier site's.")],
    full: Annotated[
        str | None,
        typer.Option(metavar="N|all", help="How many more results get whole pages now; else 50."),
    ] = None,
    whys: Annotated[
        bool, typer.Option("--whys/--no-whys", help="Say what changes are made of; kept for the next time.")
    ] = True,
    json: Json = False,
    store: StoreOption = None,
) -> None:
    """Write a static site of all results.

    An index, a matrix, a history for each workload, a page for each result: the newest whole, and where there
    are more than --full the others in brief, with their verdicts. Each run makes more of them whole.

    All links are relative: it opens from disk, and any web server can show it.
    """
    from ktrial.cli.console import print_json, say
    from ktrial.cli.options.stored_study import open_existing
    from ktrial.report.site.site import build
    from ktrial.report.site.whole_pages import MOST_AT_ONCE

    most = MOST_AT_ONCE if full is None else _most(full)
    with open_existing(store) as opened:
        built = build(opened, directory.expanduser().absolute(), reasons=whys, full=most, tell=say)
    if json:
        facts = {"pages": built.pages, "made": built.made, "results": built.results}
        print_json({"index": str(built.front), **facts, "in_brief": built.in_brief, "lists": built.lists})
    else:
        print(f"site: {built.front} ({built.pages} pages)")
        if built.in_brief:
            print(_in_brief(built))
        if built.lists:
            print(_lists(built))


def _most(text: str) -> int | None:
    """`50` → 50; `all` → None. Raises BadOption."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise BadOption(option="--full", problem=f"{text} is neither a number of results nor all")
    return int(text)


def _in_brief(built: "Site") -> str:
    are = "is" if built.in_brief == 1 else "are"
    return (
        f"{built.in_brief} of {built.results} results {are} in brief, with their verdicts alone: "
        "the same command makes the newest of these whole, --full all makes all of them; "
        "ktrial serve shows each one whole"
    )


def _lists(built: "Site") -> str:
    from ktrial.report.site.result_lists import A_PAGE

    return (
        f"the front page has the newest {A_PAGE} of {built.results} results; {built.lists} pages in lists/ "
        "have them all, lists/names.html their names"
    )
