"""`ktrial help`: the documentation, in the terminal."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ktrial.cli.command_line import examples
from ktrial.cli.options.completion import topic_names
from ktrial.errors import KtrialError
from ktrial.installation import package_directory

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
    from ktrial.cli.app import COMMANDS

    if topic is None:
        _list(list(pages().values()))
        return
    if topic in COMMANDS and topic not in pages():
        topic = "commands"
    _show(page(topic))


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


# The documentation that comes with ktrial: `docs/`, in the package of a wheel, above it in a checkout.

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)


class NoSuchTopic(KtrialError):
    """There is no topic `topic``similar`."""

    text = "There is no topic {topic}{similar}."
    hint = "ktrial help lists all topics; ktrial COMMAND --help tells a command's options"
    exit_code = 2


class NoDocumentation(KtrialError):
    """The documentation is not in `directory`: this installation is incomplete."""

    text = "The documentation is not in {directory}: this installation is incomplete."
    hint = "install ktrial again: pip install --force-reinstall ktrial"


@dataclass(frozen=True)
class Page:
    """One topic."""

    topic: str
    file: Path

    @property
    def text(self) -> str:
        """Its Markdown, as a terminal is shown it: links to other pages are commands that show them."""
        text = _COMMENT.sub("", self.file.read_text(encoding="utf-8"))
        return _LINK.sub(self._link, text)

    @property
    def title(self) -> str:
        """Its first heading."""
        return next(line.lstrip("# ").strip() for line in self.file.open(encoding="utf-8") if line[:1] == "#")

    def _link(self, link: re.Match[str]) -> str:
        words, target = link.groups()
        place, _, _ = target.partition("#")
        if "://" in target or not place:
            return link[0] if place else words
        topic = _topic_of(self.file.parent / place)
        known = {page.file: page.topic for page in pages().values()}
        if topic not in known.values() or topic in words:
            return words
        return f"{words} (`ktrial help {topic}`)"


def directory() -> Path:
    """Where the documentation is."""
    package = package_directory()
    in_wheel = package / "docs"
    return in_wheel if in_wheel.is_dir() else package.parents[1] / "docs"


def pages() -> dict[str, Page]:
    """Topic → page, by topic. Raises NoDocumentation."""
    files = sorted([*directory().glob("*.md"), *directory().glob("architecture/*.md")])
    if not files:
        raise NoDocumentation(directory=directory())
    return {topic: Page(topic, file) for file in files for topic in (_topic_of(file),)}


def page(topic: str) -> Page:
    """The page of a topic. Raises NoSuchTopic, NoDocumentation."""
    from ktrial.model.notation import nearest

    known = pages()
    wanted = topic.removesuffix(".md").rpartition("/")[2]
    if wanted not in known:
        raise NoSuchTopic(topic=topic, similar=nearest(wanted, known))
    return known[wanted]


def _topic_of(file: Path) -> str:
    return file.resolve().parent.name if file.stem == "README" else file.stem
