"""The page of one workload's history."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from ktrial.format import number_format
from ktrial.model.history import ChangePoint, History, Line
from ktrial.report.charts.history import picture
from ktrial.report.html.templating import environment, text_of
from ktrial.report.tables.history import versions

Links = Mapping[int, str]
"""A study's number → its page, as seen from this one."""
Crumbs = tuple[tuple[str, str], ...]
"""Text and place of the links at the top."""


def site_environment() -> Environment:
    """Templates of pages that link to each other."""
    made = environment()
    made.filters["why_link"] = _why_link
    return made


def style() -> Markup:
    """The style sheet of all such pages."""
    return Markup(text_of("page.css") + text_of("site.css"))


def history_page(
    history: History,
    links: Links | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    made: Environment | None = None,
) -> str:
    """The page as text. `sheet`: where the style sheet lies; else it is inside the page."""
    name, parameters = _in_two(history.workload)
    template = (made or site_environment()).get_template("history.html.j2")
    facts: dict[str, Any] = {
        "title": name,
        "parameters": parameters,
        "eyebrow": "ktrial history",
        "question": "",
        "history": history,
        "pictures": [picture(line) for line in history.lines],
        "tables": [versions(line, links) for line in history.lines],
        "links": links or {},
        "crumbs": crumbs,
        "sheet": sheet,
        "style": "" if sheet else style(),
        "foot": f"{number_format.counted(sum(len(line.points) for line in history.lines), 'point')}",
    }
    return template.render(**facts)


def _in_two(label: str) -> tuple[str, str]:
    """`seq-read` and `path=/mnt, size=8`."""
    name, _, parameters = label.removesuffix(")").partition("(")
    return (name, parameters) if name and label.endswith(")") else (label, "")


def _why_link(place: tuple[Line, ChangePoint], links: Links) -> str:
    """The result's page, at its reasons, where both versions stand in one result; else empty."""
    line, change = place
    sides = {point.study_id for point in line.points if point.version in (change.since, change.version)}
    page = links.get(next(iter(sides))) if len(sides) == 1 else None
    return f"{page}#why" if page and change.why else ""
