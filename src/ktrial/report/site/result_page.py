"""A result's page in a site: all that is said of it in words and tables; pictures are left to its report."""

from jinja2 import Environment

from ktrial.model.study_record import StudyRecord
from ktrial.report.html.study import console_end, facts
from ktrial.report.site.page_cache import Reason, ResultPage
from ktrial.report.text.attribution import whys
from ktrial.store import Store


def result_page(
    store: Store, record: StudyRecord, made: Environment, sheet: str, *, reasons: bool
) -> ResultPage:
    """The page, rendered. Raises StoreError."""
    every_why = whys(store, record, graphs=False) if reasons else ()
    made.globals.update(console_end=console_end)
    places = [Reason(why.workload, why.treatment, place) for place, why in enumerate(every_why, start=1)]
    text = made.get_template("result.html.j2").render(
        title=record.study.name,
        eyebrow="ktrial result",
        question=record.result.question or record.study.question,
        crumbs=(("All results", "../index.html"), ("Matrix", "../matrix.html")),
        sheet=sheet,
        foot=f"Study {record.id}, digest {record.study_digest[:16]}",
        **facts(record, every_why),
        graphs=[None] * len(every_why),
    )
    return ResultPage(text=text, reasons=tuple(places), answer=record.result.answer)
