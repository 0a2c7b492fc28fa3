"""A profile as tables for the terminal: by function, by CPU mode, by entry, by task."""

from rich.console import Console
from rich.text import Text

from ktrial.analysis.attribution.kernel_entry_points import kernel_entries
from ktrial.analysis.attribution.subsystems import subsystem
from ktrial.cli.render.guest_time import print_guest_time
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line, shortened
from ktrial.format.table import Table, of_texts
from ktrial.model.profile import PROGRAM, FunctionCount, Profile

_NAME_COLUMNS = 60
_UNIT = "instructions per operation, counted, not time; a string instruction counts once"
_UNIT_OF_SEVERAL = "instructions per operation, of all CPUs; a repeated string instruction counts each pass"
_NO_FILE = "(vDSO, generated code)"
_MOST_SYSTEM_CALLS = 10


def print_profile(profile: Profile, top: int, console: Console) -> None:
    """The functions with the most instructions of their own, the rest, the sum; then other views of it."""
    whole = number_format.number(profile.per_operation(profile.region.instructions))
    headline = f"{profile.workload} on {profile.label}: {whole} instructions per operation"
    console.print(Text(one_line(headline), style="bold"))
    console.print(Text(_UNIT if profile.region.cpus is None else _UNIT_OF_SEVERAL, style="dim"))
    for table in (_functions(profile, top), _modes(profile), _entries(profile), _tasks(profile)):
        if table.rows:
            console.print()
            console.print(rendered(table))
    console.print()
    region = profile.region
    left = number_format.number(profile.per_operation(region.instructions - region.kernel - region.program))
    moved = number_format.number(profile.per_operation(region.strings.bytes))
    console.print(f"The rows sum to {whole}; {left} belong to no row.")
    if region.operations.count > 1:
        median = number_format.number(profile.median)
        console.print(f"That is the mean over the operations; the median is {median}.")
    if region.cpus is None:
        console.print(f"String instructions worked on {moved} bytes an operation.")
    print_guest_time(profile, console)


def _functions(profile: Profile, top: int) -> Table:
    ranked = sorted(profile.region.functions, key=lambda each: (-each.instructions, each.symbol, each.module))
    rows: list[tuple[str, ...]] = []
    for each in ranked[:top]:
        own, called = _of_whole(profile, each.instructions), _each(profile, each.inclusive, each.entered)
        rows.append((_name(each), *own, *called, subsystem(each.symbol, each.module)))
    rest = ranked[top:]
    others = number_format.counted(len(rest), "other function")
    rows.append((others, *_of_whole(profile, sum(each.instructions for each in rest)), "", "", ""))
    for program in profile.programs:
        name = one_line(f"{PROGRAM} {program.program or _NO_FILE}")
        rows.append((name, *_of_whole(profile, program.instructions), "", "", ""))
    headings = ("function", "self", "%", "inclusive", "entered", "subsystem")
    return of_texts(headings, rows).adapted("number-4", numeric=False)


def _modes(profile: Profile) -> Table:
    modes = (("kernel", profile.region.kernel), ("user", profile.region.program))
    rows = ((name, *_of_whole(profile, count)) for name, count in modes)
    return of_texts(("CPU mode", "instructions", "%"), rows)


def _entries(profile: Profile) -> Table:
    every = kernel_entries(profile.region)
    ways = [each for each in every if not each.system_call]
    calls = [each for each in every if each.system_call]
    rows: list[tuple[str, ...]] = []
    for each in (*ways, *calls[:_MOST_SYSTEM_CALLS]):
        shown = shortened(each.name, _NAME_COLUMNS)
        name = f"  {shown}" if each.system_call else shown
        share = "" if each.inclusive is None else _of_whole(profile, each.inclusive)[1]
        inclusive, entered = _each(profile, each.inclusive, each.entered)
        rows.append((name, entered, inclusive, share))
    if len(calls) > _MOST_SYSTEM_CALLS:
        others = number_format.counted(len(calls) - _MOST_SYSTEM_CALLS, "other system call")
        rows.append((f"  {others}", "", "", ""))
    return of_texts(("entry", "entered", "inclusive", "%"), rows)


def _tasks(profile: Profile) -> Table:
    """Tasks have no names in what the plugin sees: they are numbered in the order in which they ran."""
    rows = []
    for number, task in enumerate(profile.region.tasks, start=1):
        name = f"task {number}" if task.stack else "before a task was known"
        kernel, user = (
            number_format.number(profile.per_operation(count)) for count in (task.kernel, task.program)
        )
        rows.append((name, kernel, user, _of_whole(profile, task.kernel + task.program)[1]))
    return of_texts(("task", "kernel", "user", "%"), rows)


def _name(function: FunctionCount) -> str:
    name = f"{function.symbol} [{function.module}]" if function.module else function.symbol
    return shortened(name, _NAME_COLUMNS)


def _each(profile: Profile, inclusive: int | None, entered: int) -> tuple[str, str]:
    counted = None if inclusive is None else profile.per_operation(inclusive)
    return number_format.number(counted), number_format.number(profile.per_operation(entered))


def _of_whole(profile: Profile, instructions: int) -> tuple[str, str]:
    share = instructions / (profile.region.instructions or 1)
    return number_format.number(profile.per_operation(instructions)), number_format.share(share)
