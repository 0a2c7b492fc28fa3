"""Which boots a study's trials ran in reaches its verdicts."""

import pytest
from tests.support.making import a_sample, a_study, a_trial, planned

from ktrial.analysis import interim
from ktrial.analysis.result import metrics_in_catalogue, metrics_of
from ktrial.model.study import MachineSettings, Study, Timing
from ktrial.model.trial import Outcome, Provenance, Trial
from ktrial.model.workload import Mode

KERNELS = ("debian:6.1", "debian:6.12")
BLOCKS = 20


def a_timed_study() -> Study:
    machine = MachineSettings(kind="ssh", host="lab")
    return a_study(workloads=("fork",), machine=machine, timing=Timing(blocks=BLOCKS))


def trials(*boots_of_arms: str, failed: frozenset[int] = frozenset()) -> list[Trial]:
    """`boots_of_arms`: a template of the boot's name for each arm, of `{part}`: which ten blocks it is."""
    return [
        a_trial(
            planned(KERNELS[arm], block, 2 * block + arm),
            samples=(a_sample("fork", 100.0 + 10 * arm + block % 3, unit="ns", mode=Mode.TIMED),),
            outcome=Outcome.COMPLETED,
            provenance=Provenance(boot="" if block in failed else boots.format(part=block // 10)),
        )
        for block in range(BLOCKS)
        for arm, boots in enumerate(boots_of_arms)
    ]


def reason(measured: list[Trial]) -> str:
    study = a_timed_study()
    seen = interim.InterimData(study, measured).look(metrics_of(study, measured, metrics_in_catalogue))
    (comparison,) = seen.comparisons
    return comparison.reason


@pytest.mark.parametrize("failed", [frozenset[int](), frozenset({3, 17})], ids=["all tell", "two do not"])
def test_arms_in_boots_of_their_own_get_no_verdict_of_two_boots(failed: frozenset[int]) -> None:
    told = reason(trials("A{part}", "B{part}", failed=failed))
    assert "2 of the baseline and 2 of the treatment" in told


@pytest.mark.parametrize("boots", ["", "S", "S{part}"], ids=["not told", "one boot", "two that both have"])
def test_otherwise_the_verdict_is_as_it_was(boots: str) -> None:
    assert reason(trials(boots, boots)) == ""
