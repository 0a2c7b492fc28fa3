"""Templates of pages and pictures: all that they are given is escaped, control characters written out."""

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ktrial.format.sanitize import printable


def environment() -> Environment:
    """Templates of this package, by the names of their files."""
    made = Environment(
        loader=PackageLoader("ktrial.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    made.filters["breakable"] = _breakable
    return made


def text_of(name: str) -> str:
    """A style sheet or a script, as it stands beside the templates."""
    return files("ktrial.report").joinpath("templates", name).read_text(encoding="utf-8")


def _finalized(value: Any) -> Any:
    """Plain text loses its control characters before it is escaped; markup of our own passes."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _breakable(text: str) -> Markup:
    """Escaped text that may go on in a new line after a slash."""
    return escape(printable(text)).replace("/", Markup("/<wbr>"))
