"""Must hold: what a result costs grows as its trials do, and its numbers are what they were before it did."""

import gc
import json
import lzma
import time

import pytest
from tests.support.grown_studies import growing_study, trials_of
from tests.support.places import DATA
from tests.support.recorded_studies import cases, differing

from ktrial.analysis.result import result
from ktrial.model.study import Study
from ktrial.model.trial import Trial

RECORDED = json.loads(lzma.decompress((DATA / "recorded_results.json.xz").read_bytes()))
CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_a_result_is_what_was_recorded(name: str) -> None:
    which = CASES[name]
    # The last digits are the processor's own, by the width of its vectors.
    computed = json.loads(result(which.study, which.trials, lambda _use: ()).model_dump_json())
    assert list(differing(computed, RECORDED[name], digits=11)) == []


def test_every_recorded_result_is_compared() -> None:
    assert set(CASES) == set(RECORDED)


def cpu(study: Study, trials: list[Trial]) -> float:
    """Processor seconds of the fastest of three: what else the machine does only adds to them."""
    took = []
    for _ in range(3):
        gc.collect()
        before = time.process_time()
        result(study, trials, lambda _use: ())
        took.append(time.process_time() - before)
    return min(took)


@pytest.mark.parametrize("timed", [True, False], ids=["in real time", "exact"])
def test_four_times_the_treatments_cost_less_than_eight_times_as_much(timed: bool) -> None:
    small, large = (growing_study(count, timed=timed, blocks=6) for count in (32, 128))
    few, many = (list(trials_of(study, environments=timed)) for study in (small, large))
    assert cpu(large, many) < 8 * cpu(small, few), "sixteen times as much would be its square"
