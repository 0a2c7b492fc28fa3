"""What a proof says, in sentences for every output."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from ktrial.format import number_format
from ktrial.format.sanitize import shortened
from ktrial.format.table import Cell, Column, Field, Kind, Row, RowKind, Table, name, own, row, table
from ktrial.model.attribution import GroupKind, Proof, ProofSide, Status, Together, Tried
from ktrial.model.comparison import ONE_PERTURBATION

_MOST_STUDIES = 3


def headline(proof: Proof) -> str:
    """What is divided up."""
    total = number_format.signed(proof.difference)
    return f"causes, measured: shares of {total} instructions per operation ({_of_which(proof)})"


def _of_which(proof: Proof) -> str:
    """Which number of several the difference is."""
    count = len(proof.differences)
    return ONE_PERTURBATION if count == 1 else f"the median of {count} perturbations"


def closing(proof: Proof) -> Iterator[str]:
    """All that helped together, what remains, and what it took."""
    if proof.together:
        yield _together(proof, proof.together)
    if against := [cause for cause in proof.tested if _is_against(proof, cause)]:
        yield _against(against, proof)
    elif not proof.together:
        yield "Nothing that was changed back makes a difference here."
    share, left = number_format.share(proof.share(proof.unexplained)), number_format.signed(proof.unexplained)
    yield (
        f"Not explained: {share} % of the difference ({left} instructions per operation) comes from nothing "
        "that was changed back: from code, or what was not tried."
    )
    if proof.control:
        moved = number_format.number(proof.control)
        yield f"For scale: a setting that changes nothing moved the count by at most {moved}."
    yield from _without_part(proof)
    yield _used(proof)


def shares(proof: Proof) -> Iterator[str]:
    """`HRTICK +322.4 (25.8 %)`: what was measured to have a part; then what remains."""
    measured = [cause for cause in proof.tested if cause.status is Status.MEASURED]
    for cause in measured:
        yield _part(proof, cause.candidate.name, cause.effect)
    yield _part(proof, "not explained", proof.unexplained)


def _is_against(proof: Proof, cause: Tried) -> bool:
    return cause.status is Status.MEASURED and cause.effect * proof.difference < 0


def _against(against: Sequence[Tried], proof: Proof) -> str:
    """What has a negative share is no cause of the difference: that a table of causes has it is explained."""
    beginning = "" if proof.together else "Nothing that was changed back makes the difference smaller. "
    return (
        f"{beginning}A negative share works against the difference, which is larger without it: "
        f"{_names(against)}."
    )


def _part(proof: Proof, name: str, effect: float) -> str:
    return f"{name} {number_format.signed(effect)} ({number_format.share(proof.share(effect))} %)"


def proofs_apart(proofs: Iterable[Proof], shown: Container[tuple[str, str, str]]) -> list[Proof]:
    """Those of other differences than the ones that are shown (`Proof.difference_key`)."""
    return [proof for proof in proofs if proof.difference_key not in shown]


def _without_part(proof: Proof) -> Iterator[str]:
    """What was tried and is no cause, what could not be tried, and what was not."""
    moved = [cause for cause in proof.tested if cause.status is Status.UNCERTAIN]
    still = [cause for cause in proof.tested if cause.status is Status.NOTHING]
    if moved:
        yield f"Too little to tell from a setting that changes nothing: {_names(moved)}."
    if still:
        yield f"Not one instruction more or less: {_names(still)}."
    yield from _groups(proof)
    for cause in proof.tested:
        if cause.status in {Status.REFUSED, Status.FAILED}:
            yield f"Not measured: {cause.candidate.name}: {cause.reason}."
    for left in proof.left_out:
        yield f"Not tried: {left.name}: {left.reason}."


def known_so_far(proof: Proof) -> Iterator[str]:
    """What a proof that was interrupted has found."""
    difference = number_format.signed(proof.difference)
    yield f"Known so far of {difference} instructions per operation, {proof.before} → {proof.after}:"
    measured = [cause for cause in proof.tested if cause.status is Status.MEASURED]
    for cause in measured:
        yield f"Measured: {_part(proof, cause.candidate.name, cause.effect)}."
    if not measured:
        yield "Nothing was measured alone yet."
    yield from _without_part(proof)


def _groups(proof: Proof) -> Iterator[str]:
    """What was found of several at once."""
    still = [group for group in proof.groups if group.kind is GroupKind.NOTHING]
    if still:
        most = max((group.effect for group in still), key=abs)
        yield (
            f"Changed back in groups, these move at most {_moved(proof, most)}: "
            f"{'; '.join(', '.join(group.names) for group in still)}."
        )
    for group in proof.groups:
        if group.kind is GroupKind.OPEN:
            yield f"Only measured together, {_moved(proof, group.effect)}: {', '.join(group.names)}."
        if group.kind is GroupKind.ONLY_TOGETHER:
            yield (
                f"Together these move the count by {_moved(proof, group.effect)}, beyond what each does "
                f"alone: {', '.join(group.names)}."
            )


def _moved(proof: Proof, effect: float) -> str:
    """`+2.5 instructions per operation, 0.1 % of the difference`."""
    share = number_format.share(proof.share(effect))
    return f"{number_format.signed(effect)} instructions per operation, {share} % of the difference"


def _names(tested: Iterable[Tried]) -> str:
    return ", ".join(cause.candidate.name for cause in tested)


def _together(proof: Proof, together: Together) -> str:
    names = ", ".join(together.names)
    if together.effect is None:
        return f"Together ({names}): not measured: {together.reason}."
    if len(together.names) == 1:
        return f"One cause was measured: {names}."
    part, share = number_format.signed(together.effect), number_format.share(proof.share(together.effect))
    over = spread(proof, together.effects)
    return (
        f"All causes changed back together ({names}): {part} instructions per operation, "
        f"{share} % of the difference ({over} %); single shares need not add up to it."
    )


def _used(proof: Proof) -> str:
    used = proof.used
    trials = number_format.counted(used.trials, "trial")
    where = _studies_named(proof.studies)
    before = f", {used.stored} more were in the store" if used.stored else ""
    seconds = number_format.duration(max(1.0, used.seconds))
    return f"The proof ran {trials}{before}; it took {seconds} of CPU time. The store has them as {where}."


def _studies_named(studies: Sequence[str]) -> str:
    if len(studies) <= _MOST_STUDIES:
        return ", ".join(studies)
    return f"{len(studies)} studies, from {studies[0]} to {studies[-1]}"


# The table of causes that were taken back one by one: what each has of the difference.

_VALUE_COLUMNS = 24


def causes_table(proof: Proof) -> Table:
    """One row a candidate that was tried and whose count moved; then what remains, and the whole difference.

    `closing` tells of the other candidates.
    """
    shown = [cause for cause in proof.tested if cause.status is Status.MEASURED]
    causes = table(tuple(_fields(proof)), shown, "causes")
    if not shown:
        return causes
    together = proof.together
    several = together is not None and len(together.names) > 1 and together.effect is not None
    rows = [("all together", together.effect or 0.0)] if together and several else []
    rows += [("not explained", proof.unexplained)]
    sums = [_sum(proof, causes.columns, *each) for each in rows]
    whole = _sum(proof, causes.columns, "the difference", proof.difference, RowKind.SUM)
    return replace(causes, rows=(*causes.rows, *sums, whole))


def _sum(
    proof: Proof, columns: Iterable[Column], title: str, effect: float, kind: RowKind = RowKind.PLAIN
) -> Row:
    """What is no single cause: its name, how much it is, and its share of the difference."""
    cells = {
        "cause": own(title),
        "effect": own(number_format.signed(effect)),
        "share": own(number_format.share(proof.share(effect))),
    }
    return row(columns, cells, kind)


def _fields(proof: Proof) -> Sequence[Field[Tried]]:
    return (
        Field(Column("cause", "cause", wraps=True), lambda cause: name(cause.candidate.name)),
        Field(Column("how", "changed back", wraps=True), lambda cause: _change(proof, cause)),
        Field(
            Column("effect", "its part", numeric=True),
            lambda cause: own(number_format.signed(cause.effect)),
        ),
        Field(Column("share", "of the difference", "%", numeric=True), lambda cause: _share(proof, cause)),
        Field(
            Column("spread", "over the perturbations", "%", numeric=True), lambda cause: _spread(proof, cause)
        ),
    )


def _change(proof: Proof, cause: Tried) -> Cell:
    """`HRTICK → NO_HRTICK in debian:6.12`."""
    candidate = cause.candidate
    value = candidate.value_on(cause.side) or number_format.NONE
    has = candidate.after if cause.side is ProofSide.TO else candidate.before
    kernel = proof.after if cause.side is ProofSide.TO else proof.before
    change = f"{_value(has)} → {_value(value)} in {kernel}"
    return Cell(change, change, Kind.NAME)


def _value(text: str) -> str:
    return shortened(text, _VALUE_COLUMNS) or '""'


def _share(proof: Proof, cause: Tried) -> Cell:
    return own(number_format.share(proof.share(cause.effect)))


def _spread(proof: Proof, cause: Tried) -> Cell:
    return own(spread(proof, cause.effects))


def spread(proof: Proof, effects: tuple[float, ...]) -> str:
    """`24.1 to 25.3`: shares in %; one number where there was one perturbation."""
    shares = proof.shares(effects) if effects else None
    if shares is None:
        return number_format.NONE
    low, high = (number_format.share(share) for share in shares)
    return low if low == high else f"{low} to {high}"


# A proof as JSON: what was taken back, what that changed, what remains unexplained.


def proof_as_json(proof: Proof) -> dict[str, Any]:
    """What `explain --prove --json` has as `proof`; docs/explain.md names the fields."""
    return {
        "unit": proof.unit,
        "from": list(proof.values_before),
        "to": list(proof.values_after),
        "difference": proof.difference,
        "of": _of_which(proof),
        "control": proof.control,
        "causes": [_tested(proof, item) for item in proof.tested],
        "groups": [
            item.model_dump(mode="json") | {"share": proof.share(item.effect)} for item in proof.groups
        ],
        "together": None if proof.together is None else _together_as_json(proof),
        "unexplained": proof.unexplained,
        "unexplained_share": proof.share(proof.unexplained),
        "left_out": [item.model_dump(mode="json") for item in proof.left_out],
        "estimated": proof.estimated.model_dump(mode="json"),
        "used": proof.used.model_dump(mode="json"),
        "studies": list(proof.studies),
    }


def _tested(proof: Proof, cause: Tried) -> dict[str, Any]:
    return {
        **cause.candidate.model_dump(mode="json"),
        "side": cause.side.value,
        "given": cause.candidate.value_on(cause.side),
        "status": cause.status.value,
        "reason": cause.reason,
        **_effects(proof, cause.effects),
    }


def _together_as_json(proof: Proof) -> dict[str, Any]:
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
