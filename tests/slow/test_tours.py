"""Tours of the kernel repeat to the last digit: a step's difference is its kernel's.

About 20 CPU-seconds a tour, and a boot.
"""

from pathlib import Path

import pytest

from ktrial.experiment.single_kernel import Runs
from ktrial.model.study import MachineSettings, Measurement
from ktrial.series.run import trials_of
from ktrial.store.store import open_store
from ktrial.workloads.tours import NAMES, tour

KERNEL = "debian:6.1"


def numbers(place: Path, name: str) -> dict[tuple[int, str], float]:
    """(Perturbation, metric) → value, measured now, in a store of its own."""
    with open_store(str(place)) as store:
        runs = Runs(store, jobs=2)
        measurement = Measurement((tour(name),), MachineSettings(), perturbations=2)
        record = trials_of(runs.kernel(KERNEL), measurement, runs)
    return {
        (trial.planned.perturbation.number, sample.metric): sample.value
        for trial in record.trials
        for sample in trial.samples
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_tour_repeats_to_the_last_digit(name: str, tmp_path: Path) -> None:
    first, again = (numbers(tmp_path / f"{number}.db", name) for number in (1, 2))
    assert first == again
    assert {number for number, _ in first} == {0, 1}
    assert all(value > 0 for value in first.values())
