"""Studies of any size with the trials that they might have had: numbers from their own seeds, no guest.

The same numbers each time, so that a result may be compared with one that was recorded.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from ktrial.model.base import digest
from ktrial.model.design import Factor, FactorKind, PlannedTrial
from ktrial.model.study import Study, Timing, plan
from ktrial.model.trial import CounterDelta, Environment, Outcome, Provenance, Reading, ReadingKind, Trial
from ktrial.model.workload import Direction, Mode, Sample, WorkloadUse

START = datetime(2026, 11, 21, 9, 0, 0, 0, UTC)
BLOCKS = 20
SETTING = "kernel.sched_rt_runtime_us"
SPREAD = 0.004
"""Standard deviation of a value's logarithm."""
COUNTERS = ("vmstat.pgfault", "stat.ctxt")


def a_factor(levels: int, name: str = SETTING) -> Factor:
    """A setting at so many levels; the first is the baseline."""
    return Factor(
        name=name, kind=FactorKind.SETTING, levels=tuple(range(1, levels + 1)), baseline=1, target=name
    )


def growing_study(
    treatments: int, *, workloads: int = 1, timed: bool = True, blocks: int = BLOCKS, **settings: object
) -> Study:
    """One factor with so many levels, so many workloads; in real time unless it is told otherwise."""
    plain = {
        "name": f"growing-{treatments}-{workloads}",
        "factors": (a_factor(treatments),),
        "workloads": tuple(WorkloadUse(name=f"load-{number:04}") for number in range(workloads)),
        "machine": {"kind": "host" if timed else "exact", "kernel": "" if timed else "debian:6.1"},
        "timing": Timing(blocks=blocks) if timed else None,
    }
    return Study.model_validate(plain | settings)


def trials_of(study: Study, *, metrics: int = 1, environments: bool = False) -> Iterator[Trial]:
    """Every planned trial, as it might have ended: each fifth treatment is a percent slower."""
    effects = {one.key: 0.01 * (place % 5 == 4) for place, one in enumerate(plan(study).treatments)}
    for planned in plan(study).trials:
        yield _trial(study, planned, effects[planned.treatment.key], metrics, environments)


def _trial(study: Study, planned: PlannedTrial, effect: float, metrics: int, environments: bool) -> Trial:
    drawn = random.Random(digest([study.seed, planned.key]))
    taken = START + timedelta(seconds=planned.order)
    return Trial(
        planned=planned,
        outcome=Outcome.COMPLETED,
        samples=tuple(
            _sample(study, use.label, number, 1000 * (1 + effect) * (1 + drawn.gauss(0, SPREAD)))
            for use in study.workloads
            for number in range(metrics)
        ),
        counters=tuple(
            CounterDelta(workload=use.label, name=name, delta=float(drawn.randrange(1000)))
            for use in study.workloads
            for name in COUNTERS
        ),
        provenance=Provenance(
            kernel="debian:6.1",
            kernel_digest="digest of debian:6.1",
            machine=study.machine.kind,
            environment=_environment(taken, drawn) if environments else None,
        ),
        started=taken,
        seconds=0.25,
    )


def _sample(study: Study, workload: str, number: int, value: float) -> Sample:
    return Sample(
        workload=workload,
        metric=f"time {number}" if study.timing else "instructions",
        unit="ns",
        direction=Direction.LOWER,
        mode=Mode.TIMED if study.timing else Mode.EXACT_PLUGIN,
        value=value,
    )


def _environment(taken: datetime, drawn: random.Random) -> Environment:
    load = drawn.random() / 10
    return Environment(
        taken=taken,
        readings=(
            Reading(name="governor", kind=ReadingKind.SETTING, value="performance"),
            Reading(name="turbo", kind=ReadingKind.SETTING, value="on" if drawn.random() < 0.05 else "off"),
            Reading(name="load", kind=ReadingKind.LEVEL, value=f"{load:.2f}", number=load),
        ),
    )
