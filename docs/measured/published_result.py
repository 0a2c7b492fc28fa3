"""What docs/fidelity.md has of published changes, in a file beside this one: counting them builds 20 kernels.

studies/published/count RESULTS
.venv/bin/python -m docs.measured.published_result RESULTS
"""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_KEPT = _HERE / "published_changes.json"
_CYCLES = "modelled-cycles"
_NOT_RUN = "change-not-run"
"""ktrial's warning that the workload ran nothing of what differs."""
_MOST_FUNCTIONS = 3


def listed() -> list[dict[str, Any]]:
    """The changes of the list, in its order."""
    text = (_HERE / "published_changes.toml").read_text(encoding="utf-8")
    changes: list[dict[str, Any]] = tomllib.loads(text)["changes"]
    return changes


def kept() -> dict[str, Any]:
    """The start of a commit's number → what was counted of it."""
    told: dict[str, Any] = json.loads(_KEPT.read_text(encoding="utf-8"))
    return told


def reduced(result: dict[str, Any]) -> dict[str, Any]:
    """Of everything that a study told: what things cost with the commit, over what they cost without it."""
    instructions = next(one for one in result["comparisons"] if one["unit"] == "instructions")
    cycles = next(one for one in result["comparisons"] if one["metric"] == _CYCLES)
    rows = [row for why in result["why"] for row in why["functions"]]
    rows.sort(key=lambda row: -abs(row["difference"]))
    return {
        "workload": instructions["workload"],
        "kernel": result["kernels"][0]["before"]["version"] if result["kernels"] else "",
        "instructions": _comparison(instructions),
        "cycles": _comparison(cycles),
        "ran": all(warning["kind"] != _NOT_RUN for warning in result["warnings"]),
        "functions": {row["function"]: round(row["difference"], 1) for row in rows[:_MOST_FUNCTIONS]},
    }


def _comparison(row: dict[str, Any]) -> dict[str, Any]:
    names = ("baseline_value", "value", "ratio", "low", "high", "verdict")
    return {name: row[name] for name in names}


def main() -> None:
    """Keep what a directory has, which `studies/published/count` wrote; what it has not stays as it was."""
    place = Path(sys.argv[1])
    told = kept() if _KEPT.exists() else {}
    for change in listed():
        number = change["commit"][:12]
        if (file := place / f"{number}.json").exists():
            told[number] = reduced(json.loads(file.read_text(encoding="utf-8")))
    _KEPT.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
