"""What verdicts, modes and outcomes are called, and what they mean, in the words of the design."""

from typing import NamedTuple

from ktrial.format.number_format import is_time
from ktrial.model.comparison import Estimand, Verdict
from ktrial.model.history import Agreement
from ktrial.model.trial import Outcome
from ktrial.model.workload import Direction, Mode


class VerdictLabel(NamedTuple):
    """How a verdict is shown: never by colour alone."""

    symbol: str
    word: str
    meaning: str


VERDICTS = {
    Verdict.WORSE: VerdictLabel(
        "✗", "worse", "the change is for the worse, beyond the margin and the spread"
    ),
    Verdict.BETTER: VerdictLabel(
        "✓", "better", "the change is for the better, beyond the margin and the spread"
    ),
    Verdict.INCONCLUSIVE: VerdictLabel("?", "inconclusive", "the data do not decide"),
    Verdict.NOT_TESTED: VerdictLabel(
        "∅", "not tested", "the setting had nothing to act on: what it decides about never happened"
    ),
    Verdict.EQUIVALENT: VerdictLabel(
        "≈",
        "equivalent",
        "no change that matters: with its spread it lies inside the margin, or its row says why a larger one "
        "is too little to count",
    ),
    Verdict.IDENTICAL: VerdictLabel("=", "the same image", "the two kernels are bit-identical"),
}
"""In the order in which they are counted: what needs attention first."""


def verdict_text(verdict: Verdict) -> str:
    """`✗ worse`: the symbol and the word."""
    return f"{VERDICTS[verdict].symbol} {VERDICTS[verdict].word}"


VERDICT_STYLES = {
    Verdict.BETTER: "green",
    Verdict.WORSE: "red",
    Verdict.EQUIVALENT: "",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_TESTED: "yellow",
    Verdict.IDENTICAL: "yellow",
}
"""Colours of the terminal; those of pages are in report/charts.py."""

SCATTER_MARK = "±"
"""Beside a verdict: its spread, or the number of its modes, is not that of the baseline."""
SCATTER_MEANING = "scatters otherwise than the baseline"


def metric_name(metric: str, unit: str) -> str:
    """`instructions/operation`, `rate (requests/s)`: metric and unit, without saying a word twice.

    A command's `wall time` is instructions where a machine counts these: the unit alone is its name there. A
    time's unit stands beside each of its values, which are in s, ms or µs.
    """
    if is_time(unit) and unit != metric:
        return f"{metric}{''.join(unit.partition('/')[1:])}"
    if not unit or unit == metric:
        return metric
    if metric == "wall time" and unit.startswith("instructions"):
        return unit
    return unit if unit.startswith(metric) else f"{metric} ({unit})"


AGREEMENTS = {
    Agreement.SAME: "the same on all machines",
    Agreement.DIFFERS: "it depends on the machine",
    Agreement.UNDECIDED: "undecided whether it depends on the machine",
}

ESTIMANDS = {
    Estimand.TYPICAL: "typical trials",
    Estimand.TOTAL: "all trials together",
    Estimand.TAIL: "the worst tenth of trials",
}
"""What a verdict on timed numbers is about."""

DIRECTIONS = {Direction.LOWER: "lower is better", Direction.HIGHER: "higher is better"}

MODE_NAMES = {
    Mode.EXACT_CLOCK: "exact mode, instructions read from the guest’s clock",
    Mode.EXACT_PLUGIN: "exact mode, instructions counted by the QEMU plugin",
    Mode.EXACT_PARALLEL: "exact mode on several CPUs, simulated time",
    Mode.TIMED: "timed mode",
    Mode.EMULATED_TIME: "host time under emulation",
}

_EXACT = (
    "Instructions, not time.",
    "Exact mode measures the work the kernel does (instructions, and events such as faults, context "
    "switches, pages read), not the time a given CPU takes for it. The kernel runs in QEMU with instruction "
    "counting: nothing from outside reaches it, so that two runs give the same numbers to the last digit. "
    "The interval is not noise: it is the spread over perturbations, changes that must not matter (layout of "
    "the address space, size of the environment, start offset). Where they move both sides alike, it is the "
    "spread of the ratios under the same perturbation; else that of both sides. How far such changes "
    "foretell those of time, and where they do not, was measured (ktrial help fidelity); ktrial fidelity "
    "measures it on your own machine.",
)

MODES: dict[Mode, tuple[str, ...]] = {
    Mode.EXACT_CLOCK: (
        *_EXACT,
        "These numbers are instructions read from the guest’s clock, on which one nanosecond is one "
        "instruction. A string instruction (REP) counts once for each of its iterations.",
    ),
    Mode.EXACT_PLUGIN: (
        *_EXACT,
        "These numbers are counted by the QEMU plugin, by kernel function, inside the workload’s marks. "
        "The CPU is shown as present-day ones are (ERMS, FSRM), and a string instruction (REP) counts once, "
        "however many bytes it works on. Those bytes are a metric of their own, string-bytes: bytes an "
        "operation that string instructions copied, cleared or compared. Fewer are better; a kernel that "
        "copies in a loop instead has fewer of them and more instructions. Where a study models a "
        "machine, the cycles that it would take are a metric, too, modelled-cycles: said by a model of its "
        "caches, translations and branches, not measured.",
    ),
    Mode.EXACT_PARALLEL: (
        "Simulated time, not real time.",
        "These numbers are guest time per operation, of a simulated machine whose CPUs run at the same time: "
        "an instruction takes one nanosecond, and there are no caches, no bandwidth and no out-of-order "
        "execution. Locks are contended, CPUs wait for one another, and idle time counts. Nothing from "
        "outside reaches the guest, so that two runs give the same numbers to the last digit; but with "
        "several CPUs small causes have large effects. The interval is the spread over perturbations, which "
        "also change the CPUs’ offsets and their order.",
        "Beside the time stand instructions: those of all CPUs together while one operation is done.",
    ),
    Mode.TIMED: (
        "Real time, with real noise.",
        "Timed mode measures on real hardware. The interval is a statistical one: it holds what noise leaves "
        "undecided, over independent trials in randomised blocks.",
    ),
    Mode.EMULATED_TIME: (
        "Host time under emulation.",
        "The workload was timed while an emulator ran it. Such times say little about any hardware, and "
        "change with whatever else the host does.",
    ),
}
"""Mode → a headline and paragraphs."""

WITHOUT_ERMS = (
    "The guest’s CPU hides ERMS and FSRM, because the clock would count every byte of a string instruction. "
    "Kernels from about 6.4 on then copy and clear memory in loops that present-day hardware never runs: "
    "part of a change across 6.4 may be these loops."
)
"""Holds where the CPU model says `-erms` and the mode is exact-clock."""


class OutcomeLabel(NamedTuple):
    """How a trial's end is told."""

    sentence: str
    """`the kernel panicked`."""
    predicate: str
    """What stands behind `2 of 3 trials`: `panicked`."""


OUTCOMES = {
    Outcome.COMPLETED: OutcomeLabel("completed", "completed"),
    Outcome.PANICKED: OutcomeLabel("the kernel panicked", "panicked"),
    Outcome.HUNG: OutcomeLabel("the guest hung", "hung"),
    Outcome.NO_INIT: OutcomeLabel("the kernel found no init", "found no init"),
    Outcome.NOT_A_KERNEL: OutcomeLabel("not a kernel", "had no kernel to boot (the file is none)"),
    Outcome.OUT_OF_MEMORY: OutcomeLabel("the guest ran out of memory", "ran out of memory"),
    Outcome.REFUSED: OutcomeLabel("a setting was refused", "had a setting refused"),
    Outcome.WORKLOAD_FAILED: OutcomeLabel("a workload failed", "had a workload that failed"),
    Outcome.MACHINE_FAILED: OutcomeLabel("the machine failed", "ended with the machine's failure"),
    Outcome.KERNEL_MISSING: OutcomeLabel("the kernel is not there", "had no kernel (it could not be had)"),
}
