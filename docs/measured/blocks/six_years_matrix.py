"""docs/six-years.md: the matrix, the counts of the same runs, and some histories."""

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.six_years import FIRST, KERNELS, PAGE, SixYears
from docs.measured.wording import percent, prose, table, with_commas

_BOLD = 5
_COUNTED = ("5.10", "6.12", "6.18", "7.2")
_HISTORIES = """
- **fork** grew with each version up to 6.18 (by {less[fork 5.10 6.1]}, {less[fork 5.10 6.12]} and
{less[fork 5.10 6.18]} % over 5.10) and stands still since. `exec`, `vfork` and `thread` go with it.
- **A system call** (`syscall`) cost {at[syscall 5.10]} instructions in 5.10, {at[syscall 6.12]} in 6.12,
and {at[syscall 7.2]} in 7.2.
- **pipe** takes {less[pipe 6.12 7.2]} % fewer instructions in 7.2 than in 6.12 ({at[pipe 6.12]} and
{at[pipe 7.2]}).
- **futex** gains weight each time: {at[futex 5.10]}, {at[futex 6.1]}, {at[futex 6.12]}, {at[futex 6.18]},
{at[futex 7.2]}. No cause was looked for here.
- **The file server** under memory pressure takes {less[file-server 5.10 6.18]} % fewer instructions in 6.18
than in 5.10, and {less[file-server 5.10 7.2]} % in 7.2 (6.1: {change[file-server 6.1]} %).
"""


def _matrix(measuring: Measuring) -> str:
    six = SixYears(measuring)
    bold = six.ranked()[:_BOLD]
    rows = []
    for workload in six.workloads:
        strongest = six.largest(workload)[0] if workload in bold else ""
        cells = [(series, percent(six.ratio(workload, series))) for series in KERNELS[1:]]
        changes = (f"**{cell}**" if series == strongest else cell for series, cell in cells)
        rows.append((f"`{workload}`", with_commas(six.value(workload, FIRST)), *changes))
    control = {six.value("nqueens", series) for series in KERNELS}
    measuring.claim(len(control) == 1, "nqueens stays where it is to the last instruction")
    return table(("workload", *KERNELS), rows, right=True)


def _counts(measuring: Measuring) -> str:
    six = SixYears(measuring)

    def row(what: str, workload: str, *metrics: str, digits: int | None = None) -> tuple[str, ...]:
        cells = (
            ", ".join(
                six.count(workload, series, metric)
                if digits is None
                else f"{six.value(workload, series, metric):,.{digits}f}"
                for metric in metrics
            )
            for series in _COUNTED
        )
        return (f"`{workload}`: {what}", *cells)

    latency = "(µs of the guest)"
    rows = (
        row("read requests for 8 MiB", "seq-read", "read requests"),
        row("context switches", "seq-read", "context switches"),
        row(f"latency p50, p99 {latency}", "seq-read", "latency p50", "latency p99", digits=0),
        row("context switches in 100 transactions", "oltp", "context switches"),
        row(f"latency p50 {latency}", "metadata", "latency p50", digits=1),
    )
    return table(("count", *_COUNTED), rows, right=True)


def _histories(measuring: Measuring) -> str:
    six = SixYears(measuring)
    for workload in ("fork", "futex"):
        upto = KERNELS[: 4 if workload == "fork" else 5]
        values = [six.value(workload, series) for series in upto]
        measuring.claim(values == sorted(values), f"{workload} grew with each version up to {upto[-1]}")
    measuring.claim(abs(six.ratio("fork", "7.2", "6.18") - 1) < 0.02, "fork stands still since 6.18")
    for workload in ("exec", "vfork", "thread"):
        values = [six.value(workload, series) for series in KERNELS[:4]]
        still = abs(six.ratio(workload, "7.2", "6.18") - 1) < 0.05
        measuring.claim(values == sorted(values) and still, f"{workload} goes with fork")
    return prose(_HISTORIES, **six.lookups())


BLOCKS = (
    Block("six-years-matrix", PAGE, _matrix),
    Block("six-years-counts", PAGE, _counts),
    Block("six-years-histories", PAGE, _histories),
)
