"""Baselines: what a kernel was measured to cost, kept in the store under a name, with its provenance."""

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from ktrial.analysis.errors import BadBaselineName, BaselineFailed, BaselineNotThere
from ktrial.analysis.missing_data import failures
from ktrial.analysis.result import record
from ktrial.experiment.single_kernel import Measurement, Runs, failed, measure
from ktrial.kernels.errors import ImageError
from ktrial.model.kernel import Kernel
from ktrial.model.plan import plan
from ktrial.model.study_record import StudyRecord
from ktrial.store import Store, StoredStudy
from ktrial.store.errors import StoreDamaged

PREFIX = "baseline:"
"""What a baseline's study is called, before its name; a study file cannot choose such a name."""
QUESTION = "What does this kernel cost in a check?"
"""Of what is measured for a check, the kernel under test and a kernel as baseline: each content once."""
HOST = "host"
"""The one kernel's name that looks like a baseline's."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Baseline:
    """What a kernel under test is compared with."""

    label: str
    """A saved baseline's name, or the kernel's."""
    saved: bool
    record: StudyRecord
    origin: Kernel | None = None
    """The kernel, where it is not a saved one: it can be measured again."""

    @property
    def kernel(self) -> str:
        """The name of the kernel that was measured."""
        return str(self.record.study.factors[0].baseline)

    @property
    def measurement(self) -> Measurement:
        """How it was measured, for another kernel to be measured in the same way."""
        study = self.record.study
        return Measurement(study.workloads, study.machine, study.perturbations)


def save(name: str, kernel: Kernel, how: Measurement, runs: Runs) -> Baseline:
    """Measure the kernel now, and keep it under `name`; what had the name before goes when all is there.

    Raises BadBaselineName; BaselineFailed where a trial failed, and what `session.run` raises: then what had
    the name before stays.
    """
    check_name(name)
    before = [one for one in runs.store.studies() if one.study.name == PREFIX + name]
    # To the microsecond: each time it is another study, so that nothing measured earlier is taken for it.
    question = f"Baseline {name}, saved {datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC."
    study_record = measure(PREFIX + name, question, kernel, how, runs)
    if wrong := failed(study_record):
        runs.store.delete(study_record.id)
        raise BaselineFailed(name=name, problem=failures(wrong, study_record.planned))
    for old in before:
        runs.store.delete(old.id)
    return find(name, runs.store)


def kernel_named(name: str, runs: Runs) -> Kernel:
    """The kernel that is to be the baseline, not measured. Raises BaselineFailed where its file is none."""
    try:
        return runs.kernel(name)
    except ImageError as error:
        raise BaselineFailed(name=name, problem=error.message.rstrip(".")) from error


def of_kernel(kernel: Kernel, how: Measurement, runs: Runs) -> Baseline:
    """A kernel as baseline, measured now unless the store has it. Raises BaselineFailed."""
    study_record = measure("check", QUESTION, kernel, how, runs)
    if wrong := failed(study_record):
        raise BaselineFailed(name=kernel.name, problem=failures(wrong, study_record.planned))
    return Baseline(kernel.name, False, study_record, kernel)


def find(name: str, store: Store) -> Baseline:
    """The saved baseline of that name.

    Raises BaselineNotThere; StoreDamaged where it is not what was stored.
    """
    known = {name_of(one): one for one in saved(store)}
    for number, damaged in _damaged(store):
        if damaged == name and (name not in known or known[name].id < number):
            store.find(number)
    if name in known:
        return Baseline(name, True, record(store, known[name].id))
    near = difflib.get_close_matches(name, known, n=1)
    similar = f" (did you mean {near[0]}?)" if near else ""
    raise BaselineNotThere(name=name, store=store.name, similar=similar)


def every(store: Store) -> tuple[tuple[Baseline, ...], tuple[str, ...]]:
    """The saved baselines, by name, and the names of those that are not what was stored."""
    sound, damaged = [], {name for _, name in _damaged(store)}
    for name in {name_of(one) for one in saved(store)} | damaged:
        try:
            sound.append(find(name, store))
            damaged.discard(name)
        except StoreDamaged:
            damaged.add(name)
    return tuple(sorted(sound, key=lambda one: one.label)), tuple(sorted(damaged))


def saved(store: Store) -> tuple[StoredStudy, ...]:
    """Every baseline's study, by name: the newest one that is whole (an interrupted one is not)."""
    readable, _ = store.readable_studies()
    whole = {name_of(one): one for one in readable if name_of(one) and _is_whole(one)}
    return tuple(whole[name] for name in sorted(whole))


def _damaged(store: Store) -> list[tuple[int, str]]:
    """Numbers and names of baselines whose study is not what was stored."""
    _, damaged = store.readable_studies()
    return [(one.id, name) for one in damaged if (name := _name_in(one.name))]


def name_of(study: StoredStudy) -> str:
    """The baseline's name; empty where the study is none."""
    return _name_in(study.study.name)


def _name_in(study: str) -> str:
    name = study.removeprefix(PREFIX)
    return name if study == PREFIX + name and _NAME.fullmatch(name) else ""


def remove(name: str, store: Store) -> None:
    """Take a saved baseline out of the store. Raises BaselineNotThere."""
    store.delete(find(name, store).record.id)


def check_name(name: str) -> None:
    """Raise BadBaselineName where the name could be taken for a kernel's, or is hard to type."""
    if name == HOST:
        raise BadBaselineName(name=name, problem="it is the name of the running kernel")
    if not _NAME.fullmatch(name):
        raise BadBaselineName(name=name, problem="it has other characters, is empty or is too long")


def _is_whole(study: StoredStudy) -> bool:
    return not study.failed and study.finished == len(plan(study.study).trials)
