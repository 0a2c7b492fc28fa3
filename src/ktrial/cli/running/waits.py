"""Where the CPUs wait, at the largest number of them: kernels in workloads, counted by function."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ktrial.analysis.guest_time import Part, by_cpu, places, together
from ktrial.experiment.profile import profile
from ktrial.model.design import FactorKind
from ktrial.model.plan import treatments
from ktrial.model.profile import Profile
from ktrial.model.study import MachineSettings, Study, named_kernel
from ktrial.model.workload import WorkloadUse

Counted = Callable[[MachineSettings, WorkloadUse], Profile]


class Waits(NamedTuple):
    """What CPUs spend no work on: shares of their time, and the first places."""

    kernel: str
    workload: str
    cpus: int
    waiting: float
    """Of 1: in loops until another CPU has done something."""
    waiting_in: str
    """Empty: nowhere."""
    idle: float
    """Of 1: with nothing to run."""
    asleep_in: str

    def __str__(self) -> str:
        where = f"waiting {self.waiting:.0%}{f' in {self.waiting_in}' if self.waiting_in else ''}"
        idle = f"idle {self.idle:.0%}{f', asleep in {self.asleep_in}' if self.asleep_in else ''}"
        return f"{self.kernel}, {self.workload}, {self.cpus} CPUs: {where}; {idle}"

    def as_json(self) -> dict[str, Any]:
        """Its fields."""
        return self._asdict()


def waits(study: Study, counted: Counted = profile) -> Iterator[Waits]:
    """In the study's order. Raises what `profile` does."""
    (factor,) = (each for each in study.factors if each.kind is FactorKind.CPUS)
    most = max(int(level) for level in factor.levels)
    for treatment in treatments(study):
        if treatment.levels[factor.name] != most:
            continue
        kernel = named_kernel(study, treatment)
        machine = study.machine.model_copy(update={"kernel": kernel, "cpus": most})
        for use in study.workloads:
            yield _waits(counted(machine, use), kernel, use.label, most)


def _waits(found: Profile, kernel: str, workload: str, cpus: int) -> Waits:
    time = together(by_cpu(found))
    waiting_in, asleep_in = (
        next((place.name for place in places(found, part)), "") for part in (Part.WAITING, Part.IDLE)
    )
    return Waits(
        kernel, workload, cpus, time.waiting / time.whole, waiting_in, time.idle / time.whole, asleep_in
    )
