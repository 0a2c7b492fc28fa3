"""Draws quick.svg, the README's picture: the chart of the report of studies/quick.toml.

    .venv/bin/ktrial run studies/quick.toml --json > quick-result.json
    .venv/bin/python docs/pictures/draw_pictures.py quick-result.json

keeps the comparisons in quick.json and draws them; without a file, what is kept is drawn again. Bytes of
string instructions are left out.
"""

import json
import sys
from pathlib import Path
from typing import Any

from ktrial.model.comparison import Comparison
from ktrial.model.workload import STRING_BYTES
from ktrial.report import charts
from ktrial.report.overview_chart import ALONE, ratio_axis, ratio_chart
from ktrial.report.study_summary import TreatmentComparisons

HERE = Path(__file__).parent
KEPT, PICTURE = HERE / "quick.json", HERE / "quick.svg"
_MARGIN = 0.01
"""As studies/quick.toml has it."""
_PAPER = f'<rect width="100%" height="100%" fill="{charts.PAPER}"/>'
"""A page of its own: what shows the README may be dark."""


def kept(result: dict[str, Any]) -> dict[str, Any]:
    """What of a result the picture is drawn from."""
    return {
        "kernels": [side["release"] for one in result["kernels"] for side in (one["before"], one["after"])],
        "comparisons": [one for one in result["comparisons"] if one["metric"] != STRING_BYTES.name],
    }


def drawing(numbers: dict[str, Any]) -> str:
    """The picture as an SVG file. `numbers`: as `kept` gives them."""
    comparisons = tuple(Comparison.model_validate(one) for one in numbers["comparisons"])
    group = TreatmentComparisons(comparisons[0].baseline, comparisons[0].treatment, comparisons)
    axis = ratio_axis((group,), _MARGIN, ALONE.width)
    svg = ratio_chart(group, axis, ALONE, "quick")
    head, end, rest = svg.partition("</desc>")
    return head + end + _PAPER + rest + "\n"


def main(arguments: list[str]) -> None:
    """Keep a result's comparisons, where one is given, and draw."""
    if arguments:
        numbers = kept(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
        KEPT.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    PICTURE.write_text(drawing(json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
