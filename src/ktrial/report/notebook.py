"""Pieces of HTML that a notebook shows: without a page around them, and without a script."""

from collections.abc import Sequence

from ktrial.format.table import Table
from ktrial.model.replication import Replication
from ktrial.model.study import StudyRecord
from ktrial.report import comparisons
from ktrial.report import replication as tables
from ktrial.report.study_summary import groups
from ktrial.report.templating import environment

_FRAGMENT = """\
{% from "macros.html.j2" import prose with context %}
{% from "table.html.j2" import drawn with context %}
<div class="ktrial">
<style>
.ktrial { overflow-x: auto; }
.ktrial th, .ktrial td { padding: 0.1em 0.6em; }
.ktrial th[scope="row"] { text-align: left; }
.ktrial td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.ktrial .remark { display: block; opacity: 0.7; font-size: smaller; font-weight: 400; }
</style>
<p><b>{{ prose(title) }}</b>{% if question %}: {{ prose(question) }}{% endif %}</p>
{% for heading, rows in tables %}
{% if heading %}
<p>{{ prose(heading) }}</p>
{% endif %}
{{ drawn(rows) }}
{% endfor %}
<p>{{ prose(answer) }}</p>
</div>
"""


def result_fragment(record: StudyRecord) -> str:
    """The question, a table of comparisons for each treatment, the answer."""
    drawn = [
        (f"{group.treatment} against {group.baseline}", comparisons.of_group(record, group))
        for group in groups(record)
    ]
    return _rendered(record.study.name, record.study.question, drawn, record.result.answer)


def replication_fragment(replication: Replication) -> str:
    """The verdicts then and now, and the outcome."""
    return _rendered(replication.study, "", [("", tables.verdicts(replication))], replication.said)


def _rendered(title: str, question: str, drawn: Sequence[tuple[str, Table]], answer: str) -> str:
    template = environment().from_string(_FRAGMENT)
    return template.render(title=title, question=question, tables=drawn, answer=answer)
