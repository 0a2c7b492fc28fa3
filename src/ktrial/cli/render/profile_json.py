"""Profiles and explanations as JSON, for other programs; docs/explain.md names the fields."""

from fractions import Fraction
from typing import Any

from ktrial.analysis.attribution.kernel_entry_points import kernel_entries
from ktrial.analysis.attribution.subsystems import subsystem
from ktrial.cli.render.guest_time import guest_time_as_json, guest_time_difference_as_json
from ktrial.model.attribution import Count, Explanation, FunctionDifference, ProfileSide
from ktrial.model.conditions_diff import Attribution
from ktrial.model.profile import CycleModel, FunctionCount, Profile
from ktrial.model.workload import Mode
from ktrial.report.text.call_tree import call_tree

_UNIT = "instructions/operation"


def profile_as_json(profile: Profile) -> dict[str, Any]:
    """What `profile --json` prints."""
    region = profile.region
    ranked = sorted(region.functions, key=lambda each: (-each.instructions, each.symbol, each.module))
    return {
        **profile.model_dump(mode="json", exclude={"region", "programs"}),
        "mode": (Mode.EXACT_PARALLEL if region.cpus else Mode.EXACT_PLUGIN).value,
        "unit": _UNIT,
        "instructions": region.instructions,
        "per_operation": profile.per_operation(region.instructions),
        "median_per_operation": profile.median if region.operations.count else None,
        "string_bytes": region.strings.bytes,
        "functions": [_function(profile, each) for each in ranked if each.instructions],
        "programs": [
            {
                "program": each.program,
                "instructions": each.instructions,
                "per_operation": profile.per_operation(each.instructions),
            }
            for each in profile.programs
        ],
        "cpu_modes": {"kernel": region.kernel, "user": region.program},
        "entries": [each.model_dump(mode="json") for each in kernel_entries(region)],
        "tasks": [each.model_dump(mode="json") for each in region.tasks],
        **guest_time_as_json(profile),
    }


def _function(profile: Profile, each: FunctionCount) -> dict[str, Any]:
    return {
        **_caches(each),
        "function": each.symbol,
        "module": each.module,
        "subsystem": subsystem(each.symbol, each.module),
        "instructions": each.instructions,
        "inclusive": each.inclusive,
        "entered": each.entered,
        "string_bytes": each.strings.bytes,
        "per_operation": profile.per_operation(each.instructions),
    }


def _caches(each: FunctionCount) -> dict[str, Any]:
    """Only where caches were modelled."""
    if each.caches is None:
        return {}
    cycles = CycleModel().cycles(each.instructions, each.strings, each.caches)
    return {"caches": each.caches.model_dump(mode="json"), "modelled_cycles": cycles}


def explanation_as_json(explanation: Explanation) -> dict[str, Any]:
    """An explanation, without what differs around it."""
    return {
        "workload": explanation.workload,
        "mode": Mode.EXACT_PLUGIN.value,
        "unit": _UNIT,
        "from": _side(explanation.before),
        "to": _side(explanation.after),
        "difference": float(explanation.total),
        "unexplained": float(explanation.unexplained),
        "string_bytes_difference": float(explanation.byte_total),
        "functions": [_row(explanation, row) for row in explanation.rows],
        "subsystems": [
            {"subsystem": name, **_part(explanation, part)} for name, part in explanation.subsystems.items()
        ],
    }


def why_as_json(why: Attribution) -> dict[str, Any]:
    """What `explain --json` prints: the explanation, and what differs around it."""
    differences = why.differences.model_dump(mode="json")
    tree = call_tree(why.before, why.after, why.explanation)
    return {
        **explanation_as_json(why.explanation),
        "tree": [one._asdict() for one in tree.rows] if tree else None,
        **({"mode": Mode.EXACT_PARALLEL.value} if why.before.region.cpus else {}),
        "counted_anew": list(why.counted_anew),
        "differences": differences,
        **guest_time_difference_as_json(why.before, why.after),
    }


def _side(side: ProfileSide) -> dict[str, Any]:
    return {**side.model_dump(mode="json"), "mean": side.mean}


def _row(explanation: Explanation, row: FunctionDifference) -> dict[str, Any]:
    return {
        "function": row.function,
        "module": row.module,
        "subsystem": row.subsystem,
        "file": row.file,
        "match": row.match.value,
        "evidence": row.evidence,
        "from": _count(row.before, explanation.before),
        "to": _count(row.after, explanation.after),
        "string_bytes_difference": float(explanation.byte_difference(row)),
        "weight": float(explanation.weight(row)),
        **_part(explanation, explanation.difference(row)),
    }


def _count(count: Count, side: ProfileSide) -> dict[str, Any]:
    return {**count.model_dump(mode="json"), "per_operation": count.instructions / side.operations}


def _part(explanation: Explanation, part: Fraction) -> dict[str, Any]:
    return {"difference": float(part), "share": explanation.share(part)}
