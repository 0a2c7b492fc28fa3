"""A study's comparisons as a heat map: the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment

from ktrial.model.comparison import Matrix
from ktrial.report.html.history import Crumbs, site_environment, style
from ktrial.report.tables import attribution
from ktrial.report.tables.matrix import Places, answer_of, heat_map, usual_unit
from ktrial.report.text.attribution import Why


def matrix_page(
    whole: Matrix,
    reasons: Sequence[Why] = (),
    *,
    histories: Mapping[str, str] | None = None,
    result: str = "",
    why_places: Places | None = None,
    crumbs: Crumbs = (),
    sheet: str = "",
    made: Environment | None = None,
) -> str:
    """The page as text. `histories`: workload → its page; `result`: the study's page; `why_places`: workload
    and treatment → where the reasons stand, else those given in `reasons` stand in this page.
    """
    own = {(why.workload, why.treatment): f"#why-{place}" for place, why in enumerate(reasons, start=1)}
    facts: dict[str, Any] = {
        "json": "matrix.json" if sheet else "",
        "title": whole.study,
        "eyebrow": "ktrial matrix",
        "question": "",
        "matrix": whole,
        "answer": answer_of(whole),
        "unit": usual_unit(whole),
        "table": heat_map(whole, why_places if why_places is not None else own, histories or {}),
        "whys": [(why, attribution.of_page(why)) for why in reasons],
        "graphs": [None] * len(reasons),
        "result": result,
        "crumbs": crumbs,
        "sheet": sheet,
        "style": "" if sheet else style(),
        "foot": f"Study {whole.study_id}",
    }
    return (made or site_environment()).get_template("matrix.html.j2").render(**facts)
