"""What may be stored of a study beside its trials' numbers: one of each kind."""

from ktrial.model.attribution import Proof
from ktrial.model.kernel import KernelDifference, KernelSide
from ktrial.model.trial import SampleSeries, Series, SeriesKind
from ktrial.model.tuning import Budget, Goal, Objective, Space, Tuned
from ktrial.model.workload import Direction

DIFFERENCE = KernelDifference(before=KernelSide(name="a", digest="1"), after=KernelSide(name="b", digest="2"))
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
