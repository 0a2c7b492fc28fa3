"""Counting that begins after a program has set itself up: at a text that it prints, or the nth of something.

The program `watch` (crates/watch) runs the command under ptrace(2) and marks a region from there to the end;
from there on it looks at nothing more. The run that does not count goes without it: what it takes, less what
is counted of the others, is set-up.
"""

import signal
from collections.abc import Iterator, Sequence

from ktrial.format import number_format
from ktrial.model.machine import CarriedFile
from ktrial.model.system_calls import NUMBERS, OUTPUT, occurrence
from ktrial.model.warnings import DataWarning, WarningKind
from ktrial.model.workload import Command, MetricRule, Mode
from ktrial.target import Run, StepResult
from ktrial.target.watching import IN_GUEST, watch_program
from ktrial.workloads.errors import BadWorkload, WorkloadError
from ktrial.workloads.protocol import last_words

AFTER_SET_UP = MetricRule(name="after set-up")
"""What is measured then. It has another name than the whole run's: the two are never compared."""
_EXECUTABLE = 0o755


def begins_later(command: Command) -> bool:
    """Whether counting begins later than the program."""
    return bool(command.after or command.skip_start)


def problem_of_start(command: Command) -> str:
    """What of its declaration cannot be meant; empty where all can."""
    if not begins_later(command):
        return ""
    if command.after and command.skip_start:
        return "after and skip_start both say where counting begins; give one of them"
    if command.metrics:
        return "metrics are read from what it prints, so that nothing begins after set-up; give one of them"
    if not command.discarded:
        return "discarded is 0, and the run that does not count tells how much is set-up; give 1 or more"
    if command.skip_start:
        try:
            occurrence(command.skip_start)
        except ValueError as error:
            return f"skip_start is {command.skip_start!r}: {error}"
    return ""


def refuse_uncounted(label: str, mode: Mode) -> None:
    """Raise BadWorkload where no plugin counts instructions."""
    if mode is not Mode.EXACT_PLUGIN:
        raise BadWorkload(
            f'Workload {label}: after and skip_start need the machine exact, with count = "plugin".',
            hint="leave them out for times: let the program print what it took after its set-up, as a metric",
        )


def watching_files(command: Command) -> tuple[CarriedFile, ...]:
    """What a guest needs for it. Raises GuestProgramsMissing."""
    if not begins_later(command):
        return ()
    return (CarriedFile(host=watch_program(), guest=IN_GUEST, mode=_EXECUTABLE),)


def watched(run: Run, command: Command) -> Run:
    """The run, with counting from there on."""
    if not begins_later(command):
        return run
    return run.model_copy(update={"argv": (IN_GUEST, *_options(command), "--", *run.argv)})


def _options(command: Command) -> tuple[str, ...]:
    """As `watch` takes them (crates/watch/src/order.rs)."""
    if command.after:
        return ("--text", command.after)
    begin = occurrence(command.skip_start)
    if begin.name == OUTPUT:
        return ("--outputs", str(begin.times))
    if begin.name in NUMBERS:
        return ("--call", str(NUMBERS[begin.name]), str(begin.times))
    return ("--signal", str(int(signal.Signals[begin.name])), str(begin.times))


def _beginning(command: Command) -> str:
    return f"the text {command.after!r}" if command.after else occurrence(command.skip_start).text


def refuse_never_begun(label: str, command: Command, results: Sequence[StepResult]) -> None:
    """Raise WorkloadError where what counting begins at never came."""
    for result in results:
        if result.region and not result.region.marking.regions:
            verb = "appeared in what it printed" if command.after else "came"
            raise WorkloadError(
                f"Workload {label}: {_beginning(command)} never {verb}, so that nothing was counted; its "
                f"output ends with: {last_words(result)}",
                hint="what is written to another file than standard output and error is not looked at",
            )


def set_up_note(label: str, command: Command, results: Sequence[StepResult]) -> Iterator[DataWarning]:
    """How much came before: of the last run that does not count, by the median of those that do."""
    if not begins_later(command):
        return
    whole, *counted = (result.region for result in results[command.discarded - 1 :])
    after = sorted(region.instructions for region in counted if region)
    if whole is None or not whole.instructions or not after:
        return
    count = after[(len(after) - 1) // 2]
    before = max(whole.instructions - count, 0)
    share = number_format.share_of(before / whole.instructions)
    yield DataWarning(
        kind=WarningKind.SET_UP,
        text=f"{label}: {share} of a run came before {_beginning(command)}, and does not count "
        f"({before:,} of {whole.instructions:,} instructions)",
    )
