"""What a source tree says of how it is to be measured: workloads and limits by path, in `.ktrial.toml`.

    [paths."mm/"]
    workloads = ["fork", "mmap"]
    max = "+0.5%"

The tree is often somebody else's. So the file is data alone: names of built-in workloads and limits; it is
short, a plain file, and nothing in it is run. It is read from the base, which no patch of a series changes.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ktrial.format import number_format
from ktrial.kernels.build.sources import git, git_parts
from ktrial.model import notation
from ktrial.model.base import Model, Text, quantity
from ktrial.studyfile.diagnostics import Mistakes, StudySource, read_table
from ktrial.studyfile.errors import StudyError, StudyMistake
from ktrial.studyfile.tables import KeyTable
from ktrial.studyfile.toml_files import parsed

NAME = ".ktrial.toml"
LARGEST = 64 * 1024
"""Bytes of the file."""
_MOST_PATHS, _MOST_WORKLOADS = 100, 10
_PLAIN_MODES = ("100644", "100755")
_GIT = "git:"
_HINT = (
    "what may stand in it: ktrial help series; with --workload and --max on the command line it is not read"
)
_PATH = re.compile(r"(?!/)(?:(?!\.\.?/)[^\x00-\x1f\x7f/]+/?){1,20}")

_LIMIT = quantity(lambda text: notation.margin(text.strip()), lambda limit: f"+{limit:.6%}")


class PathTable(KeyTable):
    """`[paths."mm/"]`."""

    workloads: list[Text] = Field(
        [],
        description='a list of at most 10 built-in workloads: ["fork", "mmap"]',
        max_length=_MOST_WORKLOADS,
    )
    max: Annotated[float | None, *_LIMIT] = Field(
        None, description='the largest change for the worse that is allowed: "+0.5%"'
    )


class TreeTable(KeyTable):
    """The file."""

    paths: dict[str, PathTable] = Field(
        {}, description='tables by path: [paths."mm/"]', max_length=_MOST_PATHS
    )


class PathRule(Model):
    """What is measured where a file below a path is changed."""

    path: str
    """A directory or a file, from the top of the tree, without a slash at its end."""
    workloads: tuple[str, ...] = ()
    """Names of built-in workloads."""
    limit: float | None = None
    """A fraction: the largest change for the worse; of all workloads where the rule names none."""

    def __str__(self) -> str:
        """`mm: fork, mmap, +0.5 %`."""
        limit = [f"+{number_format.percentage(self.limit)}"] if self.limit is not None else []
        return f"{self.path}: {', '.join([*self.workloads, *limit])}"

    def holds(self, path: str) -> bool:
        """Whether the file is below the path, or is it."""
        return path == self.path or path.startswith(f"{self.path}/")


class TreeRules(Model):
    """All rules of a tree."""

    file: str = ""
    """Where they were read, for messages."""
    rules: tuple[PathRule, ...] = ()

    def of(self, paths: Iterable[str]) -> "TreeRules":
        """The rules that count for a change of these files: of each file the one with the longest path."""
        counting = set()
        for path in paths:
            fitting = [rule for rule in self.rules if rule.holds(path)]
            if fitting:
                counting.add(max(fitting, key=lambda rule: len(rule.path)).path)
        return TreeRules(file=self.file, rules=tuple(rule for rule in self.rules if rule.path in counting))

    @property
    def workloads(self) -> tuple[str, ...]:
        """All that they name, once each, in the order of the file."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.workloads))

    def limit(self, workload: str) -> float | None:
        """The least that they set for a workload; None: they set none."""
        limits = [
            rule.limit
            for rule in self.rules
            if rule.limit is not None and (not rule.workloads or workload in rule.workloads)
        ]
        return min(limits, default=None)

    def limits(self, otherwise: Mapping[str, float]) -> dict[str, float]:
        """Of each workload, by its label; `otherwise`: where no rule sets one."""
        return {label: self.limit(label) or plain for label, plain in otherwise.items()}

    def options(self, labels: Iterable[str]) -> list[str]:
        """The same as `--max` has them: `fork=+0.5%`."""
        limits = ((label, self.limit(label)) for label in labels)
        return [f"{label}=+{100 * limit:g}%" for label, limit in limits if limit]

    def __str__(self) -> str:
        """`by .ktrial.toml of the base: mm: fork, mmap, +0.5 %`; empty where there is no rule."""
        return f"by {NAME} of the base: {'; '.join(map(str, self.rules))}" if self.rules else ""


def rules_in(source: str, names: Collection[str]) -> TreeRules:
    """The rules of a source: of a directory, or of a commit (`git:DIRECTORY@REVISION`); else there are none.

    `names`: of the built-in workloads. Raises StudyError where its file is none that may be read,
    StudySyntaxError, StudyMistake, and what git raises.
    """
    if source.startswith(_GIT):
        directory, revision = git_parts(source)
        place, content = f"{revision[:12]}:{NAME}", _in_commit(directory, revision)
    else:
        place, content = str(Path(source) / NAME), _in_directory(Path(source))
    return TreeRules() if content is None else _rules(content, place, names)


def _in_commit(directory: Path, revision: str) -> bytes | None:
    listed = git(directory, revision, "ls-tree", "-l", "--full-tree", revision, "--", NAME)
    if not listed:
        return None
    mode, _, blob, size = listed.partition("\t")[0].split()
    if mode not in _PLAIN_MODES:
        raise _refused(f"{revision[:12]}:{NAME}", "it is no plain file")
    if int(size) > LARGEST:
        raise _refused(f"{revision[:12]}:{NAME}", _too_large())
    return git(directory, revision, "cat-file", "blob", blob).encode(errors="surrogateescape")


def _in_directory(directory: Path) -> bytes | None:
    """Nothing is followed out of the tree, and nothing is waited for (a pipe, a device)."""
    path = directory / NAME
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problem = "it is no plain file" if path.is_symlink() else f"it cannot be read: {error.strerror}"
        raise _refused(path, problem) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refused(path, "it is no plain file")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise _refused(path, _too_large())
    return content


def _too_large() -> str:
    return f"it has more than {LARGEST // 1024} KiB"


def _refused(place: object, problem: str) -> StudyError:
    return StudyError(f"{place}: {problem}.", hint=_HINT)


def _rules(content: bytes, place: str, names: Collection[str]) -> TreeRules:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise _refused(place, "it is not UTF-8 text") from None
    try:
        data = parsed(text, Path(place))
        mistakes = Mistakes(StudySource(place, text), data)
        table = read_table(TreeTable, data, (), mistakes)
        rules = _checked(table.paths if table else {}, names, mistakes)
        mistakes.raise_any()
    except StudyError as error:
        kind = StudyMistake if isinstance(error, StudyMistake) else StudyError
        raise kind(error.message, hint=_HINT) from None
    return TreeRules(file=place, rules=rules)


def _checked(
    tables: Mapping[str, PathTable], names: Collection[str], mistakes: Mistakes
) -> tuple[PathRule, ...]:
    rules: dict[str, PathRule] = {}
    for written, table in tables.items():
        place = ("paths", written)
        if not _PATH.fullmatch(written) or len(written) > 200:
            mistakes.add(place, 'a path leads down from the top of the tree: "mm/", "fs/pipe.c"')
            continue
        path = written.removesuffix("/")
        if path in rules:
            mistakes.add(place, "this path is here twice")
        if not table.workloads and table.max is None:
            mistakes.add(place, "the table is empty: workloads, max or both stand in it")
        for number, name in enumerate(table.workloads):
            if name not in names:
                mistakes.unknown((*place, "workloads", number), "workload", name, names)
        rules[path] = PathRule(path=path, workloads=tuple(dict.fromkeys(table.workloads)), limit=table.max)
    return tuple(rules.values())
