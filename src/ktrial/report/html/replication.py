"""The page of a replication: both results side by side, and what differs between the two runs."""

from ktrial.model.replication import Agreement, Replication, Word
from ktrial.model.study import StudyRecord
from ktrial.report.html.templating import environment, style_of
from ktrial.report.tables import replication as tables


def page(replication: Replication, before: StudyRecord, now: StudyRecord) -> str:
    """The page as text: it needs no network and has no script."""
    unlike = len(replication.numbers) - replication.count(Agreement.IDENTICAL)
    return (
        environment()
        .get_template("replication.html.j2")
        .render(
            title=replication.study,
            eyebrow="ktrial replicate",
            question=before.study.question,
            replication=replication,
            answers=(("Then", before.result.answer), ("Now", now.result.answer)),
            verdicts=tables.verdicts(replication),
            numbers=tables.numbers(replication),
            bounds=replication.count(Agreement.UNBOUNDED) + replication.said_of(Word.UNBOUNDED),
            left_out=max(0, unlike - tables.MOST_NUMBERS),
            circumstances=tables.circumstances(replication),
            kernels=tables.kernels(replication),
            crumbs=(),
            sheet="",
            style=style_of(),
            foot="Made by ktrial replicate. Identical: to the last digit.",
        )
    )
