"""`ktrial help`: the documentation in the terminal: `docs/`, in a wheel's package, above it in a checkout."""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ktrial.cli.command_line import Argument, BadUsage, examples
from ktrial.cli.console import output, print_texts
from ktrial.errors import KtrialError
from ktrial.installation import package_directory
from ktrial.model.notation import nearest

_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)


def topic_names(incomplete: str) -> list[str]:
    """Complete the pages of the documentation."""
    with suppress(KtrialError):
        return [topic for topic in pages() if topic.startswith(incomplete)]
    return []


@examples("ktrial help", "ktrial help studies")
def help_(
    topic: str | None = Argument(
        None, metavar="[TOPIC]", help="A page; without one, all are listed.", autocompletion=topic_names
    ),
) -> None:
    """Read the documentation: ktrial help studies.

    ktrial help vm.swappiness shows a knob. ktrial COMMAND --help shows a command's options.
    """
    from ktrial.cli.app import COMMANDS
    from ktrial.cli.commands.knob import show
    from ktrial.knobs import catalogue

    if topic is None:
        rows = ((page.topic, page.title) for page in pages().values())
        print_texts(("topic", "what it tells"), rows, unbroken=("topic",))
        output().print("\nktrial help TOPIC shows one; ktrial COMMAND --help shows a command's options.")
        return
    if topic in COMMANDS and topic not in pages():
        topic = "commands"
    if topic not in pages() and catalogue.get(topic.partition("@")[0]):
        show(topic)
        return
    _show(page(topic))


def _show(page: "Page") -> None:
    """On a terminal through a pager, as `man` does."""
    import os

    from rich.markdown import Markdown

    console = output()
    drawn = Markdown(page.text, hyperlinks=console.is_terminal)
    if not console.is_terminal:
        console.print(drawn)
        return
    # Of less, where LESS does not say others: colours, and no pager for what fits the screen.
    os.environ.setdefault("LESS", "FRX")
    with console.pager(styles=True):
        console.print(drawn)


@dataclass(frozen=True)
class Page:
    """One topic."""

    topic: str
    file: Path

    @property
    def text(self) -> str:
        """Its Markdown, as a terminal is shown it: links to other pages are commands that show them."""
        return _LINK.sub(self._link, _COMMENT.sub("", self.file.read_text(encoding="utf-8")))

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
        if topic not in pages() or topic in words:
            return words
        return f"{words} (`ktrial help {topic}`)"


def pages() -> dict[str, Page]:
    """Topic → page, by topic. Raises KtrialError where the documentation is missing."""
    package = package_directory()
    directory = package / "docs" if (package / "docs").is_dir() else package.parents[1] / "docs"
    files = sorted([*directory.glob("*.md"), *directory.glob("architecture/*.md")])
    if not files:
        raise KtrialError(
            f"The documentation is not in {directory}: this installation is incomplete.",
            hint="install ktrial again, from its checkout or its wheel",
        )
    return {topic: Page(topic, file) for file in files for topic in (_topic_of(file),)}


def page(topic: str) -> Page:
    """The page of a topic. Raises BadUsage where there is none."""
    topics = pages()
    name = topic.removesuffix(".md").rpartition("/")[2]
    if name not in topics:
        raise BadUsage(
            f"There is no topic {topic}{nearest(name, topics)}.",
            hint="ktrial help lists all topics; ktrial COMMAND --help shows a command's options",
        )
    return topics[name]


def _topic_of(file: Path) -> str:
    return file.resolve().parent.name if file.stem == "README" else file.stem
