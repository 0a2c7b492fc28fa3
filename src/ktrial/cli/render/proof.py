"""Proofs for the terminal and as JSON: what was taken back, what that changed, what remains unexplained."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from rich.console import Console
from rich.text import Text

from ktrial.cli.console import breakable
from ktrial.cli.render.table import rendered
from ktrial.format import number_format
from ktrial.format.sanitize import one_line
from ktrial.model.proof import Candidate, Cost, Proof, Tried
from ktrial.report.tables import proof as tables
from ktrial.report.text.proof import closing, headline


def estimate(cost: Cost, found: Sequence[Candidate]) -> str:
    """`19 things differ that can be taken back: at most 63 trials, about 40 CPU seconds`."""
    if not found:
        return "nothing that may matter here differs and can be taken back: no trial is run for it"
    parts = [f"at most {number_format.counted(cost.trials, 'trial')}"]
    parts += [f"{number_format.counted(cost.boots, 'system')} to boot"] if cost.boots else []
    parts += [f"{number_format.counted(cost.builds, 'kernel')} to build"] if cost.builds else []
    things = number_format.counted(len(found), "thing")
    differs = "differs" if len(found) == 1 else "differ"
    seconds = number_format.duration(max(1.0, cost.seconds))
    text = f"{things} {differs} and can be taken back: {', '.join(parts)}, about {seconds} of CPU time"
    return breakable(text)


def print_proof(proof: Proof, console: Console) -> None:
    """The table, all together, and what was not tried."""
    console.print()
    console.print(Text(headline(proof), style="bold"))
    table = tables.of_proof(proof)
    if table.rows:
        console.print(rendered(table))
    for line in closing(proof):
        console.print(one_line(breakable(line)))


def proof_as_json(proof: Proof) -> dict[str, Any]:
    """What `explain --prove --json` has as `proof`; docs/explain.md names the fields."""
    return {
        "unit": proof.unit,
        "from": list(proof.values_before),
        "to": list(proof.values_after),
        "difference": proof.difference,
        "control": proof.control,
        "causes": [_tested(proof, one) for one in proof.tested],
        "together": None if proof.together is None else _together(proof),
        "unexplained": proof.unexplained,
        "unexplained_share": proof.share(proof.unexplained),
        "left_out": [one.model_dump(mode="json") for one in proof.left_out],
        "estimated": proof.estimated.model_dump(mode="json"),
        "used": proof.used.model_dump(mode="json"),
        "studies": list(proof.studies),
    }


def _tested(proof: Proof, one: Tried) -> dict[str, Any]:
    return {
        **one.candidate.model_dump(mode="json"),
        "side": one.side.value,
        "given": one.candidate.value_on(one.side),
        "status": one.status.value,
        "reason": one.reason,
        **_effects(proof, one.effects),
    }


def _together(proof: Proof) -> dict[str, Any]:
    together = proof.together
    assert together is not None
    return {"names": list(together.names), "reason": together.reason, **_effects(proof, together.effects)}


def _effects(proof: Proof, effects: tuple[float, ...]) -> dict[str, Any]:
    if not effects:
        return {"effect": None, "effects": [], "share": None, "shares": None}
    effect = median(effects)
    return {
        "effect": effect,
        "effects": list(effects),
        "share": proof.share(effect),
        "shares": proof.shares(effects),
    }
