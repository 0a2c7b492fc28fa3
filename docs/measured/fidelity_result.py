"""What docs/fidelity.md has of a comparison of counts and times, in a file beside this one.

ktrial fidelity STUDY… --json --fit FILE > result.json
.venv/bin/python -m docs.measured.fidelity_result result.json [NAME]
"""

import json
import sys
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_FIGURES = (
    "count", "pairs", "undecided_in_time", "undecided_in_exact", "decided", "same_sign", "spearman",
    "pearson", "rms_error", "slope", "bands",
)  # fmt: skip
_DIGITS = 5


def kept(name: str = "fidelity") -> dict[str, Any]:
    """What is kept of `ktrial fidelity … --json`."""
    told: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8"))
    return told


def reduced(result: dict[str, Any]) -> dict[str, Any]:
    """Of everything that the command printed, what the page tells; each pair with all its ratios."""
    return {
        "machine": result["timed_machine"],
        "seed": result["seed"],
        **{half: [_figures(one) for one in result[half]] for half in ("all", "held_out")},
        **({"fitted": _fit(result["fitted"])} if result["fitted"] else {}),
        "left_out": result["left_out"],
        **_workloads(result),
        "pairs": [_pair(one) for one in result["pairs"]],
    }


def _workloads(result: dict[str, Any]) -> dict[str, Any]:
    """Those that stand beside each other; nothing where the studies have none."""
    if not result.get("workloads"):
        return {}
    return {
        "across": result["across"],
        "workloads": [
            {**one, "time": round(one["time"], 1), "exact": {k: round(v, 1) for k, v in one["exact"].items()}}
            for one in result["workloads"]
        ],
    }


def _fit(one: dict[str, Any]) -> dict[str, Any]:
    told = ("like", "operations", "before", "after", "error_before", "error_after")
    halves = {name: _figures(one[name]) for name in ("held_out_before", "held_out")}
    return {**{name: one[name] for name in told}, **halves}


def _figures(one: dict[str, Any]) -> dict[str, Any]:
    wrong = [[each["study"], each["workload"], each["treatment"]] for each in one["disagreements"]]
    return {**{name: one[name] for name in _FIGURES}, "disagreements": wrong}


def _pair(one: dict[str, Any]) -> dict[str, Any]:
    whole = [by for by in one["costs"].values() if by]
    shares = {name: round(by / sum(map(abs, whole)), 2) for name, by in one["costs"].items() if by}
    return {
        **{name: one[name] for name in ("study", "workload", "treatment")},
        "time": _change(one["time"]),
        "exact": {count: _change(each) for count, each in one["exact"].items()},
        "costs": {name: share for name, share in shares.items() if abs(share) >= 0.1},
    }


def _change(one: dict[str, Any]) -> list[Any]:
    """Ratio, lower and upper end of its interval, verdict."""
    return [*(round(one[name], _DIGITS) for name in ("ratio", "low", "high")), one["verdict"]]


def _written(told: dict[str, Any]) -> str:
    """One line a pair: a difference of two versions of the file can be read."""
    head = {name: value for name, value in told.items() if name != "pairs"}
    pairs = ",\n".join(json.dumps(one, ensure_ascii=False) for one in told["pairs"])
    return f'{json.dumps(head, indent=1, ensure_ascii=False)[:-2]},\n "pairs": [\n{pairs}\n]}}\n'


if __name__ == "__main__":
    place = _HERE / f"{sys.argv[2] if len(sys.argv) > 2 else 'fidelity'}.json"
    place.write_text(_written(reduced(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))), "utf-8")
    print(f"{place}: {place.stat().st_size} bytes")
