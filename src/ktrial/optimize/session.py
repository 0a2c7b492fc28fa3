"""A study's search from its beginning to its answer: stored as it goes, and gone on with.

The answer is stored as well: what has ended is read, whatever a newer optimiser would ask for today.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ktrial import interruption
from ktrial.analysis.calibration import newest_calibration
from ktrial.errors import Interrupted, KtrialError
from ktrial.experiment import preflight
from ktrial.experiment.jobs import check_workloads
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, default_resources, sources_for
from ktrial.experiment.session import in_stored_order
from ktrial.machines import Machine
from ktrial.model.base import digest
from ktrial.model.design import PlannedTrial
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Trial
from ktrial.model.tuning import Observation, Tuned
from ktrial.model.workload import Mode
from ktrial.optimize.evaluation_log import Ask, StageProgress
from ktrial.optimize.search_space import search_of
from ktrial.optimize.trial_evaluator import TrialEvaluator, observation
from ktrial.store.errors import StoreError
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy
from ktrial.studyfile.errors import NotTheSameSearch


def run_search(
    study: Study,
    *,
    store: Store,
    machine: Machine,
    observer: Observer | None = None,
    resources: Resources | None = None,
    progress: StageProgress = lambda _stage: None,
) -> Tuned:
    """Search, and return the answer, which is stored; runs that the store has already are not run again, nor
    is a search that has ended.

    `study`: with its search's space (runner.tuning.space.with_space). What was asked follows from the study
    alone: the optimiser is told the stored runs again, asks the same as before, and goes on from there.
    Raises TuningError, Interrupted after Ctrl-C and SIGTERM, HOST_PROBLEMS, StoreError.
    """
    resources = sources_for(machine, resources or default_resources())
    stored: tuple[Trial, ...] = ()
    if before := store.newest(digest=digest(study)):
        study = in_stored_order(study, before.study, observer or Observer())
        if (answer := store.answer(before.id)) is not None:
            return answer
        stored = store.trials(before.id, counted=False)

    def keep(trial: Trial) -> None:
        store.add_trial(store.study(study), trial)  # with its first run it is stored, not before

    def forget(withdrawn: Sequence[PlannedTrial]) -> None:
        store.remove_trials_of(store.study(study), [planned.key for planned in withdrawn])

    with interruption.caught():
        measuring = TrialEvaluator(study, machine, resources, observer or Observer(), keep, forget)
        for trial in stored:
            measuring.seen(observation(trial))
        try:
            machine.check()
            check_workloads(study, resources)
            preflight.check_host(study, machine)
            tuned = _tune(study, measuring, stored, progress)
            interruption.check()
        except KeyboardInterrupt:
            raise _interrupted(store, study) from None
        finally:
            _discard_if_empty(store, study)
    store.add_answer(store.study(study), tuned)
    return tuned


def ended(store: Store, stored: StoredStudy) -> Tuned | None:
    """The answer of a search that has ended; None where it has not. Raises what the search raised."""
    return store.answer(stored.id) or _replayed(stored.study, store.trials(stored.id, counted=False))


def _replayed(study: Study, trials: Sequence[Trial]) -> Tuned | None:
    """From its trials: a search that ended with an error has no answer beside them. None where runs are
    missing, or are not what would be asked for today.
    """
    mode = next((sample.mode for trial in trials for sample in trial.samples), Mode.TIMED)
    try:
        return _tune(study, _Replay(study, mode), trials, lambda _stage: None)
    except (_NotMeasured, NotTheSameSearch):
        return None


def _tune(
    study: Study, measuring: "TrialEvaluator | _Replay", stored: Sequence[Trial], progress: StageProgress
) -> Tuned:
    from ktrial.optimize import tune  # numpy and Optuna take their time to load

    search, space = search_of(study)
    return tune(
        space,
        search.goal,
        search.budget,
        measuring,
        seed=study.seed,
        done=sorted(map(observation, stored), key=lambda run: run.order),
        progress=progress,
        optimiser_name=search.optimiser,
    )


class _NotMeasured(Exception):
    """The search wants a run that is not stored."""


class _Replay:
    """Measures nothing."""

    def __init__(self, study: Study, mode: Mode) -> None:
        exact = mode.value.startswith("exact")
        self.mode, self.noise_free = mode, exact
        self.at_once = search_of(study)[0].at_once
        self.perturbations = study.perturbations if exact else 1

    def measure(self, batch: Sequence[Ask]) -> Iterator[Observation]:
        """Raises _NotMeasured."""
        raise _NotMeasured


def _discard_if_empty(store: Store, study: Study) -> None:
    """A search whose runs were all withdrawn is not kept."""
    with suppress(StoreError):  # what ended it is told
        if stored := store.newest(digest=digest(study)):
            store.remove_if_empty(stored.id)


def _interrupted(store: Store, study: Study) -> Interrupted:
    try:
        stored = store.newest(digest=digest(study))
        runs = len(store.finished_keys(stored.id)) if stored else 0
    except StoreError as error:
        return Interrupted(what=f"no run is known to be kept. {error.message}", hint=error.advice)
    what = f"{runs} runs are stored, nothing of them is lost"
    return Interrupted(what=what, hint="run the same command again, or ktrial tune --resume: it goes on")


# What is known of a workload's noise before anything runs: from calibrations, and earlier searches.

_FEWEST = 5
"""Runs of one treatment that say something of their noise."""
_STUDIES = 20
"""The newest ones that are looked into."""


@dataclass(frozen=True)
class NoisePrior:
    """Noise and length of one run; None where nobody has measured them yet."""

    noise: float | None = None
    """Standard deviation of one run's logarithm."""
    seconds: float | None = None
    source: str = ""
    """Where the noise is from."""


def noise_prior(study: Study, store: Store) -> NoisePrior:
    """Of the study's workload and first objective, on its machine."""
    trials = tuple(_like(study, store))
    seconds = statistics.median(trial.seconds for trial in trials) if trials else None
    noise, source = _calibrated(study, store), "ktrial timed calibrate"
    if noise is None:
        noise, source = _of_baseline(study, trials), "earlier runs"
    return NoisePrior(noise, seconds, source if noise is not None else "")


def measured_noise(study: Study, trials: Sequence[Trial]) -> NoisePrior:
    """From the first runs of the search itself."""
    completed = [trial for trial in trials if trial.outcome is Outcome.COMPLETED]
    seconds = statistics.median(trial.seconds for trial in completed) if completed else None
    noise = _of_baseline(study, completed, fewest=2)
    return NoisePrior(noise, seconds, "the baseline's first runs" if noise is not None else "")


def _like(study: Study, store: Store) -> Iterable[Trial]:
    """Trials of the same workload on the same machine, as it is."""
    for stored in reversed(store.studies()[-_STUDIES:]):
        same = (stored.study.machine, stored.study.workloads) == (study.machine, study.workloads)
        if same and stored.study.search:
            trials = store.trials(stored.id, counted=False)
            yield from (trial for trial in trials if trial.outcome is Outcome.COMPLETED)


def _calibrated(study: Study, store: Store) -> float | None:
    metric = _metric(study)
    try:
        calibration = newest_calibration(store, study.machine.kind)
    except KtrialError:
        return None
    labels = {use.label for use in study.workloads}
    for noise in calibration.metrics:
        if noise.workload in labels and noise.metric == metric:
            # A block's ratio has the noise of two trials.
            return noise.ratio_spread / math.sqrt(2)
    return None


def _of_baseline(study: Study, trials: Iterable[Trial], fewest: int = _FEWEST) -> float | None:
    metric = _metric(study)
    values = [
        math.log(sample.value)
        for trial in trials
        if not trial.planned.treatment.levels
        for sample in trial.samples
        if sample.metric == metric and sample.value > 0
    ]
    return statistics.stdev(values) if len(values) >= fewest else None


def _metric(study: Study) -> str:
    return study.search.goal.objectives[0].metric if study.search else ""
