"""Studies and trials for unit tests, made with as few words as a test needs."""

from datetime import UTC, datetime

from ktrial.model.design import Factor, FactorKind, PlannedTrial, Treatment
from ktrial.model.study import Study, perturbation
from ktrial.model.trial import CounterDelta, Outcome, Provenance, Trial
from ktrial.model.workload import Direction, Mode, Sample, WorkloadUse

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
