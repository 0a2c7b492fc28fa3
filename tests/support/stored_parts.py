"""What may be stored of a study beside its trials' numbers: one of each kind."""

from datetime import UTC, datetime

from ktrial.model.attribution import Proof
from ktrial.model.kernel import KernelDifference, KernelSide
from ktrial.model.regression import MeasuredVersion, Regression
from ktrial.model.trial import SampleSeries, Series, SeriesKind
from ktrial.model.tuning import Budget, Goal, Objective, Space, Tuned
from ktrial.model.workload import Direction, Mode

DIFFERENCE = KernelDifference(before=KernelSide(name="a", digest="1"), after=KernelSide(name="b", digest="2"))
REGRESSION = Regression(
    id="3f2a91bc",
    workload="fork",
    metric="fork, exit, wait",
    unit="instructions/operation",
    direction=Direction.LOWER,
    mode=Mode.EXACT_PLUGIN,
    since=MeasuredVersion(name="a", release="6.1.0", digest="a1"),
    version=MeasuredVersion(name="b", release="6.12.1", digest="b1"),
    ratio=1.14,
    found_by="check",
    found=datetime(2026, 11, 28, tzinfo=UTC),
)
PROOF = Proof(workload="fork", before="a", after="b", values_before=(0.02,), values_after=(1.0,))
SAMPLED = SampleSeries(
    workload="fork",
    interval=0.1,
    readings=1,
    cost_seconds=0.001,
    wall_seconds=0.5,
    times=(0.0, 0.1, 0.5),
    series=(Series(name="stat.ctxt", unit="", kind=SeriesKind.COUNTER, values=(0.0, 5.0, 9.0)),),
)
ANSWER = Tuned(
    space=Space(dimensions=()),
    goal=Goal(objectives=(Objective(metric="rps", direction=Direction.HIGHER),)),
    budget=Budget(runs=20),
    seed=1,
    baseline={},
    observations=(),
    noise=0.02,
    smallest_effect=0.01,
    answer="",
)
