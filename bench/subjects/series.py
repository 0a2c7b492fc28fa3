"""What `ktrial series` costs beside the least that it could: make, and restored trials, and nothing else.

In CPU seconds of all processes, so that other programs on the machine matter less. One patch to one .c file
that nothing includes, from the patch to the verdict, over five workloads; and one patch to documentation. The
patch is another one each time: neither ktrial's cache nor ccache has seen it. Both build without the sandbox,
and nothing is built from nothing.
"""

import difflib
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from rich.table import Table

from bench.row import Row, told
from ktrial.experiment.jobs import jobs_of
from ktrial.experiment.profile import KernelSymbols
from ktrial.experiment.resources import default_resources
from ktrial.experiment.trial import run_trial
from ktrial.kernels.build.build_trees import held_tree_of
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.debian_sources import debian_source
from ktrial.kernels.build.make import Make
from ktrial.kernels.build.recipes import recipe_of
from ktrial.kernels.build.requests import requested
from ktrial.kernels.build.sources import tree_in
from ktrial.machines.exact import ExactMachine
from ktrial.model.study import MachineSettings, Study, plan
from ktrial.model.workload import WorkloadUse

PACKAGE = "linux-source-6.1"
SOURCE = f"debian:{PACKAGE}"
WORKLOADS = ("fork", "pipe", "open", "stat", "syscall")
FILE, LINE = "fs/open.c", "\tint fd = build_open_flags(how, &op);\n\tstruct filename *tmp;\n"
DOCUMENT, TITLE = "Documentation/mm/slub.rst", "Short users guide for SLUB"
MOST_SLOWDOWN = 1.5
"""From patch to verdict, over make and five restored trials."""
LONGEST_OWN = 15.0
"""CPU seconds of the command and its helpers: two images are read and compared, a kernel is kept."""
LONGEST_DOCUMENTATION = 3.0
"""CPU seconds of a patch that compiles nothing."""
_PARTS: dict[str, float] = {}
"""Where the CPU seconds of the patch went."""


def rows() -> Iterator[Row]:
    """Both patches, on a base that is built and measured, as it is for each patch but the first."""
    with tempfile.TemporaryDirectory() as directory:
        _without_sandbox(Path(directory))
        bench = _Bench(Path(directory))
        bench.series(bench.documentation())
        bench.series(bench.code())
        code, document = bench.code(), bench.documentation()
        ours = cpu_seconds(partial(bench.series, code))
        documentation = cpu_seconds(partial(bench.series, document))
        make, (boot, trials) = bench.bare_make(code), bench.bare_trials()
        started = cpu_seconds(lambda: _run("--version"))
        known = {"make": make, "restored trials": trials, "boot": boot, "starting ktrial": started}
        _PARTS.update(known, rest=ours - sum(known.values()))
        yield Row(
            f"series: a patch to one .c file, {len(WORKLOADS)} workloads (CPU)",
            ours,
            "make and restored trials alone",
            make + trials,
            most_slowdown=MOST_SLOWDOWN,
        )
        what = "series: the command itself, beside make, boot and trials (CPU)"
        yield Row(what, ours - make - boot - trials, most_seconds=LONGEST_OWN)
        what = "series: a patch to documentation (CPU)"
        yield Row(what, documentation, most_seconds=LONGEST_DOCUMENTATION)


def tables() -> Iterator[Table]:
    """Where the CPU seconds of a patch to one .c file went."""
    whole = sum(_PARTS.values())
    drawn = Table("where a patch's CPU seconds go", "CPU", "share")
    for name, part in _PARTS.items():
        drawn.add_row(name, told(part), f"{100 * part / whole:.0f} %")
    yield drawn


@dataclass
class _Bench:
    """The source, and patches to it that nobody has seen."""

    place: Path
    source: Path = field(default_factory=lambda: debian_source(PACKAGE))
    numbers: Iterator[int] = field(default_factory=lambda: count(os.getpid()))

    def code(self) -> Path:
        """A patch to one .c file that nothing includes."""
        return self._patch(FILE, LINE, self._slower(next(self.numbers)))

    def documentation(self) -> Path:
        """A patch that compiles nothing."""
        return self._patch(DOCUMENT, TITLE, f"Users guide {next(self.numbers)} of SLUB")

    def series(self, patch: Path) -> None:
        """What a user types."""
        store, workloads = str(self.place / "trials.db"), ",".join(WORKLOADS)
        asked = ("--quilt", str(patch.parent), "--onto", SOURCE, "--workload", workloads)
        plainly = ("--trust", "--rebuild", "0", "--perturbations", "1")
        _run("series", *asked, *plainly, "--store", store)

    def bare_make(self, patch: Path) -> float:
        """CPU seconds of make in the tree that compiled `patch` last, after one more change of its file."""
        recipe = recipe_of(requested(SOURCE, patches=(str(patch),), directory=self.place).name)
        assert recipe is not None, "it was built in a series"
        with held_tree_of(recipe.content) as tree:
            assert tree is not None, "nothing was compiled since"
            file = tree.source / FILE
            before = file.read_bytes()
            changed = before.decode().replace(LINE, self._slower(next(self.numbers)))
            make = Make(tree_in(tree.source), tree.home, lambda *_: None, products=tree.build)
            file.unlink()  # a link may lead to the cache's own
            try:
                file.write_text(changed)
                return cpu_seconds(lambda: make.run("bench", "vmlinux"))
            finally:
                file.write_bytes(before)

    def bare_trials(self) -> tuple[float, float]:
        """CPU seconds of QEMU: of a boot up to its snapshot, and of a restored trial of each workload."""
        kernel = build(requested(SOURCE, directory=self.place))
        study = Study(
            name="bench",
            machine=MachineSettings(kernel=kernel.name),
            factors=(),
            workloads=tuple(WorkloadUse(name=name) for name in WORKLOADS),
            perturbations=1,
        )
        planned = plan(study)
        jobs = jobs_of(study, planned.baseline, kernel, default_resources())
        machine = ExactMachine(cache=self.place / "snapshots")
        boots = [partial(machine.prepare, job.boot, lambda _what: None) for job in jobs]
        boot = cpu_seconds(lambda: [each() for each in boots])
        symbols = KernelSymbols()
        # The first one reads the symbols too.
        once = [
            cpu_seconds(lambda: run_trial(machine, planned.trials[0], jobs, symbols=symbols)) for _ in "ab"
        ]
        return boot, once[-1]

    def _patch(self, path: str, old: str, new: str) -> Path:
        before = (self.source / path).read_text()
        assert before.count(old) == 1, f"{path} has it once"
        one, other = (text.splitlines(keepends=True) for text in (before, before.replace(old, new)))
        home = Path(tempfile.mkdtemp(dir=self.place))
        (home / "series").write_text("one.patch\n")
        patch = home / "one.patch"
        patch.write_text("".join(difflib.unified_diff(one, other, f"a/{path}", f"b/{path}")))
        return patch

    @staticmethod
    def _slower(instructions: int) -> str:
        return f'{LINE}\n\tasm volatile(".rept {instructions % 4000}; nop; .endr");\n'


def _without_sandbox(place: Path) -> None:
    """Build without bubblewrap: CPU seconds in another namespace of processes are not told to who waits."""
    programs = place / "bin"
    programs.mkdir()
    failing = programs / "bwrap"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"


def _run(*words: str) -> None:
    """ktrial; whether a limit was passed is not asked here."""
    command = [str(Path(sys.executable).with_name("ktrial")), *words]
    # As for who has installed it: modules are compiled once, not at each start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")


def cpu_seconds(action: Callable[[], object]) -> float:
    """CPU seconds of the processes that the action starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
