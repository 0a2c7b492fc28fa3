"""The pages of one result: the whole one, the one in brief, and any two of its treatments compared."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from jinja2 import Environment
from pydantic_core import to_json

from ktrial.analysis.scaling import cpus_factor
from ktrial.format import number_format
from ktrial.format.labels import MODE_NAMES, VERDICTS, metric_name
from ktrial.model.comparison import BriefResult, Verdict, why_no_interval
from ktrial.model.design import told_apart
from ktrial.model.study import Study, StudyRecord, treatments
from ktrial.model.workload import Mode, short_labels
from ktrial.report.attribution import Explain, whys
from ktrial.report.csv_and_json import record_as_json
from ktrial.report.site.front_page import SHEET, crumbs, json_text
from ktrial.report.study_page import console_end, study_facts
from ktrial.report.tuning import tuning_page
from ktrial.store.store import Store
from ktrial.store.study_rows import StoredStudy

_MOST_CHANGES, _MOST_HISTORIES = 12, 40


class Reason(NamedTuple):
    """Where a page says what a change is made of."""

    workload: str
    treatment: str
    place: int


class ResultPage(NamedTuple):
    """A result's page, as it was rendered."""

    text: str
    data: str
    """Its numbers as JSON."""
    reasons: tuple[Reason, ...] = ()
    answer: str = ""


def result_page(
    store: Store, record: StudyRecord, templates: Environment, explain: Explain | None
) -> ResultPage:
    """The whole page. `explain`: finds what changes are made of; None: the page has no reasons.

    A search has the page of its own kind of answer. Raises StoreError.
    """
    if record.study.search and (tuned := store.answer(record.id)):
        text = tuning_page(
            record.study, tuned, number=record.id, crumbs=crumbs("../"), json=f"{record.id}.json"
        )
        return ResultPage(text, json_text(tuned.model_dump(mode="json")), (), tuned.answer)
    reasons = whys(store, record, explain, graphs=False) if explain else ()
    templates.globals.update(console_end=console_end)
    text = templates.get_template("result.html.j2").render(
        title=record.study.name,
        eyebrow="ktrial result",
        question=record.result.question or record.study.question,
        crumbs=crumbs("../"),
        sheet=f"../{SHEET}",
        json=f"{record.id}.json",
        foot=f"Study {record.id}, digest {record.study_digest[:16]}",
        **study_facts(record, reasons),
        graphs=[None] * len(reasons),
        treatment_count=len(treatments(record.study)),
    )
    return ResultPage(
        text=text,
        data=json_text(record_as_json(record, store.name, whys=reasons)),
        reasons=tuple(
            Reason(why.workload, why.treatment, place) for place, why in enumerate(reasons, start=1)
        ),
        answer=record.result.answer,
    )


class _Change(NamedTuple):
    workload: str
    metric: str
    treatment: str
    change: str
    interval: str
    verdict: str
    symbol: str


def brief_page(
    stored: StoredStudy, brief: BriefResult, histories: Mapping[str, str], templates: Environment
) -> str:
    """The page of what the store keeps of a result, without reading its trials: it costs a thousandth of a
    second where the whole page takes a tenth, so that a site of ten thousand results can be built at once.

    `histories`: workload → the page of its history, as seen from this one.
    """
    study = stored.study
    labels = [use.label for use in study.workloads]
    short = short_labels(labels)
    # One CPU is no baseline that several are better or worse than.
    counts = Counter[Verdict]() if cpus_factor(study) else brief.verdicts
    largest = () if cpus_factor(study) else brief.largest(_MOST_CHANGES)
    changed = counts[Verdict.BETTER] + counts[Verdict.WORSE]
    measured = [label for label in labels if label in brief.measured]
    return templates.get_template("brief_result.html.j2").render(
        title=study.name,
        eyebrow="ktrial result, in brief",
        question=study.question,
        crumbs=crumbs("../"),
        sheet=f"../{SHEET}",
        json=f"{stored.id}.json",
        foot=f"Study {stored.id}, digest {stored.digest[:16]}",
        script=None,
        number=stored.id,
        brief=brief,
        verdicts=[
            (verdict, label, counts[verdict]) for verdict, label in VERDICTS.items() if counts[verdict]
        ],
        modes=[MODE_NAMES[mode] for mode in brief.modes],
        margin=number_format.percentage(study.margin),
        started=datetime.fromisoformat(brief.started) if brief.started else None,
        changes=list(map(_change, largest)),
        more=max(0, changed - _MOST_CHANGES),
        histories=[(short[label], histories[label]) for label in measured][:_MOST_HISTORIES],
    )


def _change(comparison: Mapping[str, Any]) -> _Change:
    verdict = Verdict(comparison["verdict"])
    return _Change(
        comparison["workload"],
        metric_name(comparison["metric"], comparison["unit"]),
        told_apart(comparison["treatment"], comparison["baseline"]),
        number_format.step(comparison["ratio"], comparison["value"], comparison["unit"]),
        number_format.interval(comparison["low"], comparison["high"])
        or why_no_interval(comparison["ratio"], comparison["low"], Mode(comparison["mode"])),
        verdict.value,
        VERDICTS[verdict].symbol,
    )


def brief_as_json(stored: StoredStudy, brief: BriefResult, store: str) -> str:
    """The numbers of the page in brief: of what `ktrial show --json` prints the part that is known without
    trials.
    """
    facts = {
        "study": stored.study.name,
        "question": stored.study.question,
        "answer": brief.answer,
        "in_brief": True,
        "comparisons": brief.comparisons,
        "warnings": [group.first.model_dump(mode="json") for group in brief.warnings],
        "planned": brief.planned,
        "completed": brief.completed,
        "created": stored.created.isoformat(),
        "store": store,
        "id": stored.id,
    }
    return to_json(facts, inf_nan_mode="null").decode() + "\n"


class TreatmentPair(NamedTuple):
    """Two treatments, by their places among the study's, from 0."""

    before: int
    after: int


_FIRST = TreatmentPair(0, 1)
"""What is compared where nobody has chosen."""


def pair_of(study: Study, before: str | None, after: str | None) -> TreatmentPair | None:
    """What an address says: places from 1, as in the study's plan; None where the study has no such two."""
    pair = TreatmentPair(*map(_place, (before, after), _FIRST))
    count = len(treatments(study))
    return pair if all(0 <= place < count for place in pair) else None


def _place(text: str | None, usual: int) -> int:
    if text is None:
        return usual
    return int(text) - 1 if text.isascii() and text.isdigit() and len(text) < 10 else -1


def treatment_pair_page(
    study: Study, pair: TreatmentPair, record: StudyRecord | None, templates: Environment
) -> str:
    """The page on which two treatments of a study are chosen and compared.

    `study`: the whole one; `record`: of the two, None where both are the same.
    """
    facts = study_facts(record) if record else {}
    return templates.get_template("treatment_pair.html.j2").render(
        **facts
        | {
            "title": study.name,
            "eyebrow": "ktrial: two treatments",
            "question": study.question,
            "names": [treatment.label for treatment in treatments(study)],
            "pair": pair,
            "forms": True,
            "crumbs": crumbs("../"),
            "sheet": f"../{SHEET}",
            "json": "",
            "foot": "The address of this page says what is compared: a link to it shows the same.",
        }
    )


def pair_as_json(record: StudyRecord | None, store: str) -> dict[str, Any] | None:
    """The numbers of the page."""
    if record is None:
        return None
    return {
        key: value
        for key, value in record_as_json(record, store).items()
        if key in {"study", "question", "answer", "comparisons", "warnings", "store", "id"}
    }
