"""Explanations as tables for the terminal: functions, subsystems, and whether they add up."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ktrial.analysis.attribution.costs import CostKind, cost_rows
from ktrial.analysis.fidelity_citation import cite
from ktrial.cli.command_line import BadOption
from ktrial.cli.console import breakable
from ktrial.cli.render.next_step import same_command
from ktrial.cli.render.profile import (
    MODELLED_NOT_TIME,
    UNIT_AS_JSON,
    guest_time_difference_as_json,
    print_guest_time_difference,
    words_of,
)
from ktrial.cli.render.screen import Screen
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Column, Output, Row, Table, facts, of_texts, own
from ktrial.model.attribution import (
    Attribution,
    Candidate,
    Cost,
    Count,
    Differences,
    Explanation,
    FunctionDifference,
    Match,
    OptionDifference,
    ProfileSide,
    Proof,
    Status,
    Tried,
    ValueDifference,
)
from ktrial.model.comparison import ONE_PERTURBATION, Comparison
from ktrial.model.fidelity import NO_FIDELITY, FidelityCitation, FidelityTable
from ktrial.model.profile import PROGRAM, Profile
from ktrial.model.workload import MODELLED_CYCLES, Mode
from ktrial.program_outputs import is_by_clock
from ktrial.report import attribution as tables
from ktrial.report.attribution import CAUSES, causes
from ktrial.report.call_tree import CALL_TREE_MEANING, CallTree, call_tree, call_tree_table
from ktrial.report.kernel_diff import followers_of, option_change
from ktrial.report.proof import causes_table, closing, headline, known_so_far, proof_as_json
from ktrial.report.provenance import releases

# Explanations as tables for the terminal: functions, subsystems, and whether they add up.

_LABEL_COLUMNS = 24
_UNIT = "counted, not time; a string instruction counts once"
_COUNTED_ANEW = "The stored trials were not counted by function: {} were counted anew for this."
_MOST_EVIDENCE = 5
_SMALLEST = 0.5
"""A difference that is shown as 0 by the table of subsystems is left out of it."""


def print_answer(
    attribution: Attribution,
    citations: Mapping[str, FidelityCitation | None],
    proof: Proof | None,
    console: Console,
    *,
    by: str | None,
) -> None:
    """What `explain` prints in 25 lines: what was proven, where the difference is, and the answer last."""
    explanation = attribution.explanation
    tree = call_tree(attribution.before, attribution.after, explanation)
    screen = Screen(console, more=same_command("-v"))
    screen.title(headline_of(attribution), _what_rows_are(explanation))
    if kernels := _releases(explanation):
        screen.lines([kernels], "list of releases", least=len(kernels) <= 2 * screen.width, style="dim")
    screen.gap()
    if attribution.counted_anew:
        screen.lines([_COUNTED_ANEW.format(" and ".join(attribution.counted_anew))], "", least=1)
    if proof:
        causes_measured, single = causes_table(proof), len(_measured_causes(proof))
        of_all = range(single, len(causes_measured.rows))
        by_part = sorted(range(single), key=lambda place: -abs(_measured_causes(proof)[place].effect))
        screen.rows(causes_measured, (*of_all, *by_part), "cause")
    if tree:
        table = call_tree_table(tree, side_headings(explanation))
        for column in ("share", "own"):  # of parts that cancel they say little
            table = table.adapted(column, outputs=Output.DOCUMENT)
        screen.rows(table, _by_depth(tree), "call")
        screen.leave_out(len(explanation.rows), "function")
    else:
        shown = [row for row in explanation.rows if explanation.weight(row)][:_FUNCTIONS]
        table = tables.functions_table(explanation, shown, side_headings(explanation))
        screen.rows(table, noun="function")
    if modelled := cost_rows(explanation, CostKind(by or CostKind.CYCLES)):
        screen.leave_out(len(modelled), "modelled cost")
    for count, citation in citations.items():
        if sentence := cited(citation, UNITS[count]):
            screen.lines([f"{count}: {sentence}"], "note on time", least=1)
    differences = attribution.differences
    suspected = [f"suspected, not measured: {breakable(cause)}" for cause in causes(differences)]
    screen.lines(suspected, "suspected setting", least=0 if proof else 1)
    unknown = [f"not compared: {text}" for text in differences.unknown]
    screen.lines(unknown, "missing comparison", least=1)
    screen.leave_out(len(differences.options), "decided, offered or compiler's option")
    screen.leave_out(len(differences.values), "differing setting")
    screen.print(_answer(attribution, tree, proof), next_step=_next_step(attribution, proof))


def _by_depth(tree: CallTree) -> tuple[int, ...]:
    """Places of rows: what is elsewhere and the outermost calls, which add up to the difference, then the
    others; the sum, which stands above the table too, last.
    """
    outermost = [place for place, row in enumerate(tree.rows) if row.depth == 0]
    inner = [place for place, row in enumerate(tree.rows) if row.depth]
    return (len(tree.rows), *outermost, *inner, len(tree.rows) + 1)


_FUNCTIONS = 12
_MUCH_UNEXPLAINED = 0.25
"""Of a difference: so much is worth a search for the release that brought it."""
_RELEASE = re.compile(r"debian:(\d+\.\d+)(:\w+)?")


def _next_step(attribution: Attribution, proof: Proof | None) -> str:
    """To measure causes; of what no cause explains, to find the release that brought it."""
    explanation, differences = attribution.explanation, attribution.differences
    if proof is None:
        can_be_proven = explanation.total and any(
            (differences.values, differences.options, differences.levels)
        )
        return same_command("--prove") if can_be_proven else ""
    share = proof.share(proof.unexplained)
    ends = [_RELEASE.fullmatch(side.label) for side in (explanation.before, explanation.after)]
    if share is None or abs(share) < _MUCH_UNEXPLAINED or not all(ends):
        return ""
    (first, flavour), (last, other) = [end.groups("") for end in ends if end]
    if flavour != other:
        return ""
    releases = f"{first}..{last}{flavour}"
    return shlex.join(["ktrial", "bisect", "versions", releases, explanation.workload, "--dry-run"])


def _measured_causes(proof: Proof) -> Sequence[Tried]:
    return [cause for cause in proof.tested if cause.status is Status.MEASURED]


def _answer(attribution: Attribution, tree: CallTree | None, proof: Proof | None) -> str:
    """`mmap runs 10.6 % more instructions on debian:6.12 than on debian:6.1, net +7,977: lru_add +5,617`;
    of a proof what was measured to have a part, the largest first, and what remains.

    The first number is the study's, over its perturbations; functions are counted under one of them.
    """
    explanation = attribution.explanation
    before, after = explanation.before, explanation.after
    ratio, ends = _change(explanation, attribution.of_study)
    if not explanation.total and ratio == 1:
        return f"{explanation.workload} runs as many instructions on {after.label} as on {before.label}."
    change = number_format.short_change(ratio).lstrip(f"+{number_format.MINUS}")
    amount, than = (
        (f"{change} {'more' if ratio > 1 else 'fewer'}", "than") if ratio != 1 else ("as many", "as")
    )
    start = (
        f"{explanation.workload} runs {amount} instructions on {after.label} {than} on {before.label}{ends}"
    )
    if proof is None:
        terms = "each with what it calls" if tree else "own code"
        net = f"; by function, {terms}, under one perturbation, net"
        whole = f"{start}{net} {breakable(tables.net_sentence_of(explanation, tree))}."
        locking = tables.locking_sentence(explanation.locking_share)
        return " ".join(filter(None, (whole, _kernels_part(explanation), locking)))
    parts = [
        f"{cause.candidate.name} {_part_of(proof, cause.effect)}"
        for cause in sorted(_measured_causes(proof), key=lambda cause: -abs(cause.effect))[:_MOST_NAMED]
    ]
    count = len(_measured_causes(proof))
    parts += [f"{count - _MOST_NAMED} more"] if count > _MOST_NAMED else []
    parts = parts or ["nothing that was changed back has a part"]
    if proof.together and proof.together.effect is not None and len(proof.together.names) > 1:
        parts += [f"together {_part_of(proof, proof.together.effect)}"]
    left = f"not explained {_part_of(proof, proof.unexplained)}"
    whole = number_format.rounded(proof.difference)
    return f"{start}. Measured by changing each back, of {whole} per operation: {', '.join(parts)}; {left}."


_MUCH_OF_THE_PROGRAM = 0.25
"""Of all instructions: where the program runs so many itself, the kernel's part is told apart."""


def _kernels_part(explanation: Explanation) -> str:
    """`The kernel runs 14 % of the instructions: 3.7 % fewer.`; empty where the program has next to none."""
    program = next((row for row in explanation.rows if row.function == PROGRAM), None)
    whole = explanation.before.instructions
    if program is None or not whole or program.before.instructions < _MUCH_OF_THE_PROGRAM * whole:
        return ""
    before, after = (
        Fraction(side.instructions - count.instructions, side.operations)
        for side, count in ((explanation.before, program.before), (explanation.after, program.after))
    )
    if not before:
        return ""
    share = number_format.share_of(float(before) / explanation.before.mean).replace(number_format.SPACE, " ")
    change = number_format.short_change(float(after / before))
    return f"The kernel's part is {share} of the instructions on {explanation.before.label}: {change}."


def _change(explanation: Explanation, study: Comparison | None) -> tuple[float, str]:
    """The ratio that is shown wherever the two are compared: the study's, with its interval; else that of the
    one perturbation that was counted.
    """
    if study is None or study.ratio is None:
        return explanation.after.mean / explanation.before.mean, f" ({ONE_PERTURBATION})"
    ends = number_format.short_interval(study.ratio, study.low, study.high)
    return study.ratio, f" ({study.no_interval})" if study.no_interval else ends


_MOST_NAMED = 3


def _part_of(proof: Proof, effect: float) -> str:
    share = number_format.share_of(proof.share(effect)).replace(number_format.SPACE, " ")
    return f"{number_format.rounded(effect)} ({share})"


def print_explained(
    attribution: Attribution,
    citations: Mapping[str, FidelityCitation | None],
    proof: Proof | None,
    console: Console,
    *,
    by: str | None,
    top: int | None,
    everything: bool,
) -> None:
    """All of it: functions, modelled costs, what they are in time, what differs, the proof, the answer."""
    explanation = attribution.explanation
    tree = call_tree(attribution.before, attribution.after, explanation)
    print_explanation(
        explanation,
        top,
        console,
        of_study=attribution.of_study,
        counted_anew=attribution.counted_anew,
        tree=tree,
    )
    print_costs(explanation, by, top, console)
    for count, citation in citations.items():
        if sentence := cited(citation, UNITS[count]):
            console.print(one_line(f"{count}: {sentence}"))
    print_guest_time_difference(attribution.before, attribution.after, console)
    print_differences(attribution, console, everything=everything)
    if proof:
        print_proof(proof, console)
    console.print()
    console.print(Text(one_line(_answer(attribution, tree, proof)), style="bold"))


def print_explanation(
    explanation: Explanation,
    top: int | None,
    console: Console,
    *,
    of_study: Comparison | None = None,
    counted_anew: Sequence[str] = (),
    tree: CallTree | None = None,
) -> None:
    """The net differences along the tree of calls, where that is known; the functions with the largest
    differences of their own, the rest, the sum; then the same by subsystem.

    `top` None: all of them. `of_study`: what the study says of the two. `counted_anew`: treatments whose
    stored trials had no counts by function.
    """
    console.print(Text(one_line(_headline(explanation, of_study)), style="bold"), soft_wrap=True)
    console.print(Text(_what_rows_are(explanation), style="dim"))
    if kernels := _releases(explanation):
        console.print(Text(one_line(kernels), style="dim"))
    if counted_anew:
        console.print(one_line(_COUNTED_ANEW.format(" and ".join(counted_anew))))
    console.print()
    if tree:
        _print_tree(tree, explanation, console)
    shown = [row for row in explanation.rows if explanation.weight(row)][:top]
    functions = tables.functions_table(explanation, shown, side_headings(explanation))
    console.print(rendered(functions))
    console.print()
    if any(abs(part) >= _SMALLEST for part in explanation.subsystems.values()):
        console.print(rendered(tables.subsystems_table(explanation, _SMALLEST)))
        console.print()
    for line in _closing(explanation, shown):
        console.print(line)


def _print_tree(tree: CallTree, explanation: Explanation, console: Console) -> None:
    console.print(rendered(call_tree_table(tree, side_headings(explanation))))
    console.print(Text(CALL_TREE_MEANING, style="dim"))
    console.print()
    gross, net = number_format.number(tree.gross), number_format.signed(float(explanation.total))
    title = f"by function, without what it calls (without their signs {gross} for a difference of {net})"
    console.print(Text(breakable(title), style="bold"))


def side_headings(explanation: Explanation) -> tuple[str, str]:
    """The two labels without the words that both begin with, as headings of columns."""
    old, new = explanation.before.label.split(), explanation.after.label.split()
    while old[1:] and new[1:] and old[0] == new[0]:
        old, new = old[1:], new[1:]
    return shortened(" ".join(old), _LABEL_COLUMNS), shortened(" ".join(new), _LABEL_COLUMNS)


def headline_of(attribution: Attribution) -> str:
    """`fork: debian:6.1 → debian:6.12: +14.3 % (+13.9 … +14.4), instructions per operation`."""
    return breakable(_headline(attribution.explanation, attribution.of_study))


def _headline(explanation: Explanation, study: Comparison | None) -> str:
    """`fork: debian:6.1 → debian:6.12: +14.3 % (+13.9 … +14.4), instructions per operation`."""
    pair = f"{explanation.before.label} → {explanation.after.label}"
    ratio, ends = _change(explanation, study)
    change = number_format.short_change(ratio)
    return f"{explanation.workload}: {pair}: {change}{ends}, instructions per operation"


def _releases(explanation: Explanation) -> str:
    """Which releases and flavours the two names stand for."""
    return releases((side.label, side.release) for side in (explanation.before, explanation.after))


def _what_rows_are(explanation: Explanation) -> str:
    """Of what the rows are parts: a mean under one perturbation, as only means add up."""
    total = number_format.signed(float(explanation.total))
    return f"rows add up to {total}, the mean under one perturbation; {_UNIT}"


def _closing(explanation: Explanation, shown: Iterable[FunctionDifference]) -> Iterable[str]:
    before, after = explanation.before, explanation.after
    total, left = float(explanation.total), float(explanation.unexplained)
    means = f"{number_format.number(before.mean)} → {number_format.number(after.mean)}"
    medians = f"{number_format.number(before.median)} → {number_format.number(after.median)}"
    yield f"Measured: {means}, the mean over the operations; the median is {medians}."
    unexplained = number_format.number(left)
    explained, total_change = number_format.signed(total - left), number_format.signed(total)
    yield f"The rows sum to {explained} of {total_change}; unexplained: {unexplained}."
    yield from _bytes(explanation)
    matches = {row.match for row in shown}
    if matches & {Match.ONLY_FROM, Match.ONLY_TO}:
        yield (
            f"{number_format.NONE}: the function did not run there: it is not there, inlined, or not called."
        )
    yield from _evidence(shown)


def _evidence(shown: Iterable[FunctionDifference]) -> Iterable[str]:
    """Why rows with an arrow are taken for one function."""
    named = [row for row in shown if row.match is Match.RENAMED]
    placed = [row for row in shown if row.match in {Match.PLACED, Match.MERGED, Match.SPLIT}]
    if named:
        yield "old → new: taken for one function, by their names."
    if placed:
        yield "Taken for one function, by their place in the tree of calls:"
        yield from (f"  {one_line(row.name)}: {one_line(row.evidence)}" for row in placed[:_MOST_EVIDENCE])
    if len(placed) > _MOST_EVIDENCE:
        yield f"  and {len(placed) - _MOST_EVIDENCE} more; --json has the evidence for all."


def _bytes(explanation: Explanation) -> Iterable[str]:
    before, after = explanation.before, explanation.after
    sizes = [number_format.number(side.string_bytes / side.operations) for side in (before, after)]
    yield f"String instructions worked on {sizes[0]} → {sizes[1]} bytes per operation."
    if explanation.byte_rows:
        yield "bytes: what they worked on more; rows are ranked by instructions and bytes, 32 bytes as one."
        yield "Shares are of the instructions alone."


# What differs around an explanation, as tables: levels, options, boot parameters, settings, counters.

_NAME_COLUMNS = 50
_VALUE_COLUMNS = 24
_OPTIONS_A_LINE = 6
_MOST_VALUES = 15
_MOST_COUNTERS = 8
_LEGEND = f"+ set in the second only, {number_format.MINUS} in the first only"
_SYSCTL = "/proc/sys/"
_LIST = 6
"""A value of that many words is a list: only the words that differ are shown."""


def print_differences(why: Attribution, console: Console, *, everything: bool = False) -> None:
    """Everything that differs; without `everything` the rest is counted."""
    differences = why.differences
    sections: list[tuple[str, Iterable[RichTable | Text | str]]] = [
        (CAUSES[0].lower() + CAUSES[1:], map(breakable, causes(differences))),
        ("what the treatments differ in", _levels(differences)),
        (
            "suspected, not measured: options of the configuration that own these functions by their names",
            _options(differences, everything),
        ),
        ("boot parameters", _boot(differences)),
        ("settings, as the kernels boot", _values(why, everything)),
        ("counters, per operation, with the pass that is not measured", _counters(why, everything)),
        ("not compared", map(one_line, differences.unknown)),
    ]
    for title, parts in sections:
        shown = list(parts)
        if shown:
            console.print()
            console.print(Text(title, style="bold"))
        for part in shown:
            console.print(part)


def _levels(differences: Differences) -> Iterable[str]:
    for level in differences.levels:
        yield one_line(f"{level.factor}: {level.before} → {level.after}")


def _options(differences: Differences, everything: bool) -> Iterable[RichTable | Text | str]:
    owned = [option for option in differences.options if option.owners]
    unowned = [option for option in differences.options if not option.owners]
    grouped: dict[str, list[OptionDifference]] = {}
    for option in owned:
        grouped.setdefault(option.owners[0], []).append(option)
    if grouped:
        yield _grouped(grouped, everything)
        yield Text(_LEGEND, style="dim")
        yield (
            f"These are {len(owned)} of {len(differences.options)} options that differ, "
            "with those that sources and compiler bring; kernel diff counts those that somebody decided on."
        )
    if unowned and everything:
        yield "others:"
        yield from (f"  {option_change(option)}{followers_of(option)}" for option in unowned)
    elif unowned:
        total = breakable(number_format.counted(len(unowned), "other option"))
        yield f"{total} differ{'s' if len(unowned) == 1 else ''}; --all shows them."


def _grouped(grouped: dict[str, list[OptionDifference]], everything: bool) -> RichTable:
    """A row a subsystem, with its options."""
    by_owner: dict[str, str] = {}
    for owner, options in grouped.items():
        shown = options if everything else options[:_OPTIONS_A_LINE]
        left = len(options) - len(shown)
        texts = [f"{option_change(option)}{followers_of(option)}" for option in shown] + (
            [f"and {left} more"] if left else []
        )
        by_owner[owner] = ("\n" if everything else ", ").join(texts)
    return rendered(facts(by_owner))


def _boot(differences: Differences) -> Iterable[str]:
    for side, parameters in (("first", differences.boot_before), ("second", differences.boot_after)):
        if parameters:
            yield one_line(f"the {side} only: {' '.join(parameters)}")


def _values(why: Attribution, everything: bool) -> Iterable[RichTable | str]:
    differences = why.differences
    both = [value for value in differences.values if None not in (value.before, value.after)]
    single = [value for value in differences.values if None in (value.before, value.after)]
    groups = _alike(both)
    shown = groups if everything else groups[:_MOST_VALUES]
    if shown:
        yield _sides("setting", why.explanation, ((_path(alike), *_texts(alike[0])) for alike in shown))
    if everything and single:
        paths = ((shortened(_name(value.path), _NAME_COLUMNS), *_texts(value)) for value in single)
        yield _sides("in one of the two only", why.explanation, paths)
        return
    left = sum(len(alike) for alike in groups[len(shown) :])
    if left or single:
        parts = [f"{left} more differ"] if left else []
        parts += [f"{len(single)} are in one of the two only"] if single else []
        yield f"{' and '.join(parts)}; --all shows them."


def _alike(values: Sequence[ValueDifference]) -> list[list[ValueDifference]]:
    """Values of one name that differ in the same way: `net.ipv6.conf.all` and `.default`; in order."""
    groups: dict[tuple[str, str | None, str | None], list[ValueDifference]] = {}
    for value in values:
        groups.setdefault((value.path.rpartition("/")[2], value.before, value.after), []).append(value)
    return list(groups.values())


def _path(alike: list[ValueDifference]) -> str:
    more = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
    return shortened(_name(alike[0].path), _NAME_COLUMNS) + more


def _name(path: str) -> str:
    """A sysctl by its name, as sysctl(8) has it; anything else by its path."""
    if not path.startswith(_SYSCTL):
        return path
    return path.removeprefix(_SYSCTL).translate(str.maketrans("./", "/."))


def _texts(setting: ValueDifference) -> tuple[str, str]:
    """The two values; of two lists, the words that only one of them has."""
    values = (setting.before, setting.after)
    before, after = ((value or "").split() for value in values)
    if min(len(before), len(after)) >= _LIST:
        old = " ".join(f"-{word}" for word in before if word not in after)
        new = " ".join(f"+{word}" for word in after if word not in before)
        if old or new:
            return old or number_format.NONE, new or number_format.NONE
    old, new = (
        number_format.NONE if value is None else shortened(value, _VALUE_COLUMNS) or '""' for value in values
    )
    return old, new


def _counters(why: Attribution, everything: bool) -> Iterable[RichTable | str]:
    differences = why.differences
    shown = differences.counters if everything else differences.counters[:_MOST_COUNTERS]
    if shown:
        number = number_format.number
        rows = ((counter.counter, number(counter.before), number(counter.after)) for counter in shown)
        yield _sides("counter", why.explanation, rows)
    if left := len(differences.counters) - len(shown):
        more = breakable(number_format.counted(left, "more counter"))
        yield f"{more} differ by 1 % or more; --all shows them."


def _sides(heading: str, explanation: Explanation, rows: Iterable[tuple[str, str, str]]) -> RichTable:
    """A row a thing, with what it is on either side."""
    before, after = side_headings(explanation)
    columns = (
        Column("name", heading),
        Column("before", before, numeric=True, wraps=True),
        Column("after", after, numeric=True, wraps=True),
    )
    return rendered(Table(columns, tuple(Row(tuple(map(own, texts))) for texts in rows)), heading_style="dim")


# Functions by modelled cycles or by a kind of miss, as tables for the terminal.

_MODELLED_COSTS_NAME_COLUMNS = 40


def check_modelled(explanation: Explanation, by: str | None) -> None:
    """Raise BadOption where something is asked for that was not modelled."""
    if by and explanation.prices is None:
        problem = "cycles of both sides were not modelled: --model desktop, or [machine] model of a study"
        raise BadOption("--by", problem)


def print_costs(explanation: Explanation, by: str | None, top: int | None, console: Console) -> None:
    """The functions whose modelled cycles, or misses, differ most; nothing where none were modelled."""
    kind = CostKind(by or CostKind.CYCLES)
    rows = cost_rows(explanation, kind)
    if not rows:
        return
    total = sum(row.difference for row in rows)
    share = [number_format.share(row.difference / total if total else None) for row in rows]
    texts = [
        (
            shortened(row.name, _MODELLED_COSTS_NAME_COLUMNS),
            number_format.number(row.before),
            number_format.number(row.after),
            number_format.signed(row.difference),
            part,
            row.moved,
        )
        for row, part in list(zip(rows, share, strict=True))[:top]
    ]
    headings = ("function", "before", "after", "difference", "share, %", "what moved")
    console.print()
    console.print(
        Text(f"by {words_of(kind)}, per operation: {number_format.signed(total)} in all", style="bold")
    )
    console.print(Text(MODELLED_NOT_TIME, style="dim"))
    console.print(rendered(of_texts(headings, texts).adapted("number-4", numeric=False)))


# Proofs for the terminal and as JSON: what was taken back, what that changed, what remains unexplained.


def estimate(cost: Cost, candidates: Sequence[Candidate], *, in_groups: bool = False) -> str:
    """`19 things differ that can be taken back: at most 63 trials, about 40 CPU seconds`."""
    if not candidates:
        return "nothing that may matter here differs and can be taken back: no trial is run for it"
    trials = number_format.counted(cost.trials, "trial")
    parts = [f"some {trials} where two of them matter" if in_groups else f"at most {trials}"]
    parts += [f"{number_format.counted(cost.boots, 'system')} to boot"] if cost.boots else []
    parts += [f"{number_format.counted(cost.builds, 'kernel')} to build"] if cost.builds else []
    count = number_format.counted(len(candidates), "thing")
    differs = "differs" if len(candidates) == 1 else "differ"
    order = ", first together, then by halves" if in_groups else ""
    seconds = number_format.duration(max(1.0, cost.seconds))
    text = f"{count} {differs} and can be taken back{order}: {', '.join(parts)}, about {seconds} of CPU time"
    return breakable(text)


def print_proof(proof: Proof, console: Console) -> None:
    """The table, all together, and what was not tried."""
    console.print()
    console.print(Text(headline(proof), style="bold"))
    table = causes_table(proof)
    if table.rows:
        console.print(rendered(table))
    for line in closing(proof):
        console.print(one_line(breakable(line)))


def print_known_so_far(proof: Proof, console: Console) -> None:
    """What an interrupted proof has found."""
    for line in known_so_far(proof):
        console.print(one_line(breakable(line)))


# What a counted change is said to be in time: a sentence, and JSON.

_INSTRUCTIONS = "instructions"


def cited(citation: FidelityCitation | None, unit: str) -> str:
    """The citation; where there is none, that nothing is known, if people take such a unit for time."""
    if citation:
        return citation.sentence
    return NO_FIDELITY if unit == MODELLED_CYCLES.unit or is_by_clock(unit) else ""


def citation_as_json(citation: FidelityCitation | None) -> dict[str, Any] | None:
    """With its sentence; None where nothing can be cited."""
    return {**citation.model_dump(mode="json"), "sentence": citation.sentence} if citation else None


UNITS = {_INSTRUCTIONS: _INSTRUCTIONS, MODELLED_CYCLES.name: MODELLED_CYCLES.unit}
"""Of what an explanation counts."""


def citations(why: Attribution, tables: Iterable[FidelityTable]) -> dict[str, FidelityCitation | None]:
    """Of what an explanation counts, what is known of changes as large as its own."""
    known_tables = tuple(tables)
    ratios = {
        _INSTRUCTIONS: _ratio(_instructions(why.before), _instructions(why.after)),
        MODELLED_CYCLES.name: _ratio(_cycles(why.before), _cycles(why.after)),
    }
    return {count: cite(known_tables, count, ratio) for count, ratio in ratios.items() if ratio}


def _instructions(profile: Profile) -> float:
    return profile.region.instructions / profile.operations


def _cycles(profile: Profile) -> float:
    return (profile.region.cycles or 0.0) / profile.operations


def _ratio(before: float, after: float) -> float | None:
    """None where one of the two was not counted."""
    return after / before if before and after else None


def explanation_as_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation, without what differs around it."""
    return {
        "workload": explanation.workload,
        "mode": Mode.EXACT_PLUGIN.value,
        "unit": UNIT_AS_JSON,
        "from": _side(explanation.before),
        "to": _side(explanation.after),
        "difference": float(explanation.total),
        "unexplained": float(explanation.unexplained),
        "locking_share": explanation.locking_share,
        "string_bytes_difference": float(explanation.byte_total),
        "functions": [_row_as_json(explanation, row) for row in explanation.rows],
        "subsystems": [
            {"subsystem": name, **_part(explanation, part)} for name, part in explanation.subsystems.items()
        ],
    }


def _side(side: ProfileSide) -> dict[str, Any]:
    return {**side.model_dump(mode="json"), "mean": side.mean}


def _row_as_json(explanation: Explanation, row: FunctionDifference) -> dict[str, Any]:
    return {
        "function": row.function,
        "module": row.module,
        "subsystem": row.subsystem,
        "file": row.file,
        "match": row.match.value,
        "evidence": row.evidence,
        "from": _count(row.before, explanation.before),
        "to": _count(row.after, explanation.after),
        "string_bytes_difference": float(explanation.byte_difference(row)),
        "weight": float(explanation.weight(row)),
        **_part(explanation, explanation.difference(row)),
    }


def _count(count: Count, side: ProfileSide) -> dict[str, Any]:
    return {**count.model_dump(mode="json"), "per_operation": count.instructions / side.operations}


def _part(explanation: Explanation, part: Fraction) -> dict[str, Any]:
    return {"difference": float(part), "share": explanation.share(part)}


def _change_as_json(attribution: Attribution) -> dict[str, Any]:
    """The change as the study has it, or one perturbation where no study compares the two."""
    study = attribution.of_study
    low, high = (study.low, study.high) if study else (None, None)
    ratio, _ = _change(attribution.explanation, study)
    none = study.no_interval if study else ONE_PERTURBATION
    return {"ratio": ratio, "low": low, "high": high, "no_interval": none}


def explained_as_json(
    attribution: Attribution, citations: Mapping[str, FidelityCitation | None], proof: Proof | None
) -> dict[str, Any]:
    """What `explain --json` prints: functions, what differs around them, what that is in time, its proof."""
    tree = call_tree(attribution.before, attribution.after, attribution.explanation)
    return {
        **explanation_as_json(attribution.explanation),
        "change": _change_as_json(attribution),
        "tree": [row._asdict() for row in tree.rows] if tree else None,
        **({"mode": Mode.EXACT_PARALLEL.value} if attribution.before.region.cpus else {}),
        "counted_anew": list(attribution.counted_anew),
        "differences": attribution.differences.model_dump(mode="json"),
        **guest_time_difference_as_json(attribution.before, attribution.after),
        "fidelity": {count: citation_as_json(citation) for count, citation in citations.items()},
        **({"proof": proof_as_json(proof)} if proof else {}),
    }
