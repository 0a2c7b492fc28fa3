"""What `import ktrial` gives of a study: its comparisons and trials, as frames, charts, pages and files."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktrial import report, store
from ktrial.api.frames import CsvRows, Library, NoSuchRows, Rows, as_frame, write_parquet
from ktrial.model.comparison import Comparison
from ktrial.model.study import Study
from ktrial.model.study_record import StudyRecord
from ktrial.model.trial import Trial
from ktrial.model.warnings import DataWarning

if TYPE_CHECKING:
    import altair

Opening = Callable[[], AbstractContextManager[store.Store]]
"""Opens the store that a result was read from."""


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
            return report.study_html(self._record, report.whys(opened, self._record))

    def to_markdown(self) -> str:
        """GitHub-flavoured Markdown, for a pull request. Raises StoreError, as `to_html`."""
        with self._opening() as opened:
            return report.study_markdown(self._record, report.whys(opened, self._record))

    def to_csv(self, rows: CsvRows = "comparisons") -> str:
        """One row a comparison, or a sample, as RFC 4180 has it. Numbers carry all their digits.

        Raises NoSuchRows for the others.
        """
        makers = {"comparisons": report.comparisons_csv, "samples": report.samples_csv}
        if rows not in makers:
            raise NoSuchRows(rows=rows, known=" and ".join(makers))
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
        from ktrial.api.charts import changes

        return changes(self._record, workload)

    def bundle(self, path: str | Path, *, with_kernels: bool = False, licence: str = "") -> Path:
        """Write a bundle, which others check and run again. Raises BundleError, StoreError."""
        from ktrial.bundle.writing import Wanted, write_bundle

        with self._opening() as opened:
            stored = opened.find(self._record.id)
            return write_bundle(opened, stored, Path(path), Wanted(with_kernels, licence)).file

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the answer, and the table of comparisons."""
        from ktrial.report.html.notebook import result_fragment

        return result_fragment(self._record)

    def __repr__(self) -> str:
        return f"<StudyResult {self.name}: {self.answer}>"
