"""How long tasks waited for a CPU: `monitors = ["run-delay"]` on several CPUs in simulated time.

The programs run once more, started by `tasks delays` (crates/tasks). The kernel tells it of each task that
ends how long that was ready to run and did not (taskstats; while a task lives, /proc/PID/schedstat has it).
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from statistics import fmean

from pydantic import BaseModel, ValidationError

from ktrial.machines import guest_programs
from ktrial.model.parallel import RUN_DELAY
from ktrial.model.workload import Direction, Mode, Sample
from ktrial.target import Push, Run, Step, StepResult
from ktrial.target.monitor_errors import MonitorFailed

_IN_GUEST = guest_programs.TASKS_IN_GUEST
_MODE = 0o755


class Delays(BaseModel):
    """Of the tasks that ended while one program ran, that program among them: nanoseconds of guest time."""

    tasks: int
    ran: int
    """How often they got a CPU."""
    waited: int
    """All of them together."""
    median: float
    p99: float
    largest: float


def program() -> Push:
    """What puts the program there that tells. Raises GuestProgramsMissing."""
    content = guest_programs.tasks().read_bytes()
    return Push(path=_IN_GUEST, base64=b64encode(content).decode("ascii"), mode=_MODE)


def watching(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps, each program of them started by the one that tells."""
    return tuple(
        step.model_copy(update={"argv": (_IN_GUEST, "delays", *step.argv)}) if isinstance(step, Run) else step
        for step in steps
    )


def delays(results: Iterable[StepResult]) -> tuple[Delays, ...]:
    """Of each program that ran. Raises MonitorFailed."""
    return tuple(_delays(result.stderr) for result in results if result.do == "run")


def _delays(told: str) -> Delays:
    *_, last = told.strip().splitlines() or [""]
    try:
        return Delays.model_validate_json(last)
    except ValidationError:
        raise MonitorFailed(monitor=RUN_DELAY, problem=f"told no run delays: {last[:200]!r}") from None


def samples(label: str, mode: Mode, found: Sequence[Delays]) -> tuple[Sample, ...]:
    """Metrics of the workload `label`; of several programs the means of each one's."""
    values = {
        "run delay, median": [each.median for each in found],
        "run delay, p99": [each.p99 for each in found],
        "run delay, largest": [each.largest for each in found],
    }
    return tuple(_sample(label, mode, name, fmean(of_each)) for name, of_each in values.items() if of_each)


def _sample(label: str, mode: Mode, metric: str, value: float) -> Sample:
    return Sample(
        workload=label,
        metric=metric,
        unit="ns",
        direction=Direction.LOWER,
        mode=mode,
        value=value,
        operations=1,
        median=value,
        mean=value,
    )


def counters(found: Sequence[Delays]) -> tuple[tuple[str, float], ...]:
    """Kept with the trial's other counters: tasks, how often they ran, what they waited (ns)."""
    totals = {
        "tasks": sum(each.tasks for each in found),
        "ran": sum(each.ran for each in found),
        "waited": sum(each.waited for each in found),
    }
    return tuple((f"{RUN_DELAY}.{name}", float(total)) for name, total in totals.items())
