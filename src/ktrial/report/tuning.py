"""What a search is after, what it varies, and what its answer rests on, in words."""

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from ktrial.format import labels, number_format
from ktrial.format.table import (
    Cell,
    Column,
    Emphasis,
    Field,
    Kind,
    Of,
    Output,
    Table,
    change,
    interval,
    name,
    own,
    quantity,
    table,
    verdict,
)
from ktrial.model.comparison import Comparison
from ktrial.model.study import Study
from ktrial.model.tuning import (
    Dimension,
    Effect,
    Finalist,
    FrontPoint,
    Goal,
    Importance,
    Objective,
    Observation,
    Purpose,
    Tuned,
    TunedInteraction,
)
from ktrial.model.workload import Direction
from ktrial.report.charts import axis_marks
from ktrial.report.markdown import block, code, folded, grid, prose
from ktrial.report.templating import environment, page_script, style_of


def configuration_text(configuration: Mapping[str, str]) -> str:
    """`vm.swappiness=10, vm.dirty_ratio=40`; `as it was` for the baseline."""
    return (
        ", ".join(f"{name}={value or '(not given)'}" for name, value in configuration.items()) or "as it was"
    )


def goal_text(goal: Goal) -> str:
    """`higher rps, with p99 <= 20 ms`."""
    objectives = " and ".join(
        f"{objective.direction.value} {objective.metric}" for objective in goal.objectives
    )
    return f"{objectives}, with {', '.join(map(str, goal.guards))}" if goal.guards else objectives


def two_estimates(tuned: Tuned) -> str:
    """`Fresh runs alone show +8.40 %, the runs of the search let expect +9.80 %: …`; empty where only fresh
    runs count."""
    candidates = [finalist for finalist in tuned.finalists if finalist.configuration == tuned.candidate]
    if not candidates or candidates[0].fresh is None or candidates[0].expected is None:
        return ""
    fresh, expected = (
        number_format.change(finalist) for finalist in (candidates[0].fresh, candidates[0].expected)
    )
    return (
        f"Fresh runs alone show {fresh}, the runs of the search let expect {expected}: both count, "
        "as far as they agree."
    )


def left_open(study: Study, tuned: Tuned, number: int | None = None) -> str:
    """`Undecided: vm.swappiness=10. In more fresh blocks: ktrial tune revalidate 3`; empty: nothing is."""
    if not tuned.undecided:
        return ""
    settings, again = configuration_text(tuned.undecided), revalidating(study, number)
    return f"Undecided: {settings}. In more fresh blocks: {again}"


def revalidating(study: Study, number: int | None = None) -> str:
    """The command that measures what the search found again. `number`: in its store, where several searches
    may have the same name."""
    allowed = ["--allow-host-changes"] if study.machine.kind == "host" else []
    return shlex.join(["ktrial", "tune", "revalidate", str(number or study.name), *allowed])


def values_text(dimension: Dimension) -> str:
    """`5 … 60 %`, `100000 … 1000000000 ns (logarithmic)`, `none, bfq`."""
    if dimension.range is None:
        return ", ".join(value or "(not given)" for value in dimension.choices)
    limits = dimension.range
    unit = f" {dimension.unit}" if dimension.unit else ""
    return f"{limits.low:.12g} … {limits.high:.12g}{unit}{' (logarithmic)' if limits.log else ''}"


# The tables of a search: confirmation, the settings of its answer, what was taken back, what mattered.

_VALUE_COLUMNS = 30
_CHOICES_COLUMNS = 60


class AnsweredSetting(NamedTuple):
    """One setting of the answer."""

    name: str
    was: str
    value: str
    effect: Effect | None
    """Its own, or that of several together."""


def confirmation(comparisons: Iterable[Comparison]) -> Table:
    """What fresh runs say of the answer: a row a metric."""
    return _stacked(_CONFIRMATION, comparisons)


def finalists(tuned: Tuned) -> Table:
    """What was confirmed beside each other: a row a configuration."""
    fields: tuple[Field[Finalist], ...] = (
        Field(
            Column("settings", "finalist", wraps=True, columns=1000),
            lambda finalist: name(configuration_text(finalist.configuration), notes=finalist.broken),
        ),
        Field(Column("change", "change", numeric=True), lambda finalist: change(finalist.comparison.ratio)),
        Field(
            Column("interval", "interval", "%", numeric=True),
            lambda finalist: _comparison_interval(finalist.comparison),
        ),
        Field(Column("verdict", "verdict"), lambda finalist: verdict(finalist.comparison.verdict)),
        Field(
            Column("answer", "answer"),
            lambda finalist: own(
                "the answer" if finalist.configuration == tuned.confirmed else number_format.NONE
            ),
        ),
    )
    return _stacked(fields, tuned.finalists)


def settings(tuned: Tuned, in_force: Mapping[str, str]) -> Table:
    """Each setting of the answer, with its own effect. `in_force`: as read back."""
    own_effect = {setting: effect for effect in tuned.kept for setting in effect.names}
    rows = (
        AnsweredSetting(
            setting, tuned.space[setting].default, in_force.get(setting, value), own_effect.get(setting)
        )
        for setting, value in (tuned.confirmed or {}).items()
    )
    return _stacked(_SETTINGS, rows)


def taken_back(dropped: Iterable[Effect]) -> Table:
    """What the search had tried and ablation left out."""
    return _stacked(_TAKEN_BACK, dropped)


def front(tuned: Tuned) -> Table:
    """Configurations of which none is better than another in both objectives."""
    objectives = [
        field
        for place, objective in enumerate(tuned.goal.objectives)
        for field in _front_of(place, objective)
    ]
    fields: tuple[Field[FrontPoint], ...] = (
        Field(
            Column("settings", "none of these is better in both", wraps=True, columns=1000),
            lambda point: name(configuration_text(point.configuration)),
        ),
        *objectives,
        Field(Column("runs", "runs", numeric=True), lambda point: Cell(point.runs, str(point.runs))),
    )
    return _stacked(fields, tuned.front)


_LEAST_SHARE = 0.05
"""Of what the runs differ by: a knob that may have less is not shown to act."""


class Acting(NamedTuple):
    """What is shown to act in a search, and what is not."""

    spread: float
    """By how much the search's runs differ, beyond what noise alone spans in so many: 0.07 is 7 %."""
    importance: tuple[Importance, ...] = ()
    """Of the knobs that are shown to act, the largest share first; none where the runs hardly differ."""
    interactions: tuple[TunedInteraction, ...] = ()
    """Of two knobs of which none is among the others."""
    others: tuple[str, ...] = ()
    """Knobs that are not shown to act."""


def acting(tuned: Tuned) -> Acting:
    """Shares of a spread that is smaller than what the search can show say nothing."""
    spread = _spread(tuned)
    shown = tuple(
        share for share in tuned.importance if share.low >= _LEAST_SHARE and spread >= tuned.smallest_effect
    )
    others = tuple(share.name for share in tuned.importance if share not in shown)
    pairs = (pair for pair in tuned.interactions if {pair.first, pair.second}.isdisjoint(others))
    return Acting(spread, shown, tuple(pairs), others)


_SEARCHING = frozenset({Purpose.CALIBRATE, Purpose.EXPLORE, Purpose.CONTEND})


def _spread(tuned: Tuned) -> float:
    """The largest of n draws of noise is expected at most √(2 ln n) standard deviations from their mean:
    S. Boucheron, G. Lugosi, P. Massart, Concentration Inequalities, 2013, section 2.5.
    """
    pairs = zip(tuned.observations, _ratios(tuned), strict=True)
    ratios = [ratio for run, ratio in pairs if ratio and run.purpose in _SEARCHING]
    if len(ratios) < 2:
        return 0.0
    noise = 2 * tuned.noise * math.sqrt(2 * math.log(len(ratios)))
    return max(0.0, math.expm1(math.log(max(ratios) / min(ratios)) - noise))


def not_acting_text(shown: Acting, tuned: Tuned) -> str:
    """`Not shown to act: vm.swappiness, vm.dirty_ratio`; where nothing is, why; empty where all are."""
    if not shown.others:
        return ""
    if shown.spread < tuned.smallest_effect:
        differ = number_format.percentage(shown.spread)
        least = number_format.percentage(tuned.smallest_effect)
        beyond = " beyond their noise" if tuned.noise else ""
        return f"No knob is shown to act: the runs differ by {differ}{beyond}, and {least} can be shown."
    return f"Not shown to act: {', '.join(shown.others)}."


def importance(shares: Iterable[Importance]) -> Table:
    """How much of what the runs differ by goes back to each knob."""
    return _stacked(_IMPORTANCE, shares)


def interactions(pairs: Iterable[TunedInteraction]) -> Table:
    """What two knobs do together, beside what each does alone."""
    return _stacked(_INTERACTIONS, pairs)


def space(dimensions: Iterable[Dimension]) -> Table:
    """What is searched: a row a knob."""
    return _stacked(_SPACE, dimensions)


def runs(tuned: Tuned) -> Table:
    """Every run of the search."""
    metric = tuned.goal.objectives[0].metric
    unit = next((comparison.unit for comparison in tuned.comparisons if comparison.metric == metric), "")

    def value(run: Observation) -> Cell:
        return own("failed") if run.failure else quantity(run.values.get(metric), unit)

    fields: tuple[Field[Observation], ...] = (
        *_RUNS,
        Field(Column("value", metric, numeric=True, named=True), value),
        Field(
            Column("seconds", "seconds", numeric=True),
            lambda run: Cell(run.seconds, f"{run.seconds:.2f}", emphasis=Emphasis.MUTED),
        ),
    )
    return replace(_stacked(fields, tuned.observations), name="stack runs")


def _front_of(place: int, objective: Objective) -> tuple[Field[FrontPoint], ...]:
    """As confirmed on fresh runs where it was; else by the model of all runs, and told so."""
    heading = Column(f"objective-{place}", objective.metric, numeric=True, named=True, heading_columns=60)

    def confirmed(point: FrontPoint) -> Comparison | None:
        return point.comparisons[place] if place < len(point.comparisons) else None

    def ratio(point: FrontPoint) -> Cell:
        comparison = confirmed(point)
        return change(comparison.ratio if comparison else point.ratios[place])

    def of_interval(point: FrontPoint) -> Cell:
        comparison = confirmed(point)
        return _comparison_interval(comparison) if comparison else Cell()

    def of_verdict(point: FrontPoint) -> Cell:
        if comparison := confirmed(point):
            return verdict(comparison.verdict)
        return own("as it was" if not point.configuration else "not confirmed")

    return (
        Field(heading, ratio),
        Field(Column(f"interval-{place}", "interval", "%", numeric=True), of_interval),
        Field(Column(f"verdict-{place}", "verdict"), of_verdict),
    )


def _stacked(fields: Iterable[Field[Of]], rows: Iterable[Of]) -> Table:
    return replace(table(fields, rows, "stack"), stacks=True)


def _metric(comparison: Comparison) -> Cell:
    notes = (comparison.reason,) if comparison.reason else ()
    unit = "" if number_format.is_time(comparison.unit) else comparison.unit
    return name(f"{comparison.metric}, {unit}" if unit else comparison.metric, notes=notes)


def _effect(effect: Effect | None) -> Cell:
    return own(number_format.NONE) if effect is None else change(effect.ratio)


def _own_effect(setting: AnsweredSetting) -> Cell:
    cell = _effect(setting.effect)
    beside = [knob for knob in setting.effect.names if knob != setting.name] if setting.effect else []
    return replace(cell, text=f"{cell.text} (with {', '.join(beside)})") if beside else cell


def _interval(effect: Effect | None) -> Cell:
    return Cell() if effect is None else interval(effect.low, effect.high)


def _comparison_interval(comparison: Comparison) -> Cell:
    return interval(comparison.low, comparison.high, comparison.no_interval)


def _value(text: str) -> Cell:
    return name(text) if text else own(number_format.NONE)


_CONFIRMATION: tuple[Field[Comparison], ...] = (
    Field(Column("metric", "confirmed on fresh runs", wraps=True), _metric),
    Field(Column("before", "before", numeric=True), lambda row: quantity(row.baseline_value, row.unit)),
    Field(Column("after", "after", numeric=True), lambda row: quantity(row.value, row.unit)),
    Field(Column("change", "change", numeric=True), lambda row: change(row.ratio)),
    Field(Column("interval", "interval", "%", numeric=True), _comparison_interval),
    Field(Column("verdict", "verdict"), lambda row: verdict(row.verdict)),
)

_SETTINGS: tuple[Field[AnsweredSetting], ...] = (
    Field(Column("setting", "setting", wraps=True), lambda row: name(row.name)),
    Field(Column("was", "was", wraps=True, columns=_VALUE_COLUMNS), lambda row: _value(row.was)),
    Field(Column("now", "now", wraps=True, columns=_VALUE_COLUMNS), lambda row: _value(row.value)),
    Field(Column("effect", "its own effect", numeric=True, wraps=True), _own_effect),
    Field(Column("interval", "interval", "%", numeric=True), lambda row: _interval(row.effect)),
)

_TAKEN_BACK: tuple[Field[Effect], ...] = (
    Field(Column("setting", "setting"), lambda row: name(", ".join(row.names))),
    Field(Column("value", "value"), lambda row: _value(", ".join(row.values))),
    Field(Column("effect", "effect", numeric=True), _effect),
    Field(Column("interval", "interval", "%", numeric=True), _interval),
    Field(Column("why", "why"), lambda row: Cell(row.reason, row.reason, Kind.PROSE)),
)

_IMPORTANCE: tuple[Field[Importance], ...] = (
    Field(Column("knob", "knob"), lambda row: name(row.name)),
    Field(
        Column("share", "share", "%", numeric=True),
        lambda row: Cell(row.share, number_format.share(row.share)),
    ),
    Field(
        Column("interval", "interval", "%", numeric=True),
        lambda row: Cell(
            (row.low, row.high), f"{number_format.share(row.low)} … {number_format.share(row.high)}"
        ),
    ),
    Field(
        Column("share_bar", "share", hidden=True, outputs=Output.HTML | Output.TERMINAL),
        lambda row: Cell(row.share, kind=Kind.BAR),
    ),
)

_INTERACTIONS: tuple[Field[TunedInteraction], ...] = (
    Field(Column("one", "one"), lambda row: name(f"{row.first}={row.first_values[1]}")),
    Field(Column("other", "other"), lambda row: name(f"{row.second}={row.second_values[1]}")),
    Field(
        Column("ratio", "together, beside what each does alone", numeric=True),
        lambda row: change(row.ratio),
    ),
    Field(Column("interval", "interval", "%", numeric=True), lambda row: interval(row.low, row.high)),
)

_SPACE: tuple[Field[Dimension], ...] = (
    Field(Column("knob", "knob"), lambda row: name(row.name)),
    Field(Column("was", "was", wraps=True, columns=_VALUE_COLUMNS), lambda row: _value(row.default)),
    Field(
        Column("searched", "searched", wraps=True, columns=_CHOICES_COLUMNS),
        lambda row: name(values_text(row)),
    ),
    Field(
        Column("summary", "what it does", wraps=True),
        lambda row: Cell(row.summary, row.summary, Kind.PROSE),
    ),
)

_RUNS: tuple[Field[Observation], ...] = (
    Field(Column("run", "run", numeric=True), lambda row: Cell(row.order, str(row.order + 1))),
    Field(Column("purpose", "for"), lambda row: own(row.purpose.value)),
    Field(
        Column("settings", "settings"),
        lambda row: Cell(
            text=configuration_text(row.configuration),
            kind=Kind.PROSE,
            notes=(row.failure,) if row.failure else (),
        ),
    ),
)


# A search as a picture: its runs along the bottom, each relative to the baseline upwards.

LEFT, RIGHT, TOP, BOTTOM = 78.0, 16.0, 16.0, 40.0
WIDE, NARROW, HEIGHT = 900.0, 400.0, 300.0
"""Of a picture, in its own units: on a telephone a wide one would have letters that nobody can read."""
_PLACE_OF_A_NUMBER = 70.0
_Scale = Callable[[float], float]


class Dot(NamedTuple):
    """One run."""

    x: float
    y: float
    purpose: str
    baseline: bool
    failed: bool
    title: str


class Tick(NamedTuple):
    """A number beside an axis."""

    at: float
    text: str


class TuningPicture(NamedTuple):
    """All that the template draws."""

    width: float
    height: float
    left: float
    right: float
    """Where lines across it begin and end."""
    dots: tuple[Dot, ...]
    best: str
    """The path of the best run so far while exploring."""
    zero: float
    """Where the baseline is."""
    ticks: tuple[Tick, ...]
    runs: tuple[Tick, ...]
    description: str


def picture(tuned: Tuned, width: float = WIDE) -> TuningPicture | None:
    """Of the first objective; None where no run has a number. Drift, as the baseline saw it, is taken out."""
    ratios = _ratios(tuned)
    numbers = [ratio for ratio in ratios if ratio is not None]
    if not numbers:
        return None
    low, high = min(*numbers, 1.0), max(*numbers, 1.0)
    room = (high - low) * 0.08 or 0.02
    low, high = low - room, high + room
    count = len(tuned.observations)

    def x(place: float) -> float:
        return round(LEFT + (place + 0.5) / count * (width - LEFT - RIGHT), 1)

    def y(ratio: float) -> float:
        return round(TOP + (high - ratio) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    dots = tuple(
        Dot(
            x=x(place),
            y=y(ratio) if ratio is not None else HEIGHT - BOTTOM,
            purpose=run.purpose.value,
            baseline=not run.configuration,
            failed=ratio is None,
            title=_title(run, ratio),
        )
        for place, (run, ratio) in enumerate(zip(tuned.observations, ratios, strict=True))
    )
    return TuningPicture(
        width=width,
        height=HEIGHT,
        left=LEFT,
        right=width - RIGHT,
        dots=dots,
        best=_best(tuned, ratios, x, y),
        zero=y(1.0),
        ticks=tuple(Tick(y(run), text) for run, text in _ticks(low, high).items()),
        runs=tuple(
            Tick(x(place), str(place + 1)) for place in _places(count, int(width / _PLACE_OF_A_NUMBER))
        ),
        description=f"{count} runs; the best single one {number_format.change(tuned.seen)}",
    )


def _ratios(tuned: Tuned) -> list[float | None]:
    metric = tuned.goal.objectives[0].metric
    before = tuned.baseline.get(metric)
    ratios: list[float | None] = []
    for place, run in enumerate(tuned.observations):
        level = tuned.drift[place] if place < len(tuned.drift) else 1.0
        value = run.values.get(metric)
        comparable = value is not None and bool(before) and bool(level)
        ratio = value / before / level if comparable and value is not None and before else None
        ratios.append(ratio if ratio is not None and math.isfinite(ratio) else None)
    return ratios


def _best(tuned: Tuned, ratios: list[float | None], x: _Scale, y: _Scale) -> str:
    higher = tuned.goal.objectives[0].direction is Direction.HIGHER
    best: float | None = None
    steps: list[str] = []
    for place, (run, ratio) in enumerate(zip(tuned.observations, ratios, strict=True)):
        if run.purpose not in {Purpose.CALIBRATE, Purpose.EXPLORE} or ratio is None:
            continue
        better = best is None or (ratio > best if higher else ratio < best)
        best = ratio if better else best
        steps.append(f"{x(place)},{y(best or 1.0)}")
    return f"M{'L'.join(steps)}" if steps else ""


def _title(run: Observation, ratio: float | None) -> str:
    settings_text = ", ".join(f"{name}={value}" for name, value in run.configuration.items()) or "as it was"
    result = run.failure or number_format.change(ratio)
    return f"run {run.order + 1}, {run.purpose.value}: {settings_text}: {result}"


def _ticks(low: float, high: float) -> dict[float, str]:
    """Ratio → its text: round changes in per cent."""
    changes = axis_marks((low - 1) * 100, (high - 1) * 100)
    return {
        1 + percent / 100: f"{number_format.signed(percent)}{number_format.SPACE}%" for percent in changes
    }


def _places(count: int, most: int) -> list[int]:
    every = max(1, -(-count // most))
    return list(range(0, count, every))


# A search as one HTML page: its path, the confirmation, what was kept, what was taken back.

PURPOSES = {
    Purpose.CALIBRATE: "the baseline, for the noise",
    Purpose.EXPLORE: "exploring",
    Purpose.CONTEND: "contenders",
    Purpose.ABLATE: "with a knob taken back",
    Purpose.CONFIRM: "confirming, on fresh runs",
}


def tuning_page(
    study: Study,
    tuned: Tuned,
    in_force: Mapping[str, str] = MappingProxyType({}),
    *,
    number: int | None = None,
    whole: bool = False,
    crumbs: Sequence[tuple[str, str]] = (),
    json: str = "",
) -> str:
    """The page of a search as text: its path, the confirmation, what was kept, what was taken back.

    `in_force`: the answer's settings, as they were read back; `number`: in its store; `whole`: all sections
    open. On a site, `crumbs`: text and place of the links at the top; `json`: where its numbers lie.
    """
    shown = acting(tuned)
    return (
        environment()
        .get_template("tuning.html.j2")
        .render(
            study=study,
            tuned=tuned,
            left_out=study.search.left_out if study.search else (),
            estimates=two_estimates(tuned),
            undecided=configuration_text(tuned.undecided) if tuned.undecided else "",
            revalidating=revalidating(study, number),
            charts=[("wide", picture(tuned)), ("narrow", picture(tuned, NARROW))],
            purposes=PURPOSES,
            used=list(dict.fromkeys(item.purpose for item in tuned.observations)),
            corners=[(item, corners(item)) for item in shown.interactions],
            not_acting=not_acting_text(shown, tuned),
            tables={
                "confirmation": confirmation(tuned.comparisons),
                "finalists": finalists(tuned),
                "settings": settings(tuned, in_force),
                "taken_back": taken_back(tuned.dropped),
                "front": front(tuned),
                "importance": importance(shown.importance),
                "space": space(tuned.space.dimensions),
                "runs": runs(tuned),
            },
            wanted=goal_text,
            failed=[item for item in tuned.observations if item.failure],
            style=style_of("tuning.css"),
            script=page_script(),
            opened=whole,
            crumbs=crumbs,
            json=json,
        )
    )


def corners(interaction: TunedInteraction) -> tuple[tuple[float, float], tuple[float, float]]:
    """Heights, 0 to 100 from the top, of two lines: the first knob's change, without and with the second."""
    low, high = min(interaction.corners), max(interaction.corners)
    wide = high - low or 1.0
    neither, first, second, both = (
        round(90 - 80 * (height - low) / wide, 1) for height in interaction.corners
    )
    return (neither, first), (second, both)


# A search as GitHub-flavoured Markdown: the answer, its settings, the confirmation; the rest folded.

_MOST_FAILURES = 10
_NOT_SHOWN = ("answer.json", "undo.sh", "tuned/")


def tuning_markdown(
    study: Study,
    tuned: Tuned,
    in_force: Mapping[str, str] = MappingProxyType({}),
    files: Mapping[str, str] = MappingProxyType({}),
    number: int | None = None,
) -> str:
    """The answer of a search as GitHub-flavoured Markdown, with a line feed at its end; the rest is folded.

    `in_force`: the answer's settings, as they were read back; `files`: what is installed, by names; `number`:
    in its store.
    """
    shown = acting(tuned)
    parts = [
        *_head(study, tuned, number),
        *_confirmation(tuned),
        grid(settings(tuned, in_force)) if tuned.confirmed else "",
        folded(f"Taken back: {len(tuned.dropped)}", grid(taken_back(tuned.dropped))) if tuned.dropped else "",
        grid(front(tuned)) if tuned.front else "",
        # By the search's model.
        folded("What mattered in the search", grid(importance(shown.importance))) if shown.importance else "",
        prose(not_acting_text(shown, tuned)),
        folded(f"Interactions: {len(shown.interactions)}", grid(interactions(shown.interactions)))
        if shown.interactions
        else "",
        *_failed(tuned),
        *_searched(study, tuned),
        *_files(files),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(study: Study, tuned: Tuned, number: int | None) -> Iterator[str]:
    yield f"### ktrial tune: {prose(study.name)}"
    yield prose(f"{tuned.goal.workload} on the machine {study.machine.kind}: {goal_text(tuned.goal)}")
    yield f"**{prose(tuned.answer)}**"
    if tuned.undecided:
        settings, again = code(configuration_text(tuned.undecided)), code(revalidating(study, number))
        yield f"Undecided: {settings}. In more fresh blocks: {again}"
    noise = f"noise of one run {number_format.percentage(tuned.noise)}" if tuned.noise else "no noise"
    facts = (
        number_format.counted(len(tuned.observations), "run"),
        number_format.duration(tuned.seconds),
        noise,
        f"gains from {number_format.percentage(tuned.smallest_effect)} can be shown",
        labels.MODE_NAMES[tuned.mode],
    )
    yield " · ".join(facts)
    yield "\n".join(f"> ℹ {prose(warning.text)} → {prose(warning.advice)}<br>" for warning in tuned.warnings)


def _confirmation(tuned: Tuned) -> Iterator[str]:
    yield grid(confirmation(tuned.comparisons)) if tuned.comparisons else ""
    if len(tuned.finalists) > 1:
        yield folded(f"Confirmed beside each other: {len(tuned.finalists)}", grid(finalists(tuned)))
    yield two_estimates(tuned)
    if tuned.seen is not None and tuned.comparisons and tuned.noise:
        seen = number_format.change(tuned.seen)
        yield f"The best single run of the search showed {seen}: chance is in that."


def _failed(tuned: Tuned) -> Iterator[str]:
    failed = [run for run in tuned.observations if run.failure]
    lines = [
        f"- run {run.order + 1}, {code(configuration_text(run.configuration))}: {prose(run.failure)}"
        for run in failed[:_MOST_FAILURES]
    ]
    left = len(failed) - len(lines)
    lines += [f"- and {left} more"] if left else []
    yield folded(number_format.counted(len(failed), "failed run"), "\n".join(lines)) if failed else ""


def _searched(study: Study, tuned: Tuned) -> Iterator[str]:
    dimensions = tuned.space.dimensions
    left_out = study.search.left_out if study.search else ()
    lines = "\n".join(f"- left out: {code(knob.name)}: {prose(knob.reason)}" for knob in left_out)
    yield folded(
        f"What was searched: {number_format.counted(len(dimensions), 'knob')}",
        f"{grid(space(dimensions))}\n\n{lines}".rstrip(),
    )


def _files(files: Mapping[str, str]) -> Iterator[str]:
    """What is installed, as far as it is short."""
    short = (
        f"{code(name)}:\n\n{block(content)}"
        for name, content in files.items()
        if not name.startswith(_NOT_SHOWN)
    )
    if body := "\n\n".join(short):
        yield folded("To install it", body)
