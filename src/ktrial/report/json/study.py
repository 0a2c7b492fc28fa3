"""The whole result of a study as JSON, for other programs; and what its differences are made of."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ktrial.analysis.scaling import curves, waits
from ktrial.model.study import StudyRecord
from ktrial.model.trial import Trial
from ktrial.report.json.proof import proof_as_json
from ktrial.report.tables import comparisons as comparison_table
from ktrial.report.text import provenance, study_summary
from ktrial.report.text.attribution import DifferencePart, Why


def as_json(
    record: StudyRecord, store: str, report: Path | None = None, whys: Sequence[Why] = ()
) -> dict[str, Any]:
    """What `run`, `compare` and `show` print with --json; docs/commands.md names every field."""
    return {
        "study": record.study.name,
        "question": record.study.question,
        "answer": record.result.answer,
        "comparisons": comparison_table.of_all(record).data(),
        "interactions": [one.model_dump(mode="json") for one in record.result.interactions],
        "scaling": [one.model_dump(mode="json") for one in curves(record)],
        "waits": [one.model_dump(mode="json") for one in waits(record)],
        "variability": [one.model_dump(mode="json") for one in record.result.variability],
        "builds": provenance.builds_as_json(record),
        "why": whys_as_json(whys),
        "warnings": [warning.model_dump(mode="json") for warning in study_summary.warnings(record)],
        "kernels": [one.model_dump(mode="json") for one in record.kernels],
        "series": [one.model_dump(mode="json") for one in record.sampled],
        "trials": [_trial(trial) for trial in record.trials],
        "planned": record.planned,
        "settings": record.study.model_dump(mode="json", by_alias=True),
        "created": record.created.isoformat(),
        "store": store,
        "report": str(report) if report else None,
        "id": record.id,
    }


def _trial(trial: Trial) -> dict[str, Any]:
    data = trial.model_dump(mode="json", exclude={"planned", "console", "warnings", "sampled"})
    planned = trial.planned
    return {
        "treatment": planned.treatment.label,
        "levels": planned.treatment.levels,
        "perturbation": planned.perturbation.number,
        "block": planned.block,
        **data,
    }


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


def _part(part: DifferencePart) -> dict[str, Any]:
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
