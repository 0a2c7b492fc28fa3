"""What differs between two kernels: what every workload runs stands first, drivers are counted."""

import io

from rich.console import Console

from ktrial.cli.render.kernels import print_kernel_difference
from ktrial.model.kernel import KernelDifference, KernelSide, OptionChange, Respect
from ktrial.report.kernel_diff import shown as change_shown

DRIVERS = tuple(
    OptionChange(option=f"CONFIG_AX_{number}", before=None, after="m", menu=("AX.25 network device drivers",))
    for number in range(120)
)
PREEMPT_RT = OptionChange(option="CONFIG_PREEMPT_RT", before=None, after="y", menu=("General setup",))
BINARIES = OptionChange(option="CONFIG_X32", before=None, after="y", menu=("Binary Emulations",))


def difference(*options: OptionChange) -> KernelDifference:
    sides = [KernelSide(name=name, release=name, digest=name * 12) for name in "ab"]
    return KernelDifference(before=sides[0], after=sides[1], respects=(Respect.OPTIONS,), options=options)


def test_menus_that_every_workload_runs_come_before_others_and_drivers_last() -> None:
    groups = change_shown(difference(*DRIVERS, BINARIES, PREEMPT_RT)).groups
    titles = [group.title for group in groups]
    assert titles == ["General setup", "Binary Emulations", "AX.25 network device drivers"]


def test_the_terminal_counts_drivers_where_many_options_differ_and_lists_them_with_all() -> None:
    def shown(*, everything: bool) -> str:
        console = Console(width=80, record=True, file=io.StringIO())
        print_kernel_difference(difference(*DRIVERS, BINARIES, PREEMPT_RT), console, everything=everything)
        return " ".join(console.export_text().split())

    few = shown(everything=False)
    assert "120 options of drivers, file systems, modules and the like, in 1 menu (--all)" in few
    assert "+AX_7=m" not in few
    assert "+PREEMPT_RT" in few
    assert "+AX_7=m" in shown(everything=True)
