"""Recorded guests' frames, decoded: programs, the kernel's answers, and readings over time."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.golden_guests import played
from tests.support.guests import COUNTERS

from ktrial.experiment.monitoring import sampled_of


@pytest.mark.parametrize("kernel", ["6.1", "6.12"])
def test_programs_are_told_with_their_output_and_counters(kernel: str, tmp_path: Path) -> None:
    uptime, *programs = played(f"steps-{kernel}", tmp_path)
    assert 0 < float(uptime.content.split()[0]) < 10
    reports = [json.loads(result.stdout) for result in programs]
    assert [report["workload"] for report in reports] == ["syscall", "fork", "pipe", "open"]
    # In three passes each.
    assert [report["metrics"][0]["operations"] for report in reports] == [600, 60, 150, 150]
    assert 100 < reports[0]["metrics"][0]["median"] < 1000
    for result in programs:
        assert (result.exit, result.stderr, result.failure, result.oom_kills) == (0, "", None, 0)
        assert set(result.watched) == set(COUNTERS)
    assert programs[1].watched["/proc/vmstat"]["pgfault"][0] > 20
    assert programs[1].rusage["minflt"] > 0


def test_the_kernels_answers_are_told_by_name(tmp_path: Path) -> None:
    results = played("answers", tmp_path)
    names = [result.failure.name if result.failure else "" for result in results]
    assert names == ["EINVAL", "ENOENT", "EACCES", "ENODEV", "ENOENT", "ENOENT", "ENOENT"]
    assert results[0].before == "60"
    assert [result.step for result in results] == list(range(7))


def test_readings_over_time_are_told_with_their_cost(tmp_path: Path) -> None:
    first, plain = played("sampled", tmp_path)
    assert plain.sampled is None
    sampled = sampled_of("fork", (first,))
    assert sampled is not None
    assert sampled.readings >= 5
    steps = sorted(after - before for before, after in pairwise(sampled.times[:-1]))
    assert steps[len(steps) // 2] == pytest.approx(sampled.interval, rel=0.2)
    faults = next(one for one in sampled.series if one.name == "vmstat.pgfault")
    assert faults.values[-1] > 1000
    assert list(faults.values) == sorted(faults.values)
    # 187,000 instructions a reading on 6.12; a nanosecond of the guest's is one.
    assert 50_000 < sampled.cost_seconds * 1e9 / sampled.readings < 600_000
