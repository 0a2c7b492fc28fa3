"""What modelled cycles cost: the same programs, from the same snapshot, counted with a model and without.

CPU time of QEMU. All take turns, and the least of each counts: a machine that shares its cores with others is
at times slower by a third for seconds, which would otherwise fall on one of the two that are compared.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.row import Row
from bench.subjects.plugin import least_of
from ktrial.experiment.profile import KernelSymbols
from ktrial.kernels import kernel_registry
from ktrial.machines.exact import ExactMachine
from ktrial.model.machine import DEFAULT_MODEL, Boot
from ktrial.studyfile.machine_model_files import machine_model
from ktrial.target import Run

KERNEL = "debian:6.12"
ROUNDS = 4
ALONE = "counting alone"
MODELS = {DEFAULT_MODEL: 4.0, "desktop-sampled": 2.0}
"""At most so many times the CPU time of counting by function alone."""
PROGRAMS = {
    "syscall": ("syscall", "--operations", "100000"),
    "fork": ("fork", "--operations", "100"),
    "copy-4096": ("copy-4096", "--operations", "2000"),
}


def rows() -> Iterator[Row]:
    """Each program, with the machine model that is taken where none is named, and a sample of it."""
    boot = Boot(kernel=kernel_registry.add(KERNEL))
    machine = ExactMachine()
    with ExitStack() as running:
        targets = {
            name: running.enter_context(machine.instrumented(each)) for name, each in _boots(boot).items()
        }
        symbols = KernelSymbols().of(targets[ALONE], boot).text
        for program, arguments in PROGRAMS.items():
            steps = (Run(argv=("/ktrial/work", *arguments, "--clock", "tsc")),)
            least = least_of(
                {name: partial(each.counted, steps, symbols) for name, each in targets.items()}, ROUNDS
            )
            for model, most in MODELS.items():
                what = f"model, {program}, {KERNEL}: cycles, {model}"
                yield Row(what, least[model], ALONE, least[ALONE], most_slowdown=most)


def _boots(plain: Boot) -> Mapping[str, Boot]:
    modelled = {name: plain.model_copy(update={"model": machine_model(name, Path())}) for name in MODELS}
    return {ALONE: plain} | modelled
