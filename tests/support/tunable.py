"""A machine whose numbers follow from its knobs: what searches are tried on without a kernel."""

from collections.abc import Callable, Mapping

from tests.support.scripted import ScriptedMachine, refused

from ktrial.model.kernel import Build
from ktrial.model.machine import Boot
from ktrial.model.study import MachineSettings, Search, Study
from ktrial.model.tuning import Budget, Goal, Objective
from ktrial.model.workload import Direction, Mode, WorkloadUse
from ktrial.target import Failure, Read, Run, Step, StepResult, Write

FILES = {
    "/proc/mounts": "proc /proc proc rw 0 0\n",
    "/proc/sys/kernel/osrelease": "6.12.1-test\n",
    "/proc/sys/vm/swappiness": "60\n",
    "/proc/sys/vm/dirty_ratio": "20\n",
    "/proc/sys/vm/dirty_bytes": "0\n",
    "/proc/sys/vm/dirty_background_ratio": "10\n",
    "/proc/sys/vm/vfs_cache_pressure": "100\n",
    "/proc/sys/vm/watermark_scale_factor": "10\n",
    "/proc/sys/vm/zone_reclaim_mode": "0\n",
    "/proc/sys/vm/numa_stat": "1\n",
    "/proc/sys/kernel/randomize_va_space": "2\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}
ABSENT = Failure(errno=2, name="ENOENT", text="No such file or directory")
Number = Callable[[Boot, Mapping[str, str]], float]
"""Boot, and file → value of all that was written → what the workload prints."""


GOAL = Goal(objectives=(Objective(metric="instructions", direction=Direction.LOWER),))


def a_search(*knobs: str, kind: str = "exact", builds: dict[str, Build] | None = None) -> Study:
    """For fewer instructions in the workload `fork`."""
    kernel = "mine" if builds else "debian:6.12"
    return Study(
        name="tune",
        machine=MachineSettings(kind=kind, kernel=kernel),
        factors=(),
        workloads=(WorkloadUse(name="fork"),),
        builds=builds or {},
        search=Search(knobs=knobs, goal=GOAL, budget=Budget(runs=20)),
    )


class TunableMachine(ScriptedMachine):
    """Every `perform` starts from the same files, as a snapshot does."""

    def __init__(
        self,
        number: Number,
        mode: Mode = Mode.EXACT_CLOCK,
        files: Mapping[str, str] = FILES,
        read_only: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(mode=mode)
        self.files, self.number, self.read_only = files, number, read_only
        self.refuses: Callable[[Write], bool] = lambda step: False
        self.ran: list[dict[str, str]] = []

    def perform(self, boot: Boot, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        written: dict[str, str] = {}
        results = [self._step(boot, step, written) for step in steps]
        return tuple(result.model_copy(update={"step": at}) for at, result in enumerate(results))

    def _step(self, boot: Boot, step: Step, written: dict[str, str]) -> StepResult:
        if isinstance(step, Read):
            content = self.files.get(step.path)
            failure = ABSENT if content is None else None
            return StepResult(step=0, do="read", content=content or "", failure=failure)
        if isinstance(step, Write):
            if step.path in self.read_only or step.path not in self.files or self.refuses(step):
                return refused("EINVAL", f"write {step.path}: Invalid argument")
            written[step.path] = step.value
            return StepResult(step=0, do="write", after=f"{step.value}\n")
        assert isinstance(step, Run)
        self.ran.append(dict(written))
        return StepResult(step=0, do="run", exit=0, stdout=str(self.number(boot, written)))
