"""What `import ktrial` gives of a study: its comparisons and trials, as frames, charts, pages and files."""

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ktrial import report
from ktrial.errors import KtrialError
from ktrial.format import number_format
from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import one_line
from ktrial.installation import how_to_install
from ktrial.model.attribution import Explanation
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import Study, StudyRecord
from ktrial.model.trial import CounterDelta, Trial
from ktrial.model.warnings import DataWarning
from ktrial.model.workload import BESIDE_THE_OWN, Sample
from ktrial.store import store

if TYPE_CHECKING:
    import altair

    from ktrial.report.attribution import Why

Opening = Callable[[], AbstractContextManager[store.Store]]
"""Opens the store that a result was read from."""
CsvRows = Literal["comparisons", "samples"]
Library = Literal["pandas", "polars", "pyarrow"]
Rows = Literal["comparisons", "trials", "samples", "counters"]


class StudyResult:
    """A study with all its trials and what they come to. It stays as it was when it was read."""

    def __init__(self, stored: StudyRecord, opening: Opening) -> None:
        self._record = stored
        self._opening = opening

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
        with self._opening() as opened:
            return report.study_html(self._record, self._whys(opened))

    def to_markdown(self) -> str:
        """GitHub-flavoured Markdown, for a pull request. Raises StoreError, as `to_html`."""
        with self._opening() as opened:
            return report.study_markdown(self._record, self._whys(opened))

    def _whys(self, opened: store.Store) -> "tuple[Why, ...]":
        from ktrial.experiment.explain import stored_explanations

        return report.whys(opened, self._record, stored_explanations)

    def to_csv(self, rows: CsvRows = "comparisons") -> str:
        """One row a comparison, or a sample, as RFC 4180 has it. Numbers carry all their digits.

        Raises NoSuchRows for the others.
        """
        makers = {"comparisons": report.comparisons_csv, "samples": report.samples_csv}
        if rows not in makers:
            raise NoSuchRows(rows, " and ".join(makers))
        return makers[rows](self._record)

    def to_frame(self, rows: Rows = "comparisons", library: Library | None = None) -> Any:
        """A pandas.DataFrame, else a polars.DataFrame, else a pyarrow.Table: the first that is installed.

        `rows`: comparisons, trials, samples, or counters. `library`: the one to take. A column is called as
        the field of Comparison, or of Sample, is; a number that is not there is missing. Raises
        NoFrameLibrary, NoSuchRows.
        """
        return as_frame(self._record, rows, library)

    def to_parquet(self, path: str | Path, rows: Rows = "comparisons") -> Path:
        """Write the same rows as a Parquet file, by pyarrow or polars. Raises NoFrameLibrary, NoSuchRows."""
        return write_parquet(self._record, rows, Path(path))

    def chart(self, workload: str | None = None) -> "altair.LayerChart":
        """Every change with its interval, as an Altair chart, which notebooks show. `workload`: only its."""
        return changes(self._record, workload)

    def bundle(self, path: str | Path, *, with_kernels: bool = False, licence: str = "") -> Path:
        """Write a bundle, which others check and run again. Raises BundleError, StoreError."""
        from ktrial.bundle.writing import Wanted, write_bundle

        with self._opening() as opened:
            stored = opened.find(self._record.id)
            return write_bundle(opened, stored, Path(path), Wanted(with_kernels, licence)).file

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the answer, and the table of comparisons."""
        from ktrial.report.notebook import result_fragment

        return result_fragment(self._record)

    def __repr__(self) -> str:
        return f"<StudyResult {self.name}: {self.answer}>"


# Rows of a study as data frames and Parquet files, by whichever library is installed.

_LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")
_OF_TRIAL = ("order", "block", "treatment", "perturbation", "outcome", "kernel_release")
_MORE_OF_TRIAL = ("reason", "started", "seconds", "machine", "qemu", "kernel_digest")


class NoFrameLibrary(KtrialError):
    """None of the libraries is installed that make a frame."""


class NoSuchRows(KtrialError):
    """A study has no rows that are called so."""

    exit_code = 2

    def __init__(self, rows: str, names: str) -> None:
        super().__init__(f"There are no rows called {rows}.", hint=f"there are {names}")


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
            raise NoSuchRows(rows, "comparisons, trials, samples and counters")
    return _by_name((*_OF_TRIAL, *names), parts)


def _each(stored: StudyRecord, parts: str) -> Iterator[tuple[object, ...]]:
    for trial in stored.trials:
        for part in getattr(trial, parts):
            yield *_of_trial(trial), *_values(part)


def _by_name(names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> dict[str, list[object]]:
    every = list(rows)
    return {name: [row[place] for row in every] for place, name in enumerate(names)}


def _of_trial(trial: Trial) -> tuple[object, ...]:
    planned = trial.planned
    run = (planned.order, planned.block, planned.treatment.label, planned.perturbation.number)
    return (*run, trial.outcome.value, trial.provenance.kernel_release)


def _trial(trial: Trial) -> tuple[object, ...]:
    provenance = trial.provenance
    measured = (trial.reason, trial.started, trial.seconds)
    return (*_of_trial(trial), *measured, provenance.machine, provenance.qemu, provenance.kernel_digest)


def _values(row: Comparison | Sample | CounterDelta) -> tuple[object, ...]:
    return tuple(value.value if isinstance(value, Enum) else value for _, value in row)


def _installed(libraries: tuple[Library, ...]) -> tuple[Library, Any]:
    """The first that can be imported. Raises NoFrameLibrary."""
    for library in libraries:
        with contextlib.suppress(ImportError):  # the next one will do
            return library, importlib.import_module(library)
    names = " or ".join(libraries)
    none = "neither is" if len(libraries) > 1 else "it is not"
    raise NoFrameLibrary(
        f"A frame needs {names}, and {none} installed.",
        hint=f"{how_to_install(libraries[0])}; or take result.comparisons, which needs neither",
    )


# Charts for notebooks.

_COLOURS = {
    Verdict.BETTER: "#1a7f37",
    Verdict.WORSE: "#cf222e",
    Verdict.EQUIVALENT: "#57606a",
    Verdict.INCONCLUSIVE: "#9a6700",
    Verdict.NOT_TESTED: "#bf8700",
    Verdict.IDENTICAL: "#8c959f",
}
_ROW = 22
"""Pixels."""


def changes(record: StudyRecord, workload: str | None) -> "altair.LayerChart":
    """Every change in %, with its interval, and the margin as a band."""
    import altair

    rows = [row for row in _rows(record) if workload in {None, row["label"]}]
    base = altair.Chart(altair.InlineData(values=rows))
    place = altair.Y("row:N", sort=None, title=None)
    colours = altair.Scale(
        domain=[VERDICTS[verdict].word for verdict in Verdict], range=list(_COLOURS.values())
    )
    verdict = altair.Color("verdict:N", scale=colours, title="verdict")
    tips = [altair.Tooltip(f"{name}:N") for name in ("row", "treatment", "verdict")]
    points = base.mark_point(filled=True, size=70).encode(
        x=altair.X("change:Q", title="change against the baseline, %"),
        y=place,
        color=verdict,
        tooltip=[*tips, altair.Tooltip("change:Q", format="+.3f")],
    )
    intervals = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", y=place, color=verdict)
    margin = 100 * record.study.margin
    band = altair.Chart(altair.InlineData(values=[{"from": -margin, "to": margin}]))
    shaded = band.mark_rect(opacity=0.12, color="#57606a").encode(x="from:Q", x2="to:Q")
    chart: altair.LayerChart = (shaded + intervals + points).properties(
        width=480, height=_ROW * max(1, len(rows)), title=one_line(record.study.question or record.study.name)
    )
    return chart


def _rows(record: StudyRecord) -> list[dict[str, Any]]:
    several = len({comparison.treatment for comparison in record.result.comparisons}) > 1
    rows = []
    for comparison in record.result.comparisons:
        if comparison.ratio is None or comparison.metric in BESIDE_THE_OWN:
            continue
        low, high = comparison.low or comparison.ratio, comparison.high or comparison.ratio
        name = f"{comparison.workload}, {comparison.treatment}" if several else comparison.workload
        rows.append(
            {
                "row": one_line(name),
                "label": comparison.workload,
                "treatment": one_line(comparison.treatment),
                "verdict": VERDICTS[comparison.verdict].word,
                "change": 100 * (comparison.ratio - 1),
                "low": 100 * (low - 1),
                "high": 100 * (high - 1),
            }
        )
    return rows


# An explanation as a tree: the whole difference, its subsystems, their functions.


@dataclass(frozen=True)
class Tree:
    """A part of a difference, and what it is made of, the heaviest first."""

    name: str
    """Of the workload, a subsystem, a function."""
    difference: float
    """Instructions per operation."""
    share: float | None
    """Of the whole difference; None where there is none."""
    parts: tuple["Tree", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines("", ""))

    def _lines(self, first: str, indent: str) -> list[str]:
        lines = [f"{first}{one_line(self.name)} {number_format.signed(self.difference)}"]
        for place, part in enumerate(self.parts, start=1):
            last = place == len(self.parts)
            lines += part._lines(indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "))
        return lines

    def _repr_html_(self) -> str:
        return self._html(is_open=True)

    def _html(self, *, is_open: bool = False) -> str:
        text = escape(f"{one_line(self.name)} {number_format.signed(self.difference)}")
        if not self.parts:
            return f"<div style='margin-left:1.4em'>{text}</div>"
        inner = "".join(part._html() for part in self.parts)
        opened = " open" if is_open else ""
        return f"<details{opened} style='margin-left:1em'><summary>{text}</summary>{inner}</details>"


def tree_of(explanation: Explanation) -> Tree:
    """The tree of an explanation: every function that differs, below its subsystem."""
    subsystems = tuple(
        Tree(
            name=subsystem,
            difference=float(difference),
            share=explanation.share(difference),
            parts=tuple(
                Tree(row.name, float(part), explanation.share(part))
                for row in explanation.rows
                if row.subsystem == subsystem and (part := explanation.difference(row))
            ),
        )
        for subsystem, difference in explanation.subsystems.items()
    )
    total, heavy = explanation.total, tuple(subsystem for subsystem in subsystems if subsystem.parts)
    return Tree(explanation.workload, float(total), explanation.share(total), heavy)
