"""Whether the kernels of a study have the settings that it names: looked for before its first trial.

Of many knobs the catalogue knows that every kernel of a version has them. Any other is asked for: the
settings of a treatment are written in the system that its trials start from, without a workload, and what
comes of it is not stored. That a version has none is not believed: distributions bring knobs to older
kernels. A setting that some kernels of the study have is tried; in the others it is an outcome of trials.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ktrial.errors import KtrialError
from ktrial.experiment.errors import SettingNowhere
from ktrial.experiment.host_failures import HOST_PROBLEMS
from ktrial.experiment.jobs import Job
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import RunsAlready
from ktrial.experiment.settings import TreatmentSetting
from ktrial.knobs import System, catalogue, errno_diagnosis
from ktrial.knobs.errors import KnobAbsent, KnobError, KnobNotMounted
from ktrial.machines import Machine
from ktrial.machines.errors import MachineStopped
from ktrial.model.boot import Boot
from ktrial.model.design import Treatment
from ktrial.model.knob import version_of
from ktrial.model.suggestions import nearest
from ktrial.target import Failure, StepResult

_ABSENT = frozenset({"ENOENT", "ENOTDIR"})
_DENIED = _ABSENT | {"EACCES", "EISDIR", "EPERM", "EROFS"}
"""Answers to whoever writes where nothing can be set. EACCES and EPERM may be said of one value alone."""


def check(
    treatments: Iterable[Treatment], jobs: Mapping[str, Sequence[Job]], machine: Machine, observer: Observer
) -> None:
    """Raise SettingNowhere for a setting that no kernel has or lets be written.

    `jobs` is by the treatments' keys; those that are not there are not tried. Machines that boot nothing are
    not asked: see `host_checks`. Raises HOST_PROBLEMS, too.
    """
    if isinstance(machine, RunsAlready):
        return
    first = [of_treatment[0] for one in treatments if (of_treatment := jobs.get(one.key))]
    search = _SettingSearch(machine, observer, tuple(job for job in first if job.settings))
    search.by_version()
    search.by_asking()


@dataclass
class _SettingSearch:
    """What is known of the settings so far."""

    machine: Machine
    observer: Observer
    jobs: tuple[Job, ...]
    found: set[str] = field(default_factory=set)
    """Names of those that a kernel has, or may have."""
    missing: dict[str, KnobError] = field(default_factory=dict)
    """The others that were asked for, with why the last kernel does not have it."""
    absent: set[tuple[Boot, str]] = field(default_factory=set)
    """Systems, and files that are not there."""

    def by_version(self) -> None:
        """What the catalogue knows to be there."""
        self.found = {
            setting.name
            for job in self.jobs
            for setting in job.settings
            if _is_known(setting, job.boot.kernel.release)
        }

    def by_asking(self) -> None:
        """What the kernels say, as long as nothing is found. Raises SettingNowhere."""
        for job in self.jobs:
            if any(self._is_open(job, setting) for setting in job.settings):
                self._ask(job)
        names = dict.fromkeys(setting.name for job in self.jobs for setting in job.settings)
        self._raise(name for name in names if name not in self.found)

    def _is_open(self, job: Job, setting: TreatmentSetting) -> bool:
        return setting.name not in self.found and (job.boot, setting.path) not in self.absent

    def _ask(self, job: Job) -> None:
        steps = (*job.preparation, *(setting.step for setting in job.settings))
        try:
            self.machine.prepare(job.boot, lambda what: self.observer.preparing(job.boot, what))
            self.observer.preparing(job.boot, "looking for settings")
            with self.machine.start(job.boot) as target:
                results = target.perform(steps)[len(job.preparation) :]
                system = System(target, is_root=True)
                for setting, result in zip(job.settings, results, strict=True):
                    self._saw(job, setting, result, system)
        except KtrialError as error:
            if isinstance(error, (*HOST_PROBLEMS, MachineStopped)):
                raise
            # A guest that ends tells nothing about its files: that is an outcome of its trials.
            self.found |= {setting.name for setting in job.settings}
        finally:
            self.observer.prepared(job.boot)

    def _saw(self, job: Job, setting: TreatmentSetting, result: StepResult, system: System) -> None:
        failure = result.failure
        if failure is None or failure.name not in _DENIED:
            self.found.add(setting.name)
        elif self._is_open(job, setting):
            self.missing[setting.name] = _why(setting, failure, system)
            self.absent |= {(job.boot, setting.path)} if failure.name in _ABSENT else set()

    def _raise(self, names: Iterable[str]) -> None:
        for name in names:
            why = self.missing[name]
            kernels = dict.fromkeys(job.boot.kernel.name for job in self.jobs)
            facts = {"name": name, "kernels": ", ".join(kernels), "problem": why.message.rstrip(".")}
            raise SettingNowhere(**facts, similar=_similar(why, name), advice=why.advice) from why


def _is_known(setting: TreatmentSetting, release: str) -> bool:
    """Whether all kernels of the release have the file, however they are configured."""
    try:
        version = version_of(release)
    except ValueError:
        return False
    places = setting.knob.knob.places_in(version) if setting.knob.knob else ()
    return any(one.path == setting.path and not one.config and not one.needs for one in places)


def _why(setting: TreatmentSetting, failure: Failure, system: System) -> KnobError:
    knob = None if setting.knob.path else setting.knob.knob
    why = errno_diagnosis.of_writing(system, setting.name, setting.path, knob, setting.value, failure)
    if isinstance(why, KnobNotMounted):
        facts = {"knob": setting.name, "problem": f"this kernel mounts no {why.facts['filesystem']}."}
        return KnobError(**facts)
    return why


def _similar(why: KnobError, name: str) -> str:
    """Knobs that are called nearly so; nothing for what is there, for paths, and for those that are one."""
    if not isinstance(why, KnobAbsent) or name.startswith("/") or catalogue.known(name.partition("@")[0]):
        return ""
    return nearest(name, (each.name for each in catalogue.all_knobs()))
