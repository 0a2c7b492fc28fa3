"""The page of one workload's history."""

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from ktrial.format import number_format
from ktrial.model.attribution import Proof
from ktrial.model.history import ChangePoint, History, Line, Point
from ktrial.report.charts.history import picture
from ktrial.report.html.scripts import page_script
from ktrial.report.html.templating import environment, style_of
from ktrial.report.tables.history import versions
from ktrial.report.text.proof import shares

Links = Mapping[int, str]
"""A study's number → its page, as seen from this one."""
Reasons = Mapping[tuple[int, str, str], int]
"""A study's number, workload and treatment → which of the reasons on its page explains what that has against
the baseline."""
Proofs = Mapping[int, Sequence[Proof]]
"""A study's number → what was measured about the causes of its differences."""
Crumbs = tuple[tuple[str, str], ...]
"""Text and place of the links at the top."""


def site_environment(*, served: bool = False) -> Environment:
    """Templates of pages that link to each other. `served`: by `ktrial serve`: they show what runs."""
    made = environment()
    made.globals.update(script=page_script(live=served), whole=False, served=served)
    made.filters["why_link"] = _why_link
    made.filters["measured_causes"] = _measured_causes
    return made


def style() -> Markup:
    """The style sheet of all such pages."""
    return style_of("site.css")


def history_page(
    history: History,
    links: Links | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    json: str = "",
    made: Environment | None = None,
    baselines: Mapping[int, str] | None = None,
    reasons: Reasons | None = None,
    proofs: Proofs | None = None,
) -> str:
    """The page as text. `sheet`: where the style sheet lies; else it is inside the page. `json`: where its
    numbers lie.

    `baselines`: a study's number → the label of its baseline, against which its page explains; `reasons`:
    where on that page.
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
        "reasons": reasons or {},
        "proofs": proofs or {},
        "crumbs": crumbs,
        "sheet": sheet,
        "json": json,
        "style": "" if sheet else style(),
        "foot": f"{number_format.counted(sum(len(line.points) for line in history.lines), 'point')}",
    }
    return template.render(**facts)


def _in_two(label: str) -> tuple[str, str]:
    """`seq-read` and `path=/mnt, size=8`."""
    name, _, parameters = label.removesuffix(")").partition("(")
    return (name, parameters) if name and label.endswith(")") else (label, "")


def _why_link(
    place: tuple[Line, ChangePoint], links: Links, baselines: Mapping[int, str], reasons: Reasons
) -> str:
    """The result's page, at the reasons of this very step, where it explains that; else empty.

    A result's page explains what each treatment has against the baseline: a later step is explained by the
    command that stands there instead.
    """
    line, change = place
    ends = _ends(line, change)
    if not change.why or ends is None or ends[0].study_id != ends[1].study_id:
        return ""
    before, after = ends
    page = links.get(before.study_id)
    number = reasons.get((after.study_id, line.workload, after.treatment))
    if not page or not number or baselines.get(before.study_id) != before.treatment:
        return ""
    return f"{page}#why-{number}"


def _measured_causes(place: tuple[Line, ChangePoint], proofs: Proofs) -> str:
    """What was measured of this very step by taking causes back; empty where nothing was."""
    line, change = place
    ends = _ends(line, change)
    if ends is None:
        return ""
    key = (line.workload, ends[0].treatment, ends[1].treatment)
    own = (one for number in {each.study_id for each in ends} for one in proofs.get(number, ()))
    proof = next((one for one in own if one.difference_key == key), None)
    return "; ".join(shares(proof)) if proof else ""


def _ends(line: Line, change: ChangePoint) -> tuple[Point, Point] | None:
    by_version = {point.version: point for point in line.points}
    before, after = by_version.get(change.since), by_version.get(change.version)
    return (before, after) if before and after else None
