"""What a study's differences are made of, as JSON."""

from collections.abc import Sequence
from typing import Any

from ktrial.report.json.proof import proof_as_json
from ktrial.report.text.attribution import Part, Why


def whys_as_json(whys: Sequence[Why]) -> list[dict[str, Any]]:
    """What `run`, `compare` and `show` have as `why`; docs/commands.md names the fields."""
    return [
        {
            "workload": why.workload,
            "baseline": why.baseline,
            "treatment": why.treatment,
            "unit": "instructions/operation",
            "from": why.whole.before,
            "to": why.whole.after,
            "difference": why.whole.difference,
            "unexplained": why.unexplained,
            "functions": [_part(part) for part in why.parts],
            "others": _part(why.others),
            "causes": why.causes,
            "proof": proof_as_json(why.proof) if why.proof else None,
            "subsystems": {part.name: part.difference for part in why.subsystems},
        }
        for why in whys
    ]


def _part(part: Part) -> dict[str, Any]:
    return {
        "function": part.name,
        "subsystem": part.subsystem,
        "match": part.match.value,
        "from": part.before,
        "to": part.after,
        "difference": part.difference,
        "share": part.share,
        "string_bytes_difference": part.byte_difference,
    }
