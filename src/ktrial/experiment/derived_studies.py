"""Studies that are made of others: counted, not timed; on another machine; fresh blocks for a size."""

from ktrial.analysis.errors import NothingToConfirm
from ktrial.model.machine_model import ModelledMachine
from ktrial.model.study import REAL_MACHINES, MachineSettings, Stopping, Study
from ktrial.model.workload import WorkloadUse

_EXACT = "exact"
LONGEST_NAME = 64
"""Characters that a study file may name its study with."""
COUNTED_SUFFIX = "-counted"
_CONFIRMATION_SUFFIX = "-confirmation"
"""Of their names."""


def counted_study(timed: Study, machine: MachineSettings, perturbations: int) -> Study:
    """`timed` on the machine exact, with as many perturbations, under a name of its own.

    `machine`: for a study of a system that runs already (host, ssh), which has no kernel to boot; one that
    boots its guests has them counted as they are, with that model.
    """
    here = machine if timed.machine.kind in REAL_MACHINES else _as_it_is(timed.machine, machine.model)
    return timed.model_copy(
        update={
            "name": f"{timed.name}{COUNTED_SUFFIX}",
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


def confirmation_of(study: Study, blocks: int) -> Study:
    """The study again, with other draws, in a number of blocks that is fixed. Raises NothingToConfirm.

    An effect that ended its study early looks larger than it is. What ended the first study has no part in
    the second: its estimates are not inflated by it. (Whitehead, 'On the bias of maximum likelihood
    estimation following a sequential test', Biometrika 73(3), 1986, has the bias of the first.)
    """
    if study.timing is None:
        raise NothingToConfirm(study=study.name)
    timing = study.timing.model_copy(update={"blocks": blocks, "stopping": Stopping.FIXED})
    name, seed = f"{study.name}{_CONFIRMATION_SUFFIX}", (study.seed + 1) % 2**31
    return study.model_copy(update={"name": name, "seed": seed, "timing": timing})


def study_on(study: Study, host: str) -> Study:
    """The study on this machine that ssh reaches, under a name that ends with the machine's."""
    end = f"-{host.rpartition('@')[2]}"
    name = f"{study.name[: max(1, LONGEST_NAME - len(end))]}{end}"
    return study.model_copy(update={"name": name, "machine": study.machine.model_copy(update={"host": host})})
