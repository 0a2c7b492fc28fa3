"""What a search's knobs are on the system that it runs on: this one, or a guest of the study's."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ktrial.experiment.jobs import jobs_of, obtained
from ktrial.experiment.observer import Observer
from ktrial.experiment.resources import Resources, RunsAlready
from ktrial.knobs import catalogue
from ktrial.knobs.catalogue import lenient_reference
from ktrial.knobs.lookup import System
from ktrial.knobs.values import form_of
from ktrial.machines import Machine
from ktrial.model.design import Treatment
from ktrial.model.references import filled
from ktrial.model.study import Study, kernel_of
from ktrial.studyfile.references import resolved
from ktrial.studyfile.search import SearchedKnob, in_another_unit
from ktrial.target import Failure, Read, Step, StepResult, Target, Write
from ktrial.target.local import LocalTarget

_ALWAYS = ("/proc/sys/kernel/osrelease", "/proc/mounts")
"""What has to be known to say why something is not there."""
_ABSENT = Failure(errno=2, name="ENOENT", text="No such file or directory")
_WRITABLE = 0o222
AS_IT_IS = Treatment(levels={})
"""The treatment that changes nothing."""


@dataclass(frozen=True)
class RecordedFiles:
    """Answers from files that were read before."""

    files: Mapping[str, StepResult]

    def perform(self, steps: tuple[Step, ...]) -> tuple[StepResult, ...]:
        """Each file as it was read; one that was not is absent."""
        return tuple(self._one(number, step) for number, step in enumerate(steps))

    def _one(self, number: int, step: Step) -> StepResult:
        known = self.files.get(step.path) if isinstance(step, Read) else None
        known = known or StepResult(step=0, do=step.do, failure=_ABSENT)
        return known.model_copy(update={"step": number})


@dataclass(frozen=True)
class SearchedSystem:
    """The system that is searched."""

    target: Target
    refusals: Mapping[str, str]
    """Path → why its own value cannot be written back there."""

    @property
    def system(self) -> System:
        """To find knobs on."""
        return System(self.target)

    def why_fixed(self, path: str) -> str:
        """Why the file cannot be changed; empty where it can."""
        if isinstance(self.target, LocalTarget):
            # Root may open what the kernel gives nobody the right to write, and is refused then.
            if not Path(path).stat().st_mode & _WRITABLE:
                return "nobody may write its file"
            return "" if os.access(path, os.W_OK) else "you may not write its file (sudo ktrial tune)"
        return self.refusals.get(path, "")


def read_knobs(
    study: Study, wanted: Sequence[SearchedKnob], machine: Machine, sources: Resources, observer: Observer
) -> SearchedSystem:
    """Read the knobs: on this system as it is, else in a guest that is booted as trials will be.

    Raises KernelError, MachineError, GuestError, WorkloadError.
    """
    if isinstance(machine, RunsAlready):
        return SearchedSystem(LocalTarget(), {})
    paths = tuple(dict.fromkeys((*_ALWAYS, *_paths(wanted))))
    return _in_a_guest(study, paths, machine, sources, observer)


def _paths(wanted: Iterable[SearchedKnob]) -> Iterable[str]:
    for each in wanted:
        _, _, instance = each.name.partition("@")
        if each.knob is None:
            yield lenient_reference(each.name).path_in()
        else:
            yield from (filled(place.path, instance) for place in each.knob.places if place.path)
            if other := in_another_unit(each.knob):
                yield lenient_reference(other).path_in()


def _in_a_guest(
    study: Study, paths: Sequence[str], machine: Machine, sources: Resources, observer: Observer
) -> SearchedSystem:
    """Read, and write back what was read: nobody minds in a guest, and a kernel says what it refuses."""
    study = resolved(study)
    name = kernel_of(study, AS_IT_IS).label

    def progress(what: str, done: int = 0, total: int = 0) -> None:
        observer.kernel_progress(name, what, done, total)

    job, *_ = jobs_of(study, AS_IT_IS, obtained(study, AS_IT_IS, sources, progress), sources)
    before = (*job.before, *job.preparation)
    machine.prepare(job.boot, lambda what: observer.preparing(job.boot, what))
    observer.prepared(job.boot)
    with machine.start(job.boot) as target:
        results = target.perform((*before, *(Read(path=path) for path in paths)))
        read = dict(zip(paths, results[len(before) :], strict=True))
        there = [path for path, result in read.items() if _is_tried(path, result)]
        writes = tuple(Write(path=path, value=_own(path, read[path])) for path in there)
        written = target.perform((*before, *writes))[len(before) :] if there else ()
    refusals = {
        path: f"the kernel does not take it: {result.failure.text}"
        for path, result in zip(there, written, strict=True)
        if result.failure
    }
    return SearchedSystem(RecordedFiles(read), refusals)


def _is_tried(path: str, result: StepResult) -> bool:
    """Whether writing back what was read tells something. Of a limit that is set in another unit it does not:
    it shows a 0, which the kernel refuses, or takes for the other's value too.
    """
    forgotten = result.content.strip() == "0" and in_another_unit(catalogue.knob_at(path))
    return not (result.failure or path in _ALWAYS or forgotten)


def _own(path: str, result: StepResult) -> str:
    return form_of(path).undoing(result.content.removesuffix("\n"), "")
