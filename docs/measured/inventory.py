"""Tables with digits that no declaration writes: inventory.toml lists each, with where its numbers are from.

A table that somebody writes by hand is in neither place, and the tests find it.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from docs.measured.errors import NumbersError
from docs.measured.pages import ROOT, blocks_of, pages

_FILE = ROOT / "docs" / "measured" / "inventory.toml"
KINDS = frozenset(
    {"reference", "definition", "this machine", "simulated", "paper", "other script", "counted once"}
)
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")
"""Names, commands and the targets of links: their digits are no numbers."""


@dataclass(frozen=True)
class Listed:
    """One entry of the inventory."""

    page: str
    table: str
    """The headings of its columns, as they stand there; empty for a sentence."""
    sentence: str
    """How the sentence begins; empty for a table."""
    kind: str
    source: str
    """Where the numbers come from, and why no declaration writes them."""


def listed(file: Path = _FILE) -> list[Listed]:
    """The whole inventory. Raises NumbersError where an entry is not whole."""
    tables = []
    for page, entries in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for entry in entries:
            one = Listed(
                page, entry.get("table", ""), entry.get("sentence", ""), entry["kind"], entry["source"]
            )
            if one.kind not in KINDS or not one.source or bool(one.table) == bool(one.sentence):
                raise NumbersError(f"inventory.toml, {page}: {entry} is not whole")
            tables.append(one)
    return tables


def by_hand(text: str) -> list[str]:
    """The headings of each table that has digits in its cells, and stands in no block that is written."""
    for body in blocks_of(text).values():
        text = text.replace(body, "\n")
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    tables = re.findall(r"(?:^ *\|.*\n)+", text + "\n", flags=re.MULTILINE)
    return [headings(lines[0]) for lines in map(str.splitlines, tables) if _has_digits(lines[2:])]


def _has_digits(rows: list[str]) -> bool:
    return any(re.search(r"\d", _CODE.sub("", row)) for row in rows)


def headings(row: str) -> str:
    """A table's first row as entries have it: `workload | 6.1 | 6.12`."""
    return " | ".join(cell.strip() for cell in row.strip().strip("|").split("|"))


def not_listed() -> list[str]:
    """Tables with digits that are in neither place: page and headings."""
    known = {(one.page, one.table) for one in listed()}
    return [
        f"{name}: {table}"
        for name, text in texts().items()
        for table in by_hand(text)
        if (name, table) not in known
    ]


def no_longer_there() -> list[str]:
    """Entries whose table or sentence the page does not have any more."""
    there = texts()
    return [
        f"{one.page}: {one.table or one.sentence}"
        for one in listed()
        if one.page not in there
        or (one.table and one.table not in by_hand(there[one.page]))
        or (one.sentence and one.sentence not in " ".join(there[one.page].split()))
    ]


def texts() -> dict[str, str]:
    """Page, from the checkout's root → its text."""
    return {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages()}
