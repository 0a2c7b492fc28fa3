"""What is watched on several CPUs in simulated time: how long tasks waited for a CPU, and where CPUs wait.

`monitors = ["run-delay"]`: the programs run once more, started by `tasks delays` (crates/tasks). The kernel
tells it of each task that ends how long that was ready to run and did not (taskstats; while a task lives,
/proc/PID/schedstat has it).

`monitors = ["waits"]`: the programs run once more, counted by function, under the first perturbation alone:
that is dearer. What the CPUs worked, waited and idled together, and the places that have most of it, are
counters of the trial.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from statistics import fmean

from pydantic import BaseModel, ValidationError

from ktrial.analysis.guest_time import TimePart, by_cpu, places, together
from ktrial.machines import guest_programs
from ktrial.model.parallel import RUN_DELAY, waits_counter
from ktrial.model.profile import Profile
from ktrial.model.workload import Direction, Mode, Sample
from ktrial.target import Push, Run, Step, StepResult
from ktrial.target.monitor_errors import MonitorFailed

_IN_GUEST = guest_programs.TASKS_IN_GUEST
_MODE = 0o755
_MOST = 3
"""Places of each part."""
_PARTS = (TimePart.WORK, TimePart.WAITING, TimePart.LINES, TimePart.IDLE)
_WITH_PLACES = (TimePart.WAITING, TimePart.LINES, TimePart.IDLE)


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


def samples(label: str, mode: Mode, of_programs: Sequence[Delays]) -> tuple[Sample, ...]:
    """Metrics of the workload `label`; of several programs the means of each one's."""
    values = {
        "run delay, median": [each.median for each in of_programs],
        "run delay, p99": [each.p99 for each in of_programs],
        "run delay, largest": [each.largest for each in of_programs],
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


def delay_counters(of_programs: Sequence[Delays]) -> tuple[tuple[str, float], ...]:
    """Kept with the trial's other counters: tasks, how often they ran, what they waited (ns)."""
    totals = {
        "tasks": sum(each.tasks for each in of_programs),
        "ran": sum(each.ran for each in of_programs),
        "waited": sum(each.waited for each in of_programs),
    }
    return tuple((f"{RUN_DELAY}.{name}", float(total)) for name, total in totals.items())


def waits_counters(profile: Profile) -> tuple[tuple[str, float], ...]:
    """Nanoseconds of guest time an operation, of all CPUs together: each part, and its first places."""
    time = together(by_cpu(profile))
    parts = dict(zip(_PARTS, (time.work, time.waiting, time.lines, time.idle), strict=True))
    return (*((waits_counter(part.value), spent) for part, spent in parts.items()), *_places(profile))


def _places(profile: Profile) -> Iterator[tuple[str, float]]:
    for part in _WITH_PLACES:
        for place, spent in islice(places(profile, part).items(), _MOST):
            yield waits_counter(part.value, place.name), spent
