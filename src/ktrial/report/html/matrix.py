"""A study's comparisons as a heat map: for the terminal's tables, for a page, and as CSV."""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jinja2 import Environment

from ktrial.analysis.history.errors import NoMatrix
from ktrial.format.labels import OUTCOMES, VERDICTS
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.design import told_apart
from ktrial.model.matrix import Cell, Matrix, MatrixRow
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import STRING_BYTES, Mode, short_labels
from ktrial.report.html.history import Crumbs, site_environment, style
from ktrial.report.text import comparisons as summary
from ktrial.report.text import dispersion
from ktrial.report.text.attribution import Why
from ktrial.report.text.dispersion import scatters

_CHANGED = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.INCONCLUSIVE})
_COLUMNS = (
    *(
        "workload",
        "metric",
        "unit",
        "baseline",
        "treatment",
        "baseline_value",
        "value",
        "ratio",
        "low",
        "high",
    ),
    *("verdict", "mode", "reason", "scatter"),
)
_LONGEST_ANSWER = 600
_WHOLE_COLOUR = 0.5
"""The relative change from which a cell has its full colour."""


def matrix(record: StudyRecord, *, all_metrics: bool = False) -> Matrix:
    """The record as a table of versions by workloads. Raises NoMatrix where there is nothing to compare.

    `all_metrics`: with the bytes of string instructions, and with counts that are zero everywhere, which else
    only other programs get.
    """
    groups = summary.groups(record)
    if not groups:
        raise NoMatrix(study=record.study.name)
    rows = [row for row in summary.matrix(record) if any(row.comparisons)]
    shown = [_row(record, row) for row in rows if all_metrics or _tells_something(row.comparisons)]
    return Matrix(
        study_id=record.id,
        study=record.study.name,
        baseline=groups[0].baseline,
        columns=tuple(group.treatment for group in groups),
        rows=tuple(shown),
        answer=record.result.answer,
        margin=record.study.margin,
        problems=tuple(_problems(record)),
    )


def _tells_something(comparisons: Sequence[Comparison | None]) -> bool:
    found = [one for one in comparisons if one is not None]
    if any(one.metric == STRING_BYTES.name for one in found):
        return False
    numbers = [number for one in found for number in (one.baseline_value, one.value) if number is not None]
    return any(numbers) or not numbers


def _row(record: StudyRecord, row: summary.MatrixRow) -> MatrixRow:
    first = next(one for one in row.comparisons if one is not None)
    return MatrixRow(
        name=row.name,
        workload=first.workload,
        metric=first.metric,
        unit=first.unit,
        baseline=row.baseline_value,
        cells=tuple(_cell(record, one) for one in row.comparisons),
    )


def _cell(record: StudyRecord, one: Comparison | None) -> Cell:
    found = scatters(record.result.variability, one) if one else ()
    return Cell(comparison=one, why=_why(record, one), scatter=found)


def _why(record: StudyRecord, one: Comparison | None) -> str:
    if one is None or one.mode is not Mode.EXACT_PLUGIN or one.verdict not in _CHANGED or one.value is None:
        return ""
    return f"ktrial explain {record.id} --workload '{one.workload}' --to '{one.treatment}'"


def _problems(record: StudyRecord) -> list[str]:
    told = []
    for trial in summary.failed_trials(record):
        reason = f": {trial.reason}" if trial.reason else ""
        told.append(f"{trial.planned.treatment.label}: {OUTCOMES[trial.outcome]}{reason}")
    return list(dict.fromkeys(told))


def answer_of(found: Matrix) -> list[str]:
    """The study's answer; where nobody reads it through, how often each verdict came in each column."""
    if len(found.answer) <= _LONGEST_ANSWER:
        return [found.answer]
    return [
        f"{told_apart(column, found.baseline)}: {_tally(row.cells[place].comparison for row in found.rows)}"
        for place, column in enumerate(found.columns)
    ]


def _tally(comparisons: Iterable[Comparison | None]) -> str:
    count = Counter(one.verdict for one in comparisons if one is not None)
    return ", ".join(f"{count[verdict]} {word.word}" for verdict, word in VERDICTS.items() if count[verdict])


def heat(one: Comparison) -> int:
    """How strongly a cell is coloured, in %: by the logarithm of the change, full from half or twice."""
    if one.ratio is None or one.ratio <= 0:
        return 60
    change = max(one.ratio, 1 / one.ratio) - 1
    return round(8 + 52 * math.sqrt(min(1.0, change / _WHOLE_COLOUR)))


def matrix_csv(found: Matrix) -> str:
    """One row a cell, with a header row, as RFC 4180 has it. Numbers carry all their digits."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for row in found.rows:
        for cell in row.cells:
            if (one := cell.comparison) is not None:
                numbers = [one.baseline_value, one.value, one.ratio, one.low, one.high]
                writer.writerow(
                    [one.workload, one.metric, one.unit, one.baseline, one.treatment]
                    + ["" if number is None else repr(number) for number in numbers]
                    + [one.verdict.value, one.mode.value, one.reason, " ".join(cell.scatter)]
                )
    return text.getvalue()


def matrix_page(
    found: Matrix,
    reasons: Sequence[Why] = (),
    *,
    histories: Mapping[str, str] | None = None,
    result: str = "",
    why_places: Mapping[tuple[str, str], str] | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    made: Environment | None = None,
) -> str:
    """The page as text. `histories`: workload → its page; `result`: the study's page; `why_places`: workload
    and treatment → where the reasons stand, else those given in `reasons` stand in this page.
    """
    own = {(why.workload, why.treatment): f"#why-{place}" for place, why in enumerate(reasons, start=1)}
    facts: dict[str, Any] = {
        "title": found.study,
        "eyebrow": "ktrial matrix",
        "question": "",
        "matrix": found,
        "answer": answer_of(found),
        "short": short_labels(workload for workload, _ in found.by_workload),
        "heat": heat,
        "variability": dispersion,
        "whys": reasons,
        "graphs": [None] * len(reasons),
        "why_places": why_places if why_places is not None else own,
        "histories": histories or {},
        "result": result,
        "crumbs": crumbs,
        "sheet": sheet,
        "style": "" if sheet else style(),
        "foot": f"Study {found.study_id}",
    }
    return (made or site_environment()).get_template("matrix.html.j2").render(**facts)
