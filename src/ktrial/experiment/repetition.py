"""One stored trial of an exact study, run again: it has to give the same numbers, to the last digit."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from ktrial.analysis.errors import NotExact, NothingToRepeat, TrialNotStored
from ktrial.experiment.jobs import jobs_of, obtained
from ktrial.experiment.resources import Resources
from ktrial.experiment.trial import run_trial
from ktrial.kernels import Progress
from ktrial.machines import Machine
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Trial
from ktrial.model.workload import EXACT_MODES
from ktrial.studyfile.references import resolved


@dataclass(frozen=True)
class Difference:
    """One value that is another than before."""

    what: str
    before: str
    now: str


def chosen(study: Study, trials: tuple[Trial, ...], seed: int) -> Trial:
    """One of the trials that completed, drawn by the seed. Raises NotExact, NothingToRepeat."""
    completed = [trial for trial in trials if trial.outcome is Outcome.COMPLETED]
    if not completed:
        raise NothingToRepeat(study=study.name)
    modes = {sample.mode for trial in completed for sample in trial.samples}
    if not modes <= EXACT_MODES:
        raise NotExact(study=study.name, modes=", ".join(sorted(modes)))
    return random.Random(seed).choice(sorted(completed, key=lambda trial: trial.planned.key))


def with_key(study: Study, trials: tuple[Trial, ...], key: str) -> Trial:
    """The trial with this key, however it ended. Raises NotExact, TrialNotStored."""
    matching = [trial for trial in trials if trial.planned.key == key]
    if not matching:
        raise TrialNotStored(study=study.name, key=key)
    if study.timing:
        raise NotExact(study=study.name, modes="real time")
    return matching[0]


def repeated(study: Study, before: Trial, machine: Machine, sources: Resources, progress: Progress) -> Trial:
    """The same trial, run now; nothing is stored. Raises KernelError, MachineError, WorkloadError."""
    study = resolved(study)
    machine.check()
    treatment = before.planned.treatment
    kernel = obtained(study, treatment, sources, progress)
    progress("running the trial again")
    return run_trial(machine, before.planned, jobs_of(study, treatment, kernel, sources), audited=False)


def differences(before: Trial, now: Trial) -> tuple[Difference, ...]:
    """What is not the same to the last digit; what was executed comes first, for it may be why."""
    return tuple(_differences(_facts(before), _facts(now)))


def _facts(trial: Trial) -> dict[str, str]:
    provenance = trial.provenance
    known = {"ktrial": provenance.ktrial, "QEMU": provenance.qemu, "kernel": provenance.kernel_digest}
    known |= {f"executed: {what}": digest for what, digest in provenance.executed.items()}
    known |= {"outcome": trial.outcome.value, "reason": trial.reason}
    known |= {f"setting {path}": value for path, value in trial.settings.items()}
    for sample in trial.samples:
        known[f"{sample.workload}: {sample.metric}"] = f"{sample.value!r} {sample.unit}"
    known |= {f"{one.workload}: {one.name}": repr(one.delta) for one in trial.counters}
    return known


def _differences(before: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    for what in dict.fromkeys([*before, *now]):
        # What an older ktrial did not note cannot differ.
        noted = what in before or not what.startswith("executed: ")
        if noted and before.get(what) != now.get(what):
            yield Difference(what, before.get(what, "none"), now.get(what, "none"))
