"""The functions of `import ktrial`: load a study, run it, and read what came of it.

Each is a thin layer over the rooms below. Every function may raise `ktrial.KtrialError`: its `message` says
what is wrong and where, its `advice` what to do next.
"""

import contextlib
import importlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from ktrial import importers, report, store
from ktrial.analysis.result import record
from ktrial.errors import KtrialError
from ktrial.experiment import session
from ktrial.experiment.explain import Guests, explain_record
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.resources import installed
from ktrial.model import quantities
from ktrial.model.comparison import Comparison
from ktrial.model.conditions_diff import Attribution
from ktrial.model.imported import Imported
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import Sample
from ktrial.studyfile import Registry, StudySource, bundled_studies, load, study_from
from ktrial.studyfile.errors import SearchNotRun

Rows = Literal["comparisons", "samples"]
Location = str | Path
"""A store: a file, or a database's URL."""


class NoFrameLibrary(KtrialError):
    """A frame needs pandas or polars, and neither is installed."""

    hint = "pip install pandas; or take result.comparisons, which needs neither"


class StudyResult:
    """A study with all its trials and what they come to. It stays as it was when it was read."""

    def __init__(self, stored: StudyRecord, location: Location | None) -> None:
        self._record = stored
        self._location = location

    @property
    def name(self) -> str:
        """The study's name."""
        return self._record.study.name

    @property
    def study(self) -> Study:
        """The study itself."""
        return self._record.study

    @property
    def answer(self) -> str:
        """The answer to the study's question, in a sentence or two."""
        return self._record.result.answer

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every treatment against the baseline, for every metric of every workload, with its verdict.

        `ratio`, `low` and `high` are fractions of the baseline's value (1.02: two per cent more); `value` and
        `baseline_value` are in the comparison's `unit`.
        """
        return self._record.result.comparisons

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that ended, in the order in which they ran."""
        return self._record.trials

    @property
    def warnings(self) -> tuple[DataWarning, ...]:
        """What a reader has to keep in mind, with advice."""
        return self._record.result.warnings

    @property
    def complete(self) -> bool:
        """Whether all trials of the study's plan have ended."""
        return len(self._record.trials) >= self._record.planned

    def to_html(self) -> str:
        """The report: one page that loads nothing. The same result gives the same text, to the last byte.

        Reads in the store what the differences are made of. Raises StoreError.
        """
        with store.open_store(self._location) as opened:
            return report.study_html(self._record, report.whys(opened, self._record))

    def to_markdown(self) -> str:
        """GitHub-flavoured Markdown, for a pull request. Raises StoreError, as `to_html`."""
        with store.open_store(self._location) as opened:
            return report.study_markdown(self._record, report.whys(opened, self._record))

    def to_csv(self, rows: Rows = "comparisons") -> str:
        """One row a comparison, or a sample, as RFC 4180 has it. Numbers carry all their digits."""
        make = report.samples_csv if rows == "samples" else report.comparisons_csv
        return make(self._record)

    def to_frame(self, rows: Rows = "comparisons") -> Any:
        """A pandas.DataFrame, or a polars.DataFrame where only polars is installed: as `to_csv`, in columns.

        A column is called as the field of Comparison, or of Sample, is; a number that is not there is
        missing. Raises NoFrameLibrary.
        """
        return _frame_library().DataFrame(_columns(self._record, rows))

    def __repr__(self) -> str:
        return f"<StudyResult {self.name}: {self.answer}>"


class Store:
    """A store of trials that is open; a context manager, which closes it."""

    def __init__(self, opened: store.Store, location: Location | None) -> None:
        self._opened = opened
        self._location = location

    def result(self, study: str | int) -> StudyResult:
        """The study of this name (of several, the newest), or of this number.

        Its result is worked out anew from its trials. Raises StudyNotStored, which names those like it, and
        other StoreErrors.
        """
        return StudyResult(record(self._opened, study), self._location)

    def close(self) -> None:
        """Close it. Results that were read stay as they are."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self._opened.name}>"


def open_store(path: Location | None = None, *, read_only: bool = False) -> Store:
    """The store at a path or a database's URL; None: `KTRIAL_STORE`, else the user's own.

    A store of an older ktrial is brought up to date. One that is not there is made; with `read_only` that is
    an error, and nothing is ever written. Raises StoreError: NewerStore, NotAStore, StoreForbidden…
    """
    return Store(store.open_store(path, read_only=read_only), path)


def load_study(path: str | Path, *, patches: Sequence[str] = ()) -> Study:
    """The study in a file (TOML), or the one of this name that comes with ktrial.

    `patches`: FILE or FACTOR=FILE, for the levels `"?"` that a study leaves open. Raises StudyError, which
    says every mistake with its line and what is allowed.
    """
    return load(bundled_studies.file_of(Path(path)), _registry(), patches)


def run(
    study: Study,
    *,
    store: Location | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    allow_host_changes: bool = False,
) -> StudyResult:
    """Run what the store has not yet of the study's trials, and return its result.

    `store`: see `open_store`. `jobs`: how many trials at once, in exact mode; None: one a core.
    `retry_failed`: run trials again that failed. `allow_host_changes`: machine host: settings of this system
    may be changed; they are put back. A trial that fails is a result too, and no error.

    Raises SearchNotRun (`ktrial tune` runs a search), WorkloadError, KernelError where no kernel can be had,
    MachineError, StoreError; Interrupted after Ctrl-C: what has ended is stored, and the same call goes on.
    """
    if study.search:
        raise SearchNotRun(study=study.name)
    with _opened(store) as opened, machine_for(study, allow_host_changes=allow_host_changes) as machine:
        stored = session.run(study, store=opened, machine=machine, jobs=jobs, retry_failed=retry_failed)
    return StudyResult(stored, store)


def compare(
    kernels: Sequence[str],
    workloads: Sequence[str],
    *,
    margin: float | None = None,
    perturbations: int | None = None,
    memory: str | None = None,
    cpus: int | None = None,
    boot: Sequence[str] = (),
    store: Location | None = None,
    jobs: int | None = None,
) -> StudyResult:
    """Compare kernels, in exact mode; the first is the baseline.

    `kernels`: names as `ktrial kernel list` has them, `debian:6.12`; at least two. `workloads`: names as
    `ktrial workload list` has them. `margin`: the smallest change that matters, as a fraction (0.01).
    `memory`: the guest's, `"512M"`. `boot`: boot parameters of all kernels. For the others see `run`.

    Raises StudyError where a name or a number is wrong, and what `run` raises.
    """
    machine = {"memory": memory, "cpus": cpus, "boot": list(boot) or None}
    data = {
        "question": f"How does {' and '.join(kernels[1:])} compare with {''.join(kernels[:1])}?",
        "factors": {"kernel": {"levels": list(kernels)}},
        "workloads": list(workloads),
        "machine": _given(machine),
        **_given(
            {
                "margin": None if margin is None else quantities.percentage(margin),
                "perturbations": perturbations,
            }
        ),
    }
    study = study_from(data, StudySource("ktrial.compare"), "compare", Path.cwd(), _registry())
    return run(study, store=store, jobs=jobs)


def explain(
    result: StudyResult,
    *,
    workload: str | None = None,
    before: str | None = None,
    after: str | None = None,
    boot: bool = True,
) -> Attribution:
    """What a difference is made of: function by function, in instructions an operation, and what differs.

    `workload`: its label in the comparisons; None: the only one. `before`, `after`: treatments; None: the
    baseline, and the only other. `boot`: where trials kept no profile, or a kernel's settings were never
    read, kernels may be booted for it; False: nothing is booted and nothing fetched.

    Raises ExplanationError (NotCounted where there is no profile), KernelError, MachineError, StoreError.
    """
    with _opened(result._location) as opened:
        guests = Guests(run=boot)
        return explain_record(opened, result._record, workload, before, after, guests)


def load_measurements(path: str | Path) -> Imported:
    """What another tool measured: CSV, Phoronix, UnixBench, hyperfine, pyperf, Google Benchmark.

    Raises MeasurementsUnreadable, MeasurementsTooLarge, FormatUnknown, MeasurementsDamaged, NoMeasurements.
    """
    _warn(importers.installed()[1])
    return importers.read(importers.source_file(Path(path)))[1]


def _opened(location: Location | None) -> store.Store:
    return store.open_store(location)


def _registry() -> Registry:
    everything = installed()
    _warn(everything.warnings)
    return everything.registry


def _warn(broken: Iterable[DataWarning]) -> None:
    """Extensions that are broken are left out."""
    for one in broken:
        warnings.warn(f"{one.text}; {one.advice}", stacklevel=3)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


_OF_TRIAL = ("order", "block", "treatment", "perturbation", "outcome", "kernel_release")


def _columns(stored: StudyRecord, rows: Rows) -> dict[str, list[object]]:
    """Name → one value a row."""
    if rows == "comparisons":
        return _by_name(tuple(Comparison.model_fields), map(_values, stored.result.comparisons))
    samples = ((*_of_trial(trial), *_values(sample)) for trial in stored.trials for sample in trial.samples)
    return _by_name((*_OF_TRIAL, *Sample.model_fields), samples)


def _by_name(names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> dict[str, list[object]]:
    every = list(rows)
    return {name: [row[place] for row in every] for place, name in enumerate(names)}


def _of_trial(trial: Trial) -> tuple[object, ...]:
    planned = trial.planned
    run = (planned.order, planned.block, planned.treatment.label, planned.perturbation.number)
    return (*run, trial.outcome.value, trial.provenance.kernel_release)


def _values(row: Comparison | Sample) -> tuple[object, ...]:
    return tuple(value.value if isinstance(value, Enum) else value for _, value in row)


def _frame_library() -> Any:
    """Raises NoFrameLibrary."""
    for library in ("pandas", "polars"):
        with contextlib.suppress(ImportError):  # the next one will do
            return importlib.import_module(library)
    raise NoFrameLibrary()
