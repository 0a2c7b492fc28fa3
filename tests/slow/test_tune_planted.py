"""An optimum that was planted on a real kernel, in exact mode: found, confirmed, and nothing else stays."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.real_runs import result

pytestmark = [pytest.mark.slow, pytest.mark.guest, pytest.mark.timeout(7200)]

NEVER = {"vm.swappiness", "kernel.sched_rt_runtime_us"}
"""Without memory pressure and without real-time tasks they change nothing."""
AIO = """\
perturbations = 2
workloads = [{ name = "aio-stress", size = 16, passes = 1, path = "/mnt" }]
[machine]
kernel = "debian:5.10"
memory = "256M"
boot = ["sysctl.vm.dirty_ratio=5", "sysctl.vm.dirty_background_ratio=2"]
[machine.disk]
size = "256M"
bandwidth = "80M"
latency_us = 100
[search]
maximise = ["rate before fsync"]
knobs = [
    "vm.dirty_ratio=4..60", "vm.dirty_background_ratio=1..50", "vm.swappiness", "kernel.sched_latency_ns",
    "kernel.sched_rt_runtime_us",
]
budget = 30
"""
"""Planted by boot parameters: with so low limits whoever writes has to wait for the disk."""
HACKBENCH = """\
perturbations = 2
margin = "2 %"
workloads = [{ name = "hackbench", groups = 1, operations = 1, passes = 1 }]
[machine]
kernel = "debian:5.10"
memory = "256M"
boot = [
    "sysctl.kernel.sched_wakeup_granularity_ns=62", "sysctl.kernel.sched_min_granularity_ns=3179567",
    "sysctl.kernel.sched_latency_ns=4567977",
]
[search]
knobs = [
    "kernel.sched_latency_ns", "kernel.sched_min_granularity_ns",
    "kernel.sched_wakeup_granularity_ns=0..100000000", "vm.swappiness", "kernel.sched_rt_runtime_us",
]
budget = 30
"""
"""Planted: a scheduler that lets whoever wakes up go first, however short the other one ran, in slices so
long that it then waits for its turn again: 23.0 million instructions, and 12.9 with slices of 0.1 ms.

Who runs when moves by accidents of layout: a single run of hackbench by about 1 %, hence the margin."""


def answer(tmp_path: Path, study: str) -> dict[str, Any]:
    file = tmp_path / "planted.toml"
    file.write_text(study)
    store = tmp_path / "planted.db"
    return result("tune", file, "--store", store, "--no-html", "--answer", tmp_path / "answer")


def check(told: dict[str, Any], matters: set[str], tmp_path: Path) -> None:
    confirmed = told["confirmed"]
    assert confirmed, told["answer"]
    assert told["comparisons"][0]["verdict"] == "better"
    assert not NEVER & set(confirmed)
    assert set(confirmed) <= matters
    assert len(told["observations"]) <= told["budget"]["runs"]
    written = (tmp_path / "answer/sysctl.d/99-planted.conf").read_text()
    assert all(f"\n{name} = " in written or name.startswith("sched") for name in confirmed)


def test_limits_of_dirty_pages_for_writes_to_a_slow_disk(tmp_path: Path) -> None:
    told = answer(tmp_path, AIO)
    check(told, {"vm.dirty_ratio", "vm.dirty_background_ratio"}, tmp_path)
    assert told["comparisons"][0]["ratio"] > 1.2


def test_slices_of_the_scheduler_for_hackbench(tmp_path: Path) -> None:
    told = answer(tmp_path, HACKBENCH)
    slices = {"sched_latency_ns", "sched_min_granularity_ns", "sched_wakeup_granularity_ns"}
    check(told, slices, tmp_path)
    assert told["comparisons"][0]["ratio"] < 0.98
