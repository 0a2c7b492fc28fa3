"""Programs run as steps: how they are started, and how they must have ended."""

from ktrial.model.design import Perturbation
from ktrial.target import Run, StepResult
from ktrial.workloads.errors import WorkloadFailed, WorkloadKilled, WorkloadNotStarted, WorkloadTimedOut

_LONGEST_QUOTE = 400
PADDING = "KTRIAL_PADDING"
"""The environment variable that fills the environment up where a perturbation asks for it."""


def run_step(
    argv: tuple[str, ...],
    perturbation: Perturbation,
    environment: dict[str, str] | None = None,
    directory: str = "/",
    user: str = "",
) -> Run:
    """A program to be run under the perturbation."""
    padding = {PADDING: "x" * perturbation.environment_bytes} if perturbation.environment_bytes else {}
    return Run(
        argv=argv,
        environment=(environment or {}) | padding,
        directory=directory,
        layout_seed=perturbation.layout_seed,
        start_offset_ns=perturbation.start_offset,
        user=user,
    )


def ended_well(workload: str, results: tuple[StepResult, ...], wanted: int) -> tuple[StepResult, ...]:
    """The results, all of programs that exited with 0, as many as wanted.

    Raises WorkloadNotStarted, WorkloadTimedOut, WorkloadKilled, WorkloadFailed for the first that is not.
    """
    for result in results:
        _check_end(workload, result)
    if len(results) < wanted:
        problem = f"only {len(results)} of its {wanted} runs were reached"
        raise WorkloadNotStarted(workload=workload, problem=problem)
    return results


def _check_end(workload: str, result: StepResult) -> None:
    if result.failure:
        raise WorkloadNotStarted(workload=workload, problem=result.failure.text)
    if result.timed_out:
        raise WorkloadTimedOut(workload=workload, limit=f"its limit; it ran {result.wall_ns} ns")
    if result.signal is not None:
        raise WorkloadKilled(workload=workload, signal=result.signal, said=last_words(result))
    if result.exit != 0:
        raise WorkloadFailed(workload=workload, status=result.exit, said=last_words(result))


def last_words(result: StepResult) -> str:
    """The end of what the program wrote to standard error, else to standard output."""
    said = result.stderr.strip() or result.stdout.strip() or "it said nothing"
    return said if len(said) <= _LONGEST_QUOTE else f"…{said[-_LONGEST_QUOTE:]}"
