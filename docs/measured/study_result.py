"""What pages have of a study's result, in a file beside this one: to run it again takes an hour and more.

ktrial show STUDY --json > result.json
.venv/bin/python -m docs.measured.study_result schedulers_4_cpus result.json
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_TOLD = ("low", "high", "verdict")
_OF_COMPARISON = ("workload", "metric", "unit", "treatment", "baseline_value", "value", "ratio", *_TOLD)
_OF_INTERACTION = ("workload", "metric", "first_levels", "second_levels", "effect", *_TOLD)


def kept(name: str) -> dict[str, Any]:
    """What is kept of a study."""
    told: dict[str, Any] = json.loads((_HERE / f"{name}.json").read_text(encoding="utf-8"))
    return told


def reduced(result: dict[str, Any]) -> dict[str, Any]:
    """Of everything that a study told, what the pages tell. Trials that failed are counted, too."""
    return {
        "study": result["study"],
        "question": result["question"],
        "baseline": result["comparisons"][0]["baseline"],
        "outcomes": dict(Counter(trial["outcome"] for trial in result["trials"])),
        "trials": dict(Counter(trial["treatment"] for trial in result["trials"])),
        "releases": sorted({trial["provenance"]["kernel_release"] for trial in result["trials"]}),
        "settings": {trial["treatment"]: trial["settings"] for trial in result["trials"]},
        "comparisons": [{name: one[name] for name in _OF_COMPARISON} for one in result["comparisons"]],
        "interactions": [{name: one[name] for name in _OF_INTERACTION} for one in result["interactions"]],
    }


if __name__ == "__main__":
    place = _HERE / f"{sys.argv[1]}.json"
    told = reduced(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    place.write_text(f"{json.dumps(told, indent=1, ensure_ascii=False)}\n", encoding="utf-8")
    print(f"{place}: {place.stat().st_size} bytes")
