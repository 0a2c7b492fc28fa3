"""Fidelity of studies: what is missing of both sides is run, then both are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ktrial.analysis.attribution.costs import costs, difference
from ktrial.analysis.errors import FidelityUsageError
from ktrial.analysis.fidelity import Both, fidelity, fitted, machine_of, text
from ktrial.analysis.fidelity_citation import keep, table_of
from ktrial.analysis.result import record
from ktrial.cli.console import say, write_page
from ktrial.cli.progress import progress
from ktrial.cli.studies import find, open_existing
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.session import run
from ktrial.experiment.single_kernel import COUNTED_SUFFIX, counted_study
from ktrial.model.fidelity import FidelityResult
from ktrial.model.profile import Profile
from ktrial.model.study import EXACT_MACHINES, MachineSettings, Study, StudyRecord
from ktrial.report.fidelity import fidelity_page
from ktrial.store.location import default_location
from ktrial.store.store import Store, open_store


@dataclass(frozen=True)
class FidelityRequest:
    """What the command was given."""

    studies: Sequence[str]
    machine: MachineSettings
    """Of the side that counts, for studies of a system that runs already."""
    perturbations: int
    seed: int
    store: str | None
    jobs: int | None
    allow_host_changes: bool
    fit: Path | None
    load: Callable[[Path], Study]


def compared(asked: FidelityRequest) -> FidelityResult:
    """Run what is missing, and compare. With `fit`, the file of fitted constants is written."""
    files = [Path(one) for one in asked.studies if one.endswith(".toml")]
    location = asked.store or default_location()
    opened = open_store(location) if files else open_existing(asked.store)
    with opened as store:
        studies = _stored_two(store, asked.studies) or [_both(store, one, asked) for one in asked.studies]
        result = fidelity(studies, asked.seed, partial(_moved, store))
        keep(store, table_of(result, studies))
        if asked.fit is None:
            return result
        fit = fitted(result, studies, partial(_profile, store))
        names = ", ".join(timed.study.name for _, timed in studies)
        data = f"{names} (half of the treatments, seed {asked.seed})"
        write_page(asked.fit, text(fit, machine_of(studies), "fitted", data), "the same command again")
        return result.model_copy(update={"fitted": fit})


def written(result: FidelityResult, name: str, path: Path) -> Path:
    """Write the page. Raises ReportNotWritten."""
    return write_page(path, fidelity_page(result, name), "ktrial fidelity … --html FILE")


def _stored_two(store: Store, given: Sequence[str]) -> list[Both] | None:
    """`EXACT TIMED`: two stored studies, of which the first counts."""
    if len(given) != 2 or any(one.endswith(".toml") for one in given):
        return None
    first, second = (record(store, find(store, one).id) for one in given)
    counts = [one.study.machine.kind in EXACT_MACHINES for one in (first, second)]
    return [(first, second)] if any(counts) else None


def _both(store: Store, given: str, asked: FidelityRequest) -> Both:
    """A study in real time, and the one that counts. Of a file, what is missing is run."""
    if not given.endswith(".toml"):
        timed = record(store, find(store, given).id)
        return record(store, find(store, f"{timed.study.name}{COUNTED_SUFFIX}").id), timed
    study = asked.load(Path(given))
    if study.machine.kind in EXACT_MACHINES:
        raise FidelityUsageError(
            f"Study {study.name} ran on machine {study.machine.kind}: a study in real time is asked "
            "for there.",
            hint="name the study that counts first, then that in real time: ktrial fidelity EXACT TIMED",
        )
    counted = counted_study(study, asked.machine, asked.perturbations)
    return _run(store, counted, asked), _run(store, study, asked)


def _run(store: Store, study: Study, asked: FidelityRequest) -> StudyRecord:
    say(f"{study.name}: {study.question}")
    with (
        machine_for(study, allow_host_changes=asked.allow_host_changes, say=say) as machine,
        progress(quiet=machine is not None) as observer,
    ):
        on_machine = partial(run, machine=machine) if machine else run
        return on_machine(study, store=store, observer=observer, jobs=asked.jobs)


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
    before, after = (_profile(store, record, workload, one) for one in (baseline, treatment))
    if machine is None or before is None or after is None or not before.region.cycles:
        return {}
    return difference(costs(before, machine), costs(after, machine))
