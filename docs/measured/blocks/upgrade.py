"""README.md: what studies/quick.toml says of an upgrade; the picture above the table has the same numbers."""

import json
from typing import Any

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.pages import ROOT
from docs.measured.wording import percent, table, with_commas

from ktrial.model.comparison import Comparison
from ktrial.model.workload import STRING_BYTES

_STUDY = ROOT / "studies" / "quick.toml"
_DRAWN = ROOT / "docs" / "pictures" / "quick.json"
_HEADS = ("workload", "debian:6.1", "debian:6.12", "change, %", "interval, %", "verdict")


def _text(measuring: Measuring) -> str:
    numbers = measuring.run(measuring.in_file(_STUDY))
    comparisons = [one for one in numbers.record.result.comparisons if one.metric != STRING_BYTES.name]
    drawn = json.loads(_DRAWN.read_text(encoding="utf-8"))["comparisons"]
    measuring.claim(
        [_row(one) for one in comparisons] == [_row(_drawn(one)) for one in drawn],
        "the picture shows these numbers: draw it anew, as docs/pictures/draw_pictures.py says",
    )
    return table(_HEADS, map(_row, comparisons), right=True)


def _drawn(values: dict[str, Any]) -> Comparison:
    return Comparison.model_validate(values)


def _row(comparison: Comparison) -> tuple[str, ...]:
    values = (comparison.baseline_value, comparison.value)
    ratios = (comparison.ratio, comparison.low, comparison.high)
    old, new = ("" if value is None else with_commas(value) for value in values)
    change, low, high = ("" if ratio is None else percent(ratio, 2) for ratio in ratios)
    return comparison.workload, old, new, change, f"{low} … {high}", comparison.verdict.value


BLOCKS = (Block("upgrade", "README.md", _text),)
