"""A series as JSON; docs/series.md names every field."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ktrial.cli.render.profile_json import explanation_as_json
from ktrial.format import number_format
from ktrial.report.text.series import answer, exercised
from ktrial.series.result import SeriesCell, SeriesResult, Step
from ktrial.series.run import Alone


def as_json(result: SeriesResult, command: str, alone: Sequence[Alone] = ()) -> dict[str, Any]:
    """What `series --json` prints."""
    return {
        "kind": result.series.kind.value,
        "origin": result.series.origin,
        "base": result.series.base,
        "title": result.series.title,
        "version": result.series.version,
        "command": command,
        "decision": result.decision.value,
        "answer": answer(result),
        "exercised": exercised(result),
        "functions": list(result.selection.changed),
        "not_executed": list(result.not_executed),
        "machine": result.how.settings.model_dump(mode="json"),
        "workloads": [use.label for use in result.how.workloads],
        "exact": result.is_exact,
        "patches": [_step(result, one) for one in result.steps[1:]],
        "totals": [_cell(one) for one in result.totals],
        "alone": [
            {
                "number": one.number,
                "why": one.why,
                "cells": [_cell(cell) for cell in one.cells],
                "depends": list(one.depends),
            }
            for one in alone
        ],
        "notes": [*result.series.notes, *result.notes],
    }


def _step(result: SeriesResult, step: Step) -> dict[str, Any]:
    assert step.patch is not None, "only the base has none"
    return {
        "number": step.number,
        "subject": step.patch.subject,
        "name": step.patch.name,
        "message_id": step.patch.message_id,
        "commit": step.patch.commit,
        "state": step.state.value,
        "why": step.why,
        "left_out": step.left_out,
        "mended_by": step.mended_by,
        "kernel": step.kernel.name if step.kernel else None,
        "options": [
            {"option": one.option, "before": one.before, "after": one.after, "new": one.brought}
            for one in step.options
        ],
        "functions": list(step.functions),
        "data": list(step.data),
        "notes": list(step.notes),
        "cells": [_cell(one) for one in result.cells if one.number == step.number],
    }


def _cell(cell: SeriesCell) -> dict[str, Any]:
    return {
        "workload": cell.workload,
        "before": _number(cell.before),
        "after": _number(cell.after),
        "difference": _number(cell.difference),
        "ratio": cell.ratio,
        "inside": cell.is_inside,
        "open": cell.is_open,
        "decision": cell.decision.value,
        "metrics": [
            {**one.comparison.model_dump(mode="json"), "limit": one.limit, "decision": one.decision.value}
            for one in cell.checked
        ],
        "functions": [
            {
                "function": row.name,
                "file": row.file,
                "difference": _number(part),
                "changed": cell.is_changed(row),
            }
            for row, part in cell.functions(20)
        ],
        "explanation": explanation_as_json(cell.explanation) if cell.explanation and cell.is_told else None,
    }


def _number(value: Fraction) -> str:
    """All digits: `1256`, `418.666667`, as a fraction where decimals would not end: exact sums need them."""
    return str(value) if value.denominator != 1 else number_format.exactly(value)
