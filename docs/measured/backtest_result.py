"""What is kept of the backtest: ktrial's verdict on each report, and what it is worth beside the report.

The rule was written before the first case was run:
- A check's verdict on one number of CPUs: worse where it is beyond its limit, undecided where it is
  undecided; within the limit it is as the first metric's verdict has it.
- Where `check` chose to measure on several CPUs, too, the worse of the two answers is the verdict, as it is
  for the exit code.
- Where `check` says that nothing of the change ran, or that both kernels have the same code, it says that it
  cannot tell: that is neither decided nor right. (Added when 20 cases were known, 7 of which were scored as
  equivalent and wrong before `check` had this verdict.) If `--find` names workloads that run it, the first of
  these is measured, too, and its verdict stands beside the report's: it is not part of the score.
- Right is the report's direction. Equivalent is a decision, and a wrong one: every report is of a change.
- A wrong verdict was warned of where a warning said that the number does not show the change, or where the
  answers on one CPU and on several are not the same.
- The commit is named if one of the five functions that differ most is one that it changed.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_KEPT = _HERE / "backtest_results.json"
_MOST_FUNCTIONS = 5
_OF_REACH = frozenset({"change-not-run", "change-partly-run", "same-image", "several-cpus"})
"""Kinds of warnings that say that the change was not there to be measured, or not where it has its effect."""
_WITHIN = {"better": "better", "equivalent": "equivalent", "identical": "equivalent"}
CANNOT_TELL = "cannot tell"
_NOTHING_RAN = frozenset({"not-executed", "same-code"})
_WORST_FIRST = ("worse", "undecided", "equivalent", "better", CANNOT_TELL)


def listed() -> list[dict[str, Any]]:
    """The reports, in the list's order."""
    text = (_HERE / "backtest.toml").read_text(encoding="utf-8")
    changes: list[dict[str, Any]] = tomllib.loads(text)["changes"]
    return changes


def kept() -> dict[str, dict[str, Any]]:
    """The start of a commit's number → what came of it."""
    if not _KEPT.exists():
        return {}
    outcomes: dict[str, dict[str, Any]] = json.loads(_KEPT.read_text(encoding="utf-8"))
    return outcomes


def keep(number: str, outcome: Mapping[str, Any]) -> None:
    """Put what came of a report into the file, in the list's order."""
    outcomes = kept() | {number: dict(outcome)}
    order = [change["commit"][:12] for change in listed()]
    ordered = {number: outcomes[number] for number in order if number in outcomes}
    _KEPT.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def failed(reason: str) -> dict[str, Any]:
    """Of a case that gave no answer."""
    return {"failed": reason}


def reduced(check: Mapping[str, Any], why: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Of all that `check --json` and `explain --json` printed: what the pages and the score need."""
    several = check.get("on_several")
    verdicts = [verdict_of(check), *([verdict_of(several)] if several else [])]
    names = [row["function"] for row in why["functions"] if row["difference"]][:_MOST_FUNCTIONS]
    warnings = [*check["warnings"], *(several["warnings"] if several else [])]
    return {
        "workload": check["rows"][0]["workload"],
        "kernel": check["release"],
        "one": _numbers(check),
        "several": _numbers(several) if several else None,
        "verdict": min(verdicts, key=_WORST_FIRST.index),
        "warned": len(set(verdicts)) > 1 or any(warning["kind"] in _OF_REACH for warning in warnings),
        "warnings": sorted({warning["kind"] for warning in warnings}),
        "functions": names,
        "named": bool(set(names) & set(case["functions"])),
        "reason": check["decision"] if verdict_of(check) == CANNOT_TELL else "",
    }


def _numbers(check: Mapping[str, Any]) -> dict[str, Any]:
    row = check["rows"][0]
    numbers = {name: row[name] for name in ("metric", "ratio", "low", "high", "direction")}
    return numbers | {"verdict": verdict_of(check)}


def verdict_of(check: Mapping[str, Any]) -> str:
    """Of a check on one number of CPUs: better, worse, equivalent, undecided, or that it cannot tell."""
    decisions = {row["decision"] for row in check["rows"]}
    if decisions and decisions <= _NOTHING_RAN:
        return CANNOT_TELL
    if "beyond" in decisions:
        return "worse"
    if "undecided" in decisions or not decisions:
        return "undecided"
    return _WITHIN.get(check["rows"][0]["verdict"], "undecided")


def scored(change: float, verdict: str) -> str:
    """What a verdict is worth beside the report's change of the benchmark's throughput, in per cent."""
    if verdict in {"undecided", CANNOT_TELL}:
        return verdict
    return "right" if verdict == ("better" if change > 0 else "worse") else "wrong"
