"""What `ktrial series` costs beside the least that it could: make, and restored trials, and nothing else.

In CPU seconds of all processes, so that other programs on the machine matter less. One patch to one .c file
that nothing includes, from the patch to the verdict, over five workloads; one patch to documentation; six
patches to that .c file over two workloads, beside an earlier commit: `make bench BENCH=series AGAINST=ID`.
Each time they are others: neither ktrial's cache nor ccache has seen them. All build in the sandbox, and from
nothing only the base, where the cache has no build tree of it.
"""

import ctypes
import difflib
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from rich.table import Table

from bench.row import Row, told
from bench.subjects.quick import PROGRAM, checkout
from ktrial.experiment.jobs import jobs_of
from ktrial.experiment.profile import KernelSymbols
from ktrial.experiment.resources import default_resources
from ktrial.experiment.trial import run_trial
from ktrial.kernels.build.build_trees import MOST_TREES, held_tree_of, kept_trees
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
SIX, SIX_WORKLOADS = 6, ("open", "stat")
AGAINST = "2d0d0bd4b"
"""The commit before trees were listed and images read once a series; the variable AGAINST names another."""
SIX_TIMES_FASTER = 2.0
"""The command itself, beside builds, of six patches."""
BUILDS = (
    "builds are what make and its sandbox took, which is left out on both sides; boots and trials are in: "
    "they are the same ones"
)
_PARTS: dict[str, float] = {}
"""Where the CPU seconds of the patch went."""


def rows() -> Iterator[Row]:
    """All of them, on a base that is built and measured, as it is for each patch but the first."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    with tempfile.TemporaryDirectory() as directory:
        bench = _Bench(Path(directory))
        bench.series(bench.documentation())
        bench.series(bench.code())
        while len(kept_trees()) < MOST_TREES:  # from then on each tree takes an old one's place
            bench.series(bench.code())
        code, document = bench.code(), bench.documentation()
        ours = cpu_seconds(partial(bench.series, code)).whole
        documentation = cpu_seconds(partial(bench.series, document)).whole
        make, (boot, trials) = bench.bare_make(code), bench.bare_trials()
        started = cpu_seconds(lambda: _run("--version")).whole
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
        yield bench.beside_earlier(os.environ.get("AGAINST", AGAINST))


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

    def series(
        self, patch: Path, workloads: tuple[str, ...] = WORKLOADS, checkout: Path | None = None
    ) -> None:
        """What a user types; in this ktrial, or in that of a checkout."""
        store = self.place / f"trials-{checkout.name if checkout else 'here'}.db"
        series = ("--quilt", str(patch.parent), "--onto", SOURCE, "--workload", ",".join(workloads))
        plainly = ("--trust", "--rebuild", "0", "--perturbations", "1")
        _run("series", *series, *plainly, "--store", str(store), checkout=checkout)

    def beside_earlier(self, commit: str) -> Row:
        """Six patches, beside that commit: what is no build, after a run of each that does not count."""
        with checkout(commit) as there:
            used = []
            for place in (None, there):
                run = partial(self.series, workloads=SIX_WORKLOADS, checkout=place)
                run(self.code())
                six = self.six()
                used.append(cpu_seconds(partial(run, six)))
        ours, theirs = (cpu.whole - cpu.builds for cpu in used)
        what = f"series: {SIX} patches, {len(SIX_WORKLOADS)} workloads, beside builds (CPU)"
        return Row(what, ours, commit, theirs, least_ratio=SIX_TIMES_FASTER, note=BUILDS)

    def six(self) -> Path:
        """The first of six patches, each to what the one before has left."""
        texts = [LINE, *(self._slower(next(self.numbers)) for _ in range(SIX))]
        home = Path(tempfile.mkdtemp(dir=self.place))
        names = [f"{number}.patch" for number in range(1, SIX + 1)]
        (home / "series").write_text("".join(f"{name}\n" for name in names))
        for name, old, new in zip(names, texts, texts[1:], strict=False):
            (home / name).write_text(self._difference(FILE, old, new))
        return home / names[0]

    def bare_make(self, patch: Path) -> float:
        """CPU seconds of make in the tree that compiled `patch` last, after one more change of its file."""
        recipe = recipe_of(requested(SOURCE, patches=(str(patch),), directory=self.place).name)
        assert recipe is not None, "it was built in a series"
        with held_tree_of(recipe.content) as tree:
            assert tree is not None, "nothing was compiled since"
            file = tree.source / FILE
            before = file.read_bytes()
            changed = before.decode().replace(LINE, self._slower(next(self.numbers)))
            make = Make(
                tree_in(tree.source),
                tree.home,
                lambda *_: None,
                products=tree.build,
                ccache=tree.home / "ccache",
                seen_at=tree.place,
            )
            file.unlink()  # a link may lead to the cache's own
            try:
                file.write_text(changed)
                return cpu_seconds(lambda: make.run("bench", "vmlinux")).whole
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
        snapshots, symbols = self.place / "snapshots", KernelSymbols()

        # A machine keeps a QEMU for its next trial, and its time is told once that has ended.
        def boot() -> None:
            machine = ExactMachine(cache=snapshots)
            for job in jobs:
                machine.prepare(job.boot, lambda _what: None)

        def trial() -> None:
            run_trial(ExactMachine(cache=snapshots), planned.trials[0], jobs, symbols=symbols)

        booted = cpu_seconds(boot).whole
        # The first one reads the symbols too.
        return booted, [cpu_seconds(trial).whole for _ in "ab"][-1]

    def _patch(self, path: str, old: str, new: str) -> Path:
        home = Path(tempfile.mkdtemp(dir=self.place))
        (home / "series").write_text("one.patch\n")
        patch = home / "one.patch"
        patch.write_text(self._difference(path, old, new))
        return patch

    def _difference(self, path: str, old: str, new: str) -> str:
        """`old` and `new` each stand in the place of what the source has once."""
        source, base = (self.source / path).read_text(), LINE if path == FILE else old
        assert source.count(base) == 1, f"{path} has it once"
        before, after = (source.replace(base, text).splitlines(keepends=True) for text in (old, new))
        return "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))

    @staticmethod
    def _slower(instructions: int) -> str:
        return f'{LINE}\n\tasm volatile(".rept {instructions % 4000}; nop; .endr");\n'


def _run(*words: str, checkout: Path | None = None) -> None:
    """ktrial, or that of a checkout; whether a limit was passed is not looked at here."""
    # As for who has installed it: modules are compiled once, not at each start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if checkout:
        environment["PYTHONPATH"] = str(checkout / "src")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")


_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_CHILD_SUBREAPER = 36
"""prctl(2): who has lost its parent is this process' child. Nobody else waits for what bubblewrap starts in a
namespace of processes: its time would be lost."""


@dataclass(frozen=True)
class Cpu:
    """CPU seconds, user's and system's."""

    whole: float
    builds: float
    """Of it, what nobody waited for: what ran in a sandbox."""


def cpu_seconds(action: Callable[[], object]) -> Cpu:
    """CPU seconds of all processes that the action starts."""
    _wait_for_all()  # what earlier ones have left is not this one's
    before = _of_children()
    action()
    waited_for = _of_children()
    _wait_for_all()
    after = _of_children()
    return Cpu(after - before, after - waited_for)


def _wait_for_all() -> None:
    """Until no child is left, nor what became this process' child."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
