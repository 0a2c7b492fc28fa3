"""One change on several machines, in text: what it comes to on each, and over machines like these."""

from rich.console import Console

from ktrial.format import number_format
from ktrial.format.labels import AGREEMENTS
from ktrial.format.sanitize import one_line
from ktrial.model.machine_agreement import Across


def print_across(row: Across, console: Console) -> None:
    """One change, with a line for each machine."""
    chance = f", p {row.p:.2g}" if row.p is not None else ""
    reason = f" ({row.reason})" if row.reason else ""
    what = f"{row.workload}, {row.metric}: {row.before} → {row.after}"
    console.print(one_line(f"{what}: {AGREEMENTS[row.agreement]}{chance}{reason}"), style="bold")
    for one in row.systems:
        system = one.system
        about = "; ".join(part for part in (system.machine, system.qemu[:24], system.cpu_model) if part)
        change = f"{number_format.change(one.ratio)} ({number_format.interval(one.low, one.high)})"
        console.print(one_line(f"  {change}  {about}; study {one.study_id}"))
    if over := row.over_machines:
        change = f"{number_format.change(over.ratio)} ({number_format.interval(over.low, over.high)})"
        apart = f"their own changes differ by {number_format.change(over.between)}"
        console.print(one_line(f"  {change}  over machines like these {len(row.systems)}; {apart}"))
