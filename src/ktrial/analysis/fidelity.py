"""The same treatments and workloads counted and timed: do the changes agree?"""

import random
from collections.abc import Sequence

from ktrial.analysis.errors import NotTheSameTreatments, WrongMachineForFidelity
from ktrial.analysis.fidelity_figures import figures
from ktrial.analysis.fidelity_pairs import CostsOf, no_costs, pairs_of
from ktrial.model.fidelity import FidelityPair, FidelityResult
from ktrial.model.study import EXACT_MACHINES
from ktrial.model.study_record import StudyRecord

SEED = 1
Both = tuple[StudyRecord, StudyRecord]
"""One study that counts, one in real time."""


def fidelity(studies: Sequence[Both], seed: int = SEED, costs: CostsOf = no_costs) -> FidelityResult:
    """Compare the studies' changes. Raises WrongMachineForFidelity and NotTheSameTreatments.

    A treatment's own pair is left out where it changes a parameter of another workload: nothing can differ.
    `costs`: what modelled cycles are made of.
    """
    pairs: list[FidelityPair] = []
    left_out: list[str] = []
    for exact, timed in studies:
        _check(exact, timed)
        found, without = pairs_of(exact, timed, costs)
        if not found:
            raise NotTheSameTreatments(exact=exact.id, timed=timed.id)
        pairs += found
        left_out += without
    counts = list(dict.fromkeys(count for pair in pairs for count in pair.exact))
    outside = held_out(pairs, seed)
    half = [pair for pair in pairs if group(pair) in outside]
    return FidelityResult(
        studies=tuple((exact.id, timed.id) for exact, timed in studies),
        timed_machine=", ".join(dict.fromkeys(timed.study.machine.kind for _, timed in studies)),
        all=tuple(figures(count, pairs, group, seed) for count in counts),
        held_out=tuple(figures(count, half, group, seed) for count in counts),
        seed=seed,
        pairs=tuple(pairs),
        left_out=tuple(left_out),
    )


def group(pair: FidelityPair) -> str:
    """Pairs of one treatment are not independent of each other."""
    return pair.treatment


def held_out(pairs: Sequence[FidelityPair], seed: int) -> frozenset[str]:
    """The half of the treatments that nothing is fitted to."""
    names = sorted({group(pair) for pair in pairs})
    return frozenset(random.Random(seed).sample(names, len(names) // 2))


def _check(exact: StudyRecord, timed: StudyRecord) -> None:
    for record, counts in ((exact, True), (timed, False)):
        kind = record.study.machine.kind
        if (kind in EXACT_MACHINES) is not counts:
            raise WrongMachineForFidelity(
                study=record.id, machine=kind, wanted="that counts" if counts else "in real time"
            )
