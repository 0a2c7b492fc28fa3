"""The table of causes that were taken back one by one: what each has of the difference."""

from collections.abc import Sequence

from ktrial.format import number_format
from ktrial.format.sanitize import shortened
from ktrial.format.table import Cell, Column, Field, Kind, Table, name, own, table
from ktrial.model.attribution import Proof, ProofSide, Status, Tried

_VALUE_COLUMNS = 24


def of_proof(proof: Proof) -> Table:
    """One row a candidate that was tried and whose count moved: `report.text.proof` tells of the others."""
    shown = [one for one in proof.tested if one.status is Status.MEASURED]
    return table(tuple(_fields(proof)), shown, "causes")


def _fields(proof: Proof) -> Sequence[Field[Tried]]:
    return (
        Field(Column("cause", "measured", wraps=True), lambda one: name(one.candidate.name)),
        Field(Column("how", "as on the other side", wraps=True), _how),
        Field(
            Column("effect", "its part", numeric=True),
            lambda one: own(number_format.signed(one.effect)),
        ),
        Field(Column("share", "share", "%", numeric=True), lambda one: _share(proof, one)),
        Field(Column("spread", "over the perturbations", "%", numeric=True), lambda one: _spread(proof, one)),
    )


def _how(one: Tried) -> Cell:
    """`HRTICK → NO_HRTICK in the second`."""
    candidate = one.candidate
    given = candidate.value_on(one.side) or number_format.NONE
    has = candidate.after if one.side is ProofSide.TO else candidate.before
    where = "second" if one.side is ProofSide.TO else "first"
    change = f"{_value(has)} → {_value(given)}, in the {where}"
    return Cell(change, change, Kind.NAME)


def _value(text: str) -> str:
    return shortened(text, _VALUE_COLUMNS) or '""'


def _share(proof: Proof, one: Tried) -> Cell:
    return own(number_format.share(proof.share(one.effect)))


def _spread(proof: Proof, one: Tried) -> Cell:
    return own(spread(proof, one.effects))


def spread(proof: Proof, effects: tuple[float, ...]) -> str:
    """`24.1 to 25.3`: shares in %; one number where there was one perturbation."""
    shares = proof.shares(effects) if effects else None
    if shares is None:
        return number_format.NONE
    low, high = (number_format.share(one) for one in shares)
    return low if low == high else f"{low} to {high}"
