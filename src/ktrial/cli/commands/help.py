"""`ktrial help`: the documentation, in the terminal."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.completion import topic_names

if TYPE_CHECKING:
    from ktrial.cli.documentation import Page

_PAGER_OPTIONS = "FRX"
"""Of less, where LESS does not say others: colours, and no pager for what fits the screen."""


@examples("ktrial help", "ktrial help studies")
def help_(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]", help="A page; without one, all are listed.", autocompletion=topic_names
        ),
    ] = None,
) -> None:
    """Read the documentation: ktrial help studies.

    A command's options are told by ktrial COMMAND --help.
    """
    from ktrial.cli import documentation
    from ktrial.cli.app import COMMANDS

    if topic is None:
        _list(list(documentation.pages().values()))
        return
    if topic in COMMANDS and topic not in documentation.pages():
        topic = "commands"
    _show(documentation.page(topic))


def _list(pages: "list[Page]") -> None:
    from ktrial.cli.console import output
    from ktrial.cli.render.table import rendered
    from ktrial.format.table import Field, table, text_field

    fields: tuple[Field[Page], ...] = (
        text_field("topic", lambda page: page.topic, wraps=False),
        text_field("what it tells", lambda page: page.title),
    )
    output().print(rendered(table(fields, pages)))
    output().print("\nktrial help TOPIC shows one; ktrial COMMAND --help tells a command's options.")


def _show(page: "Page") -> None:
    """On a terminal through a pager, as `man` does."""
    import os

    from rich.markdown import Markdown

    from ktrial.cli.console import output

    console = output()
    drawn = Markdown(page.text, hyperlinks=console.is_terminal)
    if not sys.stdout.isatty():
        console.print(drawn)
        return
    os.environ.setdefault("LESS", _PAGER_OPTIONS)
    with console.pager(styles=True):
        console.print(drawn)
