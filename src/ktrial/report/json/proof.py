"""A proof as JSON: what was taken back, what that changed, what remains unexplained."""

from statistics import median
from typing import Any

from ktrial.model.attribution import Proof, Tried


def proof_as_json(proof: Proof) -> dict[str, Any]:
    """What `explain --prove --json` has as `proof`; docs/explain.md names the fields."""
    return {
        "unit": proof.unit,
        "from": list(proof.values_before),
        "to": list(proof.values_after),
        "difference": proof.difference,
        "control": proof.control,
        "causes": [_tested(proof, one) for one in proof.tested],
        "groups": [one.model_dump(mode="json") | {"share": proof.share(one.effect)} for one in proof.groups],
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
