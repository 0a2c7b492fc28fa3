"""Runs a study and prints its result: what `run` and `compare` have in common."""

import dataclasses
import json
import math
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import typer

from ktrial import interruption
from ktrial.analysis.history.machine_agreement import on_machines
from ktrial.analysis.result import record
from ktrial.cli import show_cache
from ktrial.cli.console import ReportNotWritten, output, print_json, print_link, say
from ktrial.cli.progress import progress
from ktrial.cli.render.history import print_across
from ktrial.cli.render.recorded import recorded
from ktrial.cli.render.study_result import print_result, print_whys
from ktrial.cli.running.reports import default_report, explain, write_report
from ktrial.errors import Interrupted
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.preflight import check_factors
from ktrial.experiment.session import run
from ktrial.format.sanitize import one_line
from ktrial.model.base import digest
from ktrial.model.design import FactorKind
from ktrial.model.history import Across
from ktrial.model.study import Study, StudyRecord, treatments
from ktrial.report import study_summary, whys
from ktrial.report.attribution import Why
from ktrial.report.csv_and_json import record_as_json
from ktrial.store.location import default_location, masked
from ktrial.store.store import open_store
from ktrial.studyfile.references import resolved

SOME_TRIALS_FAILED = 3
"""Exit code: the study ended, there are verdicts, but not from all trials."""


@dataclass(frozen=True)
class RunOptions:
    """How a study is run and shown: the options that `run` and `compare` share."""

    json: bool = False
    store: str | None = None
    html: Path | None = None
    no_html: bool = False
    jobs: int | None = None
    retry_failed: bool = False
    allow_host_changes: bool = False
    each_trial: bool = False
    """Whether each trial's numbers are told as it ends."""


def run_and_print(study: Study, options: RunOptions, confirmation: Study | None = None) -> None:
    """Run the study, and the one that confirms it, and print their results.

    Raises typer.Exit with 3 where trials failed.
    """
    ended = run_and_show(study, options)
    failed = study_summary.failed_trials(ended.record)
    result = record_as_json(ended.record, ended.store, ended.report, ended.whys)
    if confirmation:
        confirmed = run_and_show(confirmation, dataclasses.replace(options, html=None))
        failed = failed or study_summary.failed_trials(confirmed.record)
        result["confirmation"] = record_as_json(
            confirmed.record, confirmed.store, confirmed.report, confirmed.whys
        )
    if options.json:
        print_json(result)
    else:
        _print_next(ended, options.store)
    if failed:
        raise typer.Exit(SOME_TRIALS_FAILED)


@dataclass(frozen=True)
class Ended:
    """A study that was run, and where its report is."""

    record: StudyRecord
    store: str
    report: Path | None
    whys: tuple[Why, ...]


def run_and_show(study: Study, options: RunOptions) -> Ended:
    """Run the study, write its report, and print its result unless JSON is wanted."""
    location = options.store or default_location()
    check_factors(study, say)
    with open_store(location) as store:
        with (
            machine_for(study, allow_host_changes=options.allow_host_changes, say=say) as machine,
            progress(quiet=machine is not None, each_trial=options.each_trial) as observer,
        ):
            on_machine = partial(run, machine=machine) if machine else run
            record = on_machine(
                study, store=store, observer=observer, jobs=options.jobs, retry_failed=options.retry_failed
            )
        name, reasons = store.name, whys(store, record, explain)
    if not options.json:
        print_result(record, output())
        print_whys(reasons, output())
    show_cache.keep_result(location, record, recorded(record, reasons))
    problem = None
    report = None
    if not options.no_html:
        try:
            report = write_report(record, options.html or default_report(record, location), reasons)
        except ReportNotWritten as error:
            problem = error
    if problem:
        if options.json:
            print_json(record_as_json(record, name, whys=reasons))
        raise problem
    if report and not options.json:
        print_link("report", report, output())
    return Ended(record, name, report, reasons)


def prove_command(record: StudyRecord, whys: Sequence[Why], store: str | None) -> str:
    """The command that measures the causes of the largest change whose causes are not measured; empty: none.

    It can be typed as it is.
    """
    if not any(factor.kind is FactorKind.KERNEL for factor in record.study.factors):
        return ""
    open_ones = [why for why in whys if why.proof is None and why.total.difference]
    if not open_ones:
        return ""
    why = max(open_ones, key=_relative)
    to = ["--to", why.treatment] if len(treatments(record.study)) > 2 else []
    here = ["--store", masked(store)] if store else []
    return shlex.join(
        ["ktrial", "explain", record.study.name, "--workload", why.workload, *to, "--prove", *here]
    )


def _relative(why: Why) -> float:
    """How large the difference is, beside what it was before."""
    return abs(why.total.difference) / why.total.before if why.total.before else math.inf


def _print_next(ended: Ended, store: str | None) -> None:
    if command := prove_command(ended.record, ended.whys, store):
        output().print("\nnext, to measure which settings it comes from:")
        output().print(f"  {command}", soft_wrap=True)


# Runs a first study, and says what can be done next with what it found.

_MORE_WORKLOADS = "syscall,fork,mmap,open,futex"


def run_and_advise(study: Study, options: RunOptions) -> None:
    """Run the study, print its result, and three commands that go on from there.

    Raises typer.Exit with 3 where trials failed.
    """
    ended = run_and_show(study, options)
    steps = next_steps(ended.record, options.store)
    if options.json:
        result = record_as_json(ended.record, ended.store, ended.report, ended.whys)
        print_json(result | {"next": [command for command, _ in steps]})
    else:
        _print_steps(steps)
    if study_summary.failed_trials(ended.record):
        raise typer.Exit(SOME_TRIALS_FAILED)


def next_steps(record: StudyRecord, store: str | None) -> list[tuple[str, str]]:
    """Three commands, each with what it is for. They can be typed as they are."""
    kernels = [level for factor in record.study.factors for level in map(str, factor.levels)]
    here = ["--store", masked(store)] if store else []
    named = [word for kernel in kernels for word in ("--kernel", kernel)]
    workload = record.study.workloads[0].label
    explain = ["ktrial", "explain", record.study.name, "--workload", workload, *here]
    more = ["ktrial", "compare", *named, "--workload", _MORE_WORKLOADS, *here]
    own = ["ktrial", "compare", *named, *here, "--", "sort", "/etc/passwd"]
    return [
        (shlex.join(explain), "which kernel functions the difference is made of"),
        (shlex.join(more), "the same for other parts of the kernel"),
        (
            shlex.join(own),
            "a program of your own in place of sort (strace finds its files); more: ktrial help studies",
        ),
    ]


def _print_steps(steps: list[tuple[str, str]]) -> None:
    console = output()
    console.print("\nnext:")
    for command, purpose in steps:
        console.print(f"  {command}", soft_wrap=True)
        console.print(f"      {purpose}", style="dim")


# A study on several machines at once: one `ktrial run` for each, and what it comes to over all of them.
#
# Each run is a process of its own, with a lease of its own: what befalls one machine is told with its name,
# and the others go on. Ctrl-C ends each of them as it would end it alone, and so does the end of this
# process, however it comes (see with_parent).

KTRIAL = (
    sys.executable,
    "-c",
    "import ktrial_launcher; from ktrial.cli.main import main_with_parent; main_with_parent()",
)
"""The program of this very installation, which ends when its standard input closes."""


def run_on_each(
    studies: Mapping[str, Study],
    words: Sequence[str],
    *,
    json: bool,
    store: str | None,
    program: Sequence[str] = KTRIAL,
) -> None:
    """Run `ktrial run --host HOST WORDS` for each machine, all at once; print each, then all together.

    Raises Interrupted; typer.Exit with 3 where a machine failed, or some of its trials.
    """
    location = store or default_location()
    open_store(location).close()  # is made once, not by each of them
    runs = [_HostRun(host, (*program, "run", "--host", host, *words)) for host in studies]
    _perform(runs)
    records = _records(studies, location)
    rows = on_machines(records)
    if json:
        print_json({"hosts": {one.host: one.result() for one in runs}, "systems": _plain(rows)})
    else:
        _print(runs, rows, len(records))
    if any(one.status for one in runs):
        raise typer.Exit(SOME_TRIALS_FAILED)


@dataclass
class _HostRun:
    """One machine's."""

    host: str
    command: tuple[str, ...]
    status: int | None = None
    printed: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """In a session of its own: a terminal's Ctrl-C reaches it once, through this process.

        Its standard input closes when this process is gone.
        """
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=self.printed,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        if interruption.is_asked_for():
            self.end()

    def follow(self) -> None:
        """Tell what it tells, each line with the machine's name, until it has ended."""
        process = self.process
        if process is None or process.stderr is None:
            return
        for line in process.stderr:
            say(f"{self.host}: {one_line(line.decode(errors='replace').rstrip())}")
        self.status = process.wait()
        if process.stdin:
            process.stdin.close()

    def end(self) -> None:
        """Ask it to end. Safe in a signal handler."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)

    def output(self) -> str:
        """What it printed."""
        self.printed.seek(0)
        return self.printed.read().decode(errors="replace")

    def result(self) -> Any:
        """What it printed as JSON; None where it has no result."""
        try:
            return json.loads(self.output())
        except ValueError:
            return None


def _perform(runs: Sequence[_HostRun]) -> None:
    """Until all have ended. Raises Interrupted."""
    threads = [threading.Thread(target=one.follow, name=one.host) for one in runs]

    def end() -> None:
        for one in runs:
            one.end()

    try:
        with interruption.caught(), interruption.listening(end):
            for one in runs:
                one.start()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    except KeyboardInterrupt:
        what = "the runs on all machines have ended, and what is finished is stored"
        raise Interrupted(what=what, hint="run the same command again: it goes on from there") from None


def _records(studies: Mapping[str, Study], location: str) -> list[StudyRecord]:
    """Of the machines that have stored their study."""
    with open_store(location) as store:
        kept = (store.newest(digest=digest(resolved(study))) for study in studies.values())
        return [record(store, one.id) for one in kept if one is not None]


def _plain(rows: Iterable[Across]) -> list[dict[str, Any]]:
    return [row.model_dump(mode="json") for row in rows]


def _print(runs: Sequence[_HostRun], rows: Sequence[Across], measured: int) -> None:
    console = output()
    for one in runs:
        ended = f": ended with exit code {one.status}, as told above" if one.status else ""
        console.print(f"{one.host}{ended}", style="bold")
        console.print(one.output(), soft_wrap=True)
    if not rows:
        console.print(f"{measured} of {len(runs)} machines have a study to compare: no change can be.")
    for row in rows:
        print_across(row, console)
