"""A page that says one thing: that there is nothing to show, or why."""

from typing import Any

from jinja2 import Environment

from ktrial.report.html.history import Crumbs


def notice_page(title: str, notice: str, crumbs: Crumbs, sheet: str, json: str, made: Environment) -> str:
    """The page as text. `json`: where its numbers lie; empty: it has none."""
    facts: dict[str, Any] = {
        "title": title,
        "eyebrow": "ktrial",
        "question": "",
        "notice": notice,
        "crumbs": crumbs,
        "sheet": sheet,
        "json": json,
        "foot": "",
    }
    return made.get_template("notice.html.j2").render(**facts)
