"""Studies and trials for unit tests, made with as few words as a test needs."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ktrial.analysis.fidelity_citation import keep
from ktrial.model.design import Factor, FactorKind, PlannedTrial, Treatment
from ktrial.model.fidelity import CountBands, FidelityTable, SizeBand
from ktrial.model.study import Study, perturbation
from ktrial.model.trial import CounterDelta, Outcome, Provenance, Trial
from ktrial.model.workload import Direction, Metric, Mode, Sample, WorkloadUse
from ktrial.stats.sequential.design import BlockedMetric, SequentialDesign
from ktrial.store.store import open_store

KERNELS = ("debian:6.1", "debian:6.12")


def a_study(
    name: str = "quick",
    kernels: tuple[str, ...] = KERNELS,
    workloads: tuple[str, ...] = ("fork", "pipe"),
    perturbations: int = 3,
    factors: tuple[Factor, ...] = (),
    **settings: object,
) -> Study:
    kernel = Factor(name="kernel", kind=FactorKind.KERNEL, levels=kernels, baseline=kernels[0])
    plain = {
        "name": name,
        "factors": (kernel, *factors),
        "workloads": tuple(WorkloadUse(name=workload) for workload in workloads),
        "perturbations": perturbations,
    }
    return Study.model_validate(plain | settings)


def planned(kernel: str = "debian:6.1", number: int = 0, order: int = 0, seed: int = 1) -> PlannedTrial:
    treatment = Treatment(levels={"kernel": kernel})
    return PlannedTrial(
        order=order, block=number, treatment=treatment, perturbation=perturbation(seed, number)
    )


def a_sample(workload: str = "fork", value: float = 143394.0, **changes: object) -> Sample:
    plain = {
        "workload": workload,
        "metric": "instructions",
        "unit": "instructions/operation",
        "direction": Direction.LOWER,
        "mode": Mode.EXACT_CLOCK,
        "value": value,
        "operations": 1000,
        "minimum": value - 2,
        "median": value,
        "mean": value + 0.125,
    }
    return Sample.model_validate(plain | changes)


def a_trial(
    plan: PlannedTrial | None = None,
    values: dict[str, float] | None = None,
    outcome: Outcome = Outcome.COMPLETED,
    **changes: object,
) -> Trial:
    plan = plan or planned()
    kernel = str(plan.treatment.levels.get("kernel", ""))
    samples = tuple(a_sample(name, value) for name, value in (values or {"fork": 143394.0}).items())
    plain = {
        "planned": plan,
        "outcome": outcome,
        "samples": samples if outcome is Outcome.COMPLETED else (),
        "counters": (CounterDelta(workload="fork", name="vmstat.pgfault", delta=61234.0),),
        "settings": {"vm.swappiness": "60"},
        "provenance": Provenance(
            kernel=kernel, kernel_digest=f"digest of {kernel}", qemu="7.2.22", cpu_model="max,-erms,-fsrm"
        ),
        "started": datetime(2026, 11, 21, 9, 0, 0, 123456, UTC),
        "seconds": 0.25,
    }
    return Trial.model_validate(plain | changes)


# Numbers of timed studies in blocks, with effects that are planted.

SECONDS = Metric(name="wall", unit="s", direction=Direction.LOWER)


RATE = Metric(name="rate", unit="MB/s", direction=Direction.HIGHER)


DESIGN = SequentialDesign(margin=0.01)


OPEN_ENDED = SequentialDesign(margin=0.01, open_ended=True)


def study(
    *effects: float,
    blocks: int = 60,
    sd: float = 0.01,
    metric: Metric = SECONDS,
    seed: int = 1,
    primary: bool = True,
    workload: str = "fork",
) -> BlockedMetric:
    """A baseline of 100, and treatments that differ from it by these effects."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 0.05, blocks)
    values = {
        label: tuple(float(each) for each in 100 * (1 + effect) * np.exp(shared + rng.normal(0, sd, blocks)))
        for label, effect in zip("ABCDEFGH", (0.0, *effects), strict=False)
    }
    return BlockedMetric(workload, metric, "A", values, primary=primary)


def until(measured: BlockedMetric, blocks: int) -> BlockedMetric:
    cut = {label: values[:blocks] for label, values in measured.values.items()}
    return BlockedMetric(measured.workload, measured.metric, measured.baseline, cut, primary=measured.primary)


# What a store keeps of a fidelity result, made up.


def a_table(decided: int, study: int = 1) -> FidelityTable:
    """Of changes by 10 % and more by instructions; real time decided so many, all with the right sign."""
    bands = (
        SizeBand(low=1.0, high=1.1, decided=0, same_sign=0, undecided=9),
        SizeBand(low=1.1, high=1.3, decided=decided, same_sign=decided, undecided=2),
        SizeBand(low=1.3, high=None, decided=decided, same_sign=decided, undecided=0),
    )
    return FidelityTable(
        studies=((study, study),), names=("calls",), machine="host", cpu_models=("EPYC",),
        counts=(CountBands(count="instructions", bands=bands),),
    )  # fmt: skip


def keep_a_table(store: Path, decided: int, study: int) -> None:
    """In the store, beside the study."""
    with open_store(str(store)) as opened:
        assert keep(opened, a_table(decided, study))
