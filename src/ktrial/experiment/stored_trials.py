"""Trials that a store has of the same system doing the same: what another study has run is not run again."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from ktrial.analysis.errors import AnalysisUsageError
from ktrial.errors import KtrialError
from ktrial.experiment.jobs import Job, jobs_of, obtained
from ktrial.experiment.provenance import provenance
from ktrial.experiment.resources import Resources
from ktrial.experiment.trial import run_trial
from ktrial.kernels import Progress, silent
from ktrial.machines import Machine
from ktrial.model.base import digest
from ktrial.model.design import PlannedTrial, Treatment
from ktrial.model.kernel import Kernel
from ktrial.model.study import Study, kernel_of, plan, treatments
from ktrial.model.trial import CARRIED, Outcome, Provenance, Trial
from ktrial.model.workload import EXACT_MODES
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy
from ktrial.studyfile.references import resolved

_SAME = (
    "kernel_digest",
    "config_digest",
    "machine",
    "qemu",
    "cpu_model",
    "agent_digest",
    "seed",
    "command_line",
    "snapshot",
)
"""Of a trial's provenance: what has to be as it would be now."""


@dataclass(frozen=True)
class _TreatedSystem:
    """A treatment of the study that takes trials over."""

    treatment: Treatment
    name: str
    """Of its kernel."""
    kernel: Kernel
    job: Job


class _Identities:
    """What the machine would note with a trial, asked once for each system."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._known: dict[str, Provenance | None] = {}

    def of(self, treated: _TreatedSystem) -> Provenance | None:
        """None where the system cannot be started. Where its snapshot is gone it is made anew."""
        if treated.treatment.key not in self._known:
            self._known[treated.treatment.key] = self._ask(treated)
        return self._known[treated.treatment.key]

    def _ask(self, treated: _TreatedSystem) -> Provenance | None:
        try:
            with self._machine.start(treated.job.boot) as target:
                identity = target.identity
        except KtrialError:
            return None
        noted = provenance(treated.kernel, identity)
        job = treated.job
        brought = {f"{CARRIED}{job.label}": job.carried.digest} if job.carried.digest else {}
        return noted.model_copy(update={"executed": noted.executed | brought})


def take_over(study: Study, store: Store, machine: Machine, resources: Resources) -> int:
    """Copy into the study what other studies in the store have of its trials. How many there were.

    The study has one workload. A trial is taken over where the same kernel was booted in the same way by the
    same QEMU and the same agent, with the same settings, disk, workload and perturbation: then it would come
    out the same to the last digit. Raises StoreError.
    """
    study = resolved(study)
    own = store.newest(digest=digest(study))
    finished = store.finished_keys(own.id) if own else set()
    missing = [trial for trial in plan(study).trials if trial.key not in finished]
    taken, identities = 0, _Identities(machine)
    newest_first = sorted(store.readable_studies()[0], key=lambda study: -study.id) if missing else ()
    for stored in newest_first:  # what ran last has most of it, and is small
        if not missing:
            break
        if (own is None or stored.id != own.id) and stored.study.machine.kind == study.machine.kind:
            same = _same_treatments(stored.study, missing, study, resources)
            for trial in _trials(store, stored, missing, same, identities) if same else ():
                taken += store.add_trial(store.study(study), trial)
                missing = [one for one in missing if one.key != trial.planned.key]
    return taken


def _same_treatments(
    stored: Study, missing: list[PlannedTrial], study: Study, resources: Resources
) -> dict[tuple[str, str], _TreatedSystem]:
    """Keys of a treatment of the study and of one of the stored study that do the same."""
    (use,) = study.workloads
    if use not in stored.workloads:
        return {}
    other_study = resolved(stored.model_copy(update={"workloads": (use,)}))
    return {
        (treated.treatment.key, treatment.key): treated
        for treated in _own(study, missing, resources)
        for treatment in treatments(other_study)
        if kernel_of(other_study, treatment).name == treated.name
        and _same_job(treated, other_study, treatment, resources)
    }


def _trials(
    store: Store,
    stored: StoredStudy,
    missing: list[PlannedTrial],
    same: dict[tuple[str, str], _TreatedSystem],
    identities: _Identities,
) -> Iterator[Trial]:
    """Trials of the stored study that are the same as missing ones."""
    alone = len(stored.study.workloads) == 1
    for trial in store.trials(stored.id):
        for planned in missing:
            treated = same.get((planned.treatment.key, trial.planned.treatment.key))
            if treated is None or trial.planned.perturbation != planned.perturbation:
                continue
            if _holds(trial, treated.job.label, alone) and _is_as_now(
                trial.provenance, identities.of(treated)
            ):
                yield _cut(trial, planned, treated.job.label, store, stored.id)


def _own(study: Study, missing: list[PlannedTrial], resources: Resources) -> list[_TreatedSystem]:
    systems = []
    for treatment in {trial.treatment.key: trial.treatment for trial in missing}.values():
        with suppress(KtrialError):  # what cannot be had is told when the study runs
            kernel = obtained(study, treatment, resources, silent)
            (job,) = jobs_of(study, treatment, kernel, resources)
            systems.append(_TreatedSystem(treatment, kernel_of(study, treatment).name, kernel, job))
    return systems


def _same_job(
    treated: _TreatedSystem, other_study: Study, treatment: Treatment, resources: Resources
) -> bool:
    """Whether the other study's treatment does the same in the same system."""
    try:
        (job,) = jobs_of(other_study, treatment, treated.kernel, resources)
    except KtrialError:
        return False
    return _doing(job) == _doing(treated.job)


def _doing(job: Job) -> tuple[object, ...]:
    """All that decides what comes out, apart from the machine."""
    settings = tuple((setting.path, setting.value) for setting in job.settings)
    # Equal mappings may have another order, which is that of the program's arguments.
    arguments = tuple(job.use.parameters)
    return job.use, arguments, job.boot, job.carried, settings, job.disk, job.limits, job.monitors


def _holds(trial: Trial, workload: str, alone: bool) -> bool:
    """Whether the trial says something of the workload; of how one of several failed its console may be."""
    return trial.outcome_of(workload) is Outcome.COMPLETED or (
        alone and trial.outcome not in {Outcome.KERNEL_MISSING, Outcome.NOT_A_KERNEL, Outcome.MACHINE_FAILED}
    )


def _is_as_now(stored: Provenance, current: Provenance | None) -> bool:
    """Whether the trial ran on the machine that there is now, from the same state."""
    if current is None or any(getattr(stored, name) != getattr(current, name) for name in _SAME):
        return False
    both = current.executed.keys() & stored.executed.keys()
    return all(current.executed[name] == stored.executed[name] for name in both)


def _cut(trial: Trial, planned: PlannedTrial, workload: str, store: Store, number: int) -> Trial:
    """The one workload of the trial, under the new study's name for it."""
    profile = store.profile(number, trial.planned.key, workload)
    outcome = trial.outcome_of(workload)
    return trial.model_copy(
        update={
            "planned": planned,
            "outcome": outcome,
            "reason": "" if outcome is Outcome.COMPLETED else trial.reason_of(workload),
            "console": "" if outcome is Outcome.COMPLETED else trial.console,
            "provenance": trial.provenance.model_copy(update={"failures": ()}),
            "samples": tuple(sample for sample in trial.samples if sample.workload == workload),
            "counters": tuple(counter for counter in trial.counters if counter.workload == workload),
            "profiles": (profile,) if profile else (),
        }
    )


# One stored trial of an exact study, run again: it has to give the same numbers, to the last digit.


@dataclass(frozen=True)
class Difference:
    """One value that is another than before."""

    fact: str
    before: str
    repeated: str


def drawn_trial(study: Study, trials: tuple[Trial, ...], seed: int) -> Trial:
    """One of the trials that measured something, drawn by the seed. Raises AnalysisUsageError.

    What failed in it has to fail in the same way.
    """
    completed = [trial for trial in trials if trial.is_measured]
    if not completed:
        raise AnalysisUsageError(
            f"Study {study.name} has no trial that completed: there is nothing to run again.",
            hint=f"ktrial show {study.name} tells how its trials ended",
        )
    modes = {sample.mode for trial in completed for sample in trial.samples}
    if not modes <= EXACT_MODES:
        raise AnalysisUsageError(
            f"Study {study.name} was measured in real time ({', '.join(sorted(modes))}): no trial "
            "of it gives the same numbers twice.",
            hint=(
                "ktrial replicate is for studies on the machine exact; run this one again, and compare "
                "the verdicts"
            ),
        )
    return random.Random(seed).choice(sorted(completed, key=lambda trial: trial.planned.key))


def trial_with_key(study: Study, trials: tuple[Trial, ...], key: str) -> Trial:
    """The trial with this key, however it ended. Raises AnalysisUsageError."""
    matching = [trial for trial in trials if trial.planned.key == key]
    if not matching:
        raise AnalysisUsageError(
            f"Study {study.name} has no trial {key}.",
            hint=(
                f"a trial's key is in the warning that names its seed, and in ktrial show {study.name} --json"
            ),
        )
    if study.timing:
        raise AnalysisUsageError(
            f"Study {study.name} was measured in real time (real time): no trial of it gives the "
            "same numbers twice.",
            hint=(
                "ktrial replicate is for studies on the machine exact; run this one again, and compare "
                "the verdicts"
            ),
        )
    return matching[0]


def repeated_trial(
    study: Study, before: Trial, machine: Machine, resources: Resources, progress: Progress
) -> Trial:
    """The same trial, run now; nothing is stored. Raises KernelError, MachineError, WorkloadError."""
    study = resolved(study)
    machine.check()
    treatment = before.planned.treatment
    kernel = obtained(study, treatment, resources, progress)
    progress("running the trial again")
    return run_trial(machine, before.planned, jobs_of(study, treatment, kernel, resources), audited=False)


def differences(before: Trial, repeated: Trial) -> tuple[Difference, ...]:
    """What is not the same to the last digit; what was executed comes first, for it may be why."""
    old, new = _facts(before), _facts(repeated)
    return tuple(
        Difference(fact, old.get(fact, "none"), new.get(fact, "none"))
        for fact in dict.fromkeys([*old, *new])
        if old.get(fact) != new.get(fact)
    )


def _facts(trial: Trial) -> dict[str, str]:
    provenance = trial.provenance
    facts = {"ktrial": provenance.ktrial, "QEMU": provenance.qemu, "kernel": provenance.kernel_digest}
    facts |= {f"executed: {program}": content for program, content in provenance.executed.items()}
    facts |= {"outcome": trial.outcome.value, "reason": trial.reason}
    facts |= {f"setting {path}": value for path, value in trial.settings.items()}
    for sample in trial.samples:
        facts[f"{sample.workload}: {sample.metric}"] = f"{sample.value!r} {sample.unit}"
    facts |= {f"{counter.workload}: {counter.name}": repr(counter.delta) for counter in trial.counters}
    return facts
