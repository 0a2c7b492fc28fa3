"""What the QEMU plugin costs: the same programs, from the same snapshot, with it and without it.

CPU time of QEMU, so that other programs on the machine matter less. The symbols are loaded each time. All
take turns, and the least of each counts. Beside ktrial's plugin stand three of a few lines each, which do
what QEMU's own do (`bench/plugins_like_qemus.c`); they are compiled here, for QEMU's plugin API 1.
"""

import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.row import Row
from ktrial.experiment.profile import KernelSymbols
from ktrial.kernels import kernel_registry
from ktrial.machines import guest_programs
from ktrial.machines.exact import ExactMachine, InstrumentedTarget
from ktrial.machines.qemu import plugin, program
from ktrial.machines.qemu.process import memory_file
from ktrial.model.machine import Boot
from ktrial.target import Run, Step

KERNEL = "debian:6.12"
ROUNDS = 4
MOST_SLOWDOWN = 1.5
"""For counts by function, beside no plugin."""
BESIDE_THE_EMPTY = 1.3
"""The same beside a plugin that does nothing."""
PROGRAMS = {
    "syscall": ("syscall", "--operations", "300000"),
    "fork": ("fork", "--operations", "150"),
    "copy-4096": ("copy-4096", "--operations", "20000"),
}
WITHOUT, FUNCTIONS, CALLS = "without the plugin", "functions", "calls too"
EMPTY = "an empty plugin"
OTHERS = (EMPTY, "each instruction, inline (libinsn)", "a call a block (hotblocks)")
"""By their KIND in the C file."""
SOURCE = Path(__file__).parents[1] / "plugins_like_qemus.c"
API = 1
NOTE = (
    "plugins: user and system time of QEMU, the least of 4 runs in turn; the other plugins need gcc, and "
    "QEMU's plugin API 1"
)


def rows() -> Iterator[Row]:
    """By function, and with the tree of calls, each against the same run without it, and with others."""
    boot = Boot(kernel=kernel_registry.add(KERNEL))
    with ExitStack() as resources:
        target = resources.enter_context(ExactMachine(keeps=False).instrumented(boot))
        symbols = KernelSymbols().of(target, boot).text
        scratch = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        others = {
            name: resources.enter_context(machine.instrumented(boot)) for name, machine in _others(scratch)
        }
        for name, words in PROGRAMS.items():
            steps = (Run(argv=("/ktrial/work", *words, "--clock", "tsc")),)
            runs: dict[str, Callable[[], object]] = {
                WITHOUT: partial(target.perform, steps),
                FUNCTIONS: partial(target.counted, steps, symbols),
                CALLS: partial(target.counted, steps, symbols, calls=True),
            }
            runs |= {other: partial(_performed, place, steps) for other, place in others.items()}
            least = least_of(runs, ROUNDS)
            what = f"plugin, {name}, {KERNEL}"
            for kind, most in ((FUNCTIONS, MOST_SLOWDOWN), (CALLS, None)):
                yield Row(f"{what}: {kind}", least[kind], WITHOUT, least[WITHOUT], most_slowdown=most)
            for other in others:
                most = BESIDE_THE_EMPTY if other == EMPTY else None
                beside = (other, least[other])
                yield Row(f"{what}: {FUNCTIONS}", least[FUNCTIONS], *beside, most_slowdown=most, note=NOTE)


def _others(scratch: Path) -> Iterator[tuple[str, ExactMachine]]:
    """Machines whose plugin is another one; none where there is no compiler, or QEMU has another API."""
    build = plugin.find(program.find().version)
    compiler = shutil.which("gcc")
    if not compiler or not isinstance(build, plugin.PluginBuild) or build.api != API:
        return
    scratch.chmod(0o755)  # QEMU has a user of its own
    for kind, name in enumerate(OTHERS):
        directory = scratch / str(kind)
        shutil.copytree(guest_programs.directory(), directory)
        out = directory / f"insn-v{API}.so"
        command = [compiler, "-O2", "-shared", "-fPIC", f"-DKIND={kind}", "-o", str(out), str(SOURCE)]
        subprocess.run(command, check=True)
        yield name, ExactMachine(guest=directory, keeps=False)


def _performed(target: InstrumentedTarget, steps: tuple[Step, ...]) -> None:
    """The steps under a plugin that writes nothing."""
    with memory_file("nothing") as out:
        target.counted_into(out, steps, None)


def least_of(runs: Mapping[str, Callable[[], object]], rounds: int) -> Mapping[str, float]:
    """CPU seconds of each, the least of some rounds in which they take turns."""
    taken = [{name: cpu_seconds(run) for name, run in runs.items()} for _ in range(rounds)]
    return {name: min(of_round[name] for of_round in taken) for name in runs}


def cpu_seconds(action: Callable[[], object]) -> float:
    """CPU seconds of the processes that the action starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
