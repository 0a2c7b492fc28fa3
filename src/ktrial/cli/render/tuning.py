"""What `ktrial tune` prints: the plan before anything is spent, and the answer."""

import textwrap
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import one_line, shortened
from ktrial.model.comparison import Comparison
from ktrial.model.study import Study
from ktrial.model.tuning import Effect, Space, Tuned
from ktrial.optimize.deployment_files import Answer
from ktrial.optimize.search_space import search_of
from ktrial.report.tuning_labels import values_text, wanted

_MOST_LEFT_OUT = 40
_MOST_FAILURES = 5
_VALUE_COLUMNS = 30
_LEAST_SUMMARY = 20
_CHOICES_COLUMNS = 60


def print_plan(study: Study, plan: Mapping[str, Any], console: Console) -> None:
    """What will be searched, for how long, and what can come of it."""
    search, space = search_of(study)
    console.print(Text(f"{study.name}: {wanted(search.goal)}", style="bold"))
    console.print(Text(f"{search.goal.workload} on the machine {study.machine.kind}"))
    console.print()
    console.print(_space(space, console.width))
    if space.constraints:
        console.print(Text(f"kept: {'; '.join(map(str, space.constraints))}"))
    if search.left_out:
        _print_left_out(study, console)
    console.print()
    for line in prospects(plan):
        console.print(Text(breakable(line)))


def _space(space: Space, columns: int) -> Table:
    """A line a knob; what it does goes as far as there is room."""
    rows = [
        (
            one.name,
            shortened(one.default, _VALUE_COLUMNS) or "–",
            shortened(values_text(one), _CHOICES_COLUMNS),
            one.summary,
        )
        for one in space.dimensions
    ]
    header = ("knob", "now", "searched", "what it does")
    taken = sum(
        2 + max(map(len, column)) for column in zip(header[:3], *(row[:3] for row in rows), strict=True)
    )
    room = columns - taken
    table = _table(*header[: 4 if room >= _LEAST_SUMMARY else 3])
    table.columns[0].no_wrap = True
    for *values, summary in rows:
        table.add_row(*values, *([_beginning(summary, room)] if room >= _LEAST_SUMMARY else []))
    return table


def _beginning(text: str, columns: int) -> str:
    return text if len(text) <= columns else f"{text[: columns - 1].rstrip()}…"


def _indented(text: str, columns: int) -> str:
    return textwrap.fill(
        text, max(columns, 40), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _print_left_out(study: Study, console: Console) -> None:
    """Knobs that are not searched, those with the same reason together."""
    left_out = search_of(study)[0].left_out
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.reason, []).append(one.name)
    console.print()
    console.print(Text(f"left out: {len(left_out)}"))
    for reason, names in list(by_reason.items())[:_MOST_LEFT_OUT]:
        console.print(Text(_indented(f"{', '.join(names)}: {one_line(reason)}", console.width)))
    if len(by_reason) > _MOST_LEFT_OUT:
        console.print(Text(f"  and {len(by_reason) - _MOST_LEFT_OUT} more reasons: --json"))


def prospects(plan: Mapping[str, Any]) -> list[str]:
    """Noise, smallest effect, runs and time, as far as they are known."""
    lines = []
    noise, smallest = plan["noise"], plan["smallest_effect"]
    if noise is None:
        lines.append(
            "noise of one run: not known yet; the baseline, which runs first, tells (or ktrial calibrate)"
        )
    elif noise:
        lines.append(f"noise of one run: {number_format.percentage(noise)} ({plan['noise_from']})")
    else:
        lines.append("noise of one run: none (exact mode)")
    if smallest is not None:
        lines.append(f"smallest gain that this budget can show: {number_format.percentage(smallest)}")
    runs, seconds, each = plan["runs"], plan["seconds"], plan["run_seconds"]
    budget = (
        f"at most {number_format.counted(runs, 'run')}"
        if runs is not None
        else "as many runs as there is time for"
    )
    if plan["at_once"] > 1:
        budget += f", {plan['at_once']} at once"
    if seconds is not None:
        about = "" if plan["runs"] is None else "about "
        budget += f", {about}{number_format.duration(seconds)}"
    elif each is None:
        budget += "; how long a run takes, the first one tells"
    lines.append(f"budget: {budget}")
    if shares := plan["shares"]:
        lines.append(
            f"  of them: {shares['calibrate']} for the baseline, {shares['explore']} to explore, "
            f"{shares['contend']} for contenders, {shares['ablate']} to take knobs back, "
            f"{2 * shares['blocks']} to confirm"
        )
    return lines


def print_tuned(study: Study, tuned: Tuned, answer: Answer | None, console: Console) -> None:
    """The answer with its settings, what was dropped, what went wrong."""
    goal = tuned.goal
    console.print(Text(f"{study.name}: {wanted(goal)}", style="bold"))
    console.print(Text(_spent(tuned), style="dim"))
    console.print()
    if tuned.comparisons:
        console.print(_confirmation(tuned.comparisons))
        console.print()
    if answer:
        console.print(_settings(tuned, answer))
        console.print()
    _print_dropped(tuned.dropped, console)
    _print_front(tuned, console)
    _print_failures(tuned, console)
    for warning in tuned.warnings:
        console.print(Text(breakable(one_line(f"note: {warning.text}; {warning.advice}")), style="yellow"))
    if tuned.seen is not None and answer and tuned.noise:
        seen = breakable(number_format.change(tuned.seen))
        console.print(
            Text(f"The best single run of the search showed {seen}: chance is in that.", style="dim")
        )
    console.print(Text(breakable(one_line(tuned.answer)), style="bold"))


def _spent(tuned: Tuned) -> str:
    ran = breakable(number_format.counted(len(tuned.observations), "run"))
    noise = (
        f"noise of one run {number_format.percentage(tuned.noise)}"
        if tuned.noise
        else "no noise (exact mode)"
    )
    smallest = number_format.percentage(tuned.smallest_effect)
    return breakable(
        f"{ran}, {number_format.duration(tuned.seconds)}; {noise}; gains from {smallest} can be shown"
    )


def _confirmation(comparisons: tuple[Comparison, ...]) -> Table:
    table = _table("confirmed on fresh runs", "before", "after", "change", "interval, %", "verdict")
    for one in comparisons:
        table.add_row(
            f"{one.metric}, {one.unit}" if one.unit else one.metric,
            number_format.number(one.baseline_value),
            number_format.number(one.value),
            breakable(number_format.change(one.ratio)),
            number_format.interval(one.low, one.high),
            VERDICTS[one.verdict].word,
        )
    return table


def _settings(tuned: Tuned, answer: Answer) -> Table:
    """Each setting of the answer, with its own effect."""
    table = _table("setting", "was", "now", "its own effect", "interval, %")
    own = {name: effect for effect in tuned.kept for name in effect.names}
    for name, value in answer.configuration.items():
        effect = own.get(name)
        shown = one_line(answer.in_force.get(name, value))
        together = (
            f" (with {', '.join(set(effect.names) - {name})})" if effect and len(effect.names) > 1 else ""
        )
        table.add_row(
            name,
            shortened(answer.defaults[name], _VALUE_COLUMNS) or "–",
            shortened(shown, _VALUE_COLUMNS),
            f"{breakable(number_format.change(effect.ratio))}{together}" if effect else "–",
            number_format.interval(effect.low, effect.high) if effect else "",
        )
    return table


def _print_dropped(dropped: tuple[Effect, ...], console: Console) -> None:
    for one in dropped:
        names = " and ".join(one.names)
        why = one.reason or breakable(
            f"{number_format.change(one.ratio)} ({number_format.interval(one.low, one.high)})"
        )
        console.print(Text(one_line(f"taken back: {names}: {why}")))
    if dropped:
        console.print()


def _print_front(tuned: Tuned, console: Console) -> None:
    if not tuned.front:
        return
    first, second = (one.metric for one in tuned.goal.objectives)
    table = _table("front", first, second, "runs")
    for point in tuned.front:
        shown = ", ".join(f"{name}={value}" for name, value in point.configuration.items()) or "as it was"
        one, other = (breakable(number_format.change(ratio)) for ratio in point.ratios)
        table.add_row(shown, one, other, str(point.runs))
    console.print(table)
    console.print()


def _print_failures(tuned: Tuned, console: Console) -> None:
    failed = [one for one in tuned.observations if one.failure]
    if not failed:
        return
    console.print(Text(f"{breakable(number_format.counted(len(failed), 'run'))} failed:"))
    for one in failed[:_MOST_FAILURES]:
        what = ", ".join(f"{name}={value}" for name, value in one.configuration.items()) or "the baseline"
        console.print(Text(f"  {shortened(what, 60)}: {shortened(one.failure, 160)}"))
    if len(failed) > _MOST_FAILURES:
        console.print(Text(f"  and {len(failed) - _MOST_FAILURES} more"))
    console.print()


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        number = name in {"before", "after", "change", "interval, %", "its own effect", "runs"}
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    return table
