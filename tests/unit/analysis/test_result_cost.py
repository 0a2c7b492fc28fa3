"""Must hold: what a result costs grows as its trials do, and its numbers are what they were before it did."""

import gc
import json
import lzma
import math
import time
from collections.abc import Iterator

import pytest
from tests.support.growing_studies import growing_study, trials_of
from tests.support.places import DATA
from tests.support.recorded_studies import cases

from ktrial.analysis.result import result
from ktrial.model.study import Study
from ktrial.model.trial import Trial

RECORDED = json.loads(lzma.decompress((DATA / "recorded_results.json.xz").read_bytes()))
CASES = cases()


def differing(found: object, expected: object, place: str = "") -> Iterator[str]:
    """Where they differ: numbers agree to eleven digits, the last ones are the processor's own."""
    if isinstance(found, float) and isinstance(expected, float):
        if not math.isclose(found, expected, rel_tol=1e-11):
            yield f"{place}: {found!r}, recorded {expected!r}"
    elif isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        for key, each in found.items():
            yield from differing(each, expected[key], f"{place}/{key}")
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differing(one, other, f"{place}/{number}")
    elif found != expected:
        yield f"{place}: {found!r}, recorded {expected!r}"


@pytest.mark.parametrize("name", CASES)
def test_a_result_is_what_was_recorded(name: str) -> None:
    which = CASES[name]
    computed = json.loads(result(which.study, which.trials, lambda _use: ()).model_dump_json())
    assert list(differing(computed, RECORDED[name])) == []


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
    few, many = (list(trials_of(one, environments=timed)) for one in (small, large))
    assert cpu(large, many) < 8 * cpu(small, few), "sixteen times as much would be its square"
