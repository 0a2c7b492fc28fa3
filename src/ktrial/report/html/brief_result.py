"""A result's page in brief: from what the store keeps of it, without reading its trials.

It costs a thousandth of a second where the whole page takes a tenth, so that a site of ten thousand results
can be built at once.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from jinja2 import Environment
from pydantic_core import to_json

from ktrial.format import number_format
from ktrial.format.labels import MODE_NAMES, VERDICTS, metric_name
from ktrial.model.comparison import BriefResult, Verdict
from ktrial.model.design import told_apart
from ktrial.model.workload import short_labels
from ktrial.report.html.history import Crumbs
from ktrial.store.study_rows import StoredStudy

_MOST_CHANGES, _MOST_HISTORIES = 12, 40


class _Change(NamedTuple):
    workload: str
    metric: str
    treatment: str
    change: str
    interval: str
    verdict: str
    symbol: str


def brief_page(
    stored: StoredStudy,
    brief: BriefResult,
    histories: Mapping[str, str],
    crumbs: Crumbs,
    sheet: str,
    made: Environment,
) -> str:
    """The page as text. `histories`: workload → the page of its history, as seen from this one."""
    study = stored.study
    labels = [use.label for use in study.workloads]
    short = short_labels(labels)
    counts, measured = brief.verdicts, brief.measured
    changed = counts[Verdict.BETTER] + counts[Verdict.WORSE]
    return made.get_template("brief_result.html.j2").render(
        title=study.name,
        eyebrow="ktrial result, in brief",
        question=study.question,
        crumbs=crumbs,
        sheet=sheet,
        json=f"{stored.id}.json",
        foot=f"Study {stored.id}, digest {stored.digest[:16]}",
        script=None,
        number=stored.id,
        brief=brief,
        verdicts=[(one, label, counts[one]) for one, label in VERDICTS.items() if counts[one]],
        modes=[MODE_NAMES[mode] for mode in brief.modes],
        margin=number_format.percentage(study.margin),
        started=datetime.fromisoformat(brief.started) if brief.started else None,
        changes=[_change(one) for one in brief.largest(_MOST_CHANGES)],
        more=max(0, changed - _MOST_CHANGES),
        histories=[(short[one], histories[one]) for one in labels if one in measured][:_MOST_HISTORIES],
    )


def _change(one: Mapping[str, Any]) -> _Change:
    verdict = Verdict(one["verdict"])
    return _Change(
        one["workload"],
        metric_name(one["metric"], one["unit"]),
        told_apart(one["treatment"], one["baseline"]),
        number_format.step(one["ratio"], one["value"]),
        number_format.interval(one["low"], one["high"]),
        verdict.value,
        VERDICTS[verdict].symbol,
    )


def brief_as_json(stored: StoredStudy, brief: BriefResult, store: str) -> str:
    """The numbers of the page: of what `ktrial show --json` prints the part that is known without trials."""
    said = {
        "study": stored.study.name,
        "question": stored.study.question,
        "answer": brief.answer,
        "in_brief": True,
        "comparisons": brief.comparisons,
        "warnings": [one.first.model_dump(mode="json") for one in brief.warnings],
        "planned": brief.planned,
        "completed": brief.completed,
        "created": stored.created.isoformat(),
        "store": store,
        "id": stored.id,
    }
    return to_json(said, inf_nan_mode="null").decode() + "\n"
