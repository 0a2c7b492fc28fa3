"""Why workloads have changed: the functions that a study's differences are made of."""

from collections.abc import Container, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from ktrial.analysis.errors import ExplanationError
from ktrial.experiment.explain import FunctionMaps, Guests, explain_record
from ktrial.format import number_format
from ktrial.kernels.errors import KernelError
from ktrial.model.attribution import (
    Attribution,
    Count,
    Explanation,
    FunctionDifference,
    Match,
    ProfileSide,
    Proof,
)
from ktrial.model.comparison import Comparison, Verdict
from ktrial.model.study import StudyRecord
from ktrial.model.workload import Mode
from ktrial.report.charts.flame_frames import Frames, frames
from ktrial.report.text import study_summary as summary
from ktrial.report.text.call_tree import CallTree, laid_stacks, tree_of_stacks
from ktrial.report.text.conditions_diff import Section, causes, sections
from ktrial.store.store import Store

TOP = 15
"""Functions that are shown by name."""
_MOST_SUBSYSTEMS = 8
_SMALLEST = 0.5
"""Instructions an operation: subsystems below are left out."""
_FRAMES_OF_A_PAGE = 8000
_FRAMES = (60, 400)
"""At least and at most so many frames in one flame graph of a page: some 300 bytes each."""
_CHANGED = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.INCONCLUSIVE})


class DifferencePart(NamedTuple):
    """A function's part in a difference, or that of several. Numbers are instructions an operation."""

    name: str
    before: float | None
    """None where it did not run."""
    after: float | None
    difference: float
    share: float | None
    """Of the whole difference; None where there is none."""
    byte_difference: float = 0.0
    """By how much the bytes grew, an operation, that its string instructions worked on."""
    subsystem: str = ""
    match: Match = Match.SAME


class Why(NamedTuple):
    """What one workload's difference between two treatments is made of."""

    workload: str
    baseline: str
    treatment: str
    comparisons: tuple[Comparison, ...]
    """Those that it explains: of instructions, of string bytes."""
    parts: tuple[DifferencePart, ...]
    """The heaviest, at most TOP."""
    others: DifferencePart
    whole: DifferencePart
    subsystems: tuple[DifferencePart, ...]
    unexplained: float
    frames: Frames | None
    """The differential flame graph's; None where calls were not followed."""
    around: tuple[Section, ...] = ()
    """What else differs, and may be the cause."""
    causes: tuple[str, ...] = ()
    """Settings that differ, each with the metrics that it governs and that moved as it says; none that was
    measured."""
    tree: CallTree | None = None
    """The net differences along the tree of calls; None where calls were not followed."""
    proof: Proof | None = None
    """What of the difference was measured, by taking causes back."""

    @property
    def rows(self) -> tuple[DifferencePart, ...]:
        """All that is shown: it ends with the sum, which the rows above it add up to."""
        return (*self.parts, self.others, self.whole)

    @property
    def bytes(self) -> bool:
        """Whether string instructions worked on more or fewer bytes."""
        return any(part.byte_difference for part in (*self.parts, self.others))


def whys(
    store: Store, record: StudyRecord, most: int | None = None, *, graphs: bool = True
) -> tuple[Why, ...]:
    """One for each comparison's workload that has changed, or may have, and of which the store has profiles.

    In the order of the report; `most`: only so many; `graphs=False`: without frames of flame graphs. Nothing
    is booted or fetched: of a kernel that is not in the cache, and of settings that were never read, less is
    said. Raises StoreError.
    """
    wanted = list(_wanted(record, store.profiled(record.id)))
    fewest, enough = _FRAMES
    room = max(fewest, min(enough, _FRAMES_OF_A_PAGE // max(1, len(wanted)))) if graphs else 0
    maps = FunctionMaps(store, record)
    every = (_why(store, record, comparisons, room, maps) for comparisons in wanted)
    return tuple(islice((why for why in every if why), most))


def explained(
    comparisons: Sequence[Comparison],
    attribution: Attribution,
    most_frames: int = _FRAMES[1],
    proofs: Sequence[Proof] = (),
) -> Why:
    """What the comparisons of one workload are made of. `proofs`: those that the study has."""
    explanation = attribution.explanation
    shown = [row for row in explanation.rows if explanation.weight(row)][:TOP]
    names = {(row.function, row.module, row.match) for row in shown}
    rest = [row for row in explanation.rows if (row.function, row.module, row.match) not in names]
    first = comparisons[0]
    key = (first.workload, first.baseline, first.treatment)
    proof = next((one for one in proofs if one.difference_key == key), None)
    profiles = (attribution.before, attribution.after)
    followed = all(one.region.nodes is not None for one in profiles)
    laid = laid_stacks(*profiles, explanation) if followed else None
    taken_back = {one.candidate.target for one in proof.tested} if proof else set()
    return Why(
        workload=first.workload,
        baseline=first.baseline,
        treatment=first.treatment,
        comparisons=tuple(comparisons),
        parts=tuple(part_of(explanation, row) for row in shown),
        others=sum_of(explanation, rest, number_format.counted(len(rest), "other row")),
        whole=sum_of(explanation, explanation.rows, "the sum"),
        subsystems=tuple(_subsystems(explanation)),
        unexplained=float(explanation.unexplained),
        frames=frames(laid.old, laid.new, most=most_frames) if laid and most_frames else None,
        around=sections(attribution.differences, taken_back),
        causes=tuple(causes(attribution.differences, taken_back)),
        tree=tree_of_stacks(laid, explanation) if laid else None,
        proof=proof,
    )


def _wanted(record: StudyRecord, profiled: Container[str]) -> Iterator[tuple[Comparison, ...]]:
    """Comparisons by workload, of each pair of treatments: of workloads that have profiles."""
    for group in summary.groups(record):
        counted = [one for one in group.comparisons if one.mode is Mode.EXACT_PLUGIN]
        for workload in dict.fromkeys(one.workload for one in counted):
            its = tuple(one for one in counted if one.workload == workload)
            if workload in profiled and any(one.verdict in _CHANGED for one in its):
                yield its


def _why(
    store: Store,
    record: StudyRecord,
    comparisons: tuple[Comparison, ...],
    most_frames: int,
    maps: FunctionMaps,
) -> Why | None:
    one = comparisons[0]
    try:
        attribution = explain_record(
            store, record, one.workload, one.baseline, one.treatment, Guests(run=False), maps
        )
    except (ExplanationError, KernelError):
        # A report is about its verdicts, and never refused for a reason that cannot be told (a kernel in the
        # cache that is damaged by now): `ktrial explain` says what is missing.
        return None
    return explained(comparisons, attribution, most_frames, record.proofs)


def part_of(explanation: Explanation, row: FunctionDifference) -> DifferencePart:
    """One function's part."""
    difference = explanation.difference(row)
    return DifferencePart(
        name=row.name,
        before=_value(row.before, explanation.before),
        after=_value(row.after, explanation.after),
        difference=float(difference),
        share=explanation.share(difference),
        byte_difference=float(explanation.byte_difference(row)),
        subsystem=row.subsystem,
        match=row.match,
    )


def _value(count: Count, side: ProfileSide) -> float | None:
    return count.instructions / side.operations if count.names else None


def sum_of(explanation: Explanation, rows: Iterable[FunctionDifference], name: str) -> DifferencePart:
    """The part of several functions together."""
    summed = list(rows)
    difference = sum(map(explanation.difference, summed), Fraction(0))
    return DifferencePart(
        name=name,
        before=sum(row.before.instructions for row in summed) / explanation.before.operations,
        after=sum(row.after.instructions for row in summed) / explanation.after.operations,
        difference=float(difference),
        share=explanation.share(difference),
        byte_difference=float(sum(map(explanation.byte_difference, summed), Fraction(0))),
    )


def _subsystems(explanation: Explanation) -> Iterator[DifferencePart]:
    for name, part in list(explanation.subsystems.items())[:_MOST_SUBSYSTEMS]:
        if abs(part) >= _SMALLEST:
            yield DifferencePart(name, None, None, float(part), explanation.share(part))
