"""How a system that runs does steps: programs that follow each other in a row, the rest one by one."""

from collections.abc import Callable, Sequence
from itertools import groupby

from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.target import Run, Step, StepResult
from ktrial.target.errors import GuestEnded

NumberedRuns = Sequence[tuple[int, Run]]


def perform_in_rows(
    steps: tuple[Step, ...],
    boot: Boot,
    run: Callable[[NumberedRuns], tuple[StepResult, ...]],
    do: Callable[[int, Step], StepResult],
) -> tuple[StepResult, ...]:
    """Do the steps in order; `run` has the programs, `do` every other step.

    Raises GuestEnded where a program passes the boot's limit, and what `run` and `do` raise.
    """
    results: list[StepResult] = []
    for is_run, group in groupby(enumerate(steps), key=lambda numbered: isinstance(numbered[1], Run)):
        numbered = list(group)
        if is_run:
            results += run([(number, step) for number, step in numbered if isinstance(step, Run)])
            _judge(numbered, results, boot)
        else:
            results += [do(number, step) for number, step in numbered]
    return tuple(results)


def as_run_here(run: Run, boot: Boot, argv: tuple[str, ...]) -> Run:
    """With the boot's limit where it has none, and the layout as this system has it."""
    limit = run.limit_ns or round(boot.limit_seconds * 1e9)
    return run.model_copy(update={"argv": argv, "limit_ns": limit, "layout_seed": 0})


def _judge(numbered: Sequence[tuple[int, Step]], results: Sequence[StepResult], boot: Boot) -> None:
    held = {number for number, step in numbered if isinstance(step, Run) and not step.limit_ns}
    if any(result.timed_out and result.step in held for result in results):
        reason = f"{boot.limit_seconds:g} s went by before the steps were done"
        raise GuestEnded(outcome=Outcome.HUNG.value, reason=reason, console="", results=tuple(results))
