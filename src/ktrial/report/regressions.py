"""What is said of regressions: a sentence, a table, a line for a pull request, pages and an Atom feed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from ktrial.format import number_format
from ktrial.format.sanitize import one_line, printable
from ktrial.format.table import Cell, Column, Field, Table, facts, name, own, table
from ktrial.model.comparison import why_no_interval
from ktrial.model.regression import (
    MeasuredVersion,
    Regression,
    RegressionState,
    Sighting,
    TrackedRegression,
)
from ktrial.model.workload import Mode
from ktrial.program_outputs import is_by_clock
from ktrial.report.history import Crumbs, site_environment, style

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE, FEED = "regressions.html", "regressions.atom"
"""Where a site has all of them, and the feed."""
OPEN = (RegressionState.CAME_BACK, RegressionState.NEW, RegressionState.KNOWN)
"""Of these somebody has to do something; the most urgent first."""
_ORDER = (*OPEN, RegressionState.ACCEPTED, RegressionState.FIXED)
_MOST_NAMED = 3
_ATOM = "http://www.w3.org/2005/Atom"


def in_order(tracked: Iterable[TrackedRegression]) -> list[TrackedRegression]:
    """Those that are open first, then by when they changed last."""
    return sorted(tracked, key=lambda item: (_ORDER.index(item.state), -item.changed.timestamp()))


def page_of(tracked: TrackedRegression) -> str:
    """Where its page is, relative to the site: a link to it holds."""
    return f"regressions/{tracked.regression.id}.html"


def size(tracked: TrackedRegression) -> str:
    """`+14.3 % (+13.9 … +14.4)`."""
    regression = tracked.regression
    if regression.ratio is None:
        return number_format.NONE
    text = number_format.short_change(regression.ratio)
    if none := why_no_interval(regression.ratio, regression.low, regression.mode):
        return f"{text} ({none})"
    if regression.low is None or regression.high is None:
        return text
    ends = (number_format.short_percent(end) for end in (regression.low, regression.high))
    return f"{text} ({' … '.join(ends)})"


def state_words(tracked: TrackedRegression) -> str:
    """The state, with who accepted it or the kernel that turned it."""
    acceptance, turned = tracked.regression.acceptance, tracked.turned
    match tracked.state:
        case RegressionState.ACCEPTED if acceptance:
            return f"accepted by {acceptance.by or 'somebody'}: {acceptance.reason}"
        case RegressionState.FIXED if turned:
            return f"fixed in {turned.kernel.shown}"
        case RegressionState.CAME_BACK if turned:
            return f"came back in {turned.kernel.shown}"
        case state:
            return state.value


def line(tracked: TrackedRegression) -> str:
    """The whole regression in one line, for a pull request or a mail."""
    regression = tracked.regression
    cause = f"; {regression.cause}" if regression.cause else ""
    text = (
        f"ktrial {regression.id}: {_subject(tracked)} {size(tracked)} in {regression.version.shown} against "
        f"{regression.since.shown}, {_measured(regression)}{cause}; {state_words(tracked)}"
    )
    return one_line(text)


def _subject(tracked: TrackedRegression) -> str:
    """The workload; with its metric where that is no count of instructions and no time of ktrial's own."""
    regression = tracked.regression
    told_by_program = regression.mode in _COUNTING and is_by_clock(regression.unit)
    return f"{regression.workload} {regression.metric}" if told_by_program else regression.workload


def _measured(regression: Regression) -> str:
    if regression.mode is Mode.EXACT_PARALLEL:
        return "simulated time"
    if regression.mode not in _COUNTING:
        return "real time"
    return "by the guest's clock" if is_by_clock(regression.unit) else "instructions counted"


_COUNTING = frozenset({Mode.EXACT_PLUGIN, Mode.EXACT_CLOCK})


def answer(tracked: Sequence[TrackedRegression]) -> str:
    """All in one sentence: which are open, and how many are not."""
    if not tracked:
        return "No regression is known: no workload got worse from one measured kernel to the next."
    states = Counter(item.state for item in tracked)
    still = [item for item in in_order(tracked) if item.state in OPEN]
    closed = [f"{states[state]} {state.value}" for state in _ORDER[len(OPEN) :] if states[state]]
    if not still:
        return f"No regression is open: {', '.join(closed)}."
    named = [
        f"{_subject(item)} {number_format.change(item.regression.ratio)} in {item.regression.version.name} "
        f"({item.state.value})"
        for item in still[:_MOST_NAMED]
    ]
    if len(still) > _MOST_NAMED:
        named.append(f"{len(still) - _MOST_NAMED} more")
    are = "regression is" if len(still) == 1 else "regressions are"
    beside = f"; {', '.join(closed)}" if closed else ""
    return one_line(f"{len(still)} {are} open: {', '.join(named)}{beside}.")


def as_json(tracked: TrackedRegression) -> dict[str, Any]:
    """What `ktrial history --json` and a site have of one; docs/history.md names every field."""
    return {
        **tracked.regression.model_dump(mode="json", exclude={"sightings"}),
        "state": tracked.state.value,
        "changed": tracked.changed.isoformat(),
        "line": line(tracked),
        "page": page_of(tracked),
        "sightings": [sighting.model_dump(mode="json") for sighting in tracked.sightings],
    }


def all_as_json(tracked: Sequence[TrackedRegression]) -> dict[str, Any]:
    """The answer, and all of them, those that are open first."""
    return {"answer": answer(tracked), "regressions": [as_json(item) for item in in_order(tracked)]}


# Tables.


class _Listed(NamedTuple):
    tracked: TrackedRegression
    page: str


def regressions_table(tracked: Iterable[TrackedRegression], *, linked: bool = False) -> Table:
    """A row a regression. `linked`: its id leads to its page of the site."""
    shown = table(
        _FIELDS, (_Listed(item, page_of(item) if linked else "") for item in tracked), "regressions"
    )
    return replace(shown, stacks=True)


def _kernel(kernel: MeasuredVersion) -> Cell:
    return name(kernel.name, notes=(kernel.release,) if kernel.release else ())


_FIELDS: tuple[Field[_Listed], ...] = (
    Field(Column("id", "id"), lambda row: name(row.tracked.regression.id, link=row.page)),
    Field(Column("workload", "workload", wraps=True), lambda row: name(_subject(row.tracked))),
    Field(
        Column("change", "change", numeric=True),
        lambda row: Cell(row.tracked.regression.ratio, number_format.change(row.tracked.regression.ratio)),
    ),
    Field(Column("version", "first seen", wraps=True), lambda row: _kernel(row.tracked.regression.version)),
    Field(Column("since", "against", wraps=True), lambda row: name(row.tracked.regression.since.name)),
    Field(Column("state", "state", wraps=True), lambda row: own(row.tracked.state.value)),
)
_SIGHTINGS: tuple[Field[Sighting], ...] = (
    Field(Column("kernel", "kernel"), lambda sighting: _kernel(sighting.kernel)),
    Field(
        Column("change", "change", numeric=True),
        lambda sighting: Cell(sighting.ratio, number_format.change(sighting.ratio)),
    ),
    Field(Column("has_it", "has it"), lambda sighting: own("yes" if sighting.has_it else "no")),
    Field(Column("at", "measured"), lambda sighting: own(number_format.moment(sighting.at))),
)


def sightings_table(tracked: TrackedRegression) -> Table:
    """A row a kernel that was measured since."""
    return table(_SIGHTINGS, tracked.sightings, "sightings")


def facts_of(tracked: TrackedRegression) -> dict[str, str]:
    """What is known of one, by name; empty facts are left out."""
    regression, acceptance = tracked.regression, tracked.regression.acceptance
    facts_known = {
        "state": state_words(tracked),
        "workload": regression.workload,
        "metric": regression.metric,
        "change": size(tracked),
        "first seen": regression.version.shown,
        "against": regression.since.shown,
        "made of": regression.cause,
        "found": f"{number_format.moment(regression.found)}, by {regression.found_by}",
        "accepted": f"{number_format.moment(acceptance.at)}, at {number_format.change(acceptance.ratio)}"
        if acceptance
        else "",
    }
    return {key: one_line(text) for key, text in facts_known.items() if text}


# Pages of a site.


def list_page(
    tracked: Sequence[TrackedRegression], crumbs: Crumbs, sheet: str, templates: "Environment"
) -> str:
    """All of them, those that are open first."""
    ordered = in_order(tracked)
    return templates.get_template("site_regressions.html.j2").render(
        title="Regressions",
        eyebrow="ktrial",
        question=answer(tracked),
        regressions=regressions_table(ordered, linked=True) if ordered else None,
        feed=FEED,
        crumbs=crumbs,
        sheet=sheet,
        json=f"{PAGE.removesuffix('.html')}.json",
        foot=number_format.counted(len(tracked), "regression"),
    )


def regression_page(
    tracked: TrackedRegression,
    links: Mapping[str, str],
    crumbs: Crumbs = (),
    sheet: str = "",
    templates: "Environment | None" = None,
) -> str:
    """One of them. `links`: text → page, as of the workload's history and of the study."""
    regression = tracked.regression
    return (
        (templates or site_environment())
        .get_template("site_regression.html.j2")
        .render(
            title=regression.workload,
            eyebrow=f"regression {regression.id}",
            question=f"{size(tracked)} in {regression.version.shown}: {state_words(tracked)}",
            facts=replace(facts(facts_of(tracked)), name="of-one"),
            line=line(tracked),
            sightings=sightings_table(tracked),
            accept=f"ktrial accept {regression.id} --because REASON" if tracked.state in OPEN else "",
            links=links,
            crumbs=crumbs,
            sheet=sheet,
            style="" if sheet else style(),
            json=f"{regression.id}.json" if sheet else "",
            foot=number_format.counted(len(tracked.sightings), "kernel"),
        )
    )


# The feed: Atom, RFC 4287.


def feed(tracked: Sequence[TrackedRegression], title: str, url: str = "") -> str:
    """An entry for each, the one that changed last first. `url`: of the site; else links are relative."""
    ordered = sorted(tracked, key=lambda item: item.changed, reverse=True)
    updated = ordered[0].changed if ordered else datetime.fromtimestamp(0, UTC)
    root = ElementTree.Element("feed", {"xmlns": _ATOM})
    base = f"{url.rstrip('/')}/" if url else ""
    _add(root, "id", f"{base}{FEED}" if base else "urn:ktrial:regressions")
    _add(root, "title", title)
    _add(root, "updated", updated.isoformat())
    _add(ElementTree.SubElement(root, "author"), "name", "ktrial")
    ElementTree.SubElement(root, "link", {"rel": "self", "href": f"{base}{FEED}"})
    ElementTree.SubElement(root, "link", {"href": f"{base}{PAGE}"})
    for item in ordered:
        entry = ElementTree.SubElement(root, "entry")
        _add(entry, "id", f"urn:ktrial:regression:{item.regression.id}")
        _add(entry, "title", f"{item.state.value}: {_subject(item)} {size(item)}")
        _add(entry, "updated", item.changed.isoformat())
        _add(entry, "published", item.regression.found.isoformat())
        _add(entry, "summary", line(item))
        ElementTree.SubElement(entry, "category", {"term": item.state.value})
        ElementTree.SubElement(entry, "link", {"href": f"{base}{page_of(item)}"})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add(parent: ElementTree.Element, tag: str, text: str) -> None:
    # What XML cannot hold, as control characters of a name, is shown as `\x00`.
    ElementTree.SubElement(parent, tag).text = printable(one_line(text))
