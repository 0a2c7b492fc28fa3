"""Which system call of a program failed last, where the program fails in a guest.

A program that is refused something often says nothing, or nothing that helps. So the steps are done again
from the same state, uncounted, with that program watched (crates/watch).
"""

from ktrial.machines import BootedTarget, CountingTarget
from ktrial.machines.errors import MachineError
from ktrial.target import Run, Step, StepResult
from ktrial.target.errors import GuestEnded, GuestProgramsMissing
from ktrial.target.watching import FailedCall, last_failure, watched_for_failures
from ktrial.workloads.errors import WorkloadError


def with_failed_call(
    error: WorkloadError, target: BootedTarget, steps: tuple[Step, ...], results: tuple[StepResult, ...]
) -> WorkloadError:
    """The error, with the system call that failed last; as it is where none is known."""
    failed = first_failed(steps, results)
    if failed is None or not isinstance(target, CountingTarget):
        return error
    call = _asked(target, steps, failed)
    if call is None:
        return error
    hint = error.advice
    return WorkloadError(f"{error.message.rstrip('.')}; last failed system call: {call.text}", hint=hint)


def first_failed(steps: tuple[Step, ...], results: tuple[StepResult, ...]) -> int | None:
    """The place of the first program that ended with another status than 0, or by a signal of its own."""
    for result in results:
        ended_badly = result.exit not in (0, None) or (result.signal is not None and not result.timed_out)
        if ended_badly and isinstance(steps[result.step], Run):
            return result.step
    return None


def _asked(target: BootedTarget, steps: tuple[Step, ...], failed: int) -> FailedCall | None:
    try:
        return last_failure(target.perform(watched_for_failures(steps, failed)))
    except (GuestEnded, MachineError, GuestProgramsMissing, ValueError):
        return None
