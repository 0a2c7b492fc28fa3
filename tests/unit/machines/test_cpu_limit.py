"""Limits of a guest on a busy host: CPU time counts, the clock only where nothing moves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ktrial.machines.errors import HostHoldsUp
from ktrial.machines.qemu.watchdog import CpuLimit, CpuUse, StopReason, check_real_time, cpu_use, until_look

LIMIT = 100.0


def looks(*readings: tuple[float, str], every: float = 10.0) -> list[StopReason | None]:
    """What each look says: CPU seconds until then, states of held-up threads; at even intervals."""
    limit = CpuLimit(LIMIT, CpuUse(0.0), 0.0)
    return [
        limit.past(CpuUse(used, held_up), at * every) for at, (used, held_up) in enumerate(readings, start=1)
    ]


@pytest.mark.parametrize(
    ("readings", "last"),
    [
        ([(10.0 * at, "R") for at in range(1, 11)], None),
        ([(10.0 * at, "R") for at in range(1, 12)], StopReason.SECONDS),
        ([(0.6 * at, "R") for at in range(1, 101)], None),
        ([(0.0, "")] * 10, None),
        ([(0.0, "")] * 11, StopReason.STILL),
        ([(0.01 * at, "") for at in range(1, 12)], StopReason.STILL),
        ([(0.0, "")] * 10 + [(1.0, "R")] + [(1.0, "")] * 10, None),
    ],
    ids=[
        "as much as it may",
        "more than it may",
        "a sixteenth of a CPU, for ten times the limit",
        "it waits",
        "it waits for ever",
        "it only looks round for ever",
        "it moved once between two long waits",
    ],
)
def test_what_a_guest_has_used_is_its_limit(
    readings: list[tuple[float, str]], last: StopReason | None
) -> None:
    *before, current = looks(*readings)
    assert current is last
    assert not any(before)


@pytest.mark.parametrize("states", ["R", "D", "T", "DR"])
def test_what_this_host_holds_up_is_no_end_of_the_guest(states: str) -> None:
    with pytest.raises(HostHoldsUp, match=f"110 s .*{states}"):
        looks(*[(0.0, states)] * 11)


@pytest.mark.parametrize(
    ("used", "held_up", "left"),
    [(3.0, "R", 59.0), (61.9, "DR", 0.1), (62.0, "R", 0.0), (90.0, "R", 0.0), (3.0, "", 0.0)],
    ids=["it hardly ran", "a little more", "it ran", "it ran for long", "it waits, and could run"],
)
def test_a_guest_is_asked_for_its_time_only_after_it_has_run(used: float, held_up: str, left: float) -> None:
    """However long that takes on the host's clock: it had used 2 s when it was asked last."""
    assert until_look(CpuUse(used, held_up), 2.0) == pytest.approx(left)


def test_time_in_which_ktrial_did_not_run_either_does_not_count() -> None:
    limit = CpuLimit(LIMIT, CpuUse(0.0), 0.0)
    assert limit.past(CpuUse(0.0), 5000.0) is None
    assert limit.still <= 20.0


@pytest.mark.parametrize(
    ("stats", "seconds", "held_up"),
    [
        ({"10": "S", "11": "R"}, 1.5, "R"),
        ({"10": "S", "11": "S"}, 1.5, ""),
        ({"10": "T", "11": "T"}, 1.5, "T"),
        ({"10": "D", "11": "R", "12": "I"}, 1.5, "DR"),
    ],
)
def test_it_is_read_from_all_threads(
    stats: dict[str, str], seconds: float, held_up: str, tmp_path: Path
) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    counted = f"0 0 0 0 0 0 0 0 0 0 {ticks} {ticks // 2} 0 0"
    for thread, state in stats.items():
        directory = tmp_path / "10/task" / thread
        directory.mkdir(parents=True)
        (directory / "stat").write_text(f"{thread} (a (odd) name) {state} {counted}\n")
    (tmp_path / "10/stat").write_text(f"10 (a (odd) name) S {counted}\n")
    assert cpu_use(10, tmp_path) == CpuUse(seconds, held_up)


def test_a_process_that_has_ended_has_none(tmp_path: Path) -> None:
    assert cpu_use(10, tmp_path) is None


def test_it_is_read_of_real_processes() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while (used := cpu_use(busy.pid)) is None or used.seconds < 0.1:
            time.sleep(0.01)
        os.kill(busy.pid, signal.SIGSTOP)
        while (used := cpu_use(busy.pid)) is None or used.held_up != "T":
            time.sleep(0.01)
    finally:
        busy.kill()
        busy.wait()
    assert cpu_use(os.getpid()) is not None


@pytest.mark.parametrize(
    ("used", "waited", "states"),
    [(20.0, 80.0, "R"), (0.1, 99.0, ""), (5.0, 0.0, "T")],
    ids=["a fifth of a CPU", "next to nothing", "stopped"],
)
def test_in_real_time_a_guest_that_got_no_cpu_has_not_hung(used: float, waited: float, states: str) -> None:
    with pytest.raises(HostHoldsUp):
        check_real_time(LIMIT, CpuUse(3.0, "", 7.0), CpuUse(3.0 + used, states, 7.0 + waited))


@pytest.mark.parametrize(("used", "waited"), [(99.0, 0.5), (60.0, 40.0), (0.2, 1.0)])
def test_in_real_time_a_guest_that_sleeps_or_computes_to_its_limit_has_hung(
    used: float, waited: float
) -> None:
    check_real_time(LIMIT, CpuUse(0.0), CpuUse(used, "R", waited))


def test_how_long_threads_have_waited_for_a_cpu_is_read(tmp_path: Path) -> None:
    for thread, waited in (("7", 2_000_000_000), ("8", 500_000_000)):
        place = tmp_path / "7/task" / thread
        place.mkdir(parents=True)
        line = f"{thread} (qemu) R " + " ".join("0" for _ in range(20))
        (place / "stat").write_text(line)
        (place / "schedstat").write_text(f"123 {waited} 9\n")
    (tmp_path / "7/stat").write_text(line)
    read = cpu_use(7, tmp_path)
    assert read is not None
    assert read.waited == 2.5
    assert read.held_up == "R"
