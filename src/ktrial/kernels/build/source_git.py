"""A revision of a git repository as a source: its tree is listed and read, nothing is checked out."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ktrial.kernels.build.errors import SourceUnusable
from ktrial.kernels.build.recipes import Manifest
from ktrial.kernels.errors import ToolMissing
from ktrial.system_tools import Tool

GIT = Tool("git", "git", "reads a git repository")

_UNKNOWN = ("Needed a single revision", "bad revision", "Not a valid object name")


def manifest_at(repository: Path, revision: str) -> Manifest:
    """The manifest of a commit's tree. Raises SourceUnusable, ToolMissing."""
    tree = git(repository, revision, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}")
    listed = git(repository, revision, "ls-tree", "-r", "-z", "--full-tree", tree.strip())
    files = {}
    for line in filter(None, listed.split("\0")):
        facts, _, path = line.partition("\t")
        mode, kind, name = facts.split()
        if kind == "blob":
            files[path] = f"{mode} {name}"
    return Manifest(files)


def described(repository: Path, revision: str) -> str:
    """What git calls the revision: `v6.1-14-g0123456789ab`. Raises SourceUnusable, ToolMissing."""
    return git(repository, revision, "describe", "--always", "--abbrev=12", revision).strip()


def git(repository: Path, revision: str, *arguments: str) -> str:
    """What git prints. Raises SourceUnusable, ToolMissing."""
    source = f"git:{repository}@{revision}"
    try:
        done = subprocess.run(
            ["git", "-C", repository, *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        raise ToolMissing(name=source, tool=GIT.name, purpose=GIT.purpose, package=GIT.package) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0].removeprefix("fatal: ")
        unknown = any(words in said for words in _UNKNOWN)
        problem = f"it has no revision '{revision}'" if unknown else f"git says: {said}"
        advice = f"git -C {repository} tag, or git log, shows what there is; git fetch brings more"
        raise SourceUnusable(name=source, directory=repository, source=source, problem=problem, advice=advice)
    return done.stdout.decode(errors="surrogateescape")


class Objects:
    """Contents by their names, through one `git cat-file`."""

    def __init__(self, to: IO[bytes], back: IO[bytes]) -> None:
        self._to, self._back = to, back

    def content(self, name: str) -> bytes:
        """The content of a blob."""
        self._to.write(f"{name}\n".encode())
        self._to.flush()
        header = self._back.readline().split()
        if len(header) != 3 or header[1] != b"blob":
            raise OSError(f"git has no object {name}")
        content = self._back.read(int(header[2]))
        self._back.read(1)
        return content


@contextmanager
def objects(repository: Path) -> Iterator[Objects]:
    """Read contents from a repository."""
    with subprocess.Popen(
        ["git", "-C", repository, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None, "it was asked for"
        assert process.stdout is not None, "it was asked for"
        try:
            yield Objects(process.stdin, process.stdout)
        finally:
            process.stdin.close()
