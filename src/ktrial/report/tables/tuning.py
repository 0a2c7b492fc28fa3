"""The tables of a search: confirmation, the settings of its answer, what was taken back, what mattered."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ktrial.format import number_format
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
    number,
    own,
    table,
    verdict,
)
from ktrial.model.comparison import Comparison
from ktrial.model.tuning import (
    Dimension,
    Effect,
    Finalist,
    FrontPoint,
    Importance,
    Objective,
    Observation,
    Tuned,
    TunedInteraction,
)
from ktrial.report.text.tuning import configuration_text, values_text

_VALUE_COLUMNS = 30
_CHOICES_COLUMNS = 60


class AnsweredSetting(NamedTuple):
    """One setting of the answer."""

    name: str
    was: str
    now: str
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
            lambda one: name(configuration_text(one.configuration), notes=one.broken),
        ),
        Field(Column("change", "change", numeric=True), lambda one: change(one.comparison.ratio)),
        Field(
            Column("interval", "interval", "%", numeric=True),
            lambda one: interval(one.comparison.low, one.comparison.high),
        ),
        Field(Column("verdict", "verdict"), lambda one: verdict(one.comparison.verdict)),
        Field(
            Column("answer", "answer"),
            lambda one: own("the answer" if one.configuration == tuned.confirmed else number_format.NONE),
        ),
    )
    return _stacked(fields, tuned.finalists)


def settings(tuned: Tuned, in_force: Mapping[str, str]) -> Table:
    """Each setting of the answer, with its own effect. `in_force`: as read back."""
    own_effect = {each: effect for effect in tuned.kept for each in effect.names}
    rows = (
        AnsweredSetting(each, tuned.space[each].default, in_force.get(each, value), own_effect.get(each))
        for each, value in (tuned.confirmed or {}).items()
    )
    return _stacked(_SETTINGS, rows)


def taken_back(dropped: Iterable[Effect]) -> Table:
    """What the search had tried and ablation left out."""
    return _stacked(_TAKEN_BACK, dropped)


def front(tuned: Tuned) -> Table:
    """Configurations of which none is better than another in both objectives."""
    objectives = [field for place, one in enumerate(tuned.goal.objectives) for field in _front_of(place, one)]
    fields: tuple[Field[FrontPoint], ...] = (
        Field(
            Column("settings", "none of these is better in both", wraps=True, columns=1000),
            lambda point: name(configuration_text(point.configuration)),
        ),
        *objectives,
        Field(Column("runs", "runs", numeric=True), lambda point: Cell(point.runs, str(point.runs))),
    )
    return _stacked(fields, tuned.front)


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

    def value(one: Observation) -> Cell:
        return own("failed") if one.failure else number(one.values.get(metric))

    fields: tuple[Field[Observation], ...] = (
        *_RUNS,
        Field(Column("value", metric, numeric=True, named=True), value),
        Field(
            Column("seconds", "seconds", numeric=True),
            lambda one: Cell(one.seconds, f"{one.seconds:.2f}", emphasis=Emphasis.MUTED),
        ),
    )
    return replace(_stacked(fields, tuned.observations), name="stack runs")


def _front_of(place: int, objective: Objective) -> tuple[Field[FrontPoint], ...]:
    """As confirmed on fresh runs where it was; else by the model of all runs, and told so."""
    heading = Column(f"objective-{place}", objective.metric, numeric=True, named=True, heading_columns=60)
    return (
        Field(heading, partial(_objective, place=place)),
        Field(
            Column(f"interval-{place}", "interval", "%", numeric=True),
            partial(_confirmed_interval, place=place),
        ),
        Field(Column(f"verdict-{place}", "verdict"), partial(_confirmed_verdict, place=place)),
    )


def _on_fresh_runs(point: FrontPoint, place: int) -> Comparison | None:
    return point.comparisons[place] if place < len(point.comparisons) else None


def _objective(point: FrontPoint, place: int) -> Cell:
    one = _on_fresh_runs(point, place)
    return change(one.ratio if one else point.ratios[place])


def _confirmed_interval(point: FrontPoint, place: int) -> Cell:
    one = _on_fresh_runs(point, place)
    return interval(one.low, one.high) if one else Cell()


def _confirmed_verdict(point: FrontPoint, place: int) -> Cell:
    one = _on_fresh_runs(point, place)
    if one:
        return verdict(one.verdict)
    return own("as it was" if not point.configuration else "not confirmed")


def _stacked(fields: Iterable[Field[Of]], rows: Iterable[Of]) -> Table:
    return replace(table(fields, rows, "stack"), stacks=True)


def _metric(one: Comparison) -> Cell:
    notes = (one.reason,) if one.reason else ()
    return name(f"{one.metric}, {one.unit}" if one.unit else one.metric, notes=notes)


def _effect(effect: Effect | None) -> Cell:
    return own(number_format.NONE) if effect is None else change(effect.ratio)


def _own_effect(setting: AnsweredSetting) -> Cell:
    cell = _effect(setting.effect)
    others = [each for each in setting.effect.names if each != setting.name] if setting.effect else []
    return replace(cell, text=f"{cell.text} (with {', '.join(others)})") if others else cell


def _interval(effect: Effect | None) -> Cell:
    return Cell() if effect is None else interval(effect.low, effect.high)


def _value(text: str) -> Cell:
    return name(text) if text else own(number_format.NONE)


_CONFIRMATION: tuple[Field[Comparison], ...] = (
    Field(Column("metric", "confirmed on fresh runs", wraps=True), _metric),
    Field(Column("before", "before", numeric=True), lambda one: number(one.baseline_value)),
    Field(Column("after", "after", numeric=True), lambda one: number(one.value)),
    Field(Column("change", "change", numeric=True), lambda one: change(one.ratio)),
    Field(Column("interval", "interval", "%", numeric=True), lambda one: interval(one.low, one.high)),
    Field(Column("verdict", "verdict"), lambda one: verdict(one.verdict)),
)

_SETTINGS: tuple[Field[AnsweredSetting], ...] = (
    Field(Column("setting", "setting", wraps=True), lambda it: name(it.name)),
    Field(Column("was", "was", wraps=True, columns=_VALUE_COLUMNS), lambda it: _value(it.was)),
    Field(Column("now", "now", wraps=True, columns=_VALUE_COLUMNS), lambda it: _value(it.now)),
    Field(Column("effect", "its own effect", numeric=True, wraps=True), _own_effect),
    Field(Column("interval", "interval", "%", numeric=True), lambda it: _interval(it.effect)),
)

_TAKEN_BACK: tuple[Field[Effect], ...] = (
    Field(Column("setting", "setting"), lambda one: name(", ".join(one.names))),
    Field(Column("value", "value"), lambda one: _value(", ".join(one.values))),
    Field(Column("effect", "effect", numeric=True), _effect),
    Field(Column("interval", "interval", "%", numeric=True), _interval),
    Field(Column("why", "why"), lambda one: Cell(one.reason, one.reason, Kind.PROSE)),
)

_IMPORTANCE: tuple[Field[Importance], ...] = (
    Field(Column("knob", "knob"), lambda one: name(one.name)),
    Field(
        Column("share", "share", "%", numeric=True),
        lambda one: Cell(one.share, number_format.share(one.share)),
    ),
    Field(
        Column("interval", "interval", "%", numeric=True),
        lambda one: Cell(
            (one.low, one.high), f"{number_format.share(one.low)} … {number_format.share(one.high)}"
        ),
    ),
    Field(
        Column("share_bar", "share", hidden=True, outputs=Output.HTML | Output.TERMINAL),
        lambda one: Cell(one.share, kind=Kind.BAR),
    ),
)

_INTERACTIONS: tuple[Field[TunedInteraction], ...] = (
    Field(Column("one", "one"), lambda it: name(f"{it.first}={it.first_values[1]}")),
    Field(Column("other", "other"), lambda it: name(f"{it.second}={it.second_values[1]}")),
    Field(
        Column("ratio", "together, beside what each does alone", numeric=True),
        lambda it: change(it.ratio),
    ),
    Field(Column("interval", "interval", "%", numeric=True), lambda it: interval(it.low, it.high)),
)

_SPACE: tuple[Field[Dimension], ...] = (
    Field(Column("knob", "knob"), lambda one: name(one.name)),
    Field(Column("was", "was", wraps=True, columns=_VALUE_COLUMNS), lambda one: _value(one.default)),
    Field(
        Column("searched", "searched", wraps=True, columns=_CHOICES_COLUMNS),
        lambda one: name(values_text(one)),
    ),
    Field(
        Column("summary", "what it does", wraps=True),
        lambda one: Cell(one.summary, one.summary, Kind.PROSE),
    ),
)

_RUNS: tuple[Field[Observation], ...] = (
    Field(Column("run", "run", numeric=True), lambda one: Cell(one.order, str(one.order + 1))),
    Field(Column("purpose", "for"), lambda one: own(one.purpose.value)),
    Field(
        Column("settings", "settings"),
        lambda one: Cell(
            text=configuration_text(one.configuration),
            kind=Kind.PROSE,
            notes=(one.failure,) if one.failure else (),
        ),
    ),
)
