"""Charts for notebooks."""

from typing import TYPE_CHECKING, Any

from ktrial.format.labels import VERDICTS
from ktrial.format.sanitize import one_line
from ktrial.model.comparison import Verdict
from ktrial.model.study_record import StudyRecord
from ktrial.model.workload import BESIDE_THE_OWN

if TYPE_CHECKING:
    import altair

_COLOURS = {
    Verdict.BETTER: "#1a7f37",
    Verdict.WORSE: "#cf222e",
    Verdict.EQUIVALENT: "#57606a",
    Verdict.INCONCLUSIVE: "#9a6700",
    Verdict.IDENTICAL: "#8c959f",
}
_ROW = 22
"""Pixels."""


def changes(record: StudyRecord, workload: str | None) -> "altair.LayerChart":
    """Every change in %, with its interval, and the margin as a band."""
    import altair

    rows = [row for row in _rows(record) if workload in {None, row["label"]}]
    base = altair.Chart(altair.InlineData(values=rows))
    place = altair.Y("row:N", sort=None, title=None)
    colours = altair.Scale(domain=[VERDICTS[one].word for one in Verdict], range=list(_COLOURS.values()))
    verdict = altair.Color("verdict:N", scale=colours, title="verdict")
    tips = [altair.Tooltip(f"{name}:N") for name in ("row", "treatment", "verdict")]
    points = base.mark_point(filled=True, size=70).encode(
        x=altair.X("change:Q", title="change against the baseline, %"),
        y=place,
        color=verdict,
        tooltip=[*tips, altair.Tooltip("change:Q", format="+.3f")],
    )
    intervals = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", y=place, color=verdict)
    margin = 100 * record.study.margin
    band = altair.Chart(altair.InlineData(values=[{"from": -margin, "to": margin}]))
    shaded = band.mark_rect(opacity=0.12, color="#57606a").encode(x="from:Q", x2="to:Q")
    chart: altair.LayerChart = (shaded + intervals + points).properties(
        width=480, height=_ROW * max(1, len(rows)), title=one_line(record.study.question or record.study.name)
    )
    return chart


def _rows(record: StudyRecord) -> list[dict[str, Any]]:
    several = len({one.treatment for one in record.result.comparisons}) > 1
    rows = []
    for one in record.result.comparisons:
        if one.ratio is None or one.metric in BESIDE_THE_OWN:
            continue
        low, high = one.low or one.ratio, one.high or one.ratio
        name = f"{one.workload}, {one.treatment}" if several else one.workload
        rows.append(
            {
                "row": one_line(name),
                "label": one.workload,
                "treatment": one_line(one.treatment),
                "verdict": VERDICTS[one.verdict].word,
                "change": 100 * (one.ratio - 1),
                "low": 100 * (low - 1),
                "high": 100 * (high - 1),
            }
        )
    return rows
