"""Runs studies, here or on several machines at once, prints their results, and says what can be done next."""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import typer
from rich.text import Text

from ktrial import interruption, machines
from ktrial.analysis.result import load_record
from ktrial.cli.console import breakable, output, print_json, say
from ktrial.cli.options.common import RunOptions, StudyRunOptions
from ktrial.cli.progress import progress
from ktrial.cli.render.next_step import NextStep, first_step, next_steps
from ktrial.cli.render.recommendation import print_across
from ktrial.cli.render.study_result import print_study
from ktrial.cli.running.reports import default_report, explain, write_report
from ktrial.cli.studies import open_store
from ktrial.errors import Interrupted
from ktrial.experiment.executor import ThisSystem, chosen
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.preflight import check_factors
from ktrial.experiment.session import KernelState, RunPlan, plan_run, run
from ktrial.format.number_format import counted
from ktrial.format.sanitize import one_line
from ktrial.machines.host import HostMachine
from ktrial.model.base import digest
from ktrial.model.comparison import Verdict
from ktrial.model.history import Across
from ktrial.model.study import Study, StudyRecord
from ktrial.report import study_summary, whys
from ktrial.report.attribution import Why
from ktrial.report.csv_and_json import record_as_json
from ktrial.store.location import default_location
from ktrial.studyfile.references import resolved

SOME_TRIALS_FAILED = 3
"""Exit code: the study ended, there are verdicts, but not from all trials."""
NOT_TESTED = 4
"""Exit code: a setting reached nothing, so that a question of the study has no answer."""
KTRIAL = (sys.executable, "-c", "from ktrial.cli.main import main_with_parent; main_with_parent()")
"""The program of this very installation, which ends when its standard input closes."""


@dataclass(frozen=True)
class FinishedStudy:
    """A study that was run, and where its report is."""

    record: StudyRecord
    store: str
    report: Path | None
    whys: tuple[Why, ...]

    @property
    def failed(self) -> bool:
        """Whether a trial failed."""
        return bool(study_summary.failed_trials(self.record))

    @property
    def untested(self) -> bool:
        """Whether a setting had nothing to act on."""
        return any(row.verdict is Verdict.NOT_TESTED for row in self.record.result.comparisons)

    def as_json(self) -> dict[str, Any]:
        """What `run --json` prints of it."""
        return record_as_json(self.record, self.store, self.report, self.whys)


def run_and_print(study: Study, options: StudyRunOptions, confirmation: Study | None = None) -> None:
    """Run the study, and the one that confirms it, and print their results; of a dry run their plans.

    Raises typer.Exit with 3 where trials failed, with 4 where a setting had nothing to act on.
    """
    if options.dry_run:
        plans = {"": study} | ({"confirmation": confirmation} if confirmation else {})
        show_plans(plans, options)
        return
    finished = run_and_show(study, options)
    result, failed = finished.as_json(), finished.failed
    if confirmation:
        confirmed = run_and_show(confirmation, replace(options, html=None))
        result["confirmation"], failed = confirmed.as_json(), failed or confirmed.failed
    if options.json:
        print_json(result)
    _end(failed=failed, untested=finished.untested)


def _end(*, failed: bool, untested: bool) -> None:
    """With an exit code of its own where not all is well."""
    if failed:
        raise typer.Exit(SOME_TRIALS_FAILED)
    if untested:
        raise typer.Exit(NOT_TESTED)


def run_and_advise(study: Study, options: StudyRunOptions) -> None:
    """Run the study, print its result and what somebody who tries ktrial does next; of a dry run its plan.

    Raises typer.Exit with 3 where trials failed.
    """
    if options.dry_run:
        show_plans({"": study}, options)
        return
    finished = run_and_show(study, options, first_step)
    if options.json:
        steps = [command for command, _ in next_steps(finished.record, options.store)]
        print_json(finished.as_json() | {"next": steps})
    _end(failed=finished.failed, untested=finished.untested)


def run_and_show(study: Study, options: RunOptions, next_step: NextStep | None = None) -> FinishedStudy:
    """Run the study, write its report, and print its result, but for --json."""
    location = options.store or default_location()
    check_factors(study)
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
    finished = FinishedStudy(record, name, None, reasons)
    try:
        if not options.no_html:
            path = options.html or default_report(record, location)
            finished = replace(finished, report=write_report(record, path, reasons))
    finally:  # the answer is not lost with its report
        if not options.json:
            print_study(
                record,
                reasons,
                options.store,
                verbose=options.verbose,
                report=finished.report,
                next_step=next_step,
            )
        elif finished.report is None and not options.no_html:
            print_json(finished.as_json())
    return finished


def show_plans(studies: Mapping[str, Study], options: StudyRunOptions) -> None:
    """What running the studies would do. `studies`: by what tells one from the other, a host or a purpose.

    Raises what running them raises before the first kernel is had.
    """
    plans: dict[str, RunPlan] = {}
    location = options.store or default_location()
    is_made = "://" in location or Path(location).exists()
    with open_store(location) if is_made else nullcontext() as store:
        for name, study in studies.items():
            check_factors(study, say)
            with machine_for(study, allow_host_changes=False, say=say) as machine:
                if isinstance(machine, HostMachine):
                    machine.allow_changes = options.allow_host_changes
                plans[name] = plan_run(
                    study,
                    store=store,
                    machine=machine,
                    jobs=options.jobs,
                    retry_failed=options.retry_failed,
                    tell=say,
                )
    if options.json:
        documents = {name: _plan_as_json(plan) for name, plan in plans.items()}
        print_json({**documents.pop("", {}), **documents})
        return
    for name, plan in plans.items():
        _print_plan(name, plan)


def _plan_as_json(plan: RunPlan) -> dict[str, Any]:
    return {
        "study": plan.study.name,
        "question": plan.study.question,
        "machine": plan.machine,
        "workloads": [use.label for use in plan.study.workloads],
        "kernels": dict(plan.kernels),
        "treatments": plan.treatments,
        "perturbations": plan.perturbations,
        "may_end_early": plan.may_end_early,
        "trials": plan.trials,
        "stored": plan.stored,
        "at_once": plan.at_once,
    }


def _print_plan(name: str, plan: RunPlan) -> None:
    console, study = output(), plan.study
    title = f"{study.name}: {study.question}" if study.question else study.name
    names = ", ".join(use.label for use in study.workloads)
    console.print(Text(one_line(f"{name}: {title}" if name else title), style="bold"))
    console.print(Text(one_line(f"machine: {plan.machine}; workloads: {names}")))
    for kernel, state in plan.kernels.items():
        console.print(Text(one_line(f"kernel {kernel} {_STATES[state]}")))
    most = "at most " if plan.may_end_early else ""
    shape = f"{counted(plan.treatments, 'treatment')} in {most}{counted(plan.perturbations, 'block')}"
    amount = f"{plan.trials} in all; {plan.stored} are stored, {plan.at_once} at a time"
    console.print(breakable(f"trials: {shape}, {amount}"))
    if plan.stored == plan.trials:
        console.print("nothing is left to run: the same command prints the verdicts")
    console.print("this was a dry run: nothing was built, booted or measured", style="dim")


_STATES = {
    KernelState.RUNNING: "runs there",
    KernelState.CACHED: "is in the cache",
    KernelState.FETCHED: "has to be downloaded, or read from its file",
    KernelState.UNLISTED: "has to be downloaded, if there is one: the run asks the mirrors",
    KernelState.BUILT: "has to be built",
}


def run_on_each(
    studies: Mapping[str, Study],
    words: Sequence[str],
    *,
    json: bool,
    store: str | None,
    program: Sequence[str] = KTRIAL,
) -> None:
    """Run `ktrial run --host HOST WORDS` for each machine, all at once; print each, then all together.

    Each run is a process of its own, with a lease of its own: what befalls one machine is told with its name,
    and the others go on. Ctrl-C ends each of them as it would end it alone, and so does the end of this
    process, however it comes (`main_with_parent`).
    Raises Interrupted; typer.Exit with 3 where a machine failed, or some of its trials.
    """
    for study in studies.values():  # a fleet that has no part in them is told once
        chosen(ThisSystem).where_leased(machines.find(study.machine.kind), say)
    location = store or default_location()
    open_store(location).close()  # is made once, not by each of them
    runs = [_HostRun(host, (*program, "run", "--host", host, *words)) for host in studies]
    _perform(runs)
    records = _records(studies, location)
    from ktrial.analysis.history.machine_agreement import on_machines  # with NumPy: only for several hosts

    rows = on_machines(records)
    if json:
        systems = [row.model_dump(mode="json") for row in rows]
        print_json({"hosts": {run.host: run.result() for run in runs}, "systems": systems})
    else:
        _print(runs, rows, len(records))
    if any(run.status for run in runs):
        raise typer.Exit(SOME_TRIALS_FAILED)


@dataclass
class _HostRun:
    """The run of one machine."""

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
        """Pass on its messages, each line with the machine's name, until it has ended."""
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
    threads = [threading.Thread(target=run.follow, name=run.host) for run in runs]

    def end() -> None:
        for run in runs:
            run.end()

    try:
        with interruption.caught(), interruption.listening(end):
            for run in runs:
                run.start()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    except KeyboardInterrupt:
        raise Interrupted(
            "the runs on all machines have ended, and what is finished is stored",
            hint="run the same command again: it goes on from there",
        ) from None


def _records(studies: Mapping[str, Study], location: str) -> list[StudyRecord]:
    """Of the machines that have stored their study."""
    with open_store(location) as store:
        stored = (store.newest(digest=digest(resolved(study))) for study in studies.values())
        return [load_record(store, study.id) for study in stored if study is not None]


def _print(host_runs: Sequence[_HostRun], rows: Sequence[Across], measured: int) -> None:
    console = output()
    for host_run in host_runs:
        status = host_run.status
        ending = f": ended with exit code {status}, see above" if status else ""
        console.print(f"{host_run.host}{ending}", style="bold")
        console.print(host_run.output(), soft_wrap=True)
    if not rows:
        console.print(
            f"{measured} of {len(host_runs)} machines have a study to compare: no change can be compared."
        )
    else:
        print_across(rows, console)
