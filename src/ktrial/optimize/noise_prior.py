"""What is known of a workload's noise before anything runs: from calibrations, and earlier searches."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ktrial.analysis.calibration import newest_calibration
from ktrial.errors import KtrialError
from ktrial.model.study import Study
from ktrial.model.trial import Outcome, Trial
from ktrial.store.store import Store

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
    noise, source = _calibrated(study, store), "ktrial calibrate"
    if noise is None:
        noise, source = _of_baseline(study, trials), "earlier runs"
    return NoisePrior(noise, seconds, source if noise is not None else "")


def measured_noise(study: Study, trials: Sequence[Trial]) -> NoisePrior:
    """From the first runs of the search itself."""
    done = [trial for trial in trials if trial.outcome is Outcome.COMPLETED]
    seconds = statistics.median(trial.seconds for trial in done) if done else None
    noise = _of_baseline(study, done, fewest=2)
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
    for one in calibration.metrics:
        if one.workload in labels and one.metric == metric:
            # A block's ratio has the noise of two trials.
            return one.ratio_spread / math.sqrt(2)
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
