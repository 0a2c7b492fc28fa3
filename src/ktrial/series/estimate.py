"""How long a series takes, said before it starts: builds and trials, by what past ones took here."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from ktrial.format import number_format
from ktrial.kernels.build.build_trees import has_kept_trees
from ktrial.kernels.build.make import build_seconds, whole_build_seconds
from ktrial.model.kernel import SeriesKind
from ktrial.model.study import Study
from ktrial.series.building import reason, to_build
from ktrial.series.run import BOOT, COVERAGE, NAME, SeriesRun
from ktrial.series.selection import MOST_WORKLOADS
from ktrial.store.store import Store


@dataclass(frozen=True)
class Estimate:
    """What is to be done at most; what is in the cache and in the store is not done again."""

    builds: int
    """Kernels that may have to be compiled, with the base."""
    rebuilds: int
    """How many of them from nothing, to compare."""
    wholes: int
    """How many of the others compile all or most: a base without a build tree, patches of shared headers."""
    boots: int
    """Kernels that may have to be booted."""
    profiles: int
    """Workloads whose profile on the base is to be had, to choose among them."""
    trials: int
    """Of the steps, at most."""
    build_seconds: float | None
    """A build, on this host, by past ones; None where there are none."""
    rebuild_seconds: float | None
    """The same of a build from nothing."""
    boot_seconds: float | None
    """A boot with the one trial that tells whether it works, by those of past series; None without any."""
    profile_seconds: float | None
    """One workload in one trial, by those of past series; None without any."""
    trial_seconds: float | None
    """A trial, likewise."""

    @property
    def seconds(self) -> float | None:
        """Of everything; None where nothing tells."""
        whole = self.rebuilds + self.wholes
        kinds = (
            (self.builds - whole, self.build_seconds),
            (whole, self.rebuild_seconds),
            (self.boots, self.boot_seconds),
            (self.profiles, self.profile_seconds),
            (self.trials, self.trial_seconds),
        )
        if any(count and seconds is None for count, seconds in kinds):
            return None
        return sum(count * (seconds or 0.0) for count, seconds in kinds)

    def words(self) -> str:
        """In a sentence."""
        builds = number_format.counted(self.builds, "kernel")
        how = [f"{self.rebuilds} of them from nothing, to compare"] if self.rebuilds else []
        how += [f"{self.wholes} of them whole, or nearly"] if self.wholes else []
        again = f" ({'; '.join(how)})" if how else ""
        profiles = f", {number_format.counted(self.profiles, 'workload')} to profile" if self.profiles else ""
        trials = number_format.counted(self.trials, "trial")
        text = f"at most {builds} to compile{again}, {self.boots} to boot{profiles} and {trials} to run"
        if self.seconds is None:
            return f"{text}; how long that takes is not known yet on this machine"
        return f"{text}: about {number_format.duration(self.seconds)}, by earlier ones here"

    def as_json(self) -> dict[str, Any]:
        """What `--dry-run --json` prints."""
        return {**asdict(self), "seconds": self.seconds}


_SHARED_HEADERS = ("include/", "arch/x86/include/")
"""A header there is read by most files: of 6.1 in the configuration `guest` by 68 to 89 % of the objects."""
_BOOTS_LOOKED_AT = 8


def estimate(series_run: SeriesRun, refused: Collection[int] = ()) -> Estimate:
    """Of a run that is to come; nothing is built or booted. `refused`: patches that do not apply."""
    builder, series = series_run.runs.resources.builder, series_run.series
    patched = [patch for patch in to_build(series, series_run.plain, builder) if patch.number not in refused]
    rebuilds = 0
    if series_run.rebuild_every and series.kind is not SeriesKind.GIT:
        rebuilds = -(-len(patched) // series_run.rebuild_every)
    has_base = builder.cached(series_run.plain) is not None
    wholes = [patch for patch in patched if any(path.startswith(_SHARED_HEADERS) for path in patch.paths)]
    images = len(series.patches) - len(refused) + 1
    machines = 2 if series_run.route else 1  # one CPU, and several
    asked = series_run.measurement.workloads
    one = _workload_seconds(series_run.runs.store)
    return Estimate(
        builds=len(patched) + rebuilds + (not has_base),
        rebuilds=rebuilds,
        # A tree of another configuration is no start: nearly all of it would be compiled again.
        wholes=len(wholes) + (not has_base and (series_run.plain.is_reached or not has_kept_trees())),
        boots=images * machines,
        profiles=0 if asked else len(series_run.candidates) + len(series_run.tours),
        trials=images * machines * series_run.measurement.perturbations,
        build_seconds=build_seconds(),
        rebuild_seconds=whole_build_seconds(),
        boot_seconds=_boot_seconds(series_run.runs.store),
        profile_seconds=one,
        trial_seconds=None if one is None else one * (len(asked) or MOST_WORKLOADS + 1),
    )


def _boot_seconds(store: Store) -> float | None:
    """The median over the newest boots: from when each was asked for to the end of its trial."""
    boots = [study for study in store.studies() if study.study.name == BOOT and study.finished]
    ends = [(study, store.trials(study.id)[0]) for study in boots[-_BOOTS_LOOKED_AT:]]
    seconds = [(trial.started - study.created).total_seconds() + trial.seconds for study, trial in ends]
    return median(seconds) if seconds else None


def _workload_seconds(store: Store) -> float | None:
    """One workload of a trial, by the mean of the newest series' trials."""
    alike = [study for study in store.studies() if study.study.name in {NAME, COVERAGE} and study.finished]
    if not alike:
        return None
    newest = alike[-1]
    trials = store.trials(newest.id)
    return sum(trial.seconds for trial in trials) / len(trials) / _count(newest.study)


def _count(study: Study) -> int:
    return max(1, len(study.workloads))


def refusals(series_run: SeriesRun) -> dict[int, str]:
    """Patches that do not apply, by their numbers, and why; of commits there are none. Raises KernelError."""
    numbered = [
        (patch.number, files)
        for patch in series_run.series.patches
        if (files := patch.files or ((patch.patch,) if patch.patch else ()))
    ]
    if not numbered:
        return {}
    progress = series_run.runs.observer.progress_of(series_run.series.origin)
    refused = series_run.runs.resources.builder.not_applying(series_run.plain, numbered, progress)
    return {number: reason(error) for number, error in refused.items()}
