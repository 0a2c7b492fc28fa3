"""For mkdocs: what a page links to outside of docs/ (sources, tests) is named on the site, not linked."""

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_more: Any) -> str:
    """The page's text; called by mkdocs for each page."""
    directory = Path(config["docs_dir"])
    here = (directory / page.file.src_uri).parent

    def told(match: re.Match[str]) -> str:
        text, target, _anchor = match.groups()
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        place = (here / target).resolve()
        if place.is_relative_to(directory.resolve()) and place.is_file():
            return match[0]
        named = f"`{text.strip('`')}`"
        return named if place.exists() else match[0]

    return _LINK.sub(told, markdown)
