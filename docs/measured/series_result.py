"""What pages have of a series' result, in a file beside this one: to measure it again takes hours.

    ktrial series … --json > result.json; ktrial series … --dry-run --json > whole.json
    .venv/bin/python -m docs.measured.series_result preempt_rt result.json whole.json

`whole.json` has the patches of the whole series. `result.json` may have the first ones only, or have been run
with some commented out; of each the number is that in the whole. A third word is how many CPU seconds all
processes of the run took.
"""

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_MOST_FUNCTIONS = 5


def kept(name: str) -> dict[str, Any]:
    """What is kept of a series."""
    told: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8"))
    return told


def reduced(result: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """Of everything that a run told, what the pages tell."""
    numbers = {patch["name"]: patch["number"] for patch in whole["patches"]}
    measured = {patch["name"] for patch in result["patches"]}
    last = max(numbers[name] for name in measured)
    others = [patch for patch in whole["patches"] if patch["name"] not in measured]
    return {
        "base": result["base"],
        "base_cpu_seconds": result["base_cpu_seconds"],
        "workloads": result["workloads"],
        "exercised": result["exercised"],
        "functions": len(result["functions"]),
        "not_executed": len(result["not_executed"]),
        "notes": result["notes"],
        "patches": [{**_patch(one), "number": numbers[one["name"]]} for one in result["patches"]],
        "totals": [_cell(one) for one in result["totals"]],
        "commented_out": [patch["subject"] for patch in others if patch["number"] < last],
        "not_measured": [patch["subject"] for patch in others if patch["number"] > last],
    }


def _patch(patch: dict[str, Any]) -> dict[str, Any]:
    names = ("number", "subject", "state", "why", "left_out", "mended_by", "options", "cpu_seconds")
    differing = [_cell(one) for one in patch["cells"] if _is_told(one)]
    return {
        **{name: patch[name] for name in names},
        "functions": len(patch["functions"]),
        "data": len(patch["data"]),
        "changed": patch["functions"][:_MOST_FUNCTIONS],
        "largest": max((abs(one["ratio"] - 1) for one in patch["cells"] if one["ratio"]), default=0.0),
        "cells": differing,
        "idle": bool(patch["cells"]) and all(one["idle"] for one in patch["cells"]),
    }


def _is_told(cell: dict[str, Any]) -> bool:
    """As the report decides: beyond the margin, or something in a function that the patch changes."""
    own = sum(Fraction(one["difference"]) for one in cell["functions"] if one["changed"])
    return not cell["inside"] or own != 0


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    names = ("workload", "before", "after", "difference", "ratio", "inside")
    rows = [
        {name: row[name] for name in ("function", "file", "difference", "changed")}
        for row in cell["functions"][:_MOST_FUNCTIONS]
    ]
    is_open = cell["metrics"][0]["verdict"] == "inconclusive"
    return {**{name: cell[name] for name in names}, "open": is_open, "functions": rows}


if __name__ == "__main__":
    place = _HERE / f"{sys.argv[1]}.json"
    texts = [Path(each).read_text(encoding="utf-8") for each in sys.argv[2:4]]
    whole_run = {"cpu_seconds": int(sys.argv[4])} if sys.argv[4:] else {}
    told = json.dumps({**reduced(*map(json.loads, texts)), **whole_run}, indent=1, ensure_ascii=False)
    place.write_text(f"{told}\n", encoding="utf-8")
    print(f"{place}: {place.stat().st_size} bytes")
