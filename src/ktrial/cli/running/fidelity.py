"""Fidelity of studies: what is missing of both sides is run, then both are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ktrial.analysis.attribution.costs import costs, difference
from ktrial.analysis.errors import AnalysisUsageError
from ktrial.analysis.fidelity import Both, fidelity, fitted, machine_of, text
from ktrial.analysis.fidelity_citation import keep, table_of
from ktrial.analysis.result import load_record
from ktrial.cli.console import say, write_page
from ktrial.cli.progress import progress
from ktrial.cli.studies import find, open_existing, open_store, registry
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.session import run
from ktrial.experiment.single_kernel import COUNTED_SUFFIX, counted_study
from ktrial.model.fidelity import FidelityResult
from ktrial.model.profile import Profile
from ktrial.model.study import EXACT_MACHINES, MachineSettings, Study, StudyRecord
from ktrial.store.store import Store
from ktrial.studyfile import toml_files
from ktrial.studyfile.reader import load


@dataclass(frozen=True)
class FidelityRequest:
    """Which studies are compared, and how what is missing of them is run."""

    studies: Sequence[str]
    machine: MachineSettings
    """Of the side that counts, for studies of a system that runs already."""
    perturbations: int
    seed: int
    store: str | None
    jobs: int | None
    allow_host_changes: bool
    fit: Path | None
    """Where to write the machine model of fitted constants."""


def compared(request: FidelityRequest) -> FidelityResult:
    """Run what is missing, and compare. With `fit`, the file of fitted constants is written."""
    names = request.studies
    of_files = any(name.endswith(".toml") for name in names)
    with open_store(request.store) if of_files else open_existing(request.store) as store:
        studies = _stored_two(store, names) or [_both(store, name, request) for name in names]
        result = fidelity(studies, request.seed, partial(_moved, store))
        keep(store, table_of(result, studies))
        if request.fit is None:
            return result
        fit = fitted(result, studies, partial(_profile, store))
        timed_names = ", ".join(timed.study.name for _, timed in studies)
        data = f"{timed_names} (half of the treatments, seed {request.seed})"
        write_page(request.fit, text(fit, machine_of(studies), "fitted", data), "the same command again")
        return result.model_copy(update={"fitted": fit})


def _stored_two(store: Store, names: Sequence[str]) -> list[Both] | None:
    """`EXACT TIMED`: two stored studies, of which the first counts."""
    if len(names) != 2 or any(name.endswith(".toml") for name in names):
        return None
    first, second = (load_record(store, find(store, name).id) for name in names)
    counts = [side.study.machine.kind in EXACT_MACHINES for side in (first, second)]
    return [(first, second)] if any(counts) else None


def _both(store: Store, name: str, request: FidelityRequest) -> Both:
    """A study in real time, and the one that counts. Of a file, what is missing is run."""
    if not name.endswith(".toml"):
        timed = load_record(store, find(store, name).id)
        return load_record(store, find(store, f"{timed.study.name}{COUNTED_SUFFIX}").id), timed
    study = load(toml_files.file_of(Path(name)), registry())
    if study.machine.kind in EXACT_MACHINES:
        raise AnalysisUsageError(
            f"Study {study.name} ran on machine {study.machine.kind}: a study in real time is asked "
            "for there.",
            hint="name the study that counts first, then that in real time: ktrial fidelity EXACT TIMED",
        )
    counted = counted_study(study, request.machine, request.perturbations)
    return _run(store, counted, request), _run(store, study, request)


def _run(store: Store, study: Study, request: FidelityRequest) -> StudyRecord:
    say(f"{study.name}: {study.question}")
    with (
        machine_for(study, allow_host_changes=request.allow_host_changes, say=say) as machine,
        progress(quiet=machine is not None) as observer,
    ):
        on_machine = partial(run, machine=machine) if machine else run
        return on_machine(study, store=store, observer=observer, jobs=request.jobs)


def _profile(store: Store, record: StudyRecord, workload: str, treatment: str) -> Profile | None:
    """Of the treatment's first perturbation; None where it was not kept."""
    for trial in record.trials:
        planned = trial.planned
        if planned.treatment.label == treatment and planned.perturbation.number == 0:
            return store.profile(record.id, planned.key, workload)
    return None


def _moved(store: Store, record: StudyRecord, workload: str, treatment: str) -> dict[str, float]:
    """What modelled cycles moved by, by kind of cost; nothing where none were modelled."""
    machine = record.study.machine.model
    baseline = next(iter(record.result.comparisons)).baseline
    sides = (baseline, treatment)
    before, after = (_profile(store, record, workload, side) for side in sides)
    if machine is None or before is None or after is None or not before.region.cycles:
        return {}
    return difference(costs(before, machine), costs(after, machine))
