"""Boots, programs and load for the tests of the exact machine."""

import contextlib
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

from tests.support.places import SUPPORT

from ktrial.machines.exact import ExactMachine
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot, CarriedFile
from ktrial.target import Push, Read, Run, Step, StepResult, Target
from ktrial.target.errors import GuestEnded
from ktrial.workloads.host_files import program_path, with_all_they_need

UPTIME = Read(path="/proc/uptime")
COUNTERS = ("/proc/vmstat", "/proc/stat")


LITTLE_MEMORY_MIB = 128
"""For guests whose memory is to be used up."""
PROGRAMS = ("cat", "head", "setsid", "sh", "sleep", "sort", "tail", "yes")
"""Of the host, for guests that run more than the agent and the workloads."""


def boot_of(kernel: Kernel, **changes: object) -> Boot:
    """The system that studies boot: unless it is changed, its snapshot is the one that all tests share."""
    return Boot(kernel=kernel).model_copy(update=changes)


def boot_with_programs(kernel: Kernel, **changes: object) -> Boot:
    """The same with a shell and a few programs, always the same ones: one more snapshot for all tests."""
    files = {file for name in PROGRAMS for file in host_program(name)[0]}
    return boot_of(kernel, files=tuple(sorted(files, key=lambda file: file.guest)), **changes)


def work(*argv: str) -> Run:
    """A built-in workload, counted in instructions."""
    return Run(argv=("/ktrial/work", *argv, "--clock", "tsc"), watch=COUNTERS)


ENDLESS = work("nqueens", "--board", "14", "--operations", "100000")


def host_program(name: str) -> tuple[tuple[CarriedFile, ...], str]:
    """A host's program with its libraries, and its path."""
    path = program_path("a test", name)
    return with_all_they_need("a test", (path,)), path


def perform(machine: ExactMachine, boot: Boot, *steps: Step) -> tuple[StepResult, ...]:
    """Start, do the steps, end."""
    with machine.start(boot) as target:
        return target.perform(steps)


def ending(machine: ExactMachine, boot: Boot, *steps: Step) -> GuestEnded:
    """How a guest ended that must not reach its end."""
    try:
        results = perform(machine, boot, *steps)
    except GuestEnded as error:
        return error
    raise AssertionError(f"the guest did all its steps: {results}")


def wrong_pair_flags(target: Target, directory: Path) -> int:
    """In how many of 1000 cases the flags behind a `cmpxchg16b` are not a processor's."""
    built = directory / "pair_flags"
    subprocess.run(["cc", "-O1", "-Wall", "-static", "-o", built, SUPPORT / "pair_flags.c"], check=True)
    program = Push(path="/pair_flags", base64=b64encode(built.read_bytes()).decode(), mode=0o755)
    return int(target.perform((program, Run(argv=("/pair_flags",))))[1].stdout)


@contextlib.contextmanager
def busy_cores(count: int = 2) -> Iterator[None]:
    """Other programs that want all the CPU they can get."""
    spin = (sys.executable, "-c", "while True: pass")
    spinning = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def qemu_children(parent: int) -> list[int]:
    """Process ids of the QEMUs that `parent` has started and that are alive."""
    children = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # ended meanwhile
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            alive = facts["Name"].startswith("qemu-system") and not facts["State"].startswith("Z")
            if alive and int(facts["PPid"]) == parent:
                children.append(int(status.parent.name))
    return children
