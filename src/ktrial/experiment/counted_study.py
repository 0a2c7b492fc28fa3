"""The study that counts what another one times: the same treatments and workloads, on the machine exact."""

from ktrial.model.machine_model import ModelledMachine
from ktrial.model.study import REAL_MACHINES, MachineSettings, Study
from ktrial.model.workload import WorkloadUse

_EXACT = "exact"
SUFFIX = "-counted"
"""Of its name."""


def counted_study(timed: Study, machine: MachineSettings, perturbations: int) -> Study:
    """`timed` on the machine exact, with as many perturbations, under a name of its own.

    `machine`: for a study of a system that runs already (host, ssh), which has no kernel to boot; one that
    boots its guests has them counted as they are, with that model.
    """
    here = machine if timed.machine.kind in REAL_MACHINES else _as_it_is(timed.machine, machine.model)
    return timed.model_copy(
        update={
            "name": f"{timed.name}{SUFFIX}",
            "machine": here.model_copy(update={"kind": _EXACT}),
            "workloads": tuple(map(_counted, timed.workloads)),
            "timing": None,
            "perturbations": perturbations,
        }
    )


def _as_it_is(machine: MachineSettings, model: ModelledMachine | None) -> MachineSettings:
    """Without what is only for real time."""
    only_timed = {"pin": (), "cgroup": None, "allow_emulated_time": False, "monitors": (), "sample_ns": 0}
    return machine.model_copy(update={**only_timed, "model": model})


def _counted(use: WorkloadUse) -> WorkloadUse:
    """A command's own numbers are times: counted are the operations that it marks, or the whole run."""
    if use.command is None:
        return use
    return use.model_copy(update={"command": use.command.model_copy(update={"metrics": (), "user": ""})})
