"""The functions of `import ktrial`: load a study, run it, and read what came of it.

Each is a thin layer over the rooms below. Every function may raise `ktrial.KtrialError`: its `message` says
what is wrong and where, its `advice` what to do next.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ktrial import importers
from ktrial.analysis.result import load_record, make_record
from ktrial.api.replicated import ReplicatedStudy, run_again
from ktrial.api.result import StudyResult, Tree, tree_of
from ktrial.experiment import session
from ktrial.experiment.explain import Guests, explain_record
from ktrial.experiment.host_settings import machine_for
from ktrial.experiment.preflight import check_factors
from ktrial.experiment.resources import installed
from ktrial.model import notation
from ktrial.model.attribution import Attribution
from ktrial.model.imported import Imported
from ktrial.model.study import Study
from ktrial.model.warnings import DataWarning
from ktrial.store import store
from ktrial.studyfile import toml_files
from ktrial.studyfile.diagnostics import StudySource
from ktrial.studyfile.errors import TuningError
from ktrial.studyfile.reader import load, study_from
from ktrial.studyfile.references import Registry

Location = str | Path
"""A store: a file, or a database's URL."""


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
        return StudyResult(load_record(self._opened, study), lambda: _opened(self._location))

    @property
    def studies(self) -> tuple[str, ...]:
        """The names of all studies but those that commands made for themselves, the newest last.

        Raises StoreError.
        """
        stored = (stored.study for stored in self._opened.studies())
        return tuple(study.name for study in stored if not study.made_by)

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

    One that is not there is made; with `read_only` that is an error, and nothing is ever written. Raises
    StoreError: NotAStore, StoreForbidden…
    """
    return Store(store.open_store(path, read_only=read_only), path)


def load_study(path: str | Path, *, patches: Sequence[str] = ()) -> Study:
    """The study in a file (TOML), or the one of this name that comes with ktrial.

    `patches`: FILE or FACTOR=FILE, for the levels `"?"` that a study leaves open. Raises StudyError, which
    says every mistake with its line and what is allowed.
    """
    return load(toml_files.file_of(Path(path)), _registry(), patches)


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

    Raises TuningError (`ktrial tune` runs a search), StudyRefused where a factor cannot act, WorkloadError,
    KernelError where no kernel can be had, MachineError, StoreError; Interrupted after Ctrl-C: what has ended
    is stored, and the same call goes on.
    """
    if study.search:
        raise TuningError(
            f"The study {study.name} has a section [search]: its configurations are chosen as it goes.",
            hint=f"ktrial tune {study.name}",
        )
    check_factors(study)
    with _opened(store) as opened, machine_for(study, allow_host_changes=allow_host_changes) as machine:
        stored = session.run(study, store=opened, machine=machine, jobs=jobs, retry_failed=retry_failed)
    return StudyResult(stored, lambda: _opened(store))


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
                "margin": None if margin is None else notation.percentage(margin),
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
    """What a difference is made of: function by function, in instructions per operation, and what differs.

    `workload`: its label in the comparisons; None: the only one. `before`, `after`: treatments; None: the
    baseline, and the only other. `boot`: where trials kept no profile, or a kernel's settings were never
    read, kernels may be booted for it; False: nothing is booted and nothing fetched.

    Raises ExplanationError (NotCounted where there is no profile), KernelError, MachineError, StoreError.
    """
    with result._opening() as opened:
        guests = Guests(run=boot)
        return explain_record(opened, result._record, workload, before, after, guests)


def open_bundle(path: str | Path, *, signers: str | Path | None = None) -> StudyResult:
    """The study in a bundle of somebody else's; its result is worked out anew from its trials.

    `signers`: OpenSSH's file of allowed signers, one of whom must have signed it. Raises BundleError.
    """
    file, allowed = Path(path).absolute(), Path(signers) if signers else None

    @contextmanager
    def opening() -> Iterator[store.Store]:
        from ktrial.bundle.reading import open_filled

        with open_filled(file, allowed) as (_, filled, _stored):
            yield filled

    with opening() as opened:
        (stored,) = opened.studies()
        return StudyResult(make_record(opened, stored, opened.trials(stored.id)), opening)


def replicate(
    path: str | Path,
    *,
    only: Sequence[str] = (),
    perturbations: int | None = None,
    signers: str | Path | None = None,
    jobs: int | None = None,
) -> ReplicatedStudy:
    """Run a bundle's study again in guests, and compare every number with what was measured first.

    `only`: these workloads. `perturbations`: so many of them. Raises BundleError, and what `run` raises.
    """
    return run_again(Path(path), tuple(only), perturbations, Path(signers) if signers else None, jobs)


def tree(attribution: Attribution) -> Tree:
    """A tree: the whole difference, subsystems, functions, in instructions per operation."""
    return tree_of(attribution.explanation)


def load_measurements(path: str | Path, *, value: str = "", group_by: Sequence[str] = ()) -> Imported:
    """What another tool measured: tables, Phoronix, UnixBench, hyperfine, pyperf, Google Benchmark.

    `value` and `group_by` name columns of tables, as the options of `ktrial analyze` do. Raises ImportFailed;
    where these have to be named, it is a ColumnsUndecided with a suggestion.
    """
    _warn(importers.installed()[1])
    choices = importers.Choices(tuple(group_by), value)
    return importers.read(importers.source_file(Path(path), choices=choices))[1]


def _opened(location: Location | None) -> store.Store:
    return store.open_store(location)


def _registry() -> Registry:
    everything = installed()
    _warn(everything.warnings)
    return everything.registry


def _warn(broken: Iterable[DataWarning]) -> None:
    """Extensions that are broken are left out."""
    for warning in broken:
        warnings.warn(f"{warning.text}; {warning.advice}", stacklevel=3)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
