"""Pieces of HTML that a notebook shows: without a page around them, and without a script."""

from ktrial.model.replication import Replication
from ktrial.model.study_record import StudyRecord
from ktrial.report.html.templating import environment
from ktrial.report.tables import comparisons
from ktrial.report.tables import replication as tables

_FRAGMENT = """\
{% from "macros.html.j2" import prose with context %}
{% from "table.html.j2" import drawn with context %}
<div class="ktrial">
<p><b>{{ prose(title) }}</b>{% if question %} {{ prose(question) }}{% endif %}</p>
{{ drawn(rows) }}
<p>{{ prose(said) }}</p>
</div>
"""


def result_fragment(record: StudyRecord) -> str:
    """The question, the table of comparisons, the answer."""
    rows = comparisons.of_all(record)
    return _rendered(record.study.name, record.study.question, rows, record.result.answer)


def replication_fragment(replication: Replication) -> str:
    """The verdicts then and now, and the outcome."""
    return _rendered(replication.study, "", tables.verdicts(replication), replication.said)


def _rendered(title: str, question: str, rows: object, said: str) -> str:
    template = environment().from_string(_FRAGMENT)
    return template.render(title=title, question=question, rows=rows, said=said)
