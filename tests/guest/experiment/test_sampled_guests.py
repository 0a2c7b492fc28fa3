"""Monitors over time inside guests: the same in two runs, at a cost that is told."""

import json
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support import real_runs
from tests.support.guests import boot_of, perform

from ktrial import monitors
from ktrial.experiment.monitoring import sampled_of
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.machines.kvm import KvmMachine
from ktrial.model.machine import Boot
from ktrial.target import Run, Sampling, StepResult

pytestmark = pytest.mark.guest
KERNEL = "debian:6.12"
EVERY_NS = 20_000_000
SAMPLING = Sampling(files=monitors.sampled_files(), around=monitors.costly_files(), every_ns=EVERY_NS)


def fork(sample: Sampling | None, clock: str = "tsc", operations: int = 60) -> Run:
    argv = ("/ktrial/work", "fork", "--operations", str(operations), "--clock", clock)
    return Run(argv=argv, sample=sample)


@pytest.fixture(scope="module")
def boot() -> Boot:
    return boot_of(kernel_registry.add(KERNEL), limit_seconds=1000.0)


def median_of(result: StepResult) -> float:
    told = json.loads(result.stdout.splitlines()[-1])
    return float(_found(told, "median"))


def _found(data: Any, key: str) -> Any:
    if isinstance(data, dict):
        return data[key] if key in data else next(filter(None, (_found(one, key) for one in data.values())))
    return next(filter(None, (_found(one, key) for one in data))) if isinstance(data, list) else None


@pytest.mark.nightly
def test_a_sampled_guest_says_the_same_twice_and_what_it_cost(boot: Boot) -> None:
    machine = ExactMachine()
    (first,), (second,), (plain,) = (
        perform(machine, boot, fork(sample)) for sample in (SAMPLING, SAMPLING, None)
    )
    assert first == second
    assert plain.sampled is None
    sampled = sampled_of("fork", (first,))
    assert sampled is not None
    assert sampled.readings >= 5
    # A reading is due an interval after the one before, in the guest's time; the first ones may be thinned.
    steps = [after - before for before, after in pairwise(sampled.times[:-1])]
    assert statistics.median(steps) == pytest.approx(sampled.interval, rel=0.2)
    faults = next(one for one in sampled.series if one.name == "vmstat.pgfault")
    assert faults.values[-1] > 1000
    assert list(faults.values) == sorted(faults.values)
    assert any(one.name.startswith("slabinfo.") for one in sampled.series)
    # 187,000 instructions a reading on 6.12; a nanosecond of the guest's is one.
    assert 50_000 < sampled.cost_seconds * 1e9 / sampled.readings < 600_000
    assert sampled.cost < 0.1
    assert median_of(first) == pytest.approx(median_of(plain), rel=0.01)


@pytest.mark.nightly
def test_a_program_shorter_than_the_interval_is_not_disturbed(boot: Boot) -> None:
    rarely = SAMPLING.model_copy(update={"every_ns": 600_000_000_000})
    (result,) = perform(ExactMachine(), boot, fork(rarely, operations=10))
    assert result.sampled is not None
    assert (len(result.sampled.at_ns), result.sampled.readings, result.sampled.cost_ns) == (2, 0, 0)


@pytest.mark.nightly
def test_a_guest_in_real_time_is_sampled_too() -> None:
    machine = KvmMachine()
    machine.check()
    boot = Boot.model_validate(
        {"kernel": kernel_registry.add(KERNEL), "settle_ns": 0, "allow_emulated_time": True}
    )
    with machine.start(boot) as target:
        (result,) = target.perform((fork(SAMPLING, "monotonic"),))
    sampled = sampled_of("fork", (result,))
    assert sampled is not None
    assert sampled.readings >= 3
    assert 0 < sampled.cost < 1
    assert {"vmstat.pgfault", "stat.ctxt"} <= {one.name for one in sampled.series}


STUDY = """
question = "What happens inside?"
workloads = ["fork"]
perturbations = 1
[machine]
kernel = "debian:6.12"
count = "clock"
sample_every = "10 ms"
[factors.same]
kind = "nothing"
levels = ["once", "again"]
"""


@pytest.mark.nightly
def test_a_study_in_exact_mode_has_series(tmp_path: Path) -> None:
    (tmp_path / "inside.toml").write_text(STUDY)
    store = tmp_path / "s.db"
    told = real_runs.result("run", tmp_path / "inside.toml", "--store", store, "--no-html")
    one, again = told["series"]
    assert one["sampled"] == again["sampled"]
    assert one["sampled"]["workload"] == "fork"
    names = {each["name"] for each in one["sampled"]["series"]}
    assert {"vmstat.pgfault", "meminfo.Slab"} <= names
    assert one["sampled"]["cost_seconds"] > 0
