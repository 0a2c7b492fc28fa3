"""A series as plain text of at most 75 columns: what is pasted into a reply to the list."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from ktrial.format import number_format
from ktrial.format.sanitize import beginning, one_line, printable, shortened
from ktrial.model.kernel import SeriesKind
from ktrial.model.regression_check import Decision
from ktrial.model.series_result import INSIDE, Alone, SeriesCell, SeriesResult, Step, StepState
from ktrial.report.attribution import locking_sentence
from ktrial.text_lines import lines_of

COLUMNS = 75
"""Quoted once, a line of a mail still fits 80."""
_CELL = 9
_CELLS = 4
"""Columns of workloads side by side."""
_SUBJECT = COLUMNS - _CELLS * _CELL - 4
_MOST_NAMED = 12
_MOST_NOTES = 2
_MOST_WAYS = 6
_SIGNATURE = "-- "
"""Below it, a mail program leaves out what stands there when it quotes (RFC 3676, 4.3)."""
_INSIDE = "≈"
_NOT_EXECUTED = "∅"
_OPEN = "?"
_NONE = "·"


def as_text(result: SeriesResult, command: str, top: int = 3, alone: Sequence[Alone] = ()) -> str:
    """The whole report. `command`: what repeats it; `top`: functions for each changed cell; `alone`: what
    each patch costs on the base.
    """
    blocks = [
        _paragraph(title(result)),
        _paragraph(exercised(result)),
        "\n".join(_facts(result)),
        *_tables(result),
        *_answers(result, top),
        "\n".join(alone_lines(result, alone)),
        _paragraph(sums(result)),
        _paragraph(answer(result)),
        "\n".join(_trailer(result, command)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def title(result: SeriesResult) -> str:
    """What was measured, in a line."""
    series = result.series
    count = f"{len(series.patches)} {'patch' if len(series.patches) == 1 else 'patches'}"
    version = f"{series.version} of " if series.version else ""
    named = f", {one_line(series.title)}" if series.title else ""
    return f"ktrial series: {version}{count}{named}"


def based_on(result: SeriesResult) -> str:
    """`onto debian:linux-source-6.1 (6.1.170)`: the source, and what its kernel calls itself."""
    base = result.steps[0].kernel
    return f"onto {result.series.base}{f' ({base.release})' if base else ''}"


def exercised(result: SeriesResult) -> str:
    """What nothing exercised: the first thing to know about all that follows.

    Patches that change only data are named, with the functions that read it and ran.
    """
    data_alone = [step for step in result.steps if step.data and not step.functions]
    text = _executed(result)
    if shared := result.shared_names:
        text += (
            f" Several functions are called {_named(shared)}, and no profile tells which of them ran: none "
            "counts as executed."
        )
    if not data_alone or not result.selection.changed:
        return text
    patches = "; ".join(
        f"patch {step.number} changes {_named(sorted(step.data))}, {_read_by(result, [step])}"
        for step in data_alone
    )
    return f"{text} Data alone: {patches}."


def _read_by(result: SeriesResult, steps: Sequence[Step]) -> str:
    """`which a reads, that ran`: of the functions that name the data of these steps."""
    readers = sorted({name for step in steps for name in step.readers})
    if not readers:
        return "which no function names: who reads it through a pointer is not known"
    ran = [name for name in readers if name in result.executed]
    if not result.counted:
        return f"which {_named(readers)} may read; no profile tells whether they ran"
    if not ran:
        return f"and none of its readers ran: {_named(readers)}"
    some = (
        "all of its readers ran"
        if len(ran) == len(readers)
        else f"{len(ran)} of its {len(readers)} readers ran"
    )
    return f"and {some}: {_named(ran)}"


def _executed(result: SeriesResult) -> str:
    changed, idle = result.selection.changed, result.not_executed
    if not all(step.is_compared for step in result.steps):
        return "Which functions it changes is not known: the images have no symbols with sizes."
    if not changed:
        data = sorted({name for step in result.steps for name in step.data})
        if data:
            return (
                f"The series changes no function, but data: {_named(data)}, {_read_by(result, result.steps)}."
            )
        return "The series changes no function and no data of the kernel in this configuration."
    if not result.counted:
        return f"The series changes {_functions(len(changed))}; no profile tells who executes them."
    if not idle:
        labels = [choice.use.label for choice in result.selection.chosen]
        by = "the workloads that were asked for" if result.asked or not labels else _named(labels)
        if len(changed) == 1:
            return f"The one function that this series changes, {changed[0]}, is executed by {by}."
        return f"All {_functions(len(changed))} that this series changes are executed by {by}."
    by = "no workload that was measured" if result.executed_elsewhere else "no workload"
    if result.asked:
        by = "none of the workloads that were asked for"
    more = f"{_elsewhere(result)}{_ways(result)}"
    if len(changed) == 1:
        return f"The one function that this series changes, {_named(idle)}, is executed by {by}.{more}"
    are = "is" if len(idle) == 1 else "are"
    return (
        f"{len(idle)} of the {_functions(len(changed))} that this series changes {are} executed by {by}: "
        f"{_named(idle)}.{more}"
    )


def _ways(result: SeriesResult) -> str:
    """How what did not run can be reached: which programs would run it."""
    ways = []
    for name, way in result.ways.items():
        if way.system_calls:
            call = "system call" if len(way.system_calls) == 1 else "system calls"
            ways.append(f"{one_line(name)} by the {call} {_named(way.system_calls)}")
        elif way.tables:
            ways.append(f"{one_line(name)} through {_named(way.tables)}")
    more = f"; {len(ways) - _MOST_WAYS} more" if len(ways) > _MOST_WAYS else ""
    text = f" Programs reach {'; '.join(ways[:_MOST_WAYS])}{more}." if ways else ""
    booted = result.only_booted
    if not booted:
        return text
    if len(booted) == len(result.not_executed):
        return f"{text} The boot executes {'it' if len(booted) == 1 else 'all of them'}, and is not measured."
    number = f"{len(booted)} of these functions" if len(booted) > 1 else "one of these functions"
    return f"{text} Only the boot executes {number}, and is not measured: {_named(booted)}."


def _elsewhere(result: SeriesResult) -> str:
    """What would run that did not: workloads that were left out, and the option that adds them."""
    elsewhere = result.executed_elsewhere
    if not elsewhere:
        return ""
    # The fewest that bring them all are not looked for: the first of each will do.
    labels = list(dict.fromkeys(names[0] for names in elsewhere.values()))
    every = ",".join([*(use.label for use in result.measurement.workloads), *labels])
    were = "which was" if len(labels) == 1 else "which were"
    return (
        f" {_named(labels)}, {were} not measured, {'runs' if len(labels) == 1 else 'run'} "
        f"{_named(sorted(elsewhere))}: --workload {every} measures all."
    )


def answer(result: SeriesResult) -> str:
    """The whole in one sentence."""
    beyond = [cell for cell in (*result.cells, *result.totals) if cell.decision is Decision.BEYOND]
    match result.decision:
        case Decision.BEYOND:
            where = ", ".join(f"{_whose(cell)} in {cell.workload} {_beyond(cell)}" for cell in beyond[:6])
            more = f" and {len(beyond) - 6} more" if len(beyond) > 6 else ""
            return f"Beyond the limit: {where}{more}{_inside_in_its_own(result)}; by {_by(result)}."
        case Decision.NOT_RUN:
            rest = f"Of the rest {_idle(result)}" if result.is_idle else "What ran is within the limit"
            return f"Not all of it ran: {_not_run(result)}. {rest}."
        case Decision.UNDECIDED:
            cells = (*result.cells, *result.totals)
            names = {cell.workload for cell in cells if cell.decision is result.decision}
            decided = [cell for cell in result.totals if cell.workload not in names]
            within = ", ".join(f"{cell.workload} {_change(cell)}" for cell in decided)
            start = f"Within the limit: {within}. " if within else ""
            broken = f" Not all of it ran: {_not_run(result)}." if result.broken else ""
            return (
                f"{start}Undecided: {', '.join(sorted(names))}: a larger --max or more --perturbations may "
                f"decide.{broken}"
            )
        case Decision.NOT_EXECUTED:
            return f"Not executed: {_idle(result)}."
        case _:
            inside = _inside_in_its_own(result)
            return f"Within the limit, each patch and all together{inside}, by {_by(result)}."


def _idle(result: SeriesResult) -> str:
    labels = ", ".join(use.label for use in result.measurement.workloads)
    return f"no function that a patch changes ran in {labels}: its cost is not known"


def _not_run(result: SeriesResult) -> str:
    """`patch 3 does not build, 5 does not boot`."""
    return "patch " + ", ".join(f"{step.number} {step.state.value}" for step in result.broken)


def _inside_in_its_own(result: SeriesResult) -> str:
    """`; inside it, in functions that the patch changes: patch 4 in pipe +0.58 %`: it is not nothing."""
    cells = [
        cell
        for cell in result.cells
        if cell.decision is Decision.WITHIN and cell.own * cell.difference > 0 and not cell.is_open
    ]
    if not cells:
        return ""
    named = ", ".join(f"{_whose(cell)} in {cell.workload} {_change(cell)}" for cell in cells[:3])
    more = f" and {len(cells) - 3} more" if len(cells) > 3 else ""
    return f"; inside it, in functions that the patch changes: {named}{more}"


def sums(result: SeriesResult) -> str:
    """What base and tip differ by in each workload; empty where nothing was measured."""
    if not result.totals:
        return ""
    return (
        f"From base to tip, in {counted(result)} per operation: "
        + ", ".join(f"{cell.workload} {exact(cell.difference)}" for cell in result.totals)
        + "."
    )


def counted(result: SeriesResult) -> str:
    """What an operation's number is made of."""
    return "instructions" if is_instructions(result) else "nanoseconds of guest time"


def is_instructions(result: SeriesResult) -> bool:
    """Whether instructions are counted; else simulated time."""
    return result.measurement.settings.kind == "exact"


def _by(result: SeriesResult) -> str:
    return "instructions counted, not time" if is_instructions(result) else "guest time, simulated, not real"


def _machine(result: SeriesResult) -> str:
    settings = result.measurement.settings
    cpus = f" on {settings.cpus} CPUs" if settings.cpus > 1 else ""
    return cpus + (f", cycles as on {settings.model.name}" if settings.model else "")


def exact(value: Fraction) -> str:
    """`+1256`, `−0.333333`: to the last instruction."""
    sign = "+" if value > 0 else number_format.MINUS if value < 0 else ""
    return sign + number_format.exactly(abs(value))


def _facts(result: SeriesResult) -> Iterator[str]:
    facts = {
        "series": _origin(result),
        "ran": ", ".join(use.label for use in result.measurement.workloads) if result.totals else "nothing",
        "counted": f"{counted(result)} per operation, in QEMU{_machine(result)}; each patch against the step "
        "before",
        "limits": ", ".join(dict.fromkeys(f"+{number_format.percentage(size)}" for _, size in result.limits)),
        "marks": marks(result),
        "built": built_again(result),
        "note": "; ".join((*result.series.notes, *result.notes)),
    }
    yield from _named_facts(facts)


def _named_facts(facts: Mapping[str, str]) -> Iterator[str]:
    for name, text in facts.items():
        if text:
            yield _wrapped(one_line(text.replace("\u00a0", " ")), f"  {name:<8}", " " * 10)


def _trailer(result: SeriesResult, command: str) -> Iterator[str]:
    """What it was measured on, how to repeat it, and by what one sees that it came out the same."""
    base = result.steps[0].kernel
    compiler = base.origin.compiler.partition(",")[0] if base else ""
    options = "".join(
        f" {name.removeprefix('CONFIG_')}={value}" for name, value in result.plain.options.items()
    )
    yield _SIGNATURE
    yield from _named_facts(
        {
            "base": based_on(result).removeprefix("onto ")
            + (f"; {why}" if (why := result.steps[0].why) else ""),
            "config": f"{result.plain.config}{options}" + (f"; {compiler}" if compiler else ""),
        }
    )
    yield "To repeat it, with these numbers again:"
    yield _wrapped(command, "    ", "      ")
    yield f"  sha256:{result.numbers_digest}"


def built_again(result: SeriesResult) -> str:
    """Which kernels were built from nothing, too, and what came of it; empty where none was."""
    numbers = result.built_again
    if not numbers:
        return ""
    which = f"patch {numbers[0]}" if len(numbers) == 1 else f"patches {', '.join(map(str, numbers))}"
    kernels, are = ("kernel", "is") if len(numbers) == 1 else ("kernels", "are")
    return f"built from nothing, too, the {kernels} of {which} {are} the same, bit by bit"


def marks(result: SeriesResult) -> str:
    """What the marks in the table stand for that readers may not know."""
    if not any(cell.is_open for cell in (*result.cells, *result.totals)):
        return ""
    return f"{_OPEN} other layouts of the same code say otherwise: it need not be the patch's"


def _origin(result: SeriesResult) -> str:
    series = result.series
    cover = f", <{series.cover_id}>" if series.cover_id else ""
    kind = {SeriesKind.GIT: "git", SeriesKind.MAILBOX: "mailbox", SeriesKind.QUILT: "quilt"}[series.kind]
    return f"{kind} {series.origin.rpartition('/')[2] if cover else series.origin}{cover}"


def alone_lines(result: SeriesResult, alone: Sequence[Alone]) -> Iterator[str]:
    """What each patch costs alone, and whether it depends on the others."""
    if alone:
        yield "Alone on the base:"
    for patch in alone:
        costs = [
            f"{cell.workload} {_change(cell)}"
            for cell in patch.cells
            if cell.is_told or cell.workload in patch.depends
        ]
        text = patch.why or ", ".join(costs) or "inside the margin"
        yield _wrapped(one_line(f"{patch.number:>3} {text}"), "  ", "      ")
        if patch.depends:
            among_others = (result.cell(patch.number, name) for name in patch.depends)
            among = ", ".join(f"{cell.workload} {_change(cell)}" for cell in among_others if cell)
            yield _wrapped(f"it depends on the patches before it: among them {among}", "      ", "      ")


def changed_workloads(result: SeriesResult) -> list[str]:
    """The workloads that have something to tell, in their order."""
    changed = {cell.workload for cell in (*result.cells, *result.totals) if cell.is_told}
    return [use.label for use in result.measurement.workloads if use.label in changed]


class PatchRow(NamedTuple):
    """One patch as a line of the terminal's table."""

    text: str
    is_telling: bool
    """Whether it changed a number, or was not measured as it should be."""


def terminal_rows(result: SeriesResult) -> tuple[str, tuple[PatchRow, ...], int]:
    """The heading, a row a patch and one from base to tip, for the workloads that changed first; and how many
    more changed.
    """
    names = changed_workloads(result)
    heading, *lines = _table(result, names[:_CELLS]) if names else ("", *_table(result, ()))
    steps = result.steps[1:]
    telling = [
        step.state.is_broken
        or any((cell := result.cell(step.number, name)) and cell.is_told for name in names)
        for step in steps
    ]
    telling += [True] * (len(lines) - len(telling))  # from base to tip
    rows = tuple(PatchRow(line, told) for line, told in zip(lines, telling, strict=True))
    return heading, rows, max(0, len(names) - _CELLS)


def _tables(result: SeriesResult) -> Iterator[str]:
    names = changed_workloads(result)
    for start in range(0, max(1, len(names)), _CELLS):
        yield "\n".join(_table(result, names[start : start + _CELLS]))
    quiet = [use.label for use in result.measurement.workloads if use.label not in names]
    cells = [cell for cell in result.cells if not cell.is_told]
    ran = {cell.workload for cell in cells if not cell.is_idle}
    if result.totals and (inside := [name for name in quiet if name in ran]):
        yield _paragraph(f"Inside the margin at every step: {', '.join(inside)}.")
    idle = {cell.number for cell in cells if cell.is_idle}
    silent = idle - {cell.number for cell in result.cells if not cell.is_idle}
    if any(cell.is_idle and (cell.workload in names or cell.number in silent) for cell in cells):
        yield _paragraph(f"{_NOT_EXECUTED}: no function that the patch changes ran: its cost is not known.")


def _table(result: SeriesResult, names: Sequence[str]) -> Iterator[str]:
    width = _width(names)
    if names:
        yield " " * (4 + _SUBJECT) + "".join(f"{shortened(name, width - 1):>{width}}" for name in names)
    for step in result.steps[1:]:
        assert step.patch is not None, "only the base has none"
        begin = f"{step.number:>3} {beginning(one_line(step.patch.subject), _SUBJECT - 1):<{_SUBJECT}}"
        yield (begin + _row(result, step, names)).rstrip()
    if names:
        cells = (next(cell for cell in result.totals if cell.workload == name) for name in names)
        yield f"    {'base to tip':<{_SUBJECT}}" + "".join(f"{cell_text(cell):>{width}}" for cell in cells)


def _width(names: Sequence[str]) -> int:
    """Of a column, so that their names are whole where there is room for them."""
    wanted = max((len(name) + 1 for name in names), default=0)
    return max(_CELL, min(wanted, _CELLS * _CELL // max(1, len(names))))


def _row(result: SeriesResult, step: Step, names: Sequence[str]) -> str:
    if not step.is_own or not names:
        quiet = quiet_text([cell for cell in result.cells if cell.number == step.number])
        text = quiet if quiet and not step.only_moves else state_text(step)
        return f" {beginning(text, _CELLS * _CELL - 1)}"
    cells = (result.cell(step.number, name) for name in names)
    return "".join(f"{cell_text(cell) if cell else _NONE:>{_width(names)}}" for cell in cells)


def cell_text(cell: SeriesCell) -> str:
    """`+1.02%`; `≈+0.30%` where a function of the patch makes a difference inside the margin; `?−20.93%`
    where that depends on the layout; `∅` where no function of the patch ran; else `≈`.
    """
    if not cell.is_told:
        return _NOT_EXECUTED if cell.is_idle else _INSIDE
    return f"{_INSIDE if cell.is_inside else _OPEN if cell.is_open else ''}{_change(cell)}"


def quiet_text(cells: Sequence[SeriesCell]) -> str:
    """What cells come to that tell nothing: `≈`, or `∅ not executed`; empty where there are none."""
    if not cells:
        return ""
    return f"{_NOT_EXECUTED} not executed" if all(cell.is_idle for cell in cells) else _INSIDE


def state_text(step: Step) -> str:
    """What became of a step that has no kernel of its own, in a few words."""
    if step.state is StepState.NOT_COMPILED:
        return f"not compiled: {step.why}"
    if step.only_moves:
        return "same code at other addresses"
    if step.is_own:
        return _INSIDE
    if step.state in {StepState.SAME_IMAGE, StepState.NOT_CONFIGURED}:
        return step.state.value
    mended = f", mended by {step.mended_by}" if step.mended_by else ", left out" if step.left_out else ""
    return f"{step.state.value.upper()}{mended}"


def _answers(result: SeriesResult, top: int) -> Iterator[str]:
    """Each patch's subject as a reply quotes it, and what it costs; patches of which the same is to be said
    stand together.
    """
    alike = groupby(result.steps[1:], key=lambda step: _cost(result, step, top))
    for lines, patches in alike:
        yield "\n".join([*(_quoted(result, step) for step in patches), *lines])


def _quoted(result: SeriesResult, step: Step) -> str:
    """`> [PATCH v3 2/5] mm: a subject`, and the mail."""
    assert step.patch is not None, "only the base has none"
    version = f"{result.series.version} " if result.series.version else ""
    number = f"[PATCH {version}{step.number}/{len(result.series.patches)}]"
    mail = [f"> <{one_line(step.patch.message_id)}>"] if step.patch.message_id else []
    return "\n".join([_wrapped(f"{number} {one_line(step.patch.subject)}", "> ", ">   "), *mail])


def _cost(result: SeriesResult, step: Step, top: int) -> tuple[str, ...]:
    """What there is to say about one patch."""
    lines = [*_said_of(step)]
    cells = [cell for cell in result.cells if cell.number == step.number]
    for cell in cells:
        if cell.is_told:
            lines += _cell_lines(cell, top, counted(result))
    if any(cell.is_told for cell in cells) or step.state.is_broken or step.only_moves:
        return tuple(lines)
    return (_wrapped(one_line(_quiet(cells) if cells else state_text(step)), "  ", "    "), *lines)


def _quiet(cells: Sequence[SeriesCell]) -> str:
    """What there is to say of a patch that moves no number; what ran nothing of it tells nothing."""
    idle = [cell.workload for cell in cells if cell.is_idle]
    if len(idle) == len(cells):
        return f"not executed: no function that it changes ran in {', '.join(idle)}"
    nothing = f"; no function that it changes ran in {', '.join(idle)}" if idle else ""
    return f"inside the margin in all workloads{nothing}"


def _said_of(step: Step) -> Iterator[str]:
    if step.state.is_broken:
        why, quoted = with_quoted_lines(step.why)
        yield _wrapped(one_line(f"{step.state.value}: {why}"), "  ", "    ")
        yield from (f"    {line[: COLUMNS - 4]}".rstrip() for line in quoted)
    if step.mended_by:
        yield f"  it works again with patch {step.mended_by}"
    elif step.left_out:
        yield "  the patches after it are measured without it"
    if step.only_moves:
        yield "  its kernel has the same functions and data, at other addresses"
    if step.options:
        yield _wrapped("options: " + ", ".join(map(str, step.options)), "  ", "    ")
    for note in step.notes[:_MOST_NOTES]:
        yield _wrapped(one_line(note), "  ", "    ")
    if more := step.notes[_MOST_NOTES:]:
        yield f"  and {len(more)} more {'hunk' if len(more) == 1 else 'hunks'} elsewhere than it says"


def with_quoted_lines(why: str) -> tuple[str, tuple[str, ...]]:
    """A reason, and the lines that it quotes of a patch, as they stand there: a hunk that does not apply."""
    first, *quoted = lines_of(why) or [""]
    return first, tuple(printable(line.expandtabs()) for line in quoted)


def _cell_lines(cell: SeriesCell, top: int, unit: str) -> Iterator[str]:
    yield f"  {cell.workload}: {_signed(cell.difference)} {unit} per operation ({_change(cell)})"
    if cell.is_open:
        yield _wrapped(open_text(cell), "    ", "    ")
    for line in beside(cell):
        yield _wrapped(line, "    ", "    ")
    for row, part in cell.functions(top):
        mark = "*" if cell.is_changed(row) else " "
        yield f"    {_signed(part):>12} {mark} {shortened(one_line(row.name), COLUMNS - 20)}"


def cost_lines(result: SeriesResult, top: int) -> list[str]:
    """`1/4 syscall +31: __x64_sys_getppid +31`: what each change comes to that is beyond the limit, or in a
    function that the patch changes, and where.
    """
    count = len(result.series.patches)
    return [
        f"{cell.number}/{count} {cell.workload} {_signed(cell.difference)}: "
        + ", ".join(f"{one_line(row.name)} {_signed(part)}" for row, part in cell.functions(top))
        for cell in result.cells
        if (cell.decision is Decision.BEYOND or cell.own) and cell.functions(top)
    ]


def open_text(cell: SeriesCell) -> str:
    """What a cell says whose number need not be the patch's."""
    comparison = cell.checked[0].comparison
    if comparison.low is None or comparison.high is None:
        return f"inconclusive: {one_line(comparison.reason)}"
    low, high = (
        f"{number_format.change(ratio, percent=False)}%" for ratio in (comparison.low, comparison.high)
    )
    return f"inconclusive: with other layouts of the same code it is between {low} and {high}"


IDLE = (
    "no function that the patch changes ran in it: the difference is of layout or of the order of "
    "scheduling, not of the patch's code"
)


def idle_lines(result: SeriesResult) -> list[str]:
    """`hackbench, patch 1, −8.40%: no function that …`: of each change in which nothing of a patch ran."""
    return [
        f"{cell.workload}, {_whose(cell)}, {_change(cell)}: {IDLE}"
        for cell in (*result.cells, *result.totals)
        if cell.is_told and cell.is_idle
    ]


def beside(cell: SeriesCell) -> Iterator[str]:
    """That nothing of the patch ran, or that it rests on locks; metrics beside the first one that do not stay
    inside the margin: `modelled-cycles +2.10%, worse`.
    """
    if cell.is_idle:
        yield IDLE
    elif cell.on_several:
        yield from on_several(cell)
    elif cell.explanation and (locking := locking_sentence(cell.explanation.locking_share)):
        yield locking
    for metric in cell.checked:
        comparison = metric.comparison
        if metric.secondary and comparison.verdict not in INSIDE:
            by = (
                f"{number_format.change(comparison.ratio, percent=False)}%"
                if comparison.ratio
                else "from or to nothing"
            )
            yield f"{comparison.metric} {by}, {comparison.verdict.value}"


def on_several(cell: SeriesCell) -> Iterator[str]:
    """`4 CPUs: 1,050 → 1,449, +38.00% (+37.10% … +38.90%): worse`: each metric, as several CPUs have it."""
    for metric in cell.on_several:
        comparison = metric.comparison
        before, after = (
            number_format.quantity(value, comparison.unit)
            for value in (comparison.baseline_value, comparison.value)
        )
        name = f" {comparison.metric}" if metric.secondary else ""
        ends = (comparison.low, comparison.high)
        interval = " … ".join(f"{number_format.change(end, percent=False)}%" for end in ends if end)
        yield (
            f"{cell.cpus} CPUs{name}: {before} → {after}, "
            f"{number_format.change(comparison.ratio, percent=False)}%"
            f"{f' ({interval})' if interval else ''}: {comparison.verdict.value}"
        )


def several_lines(result: SeriesResult) -> list[str]:
    """`page-fault2, patch 3: one CPU +11.63%; 4 CPUs: …`: of each change measured on several CPUs."""
    return [
        f"{cell.workload}, {_whose(cell)}: one CPU {_change(cell)}; {line}"
        for cell in (*result.cells, *result.totals)
        if cell.is_told
        for line in on_several(cell)
    ]


def _beyond(cell: SeriesCell) -> str:
    """By which metric: `+1.02%`, or with its name where it is not the workload's own; `on 4 CPUs +38.00%`
    where one CPU has none beyond.
    """
    if all(metric.decision is not Decision.BEYOND for metric in cell.checked):
        several = next(metric for metric in cell.on_several if metric.decision is Decision.BEYOND)
        return (
            f"on {cell.cpus} CPUs {number_format.change(several.comparison.ratio, percent=False)}% "
            f"(one CPU: {_change(cell)})"
        )
    first, *following = cell.checked
    if first.decision is Decision.BEYOND or not (
        far := [metric for metric in following if metric.decision is Decision.BEYOND]
    ):
        return _change(cell)
    ratio = far[0].comparison.ratio
    return f"by {far[0].comparison.metric} " + (
        f"{number_format.change(ratio, percent=False)}%" if ratio else ""
    )


def _whose(cell: SeriesCell) -> str:
    return f"patch {cell.number}" if cell.number else "base to tip"


def _change(cell: SeriesCell) -> str:
    if cell.ratio is None:
        return _signed(cell.difference)
    return f"{number_format.change(cell.ratio, percent=False)}%"


def _signed(value: Fraction) -> str:
    return number_format.signed(float(value)).replace("\u00a0", " ")


def _functions(count: int) -> str:
    return number_format.counted(count, "function")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(one_line(name) for name in names[:_MOST_NAMED]) + more


def _paragraph(text: str) -> str:
    return _wrapped(one_line(text), "", "") if text else ""


def _wrapped(text: str, first: str, later: str) -> str:
    lines = textwrap.wrap(
        text, COLUMNS, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )
    return "\n".join(lines)
