"""Progress on standard error: a bar on a terminal, lines elsewhere."""

import io
import itertools

import pytest
from rich.console import Console
from tests.support.making import a_study, a_trial
from tests.support.scripted import a_kernel

from ktrial.cli.progress import StepLog, progress
from ktrial.cli.running.bisection import StepLines
from ktrial.kernels.errors import KernelNotFound
from ktrial.model.machine import Boot
from ktrial.model.study import plan
from ktrial.model.trial import Outcome

PLAN = plan(a_study())


def _run(console: Console) -> None:
    """What a run of six trials tells, of which one fails."""
    with progress(console) as observer:
        observer.study_planned(PLAN, 1)
        observer.kernel_progress("debian:6.1", "fetching", 1 << 20, 8 << 20)
        observer.kernel_progress("debian:6.1", "fetching", 2 << 20, 8 << 20)
        observer.kernel_failed("debian:6.12", KernelNotFound(name="debian:6.12", similar=""))
        observer.preparing(Boot(kernel=a_kernel()), "booting")
        observer.prepared(Boot(kernel=a_kernel()))
        for number, planned in enumerate(PLAN.trials[1:], start=2):
            observer.trial_started(planned)
            failed = number == 3
            outcome = Outcome.HUNG if failed else Outcome.COMPLETED
            trial = a_trial(planned, outcome=outcome, reason="no end" if failed else "")
            observer.trial_finished(trial, number, 6, (6 - number) * 2.5)
        observer.stopping()


def test_a_log_gets_lines() -> None:
    text = io.StringIO()
    _run(Console(file=text, width=200, markup=False, highlight=False))
    failed = PLAN.trials[2]
    number = failed.perturbation.number
    assert text.getvalue().splitlines() == [
        "6 trials, 1 of them stored before",
        "debian:6.1: fetching: 1.0 MB of 8.4 MB",
        "kernel debian:6.12 cannot be had: There is no kernel debian:6.12 in the cache.",
        "  add it: ktrial kernel add debian:6.12",
        "debian:6.1: booting",
        "trials: 2/6, about 10 s left",
        f"failed: {failed.treatment.label}, perturbation {number}: the guest hung: no end",
        "trials: 6/6",
        "stopping: what is finished is being stored",
    ]


def test_a_build_tells_a_log_now_and_then_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    console = Console(file=text, width=200, markup=False, highlight=False)
    seconds = itertools.count(100.0, 7.0)
    monkeypatch.setattr("ktrial.cli.progress.time.monotonic", lambda: next(seconds))
    with progress(console) as observer:
        for files in range(1, 9):
            observer.kernel_progress("build:mine", f"build 1 of 2: building: {files} of about 9 files", 0, 0)
        observer.kernel_progress("build:mine", "build 2 of 2: building: 1 of about 9 files", 0, 0)
    assert text.getvalue().splitlines() == [
        "build:mine: build 1 of 2: building: 1 of about 9 files",
        "build:mine: build 1 of 2: building: 6 of about 9 files",
        "build:mine: build 2 of 2: building: 1 of about 9 files",
    ]


def test_builds_at_once_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet builds several: each is a step of its own, however they take turns."""
    result: list[str] = []
    log, seconds = StepLog(result.append), itertools.count(100.0, 10.0)
    monkeypatch.setattr("ktrial.cli.progress.time.monotonic", lambda: next(seconds))
    for files in range(1, 5):
        for name in ("build:a", "build:b"):
            log.step(name, f"building: {files} of about 9 files")
    assert result == [
        "build:a: building: 1 of about 9 files",
        "build:b: building: 1 of about 9 files",
        "build:a: building: 3 of about 9 files",
        "build:b: building: 3 of about 9 files",
    ]


def test_a_bisection_tells_a_log_how_far_the_build_of_a_candidate_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ktrial series` and `bisect` said `building` once, and nothing for as long as it took."""
    text, seconds = io.StringIO(), itertools.count(100.0, 10.0)
    console = Console(file=text, width=200, markup=False, highlight=False)
    monkeypatch.setattr("ktrial.cli.progress.time.monotonic", lambda: next(seconds))
    lines = StepLines(console)
    for files in range(1_200, 1_207):
        lines.kernel_progress("build:mine", f"building: {files:,} of about 3,000 files", 0, 0)
    lines.study_planned(PLAN, 0)
    lines.kernel_progress("build:mine", "building: about 3,000 files", 0, 0)
    assert text.getvalue().splitlines() == [
        *(f"  building: {files} of about 3,000 files" for files in ("1,200", "1,203", "1,206")),
        "  building: about 3,000 files",
    ]


def test_a_terminal_gets_a_bar_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    console = Console(
        file=text, width=100, force_terminal=True, markup=False, highlight=False, color_system=None
    )
    _run(console)
    shown = text.getvalue()
    assert "failed: " in shown
    assert "6 trials, 1 of them stored before" in shown
    assert "6/6" in shown
    assert "━" in shown
    assert shown.endswith("\x1b[2K"), "the bar is wiped away at the end"


def test_trials_of_one_kernel_are_told_with_its_name() -> None:
    text = io.StringIO()
    of_one = PLAN.model_copy(update={"treatments": PLAN.treatments[:1], "trials": PLAN.trials[:3]})
    with progress(Console(file=text, width=200)) as observer:
        observer.study_planned(of_one, 0)
    assert text.getvalue() == f"{PLAN.treatments[0].label}: 3 trials\n"


def test_how_a_trial_failed_is_told_once_a_kernel() -> None:
    text = io.StringIO()
    with progress(Console(file=text, width=200)) as observer:
        for number, planned in enumerate(PLAN.trials, start=1):
            trial = a_trial(planned, outcome=Outcome.HUNG, reason="no end")
            observer.trial_finished(trial, number, 6, None)
    lines = [line for line in text.getvalue().splitlines() if line.startswith("failed: ")]
    assert len(lines) == len(PLAN.trials)
    assert [line.endswith("no end") for line in lines].count(True) == len(PLAN.treatments)
    assert [line.endswith(": as before") for line in lines].count(True) == 6 - len(PLAN.treatments)
