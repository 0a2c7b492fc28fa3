"""The page of one workload's history."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import printable, shortened
from ktrial.format.table import (
    Cell,
    Column,
    Emphasis,
    Field,
    Kind,
    Output,
    Table,
    name,
    own,
    quantity,
    table,
    verdict,
)
from ktrial.model.attribution import Proof
from ktrial.model.history import ChangePoint, History, KernelPairs, Line, PairLine, PairVerdict, Point
from ktrial.model.workload import short_labels
from ktrial.report.charts import axis_marks
from ktrial.report.proof import shares
from ktrial.report.templating import environment, page_script, style_of

if TYPE_CHECKING:
    from jinja2 import Environment

Links = Mapping[int, str]
"""A study's number → its page, as seen from this one."""
Reasons = Mapping[tuple[int, str, str], int]
"""A study's number, workload and treatment → which of the reasons on its page explains what that has against
the baseline."""
Proofs = Mapping[int, Sequence[Proof]]
"""A study's number → what was measured about the causes of its differences."""
Crumbs = tuple[tuple[str, str], ...]
"""Text and place of the links at the top."""


def site_environment(*, served: bool = False) -> "Environment":
    """Templates of pages that link to each other. `served`: by `ktrial serve`: they show what runs."""
    templates = environment()
    templates.globals.update(script=page_script(live=served), whole=False, served=served)
    templates.filters["why_link"] = _why_link
    templates.filters["measured_causes"] = _measured_causes
    return templates


def style() -> Markup:
    """The style sheet of all such pages."""
    return style_of("site.css")


def history_page(
    history: History,
    links: Links | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    json: str = "",
    environment: "Environment | None" = None,
    baselines: Mapping[int, str] | None = None,
    reasons: Reasons | None = None,
    proofs: Proofs | None = None,
    regressions: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """The page as text. `sheet`: where the style sheet lies; else it is inside the page. `json`: where its
    numbers lie.

    `baselines`: a study's number → the label of its baseline, against which its page explains; `reasons`:
    where on that page. `regressions`: a metric and the first kernel with a regression → its page.
    """
    label = history.workload  # `seq-read(path=/mnt, size=8)`: the parameters stand apart
    name, _, parameters = label.removesuffix(")").partition("(")
    if not name or not label.endswith(")"):
        name, parameters = label, ""
    template = (environment or site_environment()).get_template("history.html.j2")
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
        "regressions": regressions or {},
        "crumbs": crumbs,
        "sheet": sheet,
        "json": json,
        "style": "" if sheet else style(),
        "foot": f"{number_format.counted(sum(len(line.points) for line in history.lines), 'point')}",
    }
    return template.render(**facts)


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
    step_proofs = (proof for number in {point.study_id for point in ends} for proof in proofs.get(number, ()))
    proof = next((proof for proof in step_proofs if proof.difference_key == key), None)
    return "; ".join(shares(proof)) if proof else ""


def _ends(line: Line, change: ChangePoint) -> tuple[Point, Point] | None:
    by_version = {point.version: point for point in line.points}
    before, after = by_version.get(change.since), by_version.get(change.version)
    return (before, after) if before and after else None


# The table of one line of a history: a row a version.

_NAME_COLUMNS = 40


class VersionRow(NamedTuple):
    """One version, and how it stands to others of its line."""

    point: Point
    unit: str
    part: float
    """Of the largest value of the line."""
    change: ChangePoint | None
    """The change point that it is."""
    page: str
    """The result's page."""
    is_first: bool
    """Whether there is no number before it."""


def versions(line: Line, pages: Mapping[int, str] | None = None) -> Table:
    """A row a version. `pages`: a study's number → its page."""
    return table(_FIELDS, _rows(line, pages or {}), "versions")


def _rows(line: Line, pages: Mapping[int, str]) -> Iterator[VersionRow]:
    changes = {change.place: change for change in line.changes}
    most = max((point.value for point in line.points if point.value is not None), default=0.0)
    has_before = False
    for place, point in enumerate(line.points):
        part = point.value / most if point.value and most > 0 else 0.0
        page = pages.get(point.study_id, "")
        yield VersionRow(point, line.unit, part, changes.get(place), page, is_first=not has_before)
        has_before |= point.value is not None


def _spread(row: VersionRow) -> Cell:
    values = row.point.values
    if not values or min(values) <= 0:
        return Cell()
    spread = max(values) / min(values) - 1
    return Cell(spread, number_format.percentage(spread), emphasis=Emphasis.MUTED)


def _ratio(row: VersionRow) -> Cell:
    """To the last version before that has a number."""
    ratio = row.point.ratio
    if ratio is not None:
        return Cell(ratio, number_format.change(ratio))
    return Cell() if row.is_first or row.point.value is None else own(_UNPAIRED)


_UNPAIRED = "not paired"
_FIELDS: tuple[Field[VersionRow], ...] = (
    Field(
        Column("version", "version", wraps=True, columns=_NAME_COLUMNS),
        lambda row: name(row.point.version, notes=(row.point.release,)),
    ),
    Field(Column("value", "value", numeric=True), lambda row: quantity(row.point.value, row.unit)),
    Field(
        Column("ratio", "to the one before", numeric=True, outputs=Output.TERMINAL | Output.HTML),
        _ratio,
    ),
    Field(
        Column("bar", outputs=Output.TERMINAL),
        lambda row: Cell(row.part, kind=Kind.BAR),
    ),
    Field(
        Column("change", "change", outputs=Output.TERMINAL),
        lambda row: verdict(row.change.verdict) if row.change else Cell(),
    ),
    Field(Column("spread", "spread", numeric=True, outputs=Output.HTML), _spread),
    Field(
        Column("result", "result", outputs=Output.HTML),
        lambda row: name(row.point.study, link=row.page),
    ),
)


# A history as a picture: versions along the bottom, the metric upwards, changes marked.
#
# Drawn by hand: a site has some dozens of them, and Altair takes a second for ten.

LEFT, RIGHT, TOP, BOTTOM = 74.0, 22.0, 30.0, 58.0
_PER_CHARACTER, _GAP = 7.0, 10.0
HEIGHT = 240.0
_LEAST_WIDTH, _PER_POINT, _MOST_WIDTH = 340.0, 92.0, 960.0
_MOST_LABELS = 14
_NAME = 16
_BREAK = "v-3l-6,-3l12,-4l-12,-4l6,-3v-3"
"""The zigzag that marks an axis which is cut off."""
_Scale = Callable[[float], float]


class Dot(NamedTuple):
    """One version."""

    x: float
    y: float
    top: float
    bottom: float
    """Its largest and its smallest value."""
    label: str
    """Below the axis; empty where there is no room."""
    title: str


class Mark(NamedTuple):
    """One change point: between two versions."""

    x: float
    verdict: str
    text: str
    title: str


class Tick(NamedTuple):
    """A number beside the axis."""

    y: float
    text: str


class HistoryPicture(NamedTuple):
    """All that the template draws."""

    width: float
    height: float
    left: float
    """Where the numbers beside the axis end, and the lines begin."""
    dots: tuple[Dot, ...]
    path: str
    """Through the versions that have a number."""
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    break_mark: str
    """A path across the axis where it does not reach zero; empty where it does."""
    description: str


def picture(line: Line) -> HistoryPicture:
    """Where everything stands. The axis begins near the smallest value: a line shows changes, not sizes."""
    count = max(1, len(line.points))
    values = [value for point in line.points for value in point.values]
    low, high = _limits(values)
    scale, unit = number_format.time_scale(high, line.unit)
    texts = {
        mark / scale: f"{number_format.number(mark)}{number_format.SPACE}{unit}".rstrip()
        for mark in axis_marks(low * scale, high * scale)
    }
    left = max(LEFT, _GAP + _PER_CHARACTER * max(map(len, texts.values()), default=0))
    width = max(_LEAST_WIDTH, min(_MOST_WIDTH, left + RIGHT + _PER_POINT * count))
    step = (width - left - RIGHT) / count

    def y(value: float) -> float:
        return round(TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    def x(place: float) -> float:
        return round(left + (place + 0.5) * step, 1)

    dots = tuple(_dots(line, x, y))
    return HistoryPicture(
        width=width,
        height=HEIGHT,
        left=left,
        dots=dots,
        path="M" + "L".join(f"{dot.x},{dot.y}" for dot in dots) if dots else "",
        marks=tuple(
            Mark(
                x(change.place - 0.5),
                change.verdict.value,
                f"{VERDICTS[change.verdict].symbol} "
                f"{number_format.step(change.ratio, change.after, line.unit)}",
                f"{change.since} → {change.version}",
            )
            for change in line.changes
        ),
        ticks=tuple(Tick(y(value), text) for value, text in texts.items()),
        break_mark="" if low <= 0 <= high else f"M{left},{HEIGHT - BOTTOM}{_BREAK}",
        description=_described(line),
    )


def _dots(line: Line, x: _Scale, y: _Scale) -> Iterator[Dot]:
    every = -(-len(line.points) // _MOST_LABELS)
    for place, point in enumerate(line.points):
        if point.value is None:
            continue
        name = shortened(point.version.removeprefix("debian:"), _NAME)
        value = number_format.quantity(point.value, line.unit)
        yield Dot(
            x=x(place),
            y=y(point.value),
            top=y(max(point.values)),
            bottom=y(min(point.values)),
            label=name if place % every == 0 else "",
            title=f"{shortened(point.version, 80)}: {value} ({point.release})",
        )


def _limits(values: list[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    room = (high - low) * 0.1 or abs(high) * 0.05 or 1.0
    return low - room, high + room


def _described(line: Line) -> str:
    points = "; ".join(
        f"{point.version}: {number_format.quantity(point.value, line.unit)}" for point in line.points
    )
    changes = "; ".join(
        f"{change.version} {number_format.step(change.ratio, change.after, line.unit)} {change.verdict.value}"
        for change in line.changes
    )
    return f"{points}. Changes: {changes or 'none'}."


# The page on which two kernels are chosen and compared.

_NOT_JUDGED = {"name": "inconclusive", "symbol": "–", "word": "not judged here"}
_LONGEST_NAME = 120


def kernel_pairs_page(
    pairs: KernelPairs,
    histories: Mapping[str, str] | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    templates: "Environment | None" = None,
) -> str:
    """The page as text. `histories`: workload → its page; `sheet`: where the style sheet lies."""
    environment = templates or site_environment()
    template = environment.get_template("kernel_pairs.html.j2")
    facts: dict[str, Any] = {
        "title": "Two kernels",
        "eyebrow": "ktrial",
        "question": "",
        "pairs": pairs,
        "unit": _usual_unit(pairs),
        "data": _embedded(_data(pairs, histories or {})),
        "crumbs": crumbs,
        "sheet": sheet,
        "style": "" if sheet else style(),
        "script": page_script(kernel_pairs=True, live=bool(environment.globals["served"])),
        "json": "compare.json",
        "foot": number_format.counted(len(pairs.kernels), "kernel"),
    }
    return template.render(**facts)


def _embedded(data: Any) -> Markup:
    """JSON inside a page: no text in it ends the element that holds it, or begins another one."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # no sign of markup is left


def _data(pairs: KernelPairs, histories: Mapping[str, str]) -> dict[str, Any]:
    """What the script needs. Names of files and guests lose their control characters, as in every page."""
    short = short_labels(line.workload for line in pairs.lines)
    return {
        "unit": shortened(_usual_unit(pairs), _LONGEST_NAME),
        "kernels": [{"name": printable(kernel.name)} for kernel in pairs.kernels],
        "lines": [_line(line, short[line.workload], histories) for line in pairs.lines],
        "words": {letter.value: _words(letter) for letter in PairVerdict if letter in _SHOWN},
    }


def _usual_unit(pairs: KernelPairs) -> str:
    """The unit of the first line: lines with another one say theirs, and times say theirs with each value."""
    return pairs.lines[0].unit if pairs.lines and not number_format.is_time(pairs.lines[0].unit) else ""


_SHOWN = frozenset(PairVerdict) - {PairVerdict.NO_NUMBER}


def _line(line: PairLine, short: str, histories: Mapping[str, str]) -> dict[str, Any]:
    return {
        "short": shortened(short, _LONGEST_NAME),
        "page": histories.get(line.workload, ""),
        "unit": "" if number_format.is_time(line.unit) else shortened(line.unit, _LONGEST_NAME),
        "seconds": number_format.seconds_in(line.unit),
        "alone": line.alone,
        "settings": printable(line.settings),
        "values": line.values,
        "verdicts": line.verdicts,
        "trials": printable(line.trials),
    }


def _words(letter: PairVerdict) -> dict[str, str]:
    if letter.verdict is None:
        return _NOT_JUDGED
    label = VERDICTS[letter.verdict]
    return {"name": letter.verdict.value, "symbol": label.symbol, "word": label.word}
