"""Studies over seeds of one treatment on several CPUs, drawn from trials that were measured once."""

import random
from collections import Counter
from collections.abc import Sequence

from tests.support.making import a_sample, a_study, a_trial, planned

from ktrial.analysis import interim
from ktrial.analysis.result import metrics_in_catalogue, metrics_of, result
from ktrial.model.comparison import Verdict
from ktrial.model.study import MachineSettings, Study, Timing
from ktrial.model.trial import Trial
from ktrial.model.workload import Mode

_KERNELS = ("debian:6.1", "debian:6.12")
_WORKLOAD = "hackbench"
_FIRST_LOOK = 6


def verdicts(values: Sequence[float], *, effect: float, margin: float, studies: int) -> Counter[Verdict]:
    """How so many studies end; in each, the seeds of both arms are other ones of `values`, none twice.

    `effect`: by how much the second arm takes longer (0.05 for 5 %).
    """
    drawn, counts = random.Random(16), Counter[Verdict]()
    for _ in range(studies):
        shuffled = drawn.sample(values, len(values))
        half = len(shuffled) // 2
        others = [value * (1 + effect) for value in shuffled[half : 2 * half]]
        counts[_verdict(margin, shuffled[:half], others)] += 1
    return counts


def _verdict(margin: float, first: Sequence[float], second: Sequence[float]) -> Verdict:
    """As `ktrial run` does: look, go on to the next look, end where it is decided or no seed is left."""
    machine = MachineSettings(kind="exact-parallel", cpus=4)
    study = a_study(workloads=(_WORKLOAD,), machine=machine, timing=Timing(), margin=margin)
    blocks: int | None = _FIRST_LOOK
    trials: list[Trial] = []
    while blocks and blocks <= len(first):
        trials = [
            _trial(block, arm, arms[block])
            for block in range(blocks)
            for arm, arms in enumerate((first, second))
        ]
        blocks = _next_look(study, trials)
    (comparison,) = result(study, trials).comparisons
    return comparison.verdict


def _next_look(study: Study, trials: Sequence[Trial]) -> int | None:
    return interim.blocks_wanted(study, trials, metrics_of(study, trials, metrics_in_catalogue))


def _trial(block: int, arm: int, value: float) -> Trial:
    sample = a_sample(_WORKLOAD, value, unit="ns", mode=Mode.EXACT_PARALLEL)
    return a_trial(planned(_KERNELS[arm], block, 2 * block + arm), samples=(sample,))
