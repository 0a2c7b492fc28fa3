"""The scripts for bpftrace on real kernels: each attaches, and counts a known workload to the page."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.guests import boot_of, perform

from ktrial import monitors
from ktrial.experiment import guest_storage
from ktrial.experiment.resources import default_resources
from ktrial.kernels import kernel_registry
from ktrial.kernels.modules import resolve
from ktrial.machines.exact import ExactMachine
from ktrial.model.machine import Boot, CarriedFile
from ktrial.model.study import Disk
from ktrial.monitors.tracers.bpftrace import SCRIPTS
from ktrial.target import Collect, Run, Start, Step, StepResult, Stop, Write
from ktrial.workloads.host_files import program_path, with_all_they_need

pytestmark = [pytest.mark.guest, pytest.mark.slow, pytest.mark.timeout(3600)]

PAGES = 256
RECORD_PAGES = 4
DISK = Disk(size_mib=64)
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
COMPILING_SECONDS = "120"
"""Guest time, of which all is skipped that bpftrace does not need."""
_INIT = "1"
"""The guest's agent starts the programs."""
# libclang asks the shell for the compiler's version, and falls over where there is no shell.
PROGRAMS = ("bpftrace", "dd", "sleep", "/bin/sh")
EVERYWHERE = ("page-cache", "read-ahead", "off-cpu")
KERNELS = {
    "debian:6.1": EVERYWHERE,
    "debian:6.12": (*EVERYWHERE, "page-cache-tracepoints"),
    "debian:7.2": (*EVERYWHERE, "page-cache-tracepoints", "read-ahead-tracepoints"),
}
"""Kernel → the scripts whose places it has."""


def a_boot(name: str) -> Boot:
    kernel, resources = kernel_registry.add(name), default_resources()
    programs = tuple(program_path("a test", each) for each in PROGRAMS)
    scripts = tuple(CarriedFile(host=each, guest=f"/bt/{each.name}") for each in SCRIPTS.glob("*.bt"))
    return boot_of(
        kernel,
        memory_mib=1536,
        modules=resolve(kernel, guest_storage.modules(DISK)),
        files=(
            *with_all_they_need("a test", programs),
            *guest_storage.files(DISK, kernel, resources),
            *scripts,
        ),
        limit_seconds=2400.0,
        limit_instructions=4_000_000_000_000,
    )


def dd(*words: str) -> Run:
    return Run(argv=(program_path("a test", "dd"), *words), environment=ENVIRONMENT)


def watched(script: str) -> Iterator[Step]:
    """The file is read twice, the first time from the disk, while the script watches the agent's programs."""
    read = dd("if=/mnt/file", "of=/dev/null", f"bs={RECORD_PAGES * 4}k")
    argv = (program_path("a test", "bpftrace"), "-f", "json", "-o", f"/{script}", f"/bt/{script}.bt", _INIT)
    yield Write(path="/proc/sys/vm/drop_caches", value="3")
    yield Start(name=script, argv=argv, environment=ENVIRONMENT)
    yield Run(argv=(program_path("a test", "sleep"), COMPILING_SECONDS), environment=ENVIRONMENT)
    yield read
    yield read
    yield Stop(name=script, limit_ns=120_000_000_000)
    yield Collect(path=f"/{script}")


def printed(results: tuple[StepResult, ...], scripts: tuple[str, ...]) -> dict[str, str]:
    """Script → all that it printed."""
    stops = {each.step: (each.exit, each.failure, each.stderr) for each in results if each.do == "stop"}
    assert {(status, failure) for status, failure, _ in stops.values()} == {(0, None)}, stops
    collected = [each.content for each in results if each.do == "collect"]
    return {name: base64.b64decode(one).decode() for name, one in zip(scripts, collected, strict=True)}


def counters(script: str, text: str) -> dict[str, float]:
    """As the monitor counts whose script it is, without its own name."""
    (monitor,) = (
        each
        for each in monitors.installed_tracers().values()
        if f"{script}.bt" in {path.name for path in getattr(each, "scripts", ())}
    )
    return {name.removeprefix(f"{monitor.name}."): value for name, value in monitor.counted(text).items()}


@pytest.mark.parametrize("name", KERNELS)
def test_every_script_counts_a_file_that_is_read_twice(name: str, tmp_path: Path) -> None:
    scripts = KERNELS[name]
    made = dd("if=/dev/zero", "of=/mnt/file", "bs=4k", f"count={PAGES}", "conv=fsync")
    steps = (*guest_storage.steps(DISK), made, *(step for script in scripts for step in watched(script)))
    results = perform(ExactMachine(cache=tmp_path), a_boot(name), *steps)
    for script, text in printed(results, scripts).items():
        counts = counters(script, text)
        if script.startswith("page-cache"):
            expected = {"asked": 2 * PAGES, "added": PAGES, "hits": PAGES, "reads": 2 * PAGES / RECORD_PAGES}
            assert counts == expected, (script, text)
        elif script.startswith("read-ahead"):
            windows = sum(count for bar, count in counts.items() if bar.startswith("window["))
            # The last window may reach beyond the end of the file.
            assert PAGES <= counts["pages"] <= 1.25 * PAGES, (script, text)
            assert counts["sync"] == 1, (script, text)
            assert windows == counts["sync"] + counts["async"], (script, text)
        else:
            # The disk answers at once; what is left is that bpftrace had the one CPU now and then.
            bars = sum(count for bar, count in counts.items() if bar.startswith("waited_us["))
            assert counts["waited_ns"] > 0, (script, text)
            assert bars > 0, (script, text)


SLEEP_SECONDS = 0.5
NOT_HERE = 77
ON_THIS_SYSTEM = f"""
import json, sys
from ktrial import monitors
from ktrial.target.errors import MonitorUnusable
from ktrial.machines.host import HostMachine
from ktrial.model.machine import Boot
from ktrial.target import Run
monitor = monitors.installed_tracers()["off-cpu"]
try:
    tracer = monitor.prepare().tracer
except MonitorUnusable as error:
    print(error.message)
    sys.exit({NOT_HERE})
machine = HostMachine()
with machine.start(Boot(kernel=machine.kernel())) as target:
    (result,) = target.perform((Run(argv=("/bin/sleep", "{SLEEP_SECONDS}"), tracers=(tracer,)),))
print(json.dumps(monitor.counted(result.tracer_output["off-cpu"])))
"""


def test_a_program_of_this_system_that_sleeps_is_seen_to_sleep() -> None:
    """In a mount namespace of its own, so that tracefs is mounted for nobody else."""
    if os.geteuid():
        pytest.skip("root only may mount tracefs")
    mounted = f"mount -t tracefs tracefs /sys/kernel/tracing; exec {sys.executable} -c '{ON_THIS_SYSTEM}'"
    argv = ["unshare", "--mount", "sh", "-c", mounted]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == NOT_HERE:
        pytest.skip(done.stdout)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # The timer is set before the program leaves the CPU, and others may have that when it is due.
    assert 0.9 * SLEEP_SECONDS <= told["off-cpu.slept_ns"] / 1e9 <= 4 * SLEEP_SECONDS, told
