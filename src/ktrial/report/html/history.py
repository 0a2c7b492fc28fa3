"""The page of one workload's history."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from ktrial.format import number_format
from ktrial.model.history import ChangePoint, History, Line
from ktrial.report.charts.history import picture
from ktrial.report.html.scripts import page_script
from ktrial.report.html.templating import environment, style_of
from ktrial.report.tables.history import versions

Links = Mapping[int, str]
"""A study's number → its page, as seen from this one."""
Crumbs = tuple[tuple[str, str], ...]
"""Text and place of the links at the top."""


def site_environment() -> Environment:
    """Templates of pages that link to each other."""
    made = environment()
    made.globals.update(script=page_script(), whole=False)
    made.filters["why_link"] = _why_link
    return made


def style() -> Markup:
    """The style sheet of all such pages."""
    return style_of("site.css")


def history_page(
    history: History,
    links: Links | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    made: Environment | None = None,
    baselines: Mapping[int, str] | None = None,
) -> str:
    """The page as text. `sheet`: where the style sheet lies; else it is inside the page.

    `baselines`: a study's number → the label of its baseline, against which its page explains.
    """
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
        "baselines": baselines or {},
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


def _why_link(place: tuple[Line, ChangePoint], links: Links, baselines: Mapping[int, str]) -> str:
    """The result's page, at its reasons, where it explains this very step; else empty.

    A result's page explains what each treatment has against the baseline: a later step is explained by the
    command that stands there instead.
    """
    line, change = place
    by_version = {point.version: point for point in line.points}
    before, after = by_version.get(change.since), by_version.get(change.version)
    if not change.why or before is None or after is None or before.study_id != after.study_id:
        return ""
    page = links.get(before.study_id)
    return f"{page}#why" if page and baselines.get(before.study_id) == before.treatment else ""
