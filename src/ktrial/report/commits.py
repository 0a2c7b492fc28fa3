"""The commits behind a difference: what they touch, what was measured of them, in sentences and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from ktrial.format import number_format
from ktrial.format.sanitize import beginning
from ktrial.format.table import Cell, Column, Field, Kind, Table, name, own, table
from ktrial.model.commits import (
    CommitList,
    CommitProof,
    MeasuredCommit,
    MeasuredHow,
    RankedCommit,
    Relation,
    Touch,
)

SHOWN = 10
_SUBJECT = 48
_MOST_TOUCHED = 2
_MOST_UNPLACED = 5
_MUCH_LEFT = 0.05


def commits_table(commits: CommitList, most: int = SHOWN) -> Table:
    """The commits that touch most of the difference."""
    return table(tuple(_fields()), commits.ranked[:most], "commits")


def _fields() -> Sequence[Field[RankedCommit]]:
    return (
        Field(Column("commit", "commit"), lambda row: Cell(row.commit, row.short, Kind.CODE)),
        Field(
            Column("share", "touches", "%", numeric=True),
            lambda row: Cell(row.share, number_format.share(row.share)),
        ),
        Field(Column("functions", "of what these do differently", wraps=True), _touched),
        Field(
            Column("subject", "subject", wraps=True),
            lambda row: name(beginning(row.subject, _SUBJECT)),
        ),
    )


def _touched(row: RankedCommit) -> Cell:
    shown = ", ".join(map(_touch, row.touches[:_MOST_TOUCHED]))
    more = len(row.touches) - _MOST_TOUCHED
    text = f"{shown} and {more} more" if more > 0 else shown
    return Cell(text, text, Kind.NAME)


def _touch(touch: Touch) -> str:
    return touch.function if touch.relation is Relation.OWN else f"{touch.function} ({touch.through})"


def summary(commits: CommitList) -> str:
    """`40 commits in v6.1.192..p1: 9 touch what 12 functions do differently`."""
    many = number_format.counted(commits.commits, "commit")
    functions = number_format.counted(commits.functions, "function")
    count = len(commits.ranked)
    verb = "touches" if count == 1 else "touch"
    return f"{many} in {commits.range}: {count or 'none'} {verb} what {functions} do differently"


def commit_notes(commits: CommitList) -> Iterator[str]:
    """What has to be known of the list."""
    yield from commits.notes
    if commits.unplaced:
        shown = ", ".join(commits.unplaced[:_MOST_UNPLACED])
        more = len(commits.unplaced) - _MOST_UNPLACED
        names = f"{shown} and {more} more" if more > 0 else shown
        share = number_format.share(commits.unplaced_share)
        yield f"not found in the source: {names} ({share} % of what functions do differently)"
    only_structures = sum(not row.share for row in commits.ranked)
    if only_structures:
        counted = number_format.counted(only_structures, "commit")
        yield f"{counted} of the list change only structures that these functions name: 0 %"


def commits_answer(commits: CommitList) -> str:
    """The whole list in one sentence."""
    if not commits.functions:
        return f"No function does anything differently: no commit of {commits.range} is looked for."
    if not commits.ranked:
        return (
            f"None of the {commits.commits} commits in {commits.range} touches what functions do "
            "differently: the configuration, the compiler or data may be the cause."
        )
    first = commits.ranked[0]
    share = number_format.share(first.share)
    alike = sum(round(row.share, 3) == round(first.share, 3) for row in commits.ranked) - 1
    others = f", and {number_format.counted(alike, 'other')} as much" if alike else ""
    return (
        f"{summary(commits)}. Most, {share} %: {first.short} {beginning(first.subject, _SUBJECT)}{others}. "
        "What they touch is not yet what they cost."
    )


# What was measured.


def proof_table(proof: CommitProof) -> Table:
    """A row a commit that was measured; the largest part first."""
    return table(tuple(_proof_fields(proof)), proof.measured, "measured commits")


def _proof_fields(proof: CommitProof) -> Sequence[Field[MeasuredCommit]]:
    return (
        Field(Column("commit", "commit"), lambda row: Cell(row.commit, row.short, Kind.CODE)),
        Field(Column("part", "its part", numeric=True), _part),
        Field(Column("share", "of the difference", "%", numeric=True), lambda row: _share(proof, row)),
        Field(Column("how", "measured", wraps=True), _how),
        Field(
            Column("subject", "subject", wraps=True),
            lambda row: name(beginning(row.subject, _SUBJECT)),
        ),
    )


def _part(row: MeasuredCommit) -> Cell:
    return own(number_format.NONE if row.effect is None else number_format.signed(row.effect))


def _share(proof: CommitProof, row: MeasuredCommit) -> Cell:
    share = None if row.effect is None else proof.share(row.effect)
    return Cell(share, number_format.share(share))


def _how(row: MeasuredCommit) -> Cell:
    if row.problem:
        return Cell(row.problem, row.problem, Kind.PROSE)
    if row.how is MeasuredHow.TAKEN_BACK:
        return own("taken back on the newer side")
    more = f", with {number_format.counted(row.also, 'step')} before it" if row.also else ""
    return own(f"{'a merge' if row.merge else 'a step'} of the range{more}")


def proof_notes(proof: CommitProof) -> Iterator[str]:
    """What it took, and what has to be known of it."""
    yield from proof.notes
    kernels = number_format.counted(proof.kernels, "kernel")
    seconds = number_format.duration(max(1.0, proof.seconds))
    yield f"measured: {kernels}, {proof.builds} of them compiled for this; {seconds} of CPU time beside that"
    if proof.stopped:
        yield f"stopped: {proof.stopped}"


def proof_answer(proof: CommitProof) -> str:
    """`4ef671a8bdc4 pipe: keep … makes +212 of +213 instructions per operation (99.6 %); not explained …`."""
    whole = number_format.signed(proof.difference)
    left = f"{number_format.signed(proof.unexplained)} ({_percent(proof, proof.unexplained)})"
    if not proof.causes:
        why = f": {proof.stopped}" if proof.stopped else ""
        return f"No commit was found that makes the difference of {whole} instructions per operation{why}."
    named = [
        f"{row.short} {beginning(row.subject, _SUBJECT)} {number_format.signed(row.effect or 0.0)} "
        f"({_percent(proof, row.effect or 0.0)})"
        for row in proof.causes
    ]
    together = (
        f"; together {number_format.signed(proof.together)} ({_percent(proof, proof.together)})"
        if proof.together is not None
        else ""
    )
    verb = "makes" if len(named) == 1 else "make"
    return (
        f"Of {whole} instructions per operation {verb}: {', '.join(named)}{together}. Not explained: {left}."
    )


def _percent(proof: CommitProof, part: float) -> str:
    return number_format.share_of(proof.share(part)).replace(number_format.SPACE, " ")


def commits_as_json(commits: CommitList, proof: CommitProof | None) -> dict[str, Any]:
    """What `explain --commits --json` has as `commits`; docs/explain.md names the fields."""
    return {
        **commits.model_dump(mode="json"),
        "proof": None if proof is None else commit_proof_as_json(proof),
        "answer": proof_answer(proof) if proof else commits_answer(commits),
    }


def commit_proof_as_json(proof: CommitProof) -> dict[str, Any]:
    """What was measured."""
    return {
        **proof.model_dump(mode="json", exclude={"measured"}),
        "measured": [
            {
                **row.model_dump(mode="json"),
                "effect": row.effect,
                "share": None if row.effect is None else proof.share(row.effect),
            }
            for row in proof.measured
        ],
        "difference": proof.difference,
        "unexplained": proof.unexplained,
        "unexplained_share": proof.share(proof.unexplained),
    }
