"""Pictures and tables of a study: HTML for people, Markdown for pull requests, CSV for other programs.

Importing this package costs next to nothing: a function imports what it needs to draw and format.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ktrial.model.kernel import KernelDifference
from ktrial.model.study import StudyRecord

if TYPE_CHECKING:
    from ktrial.report.attribution import Explain, Why
    from ktrial.store.store import Store

__all__ = [
    "comparisons_csv",
    "kernel_difference_html",
    "samples_csv",
    "scaling_csv",
    "series_csv",
    "study_html",
    "study_markdown",
    "whys",
]


def study_html(record: StudyRecord, whys: "Sequence[Why]" = (), *, whole: bool = False) -> str:
    """One self-contained HTML page, readable without ktrial and without a network.

    `whys`: what the differences are made of (`whys`). `whole`: with every section open and every picture
    drawn, to be printed; else what is closed is made when it is opened. The same record yields the same text,
    to the last byte.
    """
    from ktrial.report.study_page import study_page

    return study_page(record, whys, whole=whole)


def study_markdown(record: StudyRecord, whys: "Sequence[Why]" = ()) -> str:
    """GitHub-flavoured Markdown for a pull request: the answer, the table, and the rest folded."""
    from ktrial.report.markdown import study_markdown

    return study_markdown(record, whys)


def whys(
    store: "Store", record: StudyRecord, explain: "Explain", most: int | None = None, *, graphs: bool = True
) -> "tuple[Why, ...]":
    """What the differences of a study are made of, by its trials' profiles; none where it has none.

    `explain`: explains comparisons by profiles. `most`: only the first so many: each takes some tenths of a
    second. `graphs=False`: without flame graphs. Raises StoreError.
    """
    from ktrial.report.attribution import whys as whys_of

    return whys_of(store, record, explain, most, graphs=graphs)


def kernel_difference_html(difference: KernelDifference) -> str:
    """What differs between two kernels, as one self-contained HTML page."""
    from ktrial.report import templating

    return templating.kernel_difference_page(difference)


def comparisons_csv(record: StudyRecord) -> str:
    """One row a comparison, with a header row, as RFC 4180 has it. Numbers carry all their digits."""
    from ktrial.report.comparisons import of_all
    from ktrial.report.csv_and_json import csv_text

    return csv_text(of_all(record))


def samples_csv(record: StudyRecord) -> str:
    """One row a sample, with its trial's treatment, perturbation and outcome, as RFC 4180 has it."""
    from ktrial.report.csv_and_json import csv_text, samples_table

    return csv_text(samples_table(record))


def scaling_csv(record: StudyRecord) -> str:
    """One row a number of CPUs of each workload and treatment, as RFC 4180 has it."""
    from ktrial.analysis.scaling import changes, curves
    from ktrial.report.csv_and_json import csv_text
    from ktrial.report.scaling import scaling_table

    return csv_text(scaling_table((*curves(record), *changes(record))))


def series_csv(record: StudyRecord) -> str:
    """One row a moment of what was read over time, in each treatment's first trial, as RFC 4180 has it."""
    from ktrial.report.csv_and_json import csv_text, series_table

    return csv_text(series_table(record))
