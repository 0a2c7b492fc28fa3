"""From a study to its trials: treatments, perturbations, and the order in which they run.

Everything here follows from the study alone, through SHA-256: the same on every host and every Python.
"""

from ktrial.model.base import digest
from ktrial.model.design import Perturbation, Plan, PlannedTrial, Treatment
from ktrial.model.levels import FactorLevels, combinations, count
from ktrial.model.study import Stopping, Study

_LONGEST_ENVIRONMENT = 4096
"""One page: moves the stack's start through every alignment that matters (Mytkowicz et al., ASPLOS 2009)."""
_LONGEST_OFFSET_NS = 10_000_000
"""More than two timer ticks at 250 Hz: every phase between the tick and the workload."""
_LARGEST_SEED = 2**31 - 1


def plan(study: Study) -> Plan:
    """All trials of the study, in run order: one block a perturbation, each treatment once in a block.

    The order inside a block is random, drawn from the study's seed.
    """
    chosen = treatments(study)
    in_order = [
        (block, treatment)
        for block in range(study.blocks)
        for treatment in _shuffled(chosen, study.seed, block)
    ]
    return Plan(
        may_end_early=bool(study.timing and study.timing.stopping is not Stopping.FIXED),
        treatments=chosen,
        baseline=chosen[0],
        trials=tuple(
            PlannedTrial(
                order=order,
                block=block,
                treatment=treatment,
                perturbation=perturbation(study.seed, block),
            )
            for order, (block, treatment) in enumerate(in_order)
        ),
    )


def treatments(study: Study) -> tuple[Treatment, ...]:
    """The study's treatments, the baseline first, the others in the order of factors and levels."""
    every = combinations(_factor_levels(study), study.design.value, study.listed)
    return tuple(Treatment(levels=levels) for levels in every)


def treatment_count(study: Study) -> int:
    """How many treatments the study has: without making them, where that can be told."""
    return count(_factor_levels(study), study.design.value, study.listed)


def baseline(study: Study) -> Treatment:
    """The first of the study's treatments, without making the others."""
    return Treatment(levels={factor.name: factor.baseline for factor in study.factors})


def _factor_levels(study: Study) -> list[FactorLevels]:
    return [FactorLevels(factor.name, factor.levels, factor.baseline) for factor in study.factors]


def _shuffled(chosen: tuple[Treatment, ...], seed: int, block: int) -> list[Treatment]:
    return sorted(chosen, key=lambda treatment: digest(["order", seed, block, treatment.key]))


def perturbation(seed: int, number: int) -> Perturbation:
    """Perturbation `number` of a study with this seed; the same for every treatment. 0 changes nothing."""
    if number == 0:
        return Perturbation(number=0)
    return Perturbation(
        number=number,
        environment_bytes=_drawn("environment", seed, number, _LONGEST_ENVIRONMENT),
        start_offset=_drawn("offset", seed, number, _LONGEST_OFFSET_NS),
        layout_seed=_drawn("layout", seed, number, _LARGEST_SEED),
    )


def _drawn(what: str, seed: int, number: int, largest: int) -> int:
    """A whole number from 1 to `largest`, drawn from the seed."""
    return 1 + int(digest([what, seed, number])[:16], 16) % largest
