"""A git tree whose commits are 'built' by a fake: a commit's subject says what its kernel costs."""

import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.fake_builds import FakeBuilder, git
from tests.support.scripted import ScriptedMachine, a_kernel, scripted_resources

from ktrial.experiment.resources import Builder
from ktrial.experiment.single_kernel import Runs
from ktrial.kernels import Progress
from ktrial.kernels.build.recipes import Recipe, keep
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
    """`fork: 1010` costs that; a subject with `broken` does not compile. What was built is on record."""

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
            raise BuildFailed(directory=self.tree, problem=problem, log="build.log")
        keep(Recipe(build=wanted, fingerprint="", content=""))
        origin = Origin(provider="build", source=wanted.source, build=wanted)
        release = f"6.12-{subject.rpartition(' ')[2]}"
        return a_kernel(wanted.name, release=release, digest=digest(wanted.source), origin=origin)


def answer(boot: Boot, _run: Run) -> StepResult:
    return StepResult(step=0, do="run", exit=0, stdout=boot.kernel.release.rpartition("-")[2])


def runs(store: Store, builder: CommitBuilder) -> Runs:
    return Runs(store, machine=ScriptedMachine(answer), resources=scripted_resources(builder=builder.builder))


# A small history of Linux: Debian's source, and commits on it of which one slows a system call.

GUILTY = "getppid: look twice"


@dataclass(frozen=True)
class Change:
    """One commit: in one file, one text for another; an empty `old` appends."""

    subject: str
    file: str
    new: str
    old: str = ""

    def apply(self, tree: Path) -> None:
        path = tree / self.file
        text = path.read_text(encoding="utf-8")
        assert self.old in text, f"{self.file} has no longer what the commit '{self.subject}' changes"
        changed = text.replace(self.old, self.new, 1) if self.old else text + self.new
        path.write_text(changed, encoding="utf-8")


def unused(name: str) -> str:
    """A function that nobody calls: it moves those behind it."""
    head = f"int noinline __used ktrial_{name}(int a)"
    return f"\n{head};\n{head}\n{{\n\treturn a * 3;\n}}\n"


HISTORY = (
    Change("README: a line more", "README", "\nNothing that is compiled.\n"),
    Change("pipe: a function more", "fs/pipe.c", unused("pipe")),
    Change("mmap: a function more", "mm/mmap.c", unused("mmap")),
    Change("params: does not compile", "kernel/params.c", "\nthis is no C;\n"),
    Change("params: compiles again", "kernel/params.c", "\n", old="\nthis is no C;\n"),
    Change(
        GUILTY,
        "kernel/sys.c",
        "\tint pid, again;\n\n\tfor (again = 0; again < 20; again++)\n\t\tbarrier();\n\n\trcu_read_lock();\n"
        "\tpid = task_tgid_vnr(rcu_dereference(current->real_parent));",
        old="\tint pid;\n\n\trcu_read_lock();\n\tpid = task_tgid_vnr(rcu_dereference(current->real_parent));",
    ),
    Change("unix: a function more", "net/unix/garbage.c", unused("unix")),
    Change("read_write: a comment more", "fs/read_write.c", "\n/* The end. */\n"),
)


class Repository:
    """The source with its history, in a git repository of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def make(cls, source: Path, directory: Path) -> "Repository":
        """The source's copy is kept between runs: its files keep their times, and make their products."""
        made, base = cls(directory), source.name
        if not made.has(base):
            shutil.rmtree(directory, ignore_errors=True)
            directory.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", source, directory], check=True)
            made.git("init", "--quiet")
            made.commit("Linux, as Debian has it", "--all")
            made.git("tag", base)
        made.git("bisect", "reset")
        made.git("checkout", "--quiet", "--force", "-B", "master", base)
        made.git("tag", "--force", "good")
        for change in HISTORY:
            change.apply(directory)
            made.commit(change.subject, change.file)
        return made

    def has(self, tag: str) -> bool:
        return (self.directory / ".git" / "refs" / "tags" / tag).exists()

    def commit(self, subject: str, what: str) -> None:
        # Debian's own .gitignore leaves all of the source out.
        self.git("add", "--force", what)
        self.git("commit", "--quiet", "--message", subject)

    def git(self, *arguments: str) -> str:
        author = ["-c", "user.name=ktrial", "-c", "user.email=ktrial@localhost", "-c", "gc.auto=0"]
        done = subprocess.run(
            ["git", *author, *arguments],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout.strip()

    def commit_of(self, subject: str) -> str:
        return self.git("log", "--format=%H", f"--grep=^{subject}$")
