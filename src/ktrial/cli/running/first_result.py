"""Runs a first study, and says what can be done next with what it found."""

import shlex

import typer

from ktrial.cli.console import output, print_json
from ktrial.cli.running.study import SOME_TRIALS_FAILED, RunOptions, run_and_show
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.report.json.study import as_json
from ktrial.report.text import study_summary
from ktrial.store.location import masked

_MORE_WORKLOADS = "syscall,fork,mmap,open,futex"


def run_and_advise(study: Study, options: RunOptions) -> None:
    """Run the study, print its result, and three commands that go on from there.

    Raises typer.Exit with 3 where trials failed.
    """
    ended = run_and_show(study, options)
    steps = next_steps(ended.record, options.store)
    if options.json:
        result = as_json(ended.record, ended.store, ended.report, ended.whys)
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
