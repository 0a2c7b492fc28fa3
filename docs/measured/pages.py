"""Blocks of pages: where they are, what stands in them, and how another text is put there."""

import re
from pathlib import Path

from docs.measured.errors import NumbersError

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""
_BLOCK = re.compile(r"^<!-- numbers: (\S+) -->\n(.*?)^<!-- end -->$", re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"(?<!`)<!-- (?:numbers: \S+|end) -->")
"""In backquotes it is told of."""


def pages() -> list[Path]:
    """All pages of the documentation."""
    return sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])


def blocks_of(text: str) -> dict[str, str]:
    """Name → what stands between the markers. Raises NumbersError where a marker has no other end."""
    bodies: dict[str, str] = {}
    for name, body in _BLOCK.findall(text):
        if name in bodies:
            raise NumbersError(f"the block {name} is there twice")
        bodies[name] = body
    if len(_MARKER.findall(text)) != 2 * len(bodies):
        raise NumbersError("a marker of numbers has no other end, or does not stand alone on its line")
    return bodies


def written(page: Path, name: str) -> str:
    """What stands in the block now. Raises NumbersError where the page has no such block."""
    try:
        return blocks_of(page.read_text(encoding="utf-8"))[name]
    except KeyError:
        raise NumbersError(f"{page.name} has no line <!-- numbers: {name} -->") from None


def write(page: Path, name: str, made: str) -> None:
    """Put the text into the block. Raises NumbersError where the page has no such block."""
    written(page, name)
    text = page.read_text(encoding="utf-8")
    block = re.compile(rf"^(<!-- numbers: {re.escape(name)} -->\n).*?^(<!-- end -->)$", re.DOTALL | re.M)
    page.write_text(block.sub(lambda match: match[1] + made + match[2], text), encoding="utf-8")
