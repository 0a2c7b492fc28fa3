"""Eighteen programs of this system in guests of two kernels: one boot for all of a kernel's, or one for each.

CPU time, of this process and of QEMU, for each program on each kernel: other work on this machine counts
little. In the other way the initial RAM disk has the files, so that each program is a boot of its own; it
costs the same for each, and is measured on four of them.
"""

import resource
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.row import Row
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.kernel import Kernel
from ktrial.model.machine import Boot, FileSet
from ktrial.target import Run
from ktrial.workloads.frozen_files import FrozenFiles
from ktrial.workloads.host_files import program_path, with_all_they_need

KERNELS = ("debian:6.1", "debian:6.12")
COMMANDS = (
    ("grep", "-c", "root", "/proc/mounts"),
    ("sort", "/proc/cpuinfo"),
    ("tar", "-cf", "/dev/null", "/proc/version"),
    ("gzip", "-c", "/proc/version"),
    ("wc", "/proc/cpuinfo"),
    ("head", "-n", "3", "/proc/cpuinfo"),
    ("tail", "-n", "3", "/proc/cpuinfo"),
    ("cut", "-c", "1-8", "/proc/cpuinfo"),
    ("uniq", "/proc/cpuinfo"),
    ("sha256sum", "/proc/version"),
    ("md5sum", "/proc/version"),
    ("base64", "/proc/version"),
    ("od", "-c", "/proc/version"),
    ("sed", "-n", "s/a/b/p", "/proc/cpuinfo"),
    ("cat", "/proc/version"),
    ("find", "/proc/sys/vm"),
    ("diff", "/proc/version", "/proc/version"),
    ("dd", "if=/dev/zero", "of=/dev/null", "bs=64K", "count=64"),
)
APART = COMMANDS[:4]
"""Those that are booted apart, too."""
TRIALS = 3
"""Of each program on each kernel; ktrial's studies have as many perturbations where nobody says otherwise."""
LEAST_RATIO = 2.0
LEAST_WITH_TRIALS = 2.0


class _Program(NamedTuple):
    """A command with the files that it needs."""

    run: Run
    files: FileSet


class _Cost(NamedTuple):
    """CPU seconds for each program on each kernel."""

    prepared: float
    """Until its first trial can start."""
    whole: float
    """With its trials."""


def rows() -> Iterator[Row]:
    """What comes before the first trial, and all of it."""
    kernels = [kernel_registry.add(name) for name in KERNELS]
    with tempfile.TemporaryDirectory() as directory:
        frozen = FrozenFiles(Path(directory) / "carried")
        programs = [_program(frozen, words) for words in COMMANDS]
        shared = _cost(kernels, programs, Path(directory) / "shared", one_boot=True)
        apart = _cost(kernels, programs[: len(APART)], Path(directory) / "apart", one_boot=False)
        frozen.end()
    of = f"{len(COMMANDS)} programs on {len(KERNELS)} kernels, CPU time for each of a kernel"
    against = "a boot for each program"
    yield Row(f"{of}: until its first trial", shared.prepared, against, apart.prepared, LEAST_RATIO)
    yield Row(f"{of}: with {TRIALS} trials", shared.whole, against, apart.whole, LEAST_WITH_TRIALS)


def _program(frozen: FrozenFiles, words: Sequence[str]) -> _Program:
    path = program_path("bench", words[0])
    files = frozen.of(words[0], words[0], lambda: with_all_they_need("bench", (path,)))
    return _Program(Run(argv=(path, *words[1:])), files)


def _cost(kernels: Sequence[Kernel], programs: Sequence[_Program], cache: Path, *, one_boot: bool) -> _Cost:
    machine = ExactMachine(cache=cache)
    machine.check()
    prepared = trials = 0.0
    for kernel in kernels:
        for run, files in programs:
            began = _cpu_seconds()
            boot = Boot(kernel=kernel, awaits_files=one_boot, files=() if one_boot else files.files)
            with machine.instrumented(boot, files if one_boot else FileSet()) as target:
                ready = _cpu_seconds()
                for _ in range(TRIALS):
                    (result,) = target.counted((run,))
                    if result.exit:
                        raise RuntimeError(f"{run.argv[0]} ended with {result.exit}: {result.stderr}")
            prepared += ready - began
            trials += _cpu_seconds() - ready
    pairs = len(kernels) * len(programs)
    return _Cost(prepared / pairs, (prepared + trials) / pairs)


def _cpu_seconds() -> float:
    """Of this process, and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
