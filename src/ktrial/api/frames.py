"""Rows of a study as data frames and Parquet files, by whichever library is installed."""

import contextlib
import importlib
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from ktrial.errors import KtrialError
from ktrial.model.comparison import Comparison
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import CounterDelta, Trial
from ktrial.model.workload import Sample

Rows = Literal["comparisons", "trials", "samples", "counters"]
CsvRows = Literal["comparisons", "samples"]
Library = Literal["pandas", "polars", "pyarrow"]
_LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")
_OF_TRIAL = ("order", "block", "treatment", "perturbation", "outcome", "kernel_release")
_MORE_OF_TRIAL = ("reason", "started", "seconds", "machine", "qemu", "kernel_digest")


class NoFrameLibrary(KtrialError):
    """A frame needs {wanted}, and {none} installed."""

    hint = "pip install {install}; or take result.comparisons, which needs neither"


class NoSuchRows(KtrialError):
    """There are no rows called {rows}."""

    hint = "there are {known}"
    exit_code = 2


def as_frame(stored: StudyRecord, rows: Rows, library: Library | None) -> Any:
    """See StudyResult.to_frame."""
    columns = columns_of(stored, rows)
    name, module = _installed((library,) if library else _LIBRARIES)
    return module.table(columns) if name == "pyarrow" else module.DataFrame(columns)


def write_parquet(stored: StudyRecord, rows: Rows, path: Path) -> Path:
    """See StudyResult.to_parquet."""
    columns = columns_of(stored, rows)
    name, module = _installed(("pyarrow", "polars"))
    if name == "pyarrow":
        importlib.import_module("pyarrow.parquet").write_table(module.table(columns), path)
    else:
        module.DataFrame(columns, infer_schema_length=None).write_parquet(path)
    return path


def columns_of(stored: StudyRecord, rows: Rows) -> dict[str, list[object]]:
    """Name → one value a row. Raises NoSuchRows."""
    match rows:
        case "comparisons":
            return _by_name(tuple(Comparison.model_fields), map(_values, stored.result.comparisons))
        case "trials":
            return _by_name((*_OF_TRIAL, *_MORE_OF_TRIAL), map(_trial, stored.trials))
        case "samples":
            names, parts = tuple(Sample.model_fields), _each(stored, "samples")
        case "counters":
            names, parts = tuple(CounterDelta.model_fields), _each(stored, "counters")
        case _:
            raise NoSuchRows(rows=rows, known="comparisons, trials, samples and counters")
    return _by_name((*_OF_TRIAL, *names), parts)


def _each(stored: StudyRecord, what: str) -> Iterator[tuple[object, ...]]:
    for trial in stored.trials:
        for part in getattr(trial, what):
            yield *_of_trial(trial), *_values(part)


def _by_name(names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> dict[str, list[object]]:
    every = list(rows)
    return {name: [row[place] for row in every] for place, name in enumerate(names)}


def _of_trial(trial: Trial) -> tuple[object, ...]:
    planned = trial.planned
    run = (planned.order, planned.block, planned.treatment.label, planned.perturbation.number)
    return (*run, trial.outcome.value, trial.provenance.kernel_release)


def _trial(trial: Trial) -> tuple[object, ...]:
    one = trial.provenance
    measured = (trial.reason, trial.started, trial.seconds)
    return (*_of_trial(trial), *measured, one.machine, one.qemu, one.kernel_digest)


def _values(row: Comparison | Sample | CounterDelta) -> tuple[object, ...]:
    return tuple(value.value if isinstance(value, Enum) else value for _, value in row)


def _installed(libraries: tuple[Library, ...]) -> tuple[Library, Any]:
    """The first that can be imported. Raises NoFrameLibrary."""
    for library in libraries:
        with contextlib.suppress(ImportError):  # the next one will do
            return library, importlib.import_module(library)
    wanted = " or ".join(libraries)
    none = "neither is" if len(libraries) > 1 else "it is not"
    raise NoFrameLibrary(wanted=wanted, none=none, install=libraries[0])
