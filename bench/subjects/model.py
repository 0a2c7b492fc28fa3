"""What modelled cycles cost: the same programs, from the same snapshot, counted with a model and without.

CPU time of QEMU, so that other programs on the machine matter less.
"""

from collections.abc import Iterator
from contextlib import ExitStack
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
MODELS = {DEFAULT_MODEL: 4.0, "desktop-sampled": 2.5}
"""Against counting by function alone; of a sample 2 is wanted (docs/machine-model.md)."""
PROGRAMS = {
    "syscall": ("syscall", "--operations", "100000"),
    "fork": ("fork", "--operations", "100"),
    "copy-4096": ("copy-4096", "--operations", "2000"),
}


def rows() -> Iterator[Row]:
    """Each program, with the machine model that is taken where none is named, and a sample of it."""
    boot = Boot(kernel=kernels.add(KERNEL))
    machine = ExactMachine()
    with ExitStack() as running:
        plain = running.enter_context(machine.instrumented(boot))
        symbols = KernelSymbols().of(plain, boot).text
        modelled = {
            name: running.enter_context(machine.instrumented(boot.model_copy(update={"model": model})))
            for name, model in ((each, machine_model(each, Path())) for each in MODELS)
        }
        for name, arguments in PROGRAMS.items():
            steps = (Run(argv=("/ktrial/work", *arguments, "--clock", "tsc")),)
            without = median([cpu_seconds(partial(plain.counted, steps, symbols)) for _ in range(ROUNDS)])
            for model, target in modelled.items():
                yield Row(
                    f"model, {name}, {KERNEL}: cycles, {model}",
                    median([cpu_seconds(partial(target.counted, steps, symbols)) for _ in range(ROUNDS)]),
                    "counting alone",
                    without,
                    most_slowdown=MODELS[model],
                )
