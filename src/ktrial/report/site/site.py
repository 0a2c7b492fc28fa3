"""A static site of everything in a store: index, matrix, histories, results. Relative links, no server."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ktrial.analysis.errors import SiteInTheWay, SiteNotWritten
from ktrial.analysis.history.series import stored_trials
from ktrial.report.html.site import SHEET
from ktrial.report.site.page_cache import PageCache
from ktrial.report.site.pages import Pages, Tell
from ktrial.store import Store

MARK = "ktrial-site"
"""The file that tells a directory is one of ktrial's sites."""
_SUFFIXES = (".html", ".json")


class Site(NamedTuple):
    """What was built."""

    front: Path
    pages: int
    made: int
    """Results that were rendered now, and not found in the cache."""


def build(
    store: Store,
    directory: Path,
    *,
    reasons: bool = True,
    tell: Tell = lambda _text: None,
    cache: PageCache | None = None,
) -> Site:
    """Write the site, and take away pages of results that are gone. Raises SiteNotWritten, SiteInTheWay,
    StoreError.

    `reasons`: say what changes are made of, from the profiles in the store: seconds for a new result, once.
    """
    _check(directory)
    try:
        pages = Pages(store, stored_trials(store), cache or PageCache(), reasons=reasons, tell=tell)
        written = {MARK: "A site made by ktrial.\n", SHEET: pages.text(SHEET) or ""}
        for place in pages.places:
            for each in (place, f"{place.removesuffix('.html')}.json"):
                written[each] = pages.text(each) or ""
        _write(directory, written)
    except OSError as error:
        raise SiteNotWritten(directory=directory, problem=error.strerror or str(error)) from error
    return Site(directory / "index.html", len(pages.places), pages.rendered)


def _check(directory: Path) -> None:
    try:
        there = sorted(one.name for one in directory.iterdir()) if directory.exists() else []
    except OSError as error:
        raise SiteNotWritten(directory=directory, problem=error.strerror) from error
    if there and MARK not in there:
        raise SiteInTheWay(directory=directory, file=there[0])


def _write(directory: Path, written: Mapping[str, str]) -> None:
    for place in ("results", "history"):
        (directory / place).mkdir(parents=True, exist_ok=True)
        for old in (directory / place).iterdir():
            if old.suffix in _SUFFIXES and f"{place}/{old.name}" not in written:
                old.unlink()
    for place, text in written.items():
        file = directory / place
        partial = file.with_name(f".{file.name}.partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
