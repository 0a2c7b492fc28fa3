"""What a bisection says: its plan and its result, on the terminal and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from ktrial.bisect.result import BisectResult, FoundCause, FoundItem, FoundMember, FoundTarget, Shares
from ktrial.bisect.search import SearchPlan
from ktrial.cli.console import breakable
from ktrial.cli.render.profile_json import explanation_as_json
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.labels import MODE_NAMES
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Table, of_texts

_THINGS = {"config": "option", "knobs": "knob", "patches": "patch", "versions": "release"}
_PLURALS = {"patch": "patches"}
_NAME_COLUMNS = 60
_SHOWN_NAMES = 12
_SHOWN_PROBLEMS = 5
_UNLIKELY_SHARE = 0.005


def print_plan(plan: SearchPlan, console: Console) -> None:
    """What differs, and what the search may cost."""
    console.print(Text(_title(plan), style="bold"), soft_wrap=True)
    console.print(_differing(plan.kind, plan.differing, plan.groups))
    shown = ", ".join(shortened(name, _NAME_COLUMNS) for name in plan.names[:_SHOWN_NAMES])
    more = f", and {len(plan.names) - _SHOWN_NAMES} more" if len(plan.names) > _SHOWN_NAMES else ""
    _say(f"{shown}{more}", console, 2)
    what = "kernels built" if plan.builds else "candidates measured"
    most = f"at most {plan.candidates_for_one} {what} where one is the cause"
    if plan.kind in {"config", "knobs"}:
        most += f", {plan.candidates_for_two} where two matter only together"
    if plan.candidates_for_each_more is not None:
        most = (
            f"at most {plan.candidates_for_one} {what} where the numbers change in one place, and about "
            f"{plan.candidates_for_each_more} more for each further place; all {plan.groups} at the very most"
        )
    _say(f"plan: {most}; {number_format.counted(plan.trials_each, 'trial')} each", console)
    if plan.seconds:
        console.print(breakable(f"about {number_format.duration(plan.seconds)} at most, for one cause"))
    if plan.build_seconds:
        console.print(
            breakable(f"a build takes about {number_format.duration(plan.build_seconds)}, by past ones")
        )


def print_bisection(result: BisectResult, console: Console, top: int) -> None:
    """The difference, the causes with their shares, what is left, and why."""
    console.print(Text(_title(result), style="bold"), soft_wrap=True)
    console.print(Text(_what(result), style="dim"))
    console.print()
    console.print(rendered(_targets(result)))
    for number, cause in enumerate(result.causes, start=1):
        console.print()
        _print_cause(f"Cause {number}", cause, result, console)
    for cause in result.alternatives:
        console.print()
        _print_cause("Without it, this shows the same difference", cause, result, console)
    _print_notes(result, console)
    if top:
        _print_whys(result, console, top)
    console.print()
    console.print(Text(one_line(answer(result)), style="bold"), soft_wrap=True)


def _say(text: str, console: Console, indent: int = 0) -> None:
    """One line, that what is printed can be searched for."""
    console.print(" " * indent + breakable(one_line(text)), soft_wrap=True)


def _title(what: SearchPlan | BisectResult) -> str:
    names = (shortened(name, _NAME_COLUMNS) for name in (what.before, what.after))
    return f"{what.kind}: {' → '.join(names)}"


def answer(result: BisectResult) -> str:
    """The whole result in one sentence."""
    if not any(target.differs for target in result.targets):
        names = ", ".join(target.label for target in result.targets)
        margin = number_format.percentage(result.margin, space=" ")
        return f"There is nothing to explain: {names} differ by less than {margin}."
    if result.kind == "versions" and result.causes:
        return f"The numbers change {', and '.join(_between(cause) for cause in result.causes)}."
    causes = "; ".join(_named(cause) for cause in result.causes)
    left = ", ".join(target.label for target in result.targets if not target.explained)
    if not result.causes:
        return f"Nothing was found that explains {left}: {result.stopped or 'the ends differ, no part does'}."
    if left:
        return f"{causes} explain a part; what is left of {left} was not found: {_why_left(result)}."
    verb = "explains" if len(result.causes) == 1 and len(result.causes[0].members) == 1 else "explain"
    return f"{causes} {verb} the difference."


def as_json(result: BisectResult) -> dict[str, Any]:
    """What `bisect --json` prints; docs/bisect.md names every field."""
    explained = {label: explanation_as_json(one) for label, one in result.explanations.items()}
    return {
        **result.model_dump(mode="json"),
        "found": result.found,
        "answer": breakable(answer(result)),
        "explanations": explained,
    }


def _what(result: BisectResult) -> str:
    modes = dict.fromkeys(MODE_NAMES[target.mode] for target in result.targets)
    return one_line("; ".join([_differing(result.kind, result.differing, result.groups), *modes]))


def _differing(kind: str, differing: int, groups: int) -> str:
    thing = _THINGS[kind]
    many = _PLURALS.get(thing, f"{thing}s")
    verb = "lie between" if kind in {"versions", "patches"} else "differ"
    text = f"{differing} {many if differing != 1 else thing} {verb if differing != 1 else 'differs'}"
    return f"{text}, in {groups} groups" if groups != differing else text


def _targets(result: BisectResult) -> Table:
    reached = any(target.reached is not None for target in result.targets)
    with_causes = ("A with the causes", "change") if reached else ()
    headings = ("workload", "A", "B", "change", *with_causes, "")
    made = of_texts(headings, (_target_cells(target, is_cause=reached) for target in result.targets))
    return made.adapted(made.columns[-1].key, numeric=False)


def _target_cells(target: FoundTarget, *, is_cause: bool) -> list[str]:
    cells = [
        shortened(target.label, _NAME_COLUMNS),
        number_format.number(target.before),
        number_format.number(target.after),
        breakable(number_format.change(target.ratio)),
    ]
    if is_cause:
        reached = target.reached / target.before if target.reached and target.before else None
        cells += [number_format.number(target.reached), breakable(number_format.change(reached))]
    state = "no difference" if not target.differs else "explained" if target.explained else "not explained"
    return [*cells, state]


def _print_cause(title: str, cause: FoundCause, result: BisectResult, console: Console) -> None:
    together = " (only together)" if _only_together(cause) else ""
    console.print(Text(f"{title}{together}:", style="bold"))
    for member in cause.members:
        for item in member.items:
            _say(_item(item), console, 2)
        for line in _member_lines(member):
            _say(line, console, 4)
    for label, share in cause.shares.items():
        ratio = breakable(number_format.change(cause.ratios.get(label)))
        _say(f"{label} {ratio}: {_share(share)} of the difference", console, 2)
    if cause.needed:
        names = ", ".join(_item(item) for item in cause.needed)
        alone = f"; that alone does {_shares(cause.needed_alone)}" if cause.needed_alone else ""
        _say(f"goes with what it needs: {names}{alone}", console, 2)


def _member_lines(member: FoundMember) -> list[str]:
    lines = []
    if member.alone:
        lines.append(f"alone it does {_shares(member.alone)}")
    if member.without:
        lines.append(f"without it the others do {_shares(member.without)}")
    return lines


def _only_together(cause: FoundCause) -> bool:
    shares = [share for member in cause.members for share in member.alone.values()]
    return len(cause.members) > 1 and bool(shares) and max(map(abs, shares)) < 0.25


def _shares(shares: Shares) -> str:
    if len(set(shares.values())) <= 1 or all(abs(one) < _UNLIKELY_SHARE for one in shares.values()):
        return f"{_share(next(iter(shares.values()), 0.0))} of it"
    return ", ".join(f"{_share(share)} of {label}" for label, share in shares.items())


def _share(share: float) -> str:
    return breakable(number_format.share_of(share))


def _item(item: FoundItem) -> str:
    return f"{item.text} ({item.note})" if item.note else item.text


def _between(cause: FoundCause) -> str:
    (item,) = cause.members[0].items
    return f"between {item.note.removeprefix('follows ')} and {item.name}"


def _named(cause: FoundCause) -> str:
    names = [item.text for member in cause.members for item in member.items[:1]]
    return " with ".join(names) if _only_together(cause) else ", ".join(names)


def _print_notes(result: BisectResult, console: Console) -> None:
    console.print()
    if result.kind in {"config", "patches"}:
        built = f"{result.builds} kernels, {result.built} of them built now"
        console.print(f"measured: {result.measured} candidates: {built}")
    else:
        console.print(f"measured: {result.measured} candidates")
    if result.error_probability is not None:
        most = number_format.percentage(result.error_probability)
        _say(f"the probability that any decision of this search is wrong is at most {most}", console)
    for one in result.unresolved[:_SHOWN_PROBLEMS]:
        _say(f"unresolved: {one.candidate}: {one.problem}", console)
    if len(result.unresolved) > _SHOWN_PROBLEMS:
        console.print(f"unresolved: {len(result.unresolved) - _SHOWN_PROBLEMS} more")
    for note in result.notes:
        _say(note, console)
    if result.stopped:
        console.print(f"stopped: {result.stopped}")


def _print_whys(result: BisectResult, console: Console, top: int) -> None:
    from ktrial.cli.render.functions import print_explanation

    for target in _explained(result.targets, result):
        console.print()
        print_explanation(result.explanations[target.label], top, console)
    if result.study:
        commands = (f"ktrial {command} {result.study}" for command in ("explain", "show", "report"))
        _say(f"more: {', '.join(commands)}", console)


def _explained(targets: Sequence[FoundTarget], result: BisectResult) -> Iterable[FoundTarget]:
    return (one for one in targets if one.differs and one.label in result.explanations)


def _why_left(result: BisectResult) -> str:
    return result.stopped or "it is spread over many, none of which is beyond the margin"
