"""How long a series takes, said before it starts: builds and trials, by what past ones took here."""

from dataclasses import dataclass
from typing import Any

from ktrial.format import number_format
from ktrial.kernels.build import build_seconds
from ktrial.model.study import Study
from ktrial.series.building import reason, to_build
from ktrial.series.measuring import COVERAGE, NAME
from ktrial.series.run import SeriesRun
from ktrial.series.selection import MOST_WORKLOADS
from ktrial.store import Store


@dataclass(frozen=True)
class Estimate:
    """What is to be done at most; what is in the cache and in the store is not done again."""

    builds: int
    """Kernels that may have to be compiled, with the base."""
    build_seconds: float | None
    """A build, on this host, by past ones; None where there are none."""
    trials: int
    """Of the steps, at most."""
    trial_seconds: float | None
    """A trial, by those of past series; None where there are none."""

    @property
    def seconds(self) -> float | None:
        """Of everything; None where nothing tells."""
        if (self.builds and self.build_seconds is None) or self.trial_seconds is None:
            return None
        return self.builds * (self.build_seconds or 0.0) + self.trials * self.trial_seconds

    def words(self) -> str:
        """In a sentence."""
        builds = number_format.counted(self.builds, "kernel")
        text = f"at most {builds} to compile and {number_format.counted(self.trials, 'trial')} to run"
        if self.seconds is None:
            return f"{text}; how long that takes is not known yet on this machine"
        return f"{text}: about {number_format.duration(self.seconds)}, by earlier ones here"

    def as_json(self) -> dict[str, Any]:
        """What `--dry-run --json` prints."""
        return {
            "builds": self.builds,
            "build_seconds": self.build_seconds,
            "trials": self.trials,
            "trial_seconds": self.trial_seconds,
            "seconds": self.seconds,
        }


def estimate(asked: SeriesRun) -> Estimate:
    """Of a run that is to come; nothing is built or booted."""
    builder = asked.runs.sources.builder
    builds = len(list(to_build(asked.series, asked.plain, builder)))
    builds += builder.cached(asked.plain) is None
    images = len(asked.series.patches) + 1
    chosen = len(asked.how.workloads) or MOST_WORKLOADS + 1
    return Estimate(
        builds=builds,
        build_seconds=build_seconds(),
        trials=images * asked.how.perturbations,
        trial_seconds=_trial_seconds(asked.runs.store, chosen),
    )


def _trial_seconds(store: Store, workloads: int) -> float | None:
    """The mean of the newest series' trials, for so many workloads."""
    alike = [one for one in store.studies() if one.study.name in {NAME, COVERAGE} and one.finished]
    if not alike:
        return None
    newest = alike[-1]
    trials = store.trials(newest.id)
    return sum(trial.seconds for trial in trials) / len(trials) / _count(newest.study) * workloads


def _count(study: Study) -> int:
    return max(1, len(study.workloads))


def refusals(asked: SeriesRun) -> dict[int, str]:
    """Patches that do not apply, by their numbers, and why; of commits there are none. Raises KernelError."""
    numbered = [
        (one.number, files)
        for one in asked.series.patches
        if (files := one.files or ((one.patch,) if one.patch else ()))
    ]
    if not numbered:
        return {}

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        asked.runs.observer.kernel_progress(asked.series.origin, what, done, total)

    refused = asked.runs.sources.builder.not_applying(asked.plain, numbered, progress)
    return {number: reason(error) for number, error in refused.items()}
