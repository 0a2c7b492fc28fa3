"""Runs a study and prints its result: what `run` and `compare` have in common."""

import dataclasses
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import platformdirs
import typer

from ktrial.cli import show_cache
from ktrial.cli.console import output, print_json, print_link, say
from ktrial.cli.files import ReportNotWritten, write_page
from ktrial.cli.render.attribution import print_whys
from ktrial.cli.render.recorded import recorded
from ktrial.cli.render.study_result import print_result
from ktrial.cli.running.progress import progress
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.preflight import check_factors
from ktrial.experiment.session import run
from ktrial.model.design import FactorKind
from ktrial.model.plan import treatments
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.report import study_html, whys
from ktrial.report.json.study import as_json
from ktrial.report.text import study_summary
from ktrial.report.text.attribution import Why
from ktrial.store import default_location, open_store
from ktrial.store.location import masked

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
    result = as_json(ended.record, ended.store, ended.report, ended.whys)
    if confirmation:
        confirmed = run_and_show(confirmation, dataclasses.replace(options, html=None))
        failed = failed or study_summary.failed_trials(confirmed.record)
        result["confirmation"] = as_json(confirmed.record, confirmed.store, confirmed.report, confirmed.whys)
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
        name, reasons = store.name, whys(store, record)
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
            print_json(as_json(record, name, whys=reasons))
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
    open_ones = [why for why in whys if why.proof is None and why.whole.difference]
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
    return abs(why.whole.difference) / why.whole.before if why.whole.before else math.inf


def _print_next(ended: Ended, store: str | None) -> None:
    if command := prove_command(ended.record, ended.whys, store):
        output().print("\nnext, to measure which settings it comes from:")
        output().print(f"  {command}", soft_wrap=True)


def default_report(record: StudyRecord, location: str) -> Path:
    """Beside the store, or in the user's data directory where the store is on a server."""
    return reports_beside(location) / f"{record.study.name}-{record.id}.html"


def reports_beside(location: str) -> Path:
    """The directory of reports for a store at this location."""
    directory = platformdirs.user_data_dir("ktrial") if "://" in location else Path(location).parent
    return Path(directory) / "reports"


def write_report(
    record: StudyRecord, path: Path, reasons: Sequence[Why] = (), *, whole: bool = False
) -> Path:
    """Write the report; a half-written one is never left where a whole one was. `whole`: all is open."""
    text = study_html(record, reasons, whole=whole)
    return write_page(path, text, f"ktrial report {record.study.name} --html FILE")
