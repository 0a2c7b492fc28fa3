"""What modelled cycles cost: the same programs, from the same snapshot, counted with a model and without.

CPU time of QEMU, so that other programs on the machine matter less.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.row import Row, median
from bench.subjects.plugin import cpu_seconds
from ktrial import kernels
from ktrial.experiment.kernel_symbols import KernelSymbols
from ktrial.machines.exact import ExactMachine
from ktrial.model.boot import Boot
from ktrial.model.machine_model import DEFAULT_MODEL
from ktrial.studyfile.machine_models import machine_model
from ktrial.target import Run

KERNEL = "debian:6.12"
ROUNDS = 3
MOST_SLOWDOWN = 4.0
"""Against counting by function alone."""
PROGRAMS = {
    "syscall": ("syscall", "--operations", "100000"),
    "fork": ("fork", "--operations", "100"),
    "copy-4096": ("copy-4096", "--operations", "2000"),
}


def rows() -> Iterator[Row]:
    """Each program, with the machine model that ktrial takes where nothing else is asked for."""
    boot = Boot(kernel=kernels.add(KERNEL))
    modelled = boot.model_copy(update={"model": machine_model(DEFAULT_MODEL, Path())})
    machine = ExactMachine()
    with machine.instrumented(boot) as plain, machine.instrumented(modelled) as model:
        symbols = KernelSymbols().of(plain, boot).text
        for name, arguments in PROGRAMS.items():
            steps = (Run(argv=("/ktrial/work", *arguments, "--clock", "tsc")),)
            without, with_model = [], []
            for _ in range(ROUNDS):
                without.append(cpu_seconds(partial(plain.counted, steps, symbols)))
                with_model.append(cpu_seconds(partial(model.counted, steps, symbols)))
            yield Row(
                f"model, {name}, {KERNEL}: cycles",
                median(with_model),
                "counting alone",
                median(without),
                most_slowdown=MOST_SLOWDOWN,
            )
