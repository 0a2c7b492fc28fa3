"""How far a build, a download or a run is, on standard error: a bar on a terminal, lines elsewhere."""

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from ktrial.cli.console import breakable, messages
from ktrial.cli.render.study_result import failure, failure_text
from ktrial.errors import KtrialError
from ktrial.experiment.observer import Observer
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import Plan
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome, Trial

if TYPE_CHECKING:
    from ktrial.kernels import Progress


_SECONDS_BETWEEN = 30.0
_COUNT = re.compile(r"(?:: (?:about )?\d|; ).*$")
"""How far a step is: `building: 481 of about 1,563 files, about 13 min left`."""


@contextmanager
def step_display() -> "Iterator[Progress]":
    """On standard error, for as long as the block. A log has the seconds since its beginning, too."""
    console, begin = messages(), time.monotonic()
    if console.is_terminal:
        with console.status("") as status:
            yield lambda step, size=0, total=0: status.update(with_bytes(step, size, total))
        return
    log = StepLog(lambda text: console.print(f"{time.monotonic() - begin:.0f} s: {text}"))
    yield lambda step, size=0, total=0: log.step("", step, size, total)


class StepLog:
    """Lines of a log: each new step, and how far a step is that goes on, each half a minute."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._last: dict[str, tuple[str, float]] = {}
        """Name → its last step, and when a line was written of it."""

    def step(self, name: str, text: str, size: int = 0, total: int = 0) -> None:
        """A step of a kernel or a file, whose name stands before it; `size` and `total` are bytes."""
        seconds, step = time.monotonic(), _COUNT.sub("", text)
        last, written = self._last.get(name, ("", 0.0))
        counts = step != text or bool(size)
        if step != last or (counts and seconds - written >= _SECONDS_BETWEEN):
            self._last[name] = step, seconds
            self._write(f"{name}: {with_bytes(text, size, total)}" if name else with_bytes(text, size, total))

    def clear(self) -> None:
        """The next step is a new one, whatever the last one was."""
        self._last.clear()


def with_bytes(step: str, size: int, total: int) -> str:
    """`fetching: 12.0 MB of 80.1 MB`."""
    from ktrial.kernels.files import shown

    return f"{step}: {shown(size)} of {shown(total)}" if total else step


_SECONDS_BETWEEN_LINES = 5.0
_MIB = 1 << 20
_NO_NEWS = {Outcome.COMPLETED, Outcome.KERNEL_MISSING, Outcome.NOT_A_KERNEL}


@contextmanager
def progress(
    console: Console | None = None, *, quiet: bool = False, each_trial: bool = False
) -> Iterator[Observer]:
    """An observer that shows the run while the block is executed.

    `quiet`: nothing is drawn while a trial runs, since drawing would disturb what is measured here; only when
    one has ended, a line for it. `each_trial`: the numbers of each trial are told as it ends.
    """
    console = console or messages()
    if quiet or not console.is_terminal:
        yield _Lines(console, each_trial)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        yield _Bar(bar, each_trial)


class _Shown(Observer):
    """What both ways of showing progress have in common."""

    def __init__(self, console: Console, each_trial: bool) -> None:
        self.console = console
        self._each_trial = each_trial
        self._wanted = 0
        self._failures: set[tuple[str, str]] = set()

    def study_planned(self, plan: Plan, finished: int) -> None:
        total = len(plan.trials)
        trials = breakable(number_format.counted(total, "trial"))
        if plan.may_end_early:
            trials = f"at most {trials}"
        again = f", {finished} of them stored before" if finished else ""
        alone = f"{one_line(plan.treatments[0].label)}: " if len(plan.treatments) == 1 else ""
        self.console.print(f"{alone}{trials}{again}")

    def blocks_wanted(self, ended: int, next_look: int, comparisons: Sequence[Comparison]) -> None:
        """What is open is told after a look, not after every block."""
        if next_look != self._wanted and ended:
            undecided = sum(comparison.verdict is Verdict.INCONCLUSIVE for comparison in comparisons)
            open_ = number_format.counted(undecided, "comparison")
            self.console.print(f"after {ended} blocks {open_} undecided; the next look is after {next_look}")
        self._wanted = next_look

    def kernel_failed(self, name: str, error: KtrialError) -> None:
        self.console.print(f"kernel {name} cannot be had: {error.message}")
        if error.advice:
            self.console.print(f"  {error.advice}")

    def notice(self, text: str) -> None:
        self.console.print(text)

    def stopping(self) -> None:
        self.console.print("stopping: what is finished is being stored")

    def tell_end(self, trial: Trial) -> None:
        """A trial that failed is told at once; a kernel that could not be had was told before."""
        if trial.outcome not in _NO_NEWS:
            why = (trial.planned.treatment.key, failure_text(trial))
            self.console.print(f"failed: {failure(trial, known=why in self._failures)}")
            self._failures.add(why)
        elif self._each_trial and trial.samples:
            self.console.print(breakable(_numbers(trial)))


class _Bar(_Shown):
    """One bar for the kernels, one for the trials."""

    def __init__(self, bar: Bar, each_trial: bool) -> None:
        super().__init__(bar.console, each_trial)
        self._bar = bar
        self._kernels: dict[str, TaskID] = {}
        self._trials: TaskID | None = None

    def study_planned(self, plan: Plan, finished: int) -> None:
        super().study_planned(plan, finished)
        total = len(plan.trials)
        self._trials = self._bar.add_task(
            "trials", total=total, completed=finished, note=_note(finished, total)
        )

    def kernel_progress(self, name: str, step: str, size: int, total: int) -> None:
        if name not in self._kernels:
            self._kernels[name] = self._bar.add_task(name, total=None, note="")
        note = f"{size / _MIB:.0f} of {total / _MIB:.0f} MiB" if total else ""
        self._bar.update(
            self._kernels[name], description=f"{name}: {step}", completed=size, total=total or None, note=note
        )

    def preparing(self, boot: Boot, step: str) -> None:
        self._end_kernels()
        self._describe(f"{boot.kernel.name}: {step}")

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        self._end_kernels()
        self.tell_end(trial)
        self._describe(trial.planned.treatment.label)
        if self._trials is not None:
            self._bar.update(self._trials, completed=finished, note=_note(finished, total, seconds_left))

    def stopping(self) -> None:
        super().stopping()
        self._describe("stopping")

    def _describe(self, text: str) -> None:
        if self._trials is not None:
            self._bar.update(self._trials, description=text)

    def _end_kernels(self) -> None:
        for task in self._kernels.values():
            self._bar.remove_task(task)
        self._kernels.clear()


class _Lines(_Shown):
    """Lines for a log: each new step, each failure, and how far it is every few seconds."""

    def __init__(self, console: Console, each_trial: bool) -> None:
        super().__init__(console, each_trial)
        self._told = 0.0
        self._steps = StepLog(console.print)

    def kernel_progress(self, name: str, step: str, size: int, total: int) -> None:
        """A build says every moment how many files it has: that is one step, told now and then."""
        self._steps.step(name, step, size, total)

    def preparing(self, boot: Boot, step: str) -> None:
        self._steps.step(boot.kernel.name, step)

    def trial_finished(self, trial: Trial, finished: int, total: int, seconds_left: float | None) -> None:
        self.tell_end(trial)
        seconds = time.monotonic()
        if finished == total or seconds - self._told >= _SECONDS_BETWEEN_LINES:
            self._told = seconds
            self.console.print(f"trials: {_note(finished, total, seconds_left)}")


def _note(finished: int, total: int, seconds_left: float | None = None) -> str:
    if seconds_left is None or finished == total:
        return f"{finished}/{total}"
    left = breakable(number_format.duration(max(1, math.ceil(seconds_left))))
    return f"{finished}/{total}, about {left} left"


def _numbers(trial: Trial) -> str:
    """`debian:6.1, perturbation 1: pipe 2,351 instructions/operation`: each workload's first metric."""
    first = {sample.workload: sample for sample in reversed(trial.samples)}
    values = [
        f"{sample.workload} {number_format.quantity(sample.value, sample.unit)}"
        f"{'' if number_format.is_time(sample.unit) else f' {sample.unit}'}"
        for sample in trial.samples
        if first[sample.workload] is sample
    ]
    planned = trial.planned
    return one_line(
        f"{planned.treatment.label}, perturbation {planned.perturbation.number}: {'; '.join(values)}"
    )
