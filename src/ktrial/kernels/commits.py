"""The commits of a git tree between two kernels: which the ends are, and what each commit changes."""

import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from ktrial.kernels.build.sources import GIT_PREFIX, Objects, git, git_objects, git_parts
from ktrial.kernels.errors import KernelError, KernelUsageError, SourceUnusable
from ktrial.kernels.patch_series import keep_patch
from ktrial.kernels.source_definitions import SourceAt
from ktrial.model.kernel import Kernel, Patch, SeriesPatch
from ktrial.text_lines import lines_of

_TREE = "a git tree of Linux: git:~/linux"
_RANGE = "--range A..B names two commits or tags of the tree"
_VERSION = re.compile(r"(\d+\.\d+)(?:\.(\d+))?(?:[-~]?(rc\d+))?")
_SHORT = 12
_FORMAT = "%x01%H%x01%P%x01%an%x01%as%x01%s"
_UPSTREAM = re.compile(
    r"^\s*(?:\[\s*Upstream commit ([0-9a-f]{40})\s*\]|commit ([0-9a-f]{40}) upstream\.?)\s*$",
    re.MULTILINE | re.IGNORECASE,
)
"""How a stable branch's commits name the one that they were taken from
(Documentation/process/stable-kernel-rules.rst)."""


@dataclass(frozen=True)
class CommitRange:
    """What lies between two kernels in a git tree."""

    directory: Path
    """The tree's top; of a bare repository, itself."""
    before: str
    """Whole names of commits."""
    after: str
    names: tuple[str, str]
    """What the two ends were called: a tag, a revision, or the beginning of the commit's name."""
    notes: tuple[str, ...] = ()
    """What has to be known of it, one sentence each."""

    @property
    def text(self) -> str:
        """`v6.1.192..v6.12`."""
        return "..".join(self.names)

    @cached_property
    def fork(self) -> str:
        """The last commit that both ends have."""
        return git(self.directory, self.before, "merge-base", self.before, self.after).strip()

    @property
    def is_line(self) -> bool:
        """Whether the second end was made from the first."""
        return self.fork == self.before


@dataclass(frozen=True)
class FileChange:
    """What a commit does to one file: names of blobs, empty where there is no such file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Commit:
    """One commit that is no merge."""

    name: str
    parent: str
    author: str
    date: str
    """`2024-05-06`, of the author."""
    subject: str
    files: tuple[FileChange, ...] = ()

    @property
    def short(self) -> str:
        """As the kernel's developers write it."""
        return self.name[:_SHORT]


def git_tree(text: str) -> Path:
    """The top of the tree that `git:DIRECTORY` means. Raises KernelUsageError."""
    name = text.removeprefix(GIT_PREFIX)
    place = Path(name).expanduser().absolute()
    if "@" in name and not place.exists():
        place_only = name.rpartition("@")[0]
        problem = "it names a revision: the range follows from the kernels that are compared"
        raise _unusable(text, problem, f"write git:{place_only}; {_RANGE}")
    if not place.is_dir():
        raise _unusable(text, f"there is no directory {place}", f"give {_TREE}")
    with suppress(SourceUnusable):
        return Path(git(place, text, "rev-parse", "--show-toplevel").strip() or place)
    try:  # a bare repository has no work tree
        git(place, text, "rev-parse", "--git-dir")
    except SourceUnusable:
        advice = (
            f"give {_TREE}; git clone https://git.kernel.org/pub/scm/linux/kernel/git/stable/linux.git "
            "has all releases"
        )
        raise _unusable(text, f"{place} is no git tree", advice) from None
    return place


def named_range(directory: Path, text: str) -> CommitRange:
    """What `--range A..B` says. Raises KernelUsageError."""
    begin, dots, end = text.partition("..")
    if not begin or not dots or end.startswith("."):
        raise KernelUsageError(f"--range: {text} is not A..B.", hint=_RANGE)
    ends = (begin, end or "HEAD")
    commits = [_revision(directory, name) for name in ends]
    for name, commit in zip(ends, commits, strict=True):
        if not commit:
            problem = f"it has no commit '{name}'{_shallow(directory)}"
            raise _unusable(str(directory), problem, _bring(directory))
    return _checked(CommitRange(directory, commits[0], commits[1], ends))


def range_between(directory: Path, names: tuple[str, str], kernel: Callable[[str], Kernel]) -> CommitRange:
    """The range from one kernel to the other. `kernel`: has one by its name, asked where the name is none of
    a commit.

    Raises KernelUsageError where the tree has not both, or both are one; and as `kernel`.
    """
    ends = [_end(directory, name, kernel) for name in names]
    notes = dict.fromkeys(note for _, _, note in ends if note)
    (first, begin, _), (second, end, _) = ends
    return _checked(CommitRange(directory, first, second, (begin, end), tuple(notes)))


def _checked(commits: CommitRange) -> CommitRange:
    if commits.before == commits.after:
        text = f"Both kernels are the commit {commits.before[:_SHORT]} of {commits.directory}."
        raise KernelUsageError(text, hint=f"no commit lies between them; {_RANGE}")
    try:
        is_line, fork = commits.is_line, commits.fork
    except SourceUnusable:
        problem = f"{commits.text}: the two have no commit in common{_shallow(commits.directory)}"
        raise _unusable(str(commits.directory), problem, _bring(commits.directory)) from None
    if is_line:
        return commits
    if fork == commits.after:
        hint = f"{_RANGE}, the older one first; or compare the kernels the other way round"
        raise KernelUsageError(f"{commits.text} runs backwards: its end is older than its start.", hint=hint)
    note = (
        f"{commits.text} part at {_named(commits.directory, fork)}: listed are the commits of the second "
        "since then, without those that the first names as taken from there"
    )
    return replace(commits, notes=(*commits.notes, note))


def _end(directory: Path, name: str, kernel: Callable[[str], Kernel]) -> tuple[str, str, str]:
    """The commit that a kernel is, what it is called, and what has to be known of that."""
    if name.startswith(GIT_PREFIX):
        place, revision = git_parts(name)
        commit = _commit_of(directory, place.expanduser(), revision)
        if commit:
            return commit, revision, ""
        problem = f"it has not the commit of {name}"
        raise _unusable(str(directory), problem, f"give the tree that the kernels are built from; {_RANGE}")
    kernel_there = kernel(name)
    build = kernel_there.origin.build
    if build and build.source.startswith(GIT_PREFIX):
        place, revision = git_parts(build.source)
        for built in (kernel_there.origin.version, revision):
            if commit := _commit_of(directory, place, built):
                extra = (
                    f"{name} has {len(build.patches)} patches on top of its commit" if build.patches else ""
                )
                return commit, built, extra
    return _release(directory, name, kernel_there)


def _release(directory: Path, name: str, kernel: Kernel) -> tuple[str, str, str]:
    """The commit of the version that the kernel says it is."""
    texts = (kernel.origin.version, kernel.release)
    version = next((match for text in texts if (match := _VERSION.match(text))), None)
    if version is None:
        problem = f"nothing tells which commit {name} is"
        raise _unusable(str(directory), problem, _RANGE)
    series, update, candidate = version.groups()
    text = (
        series + (f".{update}" if update and update != "0" else "") + (f"-{candidate}" if candidate else "")
    )
    commit = _revision(directory, f"refs/tags/v{text}") or _by_subject(directory, text)
    if not commit:
        stable = "; a stable release is in the stable tree, not in the mainline" if update else ""
        problem = f"{name} is {text}, and the tree has neither a tag v{text} nor a commit 'Linux {text}'"
        raise _unusable(
            str(directory), f"{problem}{_shallow(directory)}", f"{_bring(directory)}{stable}; {_RANGE}"
        )
    packaged = kernel.origin.provider in {"debian", "rpm"}
    note = (
        f"{name} is a distribution's kernel of {text}: its own patches are in none of these commits"
        if packaged
        else ""
    )
    return commit, f"v{text}", note


def _by_subject(directory: Path, version: str) -> str:
    """The commit that made a release, where tags are missing."""
    arguments = ("log", "--all", "-1", "--format=%H", f"--grep=^Linux {re.escape(version)}$")
    with suppress(KernelError):
        return git(directory, version, *arguments).strip()
    return ""


def _commit_of(directory: Path, place: Path, revision: str) -> str:
    """The commit that is called so where the kernel was built, if the tree has it; else empty."""
    if not place.is_dir():
        return _revision(directory, revision)
    commit = _revision(place, revision)
    return _revision(directory, commit) if commit else ""


def _revision(directory: Path, name: str) -> str:
    """Its whole name; empty where the tree has no such commit."""
    if not name:
        return ""
    arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    command = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.strip()


def _named(directory: Path, commit: str) -> str:
    with suppress(KernelError):
        return git(directory, commit, "describe", "--tags", "--exact-match", commit).strip()
    return commit[:_SHORT]


def _is_shallow(directory: Path) -> bool:
    return git(directory, "HEAD", "rev-parse", "--is-shallow-repository").strip() == "true"


def _shallow(directory: Path) -> str:
    return " (it is a shallow clone)" if _is_shallow(directory) else ""


def _bring(directory: Path) -> str:
    more = "--unshallow" if _is_shallow(directory) else "--tags"
    return f"git -C {directory} fetch {more}"


def _unusable(tree: str, problem: str, advice: str) -> KernelUsageError:
    return KernelUsageError(
        f"The commits of {tree} cannot be listed: {problem}.", hint=advice, problem=problem
    )


# The commits themselves, and the files of any of them.


def count_of(commits: CommitRange) -> int:
    """How many commits the range has, merges apart."""
    arguments = ("rev-list", "--count", "--no-merges", commits.after, f"^{commits.before}")
    return int(git(commits.directory, commits.after, *arguments))


def commits_in(commits: CommitRange, paths: Collection[str]) -> Iterator[Commit]:
    """Those that change one of the files, the oldest first, with what they change of these files."""
    names = frozenset(paths)
    if not names:
        return
    # git compares each path with each of the patterns: of many files it is given their directories.
    tops = sorted({_top_of(path) for path in names})
    form = ["-z", "--raw", "--no-abbrev", "--no-renames", "--no-show-signature", f"--format={_FORMAT}"]
    ends = ["--end-of-options", commits.after, f"^{commits.before}", "--", *tops]
    text = git(commits.directory, commits.text, "log", "--no-merges", "--reverse", *form, *ends)
    taken = frozenset() if commits.is_line else _taken_by_first(commits)
    for commit in _read(text, names):
        if commit.files and commit.name not in taken:
            yield commit


def _top_of(path: str) -> str:
    return "/".join(path.split("/")[:2]) if path.count("/") > 1 else path


def _read(text: str, paths: Collection[str]) -> Iterator[Commit]:
    """`git log -z --raw`: a commit, then for each file two words."""
    commit: Commit | None = None
    files: list[FileChange] = []
    words = iter(text.split("\0"))
    for word in words:
        plain = word.lstrip("\n")
        if plain.startswith("\1"):
            if commit:
                yield replace(commit, files=tuple(files))
            name, parents, author, date, subject = plain[1:].split("\1", 4)
            commit, files = Commit(name, parents.partition(" ")[0], author, date, subject), []
        elif plain.startswith(":"):
            _, _, old, new, _ = plain[1:].split(" ", 4)
            path = next(words, "")
            if path in paths:
                files.append(FileChange(path, *("" if set(blob) == {"0"} else blob for blob in (old, new))))
    if commit:
        yield replace(commit, files=tuple(files))


def _taken_by_first(commits: CommitRange) -> frozenset[str]:
    """Commits that the first end's own branch has already, under other names: as its messages say."""
    arguments = ("log", "--format=%B", commits.before, f"^{commits.fork}")
    messages = git(commits.directory, commits.before, *arguments)
    return frozenset(first or second for first, second in _UPSTREAM.findall(messages))


@dataclass(frozen=True)
class Blobs:
    """Contents of a tree's files."""

    objects: Objects

    def source(self, commit: str) -> SourceAt:
        """The files of a commit."""
        return SourceAt(lambda path: self.content(f"{commit}:{path}"))

    def content(self, name: str) -> bytes | None:
        """Of a blob, or `COMMIT:PATH`; None where there is none."""
        try:
            return self.objects.content(name)
        except OSError:
            return None


@contextmanager
def blobs(commits: CommitRange) -> Iterator[Blobs]:
    """Read contents of the tree."""
    with git_objects(commits.directory) as objects:
        yield Blobs(objects)


def files_defining(
    commits: CommitRange, commit: str, names: Collection[str], below: Collection[str]
) -> list[str]:
    """Files of the directories that have `NAME(` at the beginning of a definition, as far as a line tells."""
    if not names:
        return []
    pattern = _definition_of(names)
    for kind in ("-P", "-E"):  # git may lack PCRE, which is ten times as fast
        command = ["git", "-C", str(commits.directory), "grep", "-l", kind, "-e", pattern, commit, "--"]
        done = subprocess.run(
            [*command, *sorted(below)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode <= 1:
            return [line.partition(":")[2] for line in lines_of(done.stdout)]
    return []


def _definition_of(names: Collection[str]) -> str:
    """One expression for all: with several, git looks at each line several times."""
    functions = "|".join(sorted(names))
    calls = [call[1] for name in sorted(names) if (call := re.fullmatch(r"__do_sys_(\w+)", name))]
    ways = [rf"([A-Za-z_].*[ *])?({functions})\(", rf"SYM_[A-Z_]*START[A-Z_]*\(({functions})\)"]
    ways += [rf"SYSCALL_DEFINE[0-9]\(({'|'.join(calls)})\b"] if calls else []
    return f"^({'|'.join(ways)})"


# A commit taken back out of a later one, as `git revert` does it: what came between may have moved its lines.


class NotTakenBack(KernelError):
    """Later commits change the same lines."""


def taken_back(directory: Path, tip: str, commits: Sequence[SeriesPatch]) -> tuple[Patch, ...]:
    """Patches on top of the tip that take the commits back, in that order.

    What git makes for it is kept apart from the repository. Raises NotTakenBack, SourceUnusable.
    """
    patches: list[Patch] = []
    with _apart(directory) as run:
        tree = run("rev-parse", f"{tip}^{{tree}}")
        for step in commits:
            base = run("commit-tree", "-m", "with it", f"{step.commit}^{{tree}}")
            ours = run("commit-tree", "-p", base, "-m", "the tip", tree)
            theirs = run("commit-tree", "-p", base, "-m", "without it", f"{step.parent}^{{tree}}")
            merged = run("merge-tree", "--write-tree", ours, theirs)
            text = run("diff", *_PLAIN_DIFF, tree, merged)
            patches.append(
                keep_patch(
                    step.number, f"undo {step.subject}", f"{text}\n".encode("utf-8", "surrogateescape")
                )
            )
            tree = merged
    return tuple(patches)


_PLAIN_DIFF = ("--no-renames", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")
_NOBODY = {f"GIT_{who}_{what}": "ktrial" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@contextmanager
def _apart(directory: Path) -> Iterator[Callable[..., str]]:
    """Run git so that new objects go to a directory that is deleted afterwards."""
    objects = git(directory, "HEAD", "rev-parse", "--git-path", "objects").strip()
    with TemporaryDirectory(prefix="ktrial-git-") as scratch:
        own = {
            "GIT_OBJECT_DIRECTORY": scratch,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((directory / objects).resolve()),
        }

        def run(*arguments: str) -> str:
            done = subprocess.run(
                ["git", "-C", str(directory), *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**os.environ, **_NOBODY, **own},
                check=False,
            )
            if done.returncode:
                raise NotTakenBack(f"git {arguments[0]} does not take it back.")
            return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

        yield run
