"""One value on several CPUs in simulated time, under a seed."""

from base64 import b64encode

from ktrial import workloads
from ktrial.model.design import Perturbation
from ktrial.model.workload import Mode, WorkloadUse
from ktrial.target import Push, Run, Target


def value(target: Target, use: WorkloadUse, seed: int) -> float:
    """Guest nanoseconds per operation."""
    workload = workloads.find(use)
    brought = tuple(
        Push(path=file.guest, base64=b64encode(file.host.read_bytes()).decode(), mode=file.mode)
        for file in workload.files(use)
    )
    mode = Mode.EXACT_PARALLEL
    steps = (
        step.model_copy(update={"layout_seed": seed}) if isinstance(step, Run) else step
        for step in workload.steps(use, mode, Perturbation(number=0))
    )
    results = target.perform((*brought, *steps))
    return workload.samples(use, mode, results[len(brought) :])[0].value
