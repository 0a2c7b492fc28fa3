"""Reports of stored studies: what their differences are made of, and the files that hold them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from ktrial.cli.console import write_page
from ktrial.model.attribution import Attribution
from ktrial.model.comparison import Comparison
from ktrial.model.study import StudyRecord
from ktrial.store.store import Store

if TYPE_CHECKING:
    from ktrial.report.attribution import Why


def explain(
    store: Store, record: StudyRecord, comparisons: Sequence[Comparison]
) -> Iterable[Attribution | None]:
    """Explain by the trials' profiles, with what the kernels in the cache tell. Raises StoreError."""
    from ktrial.experiment.explain import stored_explanations  # machines and kernels take their time to load

    return stored_explanations(store, record, comparisons)


def default_report(record: StudyRecord, location: str) -> Path:
    """Beside the store, or in the user's data directory where the store is on a server."""
    return reports_beside(location) / f"{record.study.name}-{record.id}.html"


def reports_beside(location: str) -> Path:
    """The directory of reports for a store at this location."""
    directory = platformdirs.user_data_dir("ktrial") if "://" in location else Path(location).parent
    return Path(directory) / "reports"


def write_report(
    record: StudyRecord, path: Path, reasons: "Sequence[Why]" = (), *, whole: bool = False
) -> Path:
    """Write the report; a half-written one is never left where a whole one was. `whole`: all is open."""
    from ktrial.report import study_html

    text = study_html(record, reasons, whole=whole)
    return write_page(path, text, f"ktrial report {record.study.name} --html FILE")
