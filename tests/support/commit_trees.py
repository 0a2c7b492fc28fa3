"""A git tree whose commits are 'built' by a fake: a commit's subject says what its kernel costs."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.buildable_sources import git
from tests.support.fake_builds import FakeBuilder
from tests.support.scripted import ScriptedMachine, a_kernel, sources

from ktrial.experiment.resources import Builder
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.errors import BuildFailed
from ktrial.model.base import digest
from ktrial.model.kernel import Build, Kernel, Origin
from ktrial.model.machine import Boot
from ktrial.store.store import Store
from ktrial.target import Run, StepResult


def commit(directory: Path, subject: str, path: str = "") -> str:
    """A commit of the one file `path`, else of none, and its name. `costs 1010`: what its kernel costs."""
    if path:
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{subject}\n")
        git(directory, "add", path)
    git(directory, "commit", "--quiet", "--allow-empty", "--message", subject)
    return git(directory, "rev-parse", "HEAD")


def a_tree(directory: Path, *subjects: str) -> Path:
    """A tree with these commits on `master`, each of mm/NUMBER.c."""
    directory.mkdir()
    git(directory, "init", "--quiet", "--initial-branch", "master")
    for number, subject in enumerate(subjects):
        commit(directory, subject, f"mm/{number}.c")
    return directory


@dataclass
class CommitBuilder:
    """`fork: 1010` costs that; a subject with `broken` does not compile."""

    tree: Path
    built: list[str] = field(default_factory=list)

    @property
    def builder(self) -> Builder:
        return replace(FakeBuilder().builder, build=self.build)

    def build(self, wanted: Build, _progress: Progress) -> Kernel:
        subject = git(self.tree, "log", "-1", "--format=%s", wanted.source.rpartition("@")[2])
        self.built.append(subject)
        if "broken" in subject:
            problem = "mm/a.c:1: error: no"
            raise BuildFailed(name="linux", directory=self.tree, problem=problem, log="build.log")
        origin = Origin(provider="build", source=wanted.source, build=wanted)
        release = f"6.12-{subject.rpartition(' ')[2]}"
        return a_kernel(wanted.name, release=release, digest=digest(wanted.source), origin=origin)


def answer(boot: Boot, _run: Run) -> StepResult:
    return StepResult(step=0, do="run", exit=0, stdout=boot.kernel.release.rpartition("-")[2])


def runs(store: Store, builder: CommitBuilder) -> Runs:
    return Runs(store, machine=ScriptedMachine(answer), sources=sources(builder=builder.builder))
