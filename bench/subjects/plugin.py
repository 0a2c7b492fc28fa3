"""What the QEMU plugin costs: the same programs, from the same snapshot, with it and without it.

CPU time of QEMU, so that other programs on the machine matter less. The symbols are loaded each time.
"""

import resource
from collections.abc import Callable, Iterator
from functools import partial

from bench.row import Row, median
from ktrial.experiment.profile import KernelSymbols
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.machine import Boot
from ktrial.target import Run

KERNEL = "debian:6.12"
ROUNDS = 5
MOST_SLOWDOWN = 1.5
"""For counts by function."""
PROGRAMS = {
    "syscall": ("syscall", "--operations", "300000"),
    "fork": ("fork", "--operations", "150"),
    "copy-4096": ("copy-4096", "--operations", "20000"),
}


def rows() -> Iterator[Row]:
    """By function, and with the tree of calls, each against the same run without the plugin."""
    boot = Boot(kernel=kernel_registry.add(KERNEL))
    with ExactMachine().instrumented(boot) as target:
        symbols = KernelSymbols().of(target, boot).text
        for name, arguments in PROGRAMS.items():
            steps = (Run(argv=("/ktrial/work", *arguments, "--clock", "tsc")),)
            plain, functions, calls = [], [], []
            for _ in range(ROUNDS):
                plain.append(cpu_seconds(partial(target.perform, steps)))
                functions.append(cpu_seconds(partial(target.counted, steps, symbols)))
                calls.append(cpu_seconds(partial(target.counted, steps, symbols, calls=True)))
            without = ("without the plugin", median(plain))
            what = f"plugin, {name}, {KERNEL}"
            yield Row(f"{what}: functions", median(functions), *without, most_slowdown=MOST_SLOWDOWN)
            yield Row(f"{what}: calls too", median(calls), *without)


def cpu_seconds(action: Callable[[], object]) -> float:
    """CPU seconds of the processes that the action starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
