"""docs/six-years.md: how much of two steps is gone when what differs is taken back, one thing at a time."""

from collections.abc import Iterator

from docs.measured.declaration import Block
from docs.measured.measuring import Measuring
from docs.measured.six_years import PAGE, SixYears
from docs.measured.wording import decimal, prose, signed, table

from ktrial.analysis.attribution.question import question
from ktrial.model.attribution import Proof, Status, Tried

_STEPS = (("5.10", "6.12"), ("6.12", "7.2"))
_WORKLOADS = ("fork", "mmap", "futex", "seq-read")
_LEAST_SHARE = 0.005
_TEXT = """
Every setting, boot parameter, scheduler feature and module that differs between the two kernels and may
matter was taken back by itself (`ktrial explain --prove`), and the workload counted again. A share is
what is gone then, of the whole difference; a share with a minus is of something that works against it.
Shares below 0.5 % are left out. What no setting explains is the code, or an option that only a build can
take back.
"""


def _proofs(measuring: Measuring) -> str:
    six = SixYears(measuring)
    study = six.numbers.record.study
    rows: list[tuple[str, ...]] = []
    for before, after in _STEPS:
        for workload in _WORKLOADS:
            asked = question(study, workload, f"debian:{before}", f"debian:{after}")
            rows += _rows(f"`{workload}`, {before} → {after}", measuring.proof(asked))
    heads = ("step", "instructions", "taken back", "share", "no setting explains")
    return "\n".join((prose(_TEXT), table(heads, rows)))


def _rows(step: str, proof: Proof) -> Iterator[tuple[str, ...]]:
    """One row for each thing with a share of its own; one with none where there is no such thing."""
    own = [one for one in proof.tested if one.status is Status.MEASURED and _counts(proof, one)]
    own.sort(key=lambda one: -abs(one.effect))
    rest = _percent(proof.share(proof.unexplained))
    first = (step, signed(proof.difference, ","))
    if not own:
        yield (*first, "–", "–", rest)
    for place, one in enumerate(own):
        share = _percent(proof.share(one.effect))
        name = f"`{one.candidate.name}`"
        yield (*first, name, share, rest) if not place else ("", "", name, share, "")


def _counts(proof: Proof, one: Tried) -> bool:
    share = proof.share(one.effect)
    return share is not None and abs(share) >= _LEAST_SHARE


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{decimal(100 * share, 1)} %"


BLOCKS = (Block("six-years-proofs", PAGE, _proofs),)
