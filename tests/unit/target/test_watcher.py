"""Programs that watch others: they never hang, linger or mislead; perf watches programs of this system."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ktrial import monitors
from ktrial.machines.errors import MachineStopped
from ktrial.machines.host import HostMachine
from ktrial.model.machine import Boot
from ktrial.model.warnings import WarningKind
from ktrial.monitors.tracers import perf_stat
from ktrial.target import Run, StepResult, TracerProgram
from ktrial.target.errors import MonitorFailed, MonitorUnusable
from ktrial.target.tracer_process import Watcher


def shell(script: str, ready: str = "ready", say: str = "") -> TracerProgram:
    return TracerProgram(name="watcher", argv=("/bin/sh", "-c", script, "sh", "{pid}"), ready=ready, say=say)


UNTIL_ASKED = "trap 'echo end $1; exit 0' INT; echo ready; while :; do sleep 0.05; done"


def test_a_watcher_is_told_whom_to_watch_and_asked_to_end() -> None:
    with Watcher(shell(UNTIL_ASKED), 4711) as watcher:
        watcher.wait_until_ready()
        assert watcher.end() == "ready\nend 4711\n"


def test_a_watcher_ends_where_ktrial_is_the_background_job_of_a_shell() -> None:
    """Such a job ignores SIGINT, and hands that on to what it starts."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Watcher(shell(UNTIL_ASKED), 4711) as watcher:
            watcher.wait_until_ready()
            assert watcher.end() == "ready\nend 4711\n"
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_watcher_that_is_spoken_to_answers_when_it_watches() -> None:
    script = f"read word; [ $word = enable ] && {UNTIL_ASKED}"
    with Watcher(shell(script, say="enable\n"), 1) as watcher:
        watcher.wait_until_ready()
        assert watcher.end().startswith("ready\n")


@pytest.mark.parametrize(
    ("script", "problem", "patience"),
    [
        ("echo no such probe >&2; exit 1", "ended before it watched anything: no such probe", 60),
        ("exit 0", "ended before it watched anything: it said nothing", 60),
        ("exec sleep 600", "was not ready after 0.3 s", 0.3),
    ],
)
def test_a_watcher_that_does_not_watch_is_told(script: str, problem: str, patience: float) -> None:
    with Watcher(shell(script), 1) as watcher, pytest.raises(MonitorFailed, match=re.escape(problem)):
        watcher.wait_until_ready(patience=patience)


@pytest.mark.parametrize(
    ("trap", "problem", "patience"),
    [("", "did not end within 0.3 s", 0.3), ("echo lost >&2; exit 3", "status 3: lost", 60)],
)
def test_a_watcher_that_does_not_end_well_is_told_and_is_gone(
    trap: str, problem: str, patience: float, tmp_path: Path
) -> None:
    script = f"trap '{trap}' INT; echo $$ > {tmp_path}/process; echo ready; while :; do sleep 0.05; done"
    with Watcher(shell(script), 1) as watcher:
        watcher.wait_until_ready()
        with pytest.raises(MonitorFailed, match=problem):
            watcher.end(patience=patience)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "process").read_text()), 0)


def test_whoever_is_asked_to_stop_need_not_wait_for_a_watcher() -> None:
    def stopped() -> None:
        raise MachineStopped(machine="host")

    with Watcher(shell("exec sleep 600"), 1) as watcher, pytest.raises(MachineStopped):
        watcher.wait_until_ready(stopped)


def test_a_watcher_that_is_not_there_is_told() -> None:
    absent = TracerProgram(name="watcher", argv=("/no/such/program",), ready="ready")
    with pytest.raises(MonitorFailed), Watcher(absent, 1) as watcher:
        watcher.wait_until_ready()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_a_watcher_does_not_outlive_the_process_that_started_it() -> None:
    if not shutil.which("setpriv"):
        pytest.skip("util-linux has setpriv")
    program = (
        "import sys, time\n"
        "from ktrial.target import TracerProgram\n"
        "from ktrial.target.tracer_process import Watcher\n"
        "shell = ('/bin/sh', '-c', 'echo ready; exec sleep 60')\n"
        "w = Watcher(TracerProgram(name='w', argv=shell, ready='ready'), 1)\n"
        "w.__enter__(); w.wait_until_ready(); print(w._child.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 300
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


# On the machine host.


def perform(*runs: Run) -> tuple[StepResult, ...]:
    boot = Boot(kernel=HostMachine().kernel(), limit_seconds=60.0)
    with HostMachine().start(boot) as target:
        return target.perform(runs)


def test_programs_are_watched_from_before_the_first_until_after_the_last() -> None:
    watch = shell("ls /proc/$1/task >/dev/null && " + UNTIL_ASKED)
    run = Run(argv=("/bin/sh", "-c", "exit 7"), tracers=(watch,))
    first, last = perform(run, run)
    assert (first.exit, last.exit) == (7, 7)
    assert first.tracer_output == {}
    assert re.fullmatch(r"ready\nend \d+\n", last.tracer_output["watcher"])
    assert "tracer_output" not in first.model_dump()


def test_a_program_is_not_run_when_nobody_watches_it(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with pytest.raises(MonitorFailed, match="watcher ended before"):
        perform(Run(argv=("/bin/touch", str(ran)), tracers=(shell("exit 1"),)))
    assert not ran.exists()


def test_perf_counts_what_a_program_does_here_and_nothing_else() -> None:
    """Each page that it touches first is a fault."""
    prepared = _perf()
    touch = "from mmap import *; m = mmap(-1, {0} * 4096); m.madvise(MADV_NOHUGEPAGE); m[::4096] = b'x' * {0}"
    faults = []
    for pages in (1, 2000):
        argv = (sys.executable, "-c", touch.format(pages))
        (result,) = perform(Run(argv=argv, tracers=(prepared.tracer,)))
        assert result.exit == 0, result.stderr
        counted = perf_stat.MONITOR.counted(result.tracer_output["perf-stat"])
        assert counted["perf-stat.task-clock_ms"] > 0
        faults.append(counted["perf-stat.page-faults"])
    assert faults[1] - faults[0] == pytest.approx(1999, rel=0.1)


def _perf() -> monitors.Prepared:
    if not shutil.which("perf"):
        pytest.skip("perf is not installed")
    try:
        return perf_stat.MONITOR.prepare()
    except MonitorUnusable as error:
        pytest.skip(error.message)


def test_events_that_this_system_does_not_count_are_a_note() -> None:
    prepared = _perf()
    events = prepared.tracer.argv[prepared.tracer.argv.index("-e") + 1].split(",")
    left_out = [event for event in perf_stat.EVENTS if event not in events]
    notes = [warning for warning in prepared.warnings if "does not count" in warning.text]
    assert bool(left_out) == bool(notes)
    assert all(
        warning.kind is WarningKind.EVENTS_LEFT_OUT and warning.is_note for warning in prepared.warnings
    )
    assert all(event in notes[0].text for event in left_out)
