"""Exact numbers that a seed moves: sequential verdicts, and an end when they are decided."""

import random

import pytest
from tests.support.making import a_sample, a_study, a_trial, planned

from ktrial.analysis import interim
from ktrial.analysis.result import metrics_in_catalogue, metrics_of, result
from ktrial.model.comparison import Verdict
from ktrial.model.study import MachineSettings, Study, Timing
from ktrial.model.trial import Trial
from ktrial.model.workload import Mode

KERNELS = ("debian:6.1", "debian:6.12")
CHAOS = 0.02
"""What a seed moves a number by: two seeds' times differ so much, whatever the kernel."""


def a_parallel_study() -> Study:
    machine = MachineSettings(kind="exact-parallel", cpus=4)
    return a_study(workloads=("fork",), machine=machine, timing=Timing(), margin=0.02)


def trials(blocks: int, effect: float, seed: int) -> list[Trial]:
    drawn = random.Random(seed)
    trials_ = []
    for block in range(blocks):
        for order, kernel in enumerate(KERNELS):
            value = 1000 * (1 + effect * (kernel == KERNELS[1])) * (1 + drawn.gauss(0, CHAOS))
            sample = a_sample("fork", value, unit="ns", mode=Mode.EXACT_PARALLEL)
            trials_.append(a_trial(planned(kernel, block, 2 * block + order), samples=(sample,)))
    return trials_


def judged(blocks: int, effect: float, seed: int = 1) -> tuple[Verdict, int | None]:
    """The verdict after so many seeds, and after how many to look again."""
    study, ended = a_parallel_study(), trials(blocks, effect, seed)
    (comparison,) = result(study, ended).comparisons
    expected = interim.InterimData(study, ended).blocks_wanted(metrics_of(study, ended, metrics_in_catalogue))
    return comparison.verdict, expected


@pytest.mark.parametrize(("effect", "verdict"), [(0.2, Verdict.WORSE), (-0.2, Verdict.BETTER)])
def test_what_is_plain_is_decided_at_the_first_look(effect: float, verdict: Verdict) -> None:
    assert judged(6, effect) == (verdict, None)


def test_what_is_open_goes_on_to_the_next_look() -> None:
    assert judged(5, 0.03) == (Verdict.INCONCLUSIVE, 6)
    assert judged(6, 0.03) == (Verdict.INCONCLUSIVE, 10)


def test_the_same_numbers_under_each_seed_are_equivalent() -> None:
    study = a_parallel_study()
    ended = [
        a_trial(planned(kernel, block, 2 * block + order), values={"fork": 1000.0 + block})
        for block in range(6)
        for order, kernel in enumerate(KERNELS)
    ]
    (comparison,) = result(study, ended).comparisons
    assert comparison.verdict in {Verdict.EQUIVALENT, Verdict.IDENTICAL}
