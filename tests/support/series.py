"""Series of patches over sources that a fake builder 'builds': what a patch is called says what it does."""

import difflib
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.support.fake_builds import FakeBuilder
from tests.support.real_runs import run_shown
from tests.support.scripted import ScriptedMachine, ends, scripted_resources

from ktrial.experiment.resources import Builder
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.build.debian_sources import debian_source
from ktrial.kernels.errors import BuildFailed, OptionNotTaken, PatchNotApplied
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, Patch
from ktrial.model.machine import Boot
from ktrial.model.trial import Outcome
from ktrial.store.store import Store
from ktrial.target import Run, StepResult

DIFF = "--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-int a;\n+long {name};\n"


class SeriesBuilder(FakeBuilder):
    """`cost-fork-10.patch` makes fork 10 instructions longer; `noop`, `broken`, `unapplied`, `panic` and
    `mend` do what they are called; the option LATE can be set with `Kconfig-late` only, and RARE never.
    """

    @property
    def builder(self) -> Builder:
        return replace(
            super().builder,
            applies=self.applies,
            configured=self.resolves,
            not_applying=lambda _plain, patches, _progress: {
                number: not_applied() for number, files in patches if "unapplied" in " ".join(names_in(files))
            },
        )

    def resolves(self, wanted: Build, progress: Progress) -> dict[str, str]:
        self.applies(wanted, progress)
        late = self._has(wanted, "Kconfig-late")
        for name in wanted.options:
            if name.endswith("RARE") or (name.endswith("LATE") and not late):
                facts = {"option": name, "wanted": "y", "problem": "it became n", "advice": ""}
                raise OptionNotTaken(directory="linux", **facts)
        return {}

    def _build(self, wanted: Build, progress: Progress) -> Kernel:
        self.resolves(wanted, progress)
        broken, mended = (self._has(wanted, word) for word in ("broken", "mend"))
        if broken and not mended:
            with self._lock:
                self.built.append(wanted)
            raise BuildFailed(directory="linux", problem="mm/a.c:1: error: no", log="build.log")
        return super()._build(wanted, progress)

    def applies(self, wanted: Build, progress: Progress) -> None:
        if self._has(wanted, "unapplied"):
            raise not_applied()

    @staticmethod
    def _has(wanted: Build, word: str) -> bool:
        return any(word in name for name in names_in(wanted.patches))

    @staticmethod
    def kernel(wanted: Build) -> Kernel:
        """Documentation and what is called `noop` change no content."""
        telling = [
            name for name in names_in(wanted.patches) if "noop" not in name and not name.startswith("doc")
        ]
        kernel = FakeBuilder.kernel(wanted)
        return kernel.model_copy(update={"digest": digest(telling)})


def not_applied() -> PatchNotApplied:
    """What is said of a patch that is called `unapplied`."""
    facts = {"path": "unapplied.patch", "problem": "hunk 1 of mm/a.c fails at line 3", "advice": ""}
    return PatchNotApplied(directory="linux", **facts)


def names_in(patches: Iterable[Patch]) -> list[str]:
    """What the patches are called: by their subjects, where a file holds several; else by the file."""
    names = []
    for one in patches:
        subjects = re.findall(r"^Subject: mm: (\S+)", Path(one.path).read_text(), re.MULTILINE)
        names += subjects or [Path(one.path).stem]
    return names


def answer(boot: Boot, run: Run) -> StepResult:
    """1000 instructions, and what the patches of the kernel add to the workload."""
    patches: tuple[Patch, ...] = boot.kernel.origin.build.patches if boot.kernel.origin.build else ()
    names = names_in(patches)
    if any("panic" in name for name in names) and not any("mend" in name for name in names):
        raise ends(Outcome.PANICKED, "Kernel panic - not syncing: planted")
    more = sum(int(match[1]) for name in names if (match := re.search(rf"cost-{run.argv[0]}-(-?\d+)", name)))
    return StepResult(step=0, do="run", exit=0, stdout=str(1000 + more))


def runs(store: Store, builder: SeriesBuilder, machine: ScriptedMachine | None = None) -> Runs:
    return Runs(
        store,
        machine=machine or ScriptedMachine(answer),
        resources=scripted_resources(builder=builder.builder),
    )


def a_series(directory: Path, *names: str) -> Path:
    """A quilt directory whose patches are called so; `doc…` is documentation, all else is mm/NAME.c."""
    directory.mkdir(exist_ok=True)
    for name in names:
        path = f"Documentation/{name}.rst" if name.startswith("doc") else f"mm/{name}.c"
        (directory / f"{name}.patch").write_text(
            f"Subject: mm: {name}\n\n" + DIFF.format(path=path, name=name)
        )
    (directory / "series").write_text("".join(f"{name}.patch\n" for name in names))
    return directory


# Series of patches of ours to a real source, as quilt keeps them, and the command that measures them.
#
# What costs instructions is `nop`s.

SOURCE = "linux-source-6.1"


KTRIAL = Path(sys.executable).with_name("ktrial")


NOPS = 'asm volatile(".rept {count}; nop; .endr");'


class Planted:
    """Patches, each a change of some files on top of those before it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._tree = debian_source(SOURCE)
        self._files: dict[str, str] = {}
        self.names: list[str] = []

    def patch(self, name: str, path: str, old: str, new: str, *, stays: bool = True) -> None:
        """Change `old` in the file, which has it once. `stays`: whether later ones build upon it."""
        before = self._files.get(path) or (self._tree / path).read_text()
        assert before.count(old) == 1, (name, path, before.count(old))
        after = before.replace(old, new)
        one, other = (each.splitlines(keepends=True) for each in (before, after))
        text = "".join(difflib.unified_diff(one, other, f"a/{path}", f"b/{path}"))
        self.names.append(f"{len(self.names) + 1:02}-{re.sub('[ ,]+', '-', name)}.patch")
        (self.place / self.names[-1]).write_text(f"Subject: planted: {name}\n\n---\n{text}")
        if stays:
            self._files[path] = after

    def write(self) -> Path:
        (self.place / "series").write_text("".join(f"{name}\n" for name in self.names))
        return self.place

    def slower(self, path: str, function: str, instructions: int) -> None:
        """A patch after which this function begins with so many instructions that do nothing."""
        text = self._files.get(path) or (self._tree / path).read_text()
        begins = re.findall(rf"^\w[^\n;{{}}]*\b{function}\([^;{{}}]*\)\n{{\n", text, re.MULTILINE)
        assert len(begins) == 1, (path, function, begins)
        self.patch(function, path, begins[0], f"{begins[0]}\t{NOPS.format(count=instructions)}\n")


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [
        KTRIAL,
        "series",
        "--onto",
        f"debian:{SOURCE}",
        "--store",
        place / "x.db",
        *words,
    ]
    return run_shown(command, place)
