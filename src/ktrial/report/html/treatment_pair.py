"""The page on which two treatments of a study are chosen and compared. Its address says which."""

from typing import Any, NamedTuple

from jinja2 import Environment

from ktrial.model.study import Study, StudyRecord, treatments
from ktrial.report.html.history import Crumbs
from ktrial.report.html.study import facts
from ktrial.report.json.study import as_json


class TreatmentPair(NamedTuple):
    """Two treatments, by their places among the study's, from 0."""

    before: int
    after: int


FIRST = TreatmentPair(0, 1)
"""What is compared where nobody has chosen."""


def pair_of(study: Study, before: str | None, after: str | None) -> TreatmentPair | None:
    """What an address says: places from 1, as in the study's plan; None where the study has no such two."""
    asked = zip((before, after), FIRST, strict=True)
    chosen = [usual if text is None else _place(text) for text, usual in asked]
    count = len(treatments(study))
    return TreatmentPair(*chosen) if all(0 <= one < count for one in chosen) else None


def _place(text: str) -> int:
    return int(text) - 1 if text.isascii() and text.isdigit() and len(text) < 10 else -1


def treatment_pair_page(
    study: Study,
    pair: TreatmentPair,
    record: StudyRecord | None,
    crumbs: Crumbs,
    sheet: str,
    made: Environment,
) -> str:
    """The page as text. `study`: the whole one; `record`: of the two, None where both are the same."""
    known = facts(record) if record else {}
    said: dict[str, Any] = {
        "title": study.name,
        "eyebrow": "ktrial: two treatments",
        "question": study.question,
        "names": [one.label for one in treatments(study)],
        "pair": pair,
        "forms": True,
        "crumbs": crumbs,
        "sheet": sheet,
        "json": "",
        "foot": "The address of this page says what is compared: a link to it shows the same.",
    }
    return made.get_template("treatment_pair.html.j2").render(**known, **said)


def pair_as_json(record: StudyRecord | None, store: str) -> dict[str, Any] | None:
    """The numbers of the page."""
    if record is None:
        return None
    return {
        key: value
        for key, value in as_json(record, store).items()
        if key in {"study", "question", "answer", "comparisons", "warnings", "store", "id"}
    }
