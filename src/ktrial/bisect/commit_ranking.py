"""The commits between two kernels, ranked by what they touch of a measured difference; nothing is built.

A function that does something differently is looked for in the source of both ends, with all that the
compiler inlines into it, the data that this names and the structures. A commit touches it where it changes
the tokens of one of those.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ktrial.analysis.attribution.behaviour import Behaviour, behaviours
from ktrial.format.number_format import counted
from ktrial.kernels import Progress, silent
from ktrial.kernels.commits import Blobs, Commit, CommitRange, blobs, commits_in, count_of, files_defining
from ktrial.kernels.source_definitions import (
    Definition,
    DefinitionKind,
    InlinedSource,
    Key,
    Place,
    SourceAt,
    changed,
    definitions_in,
)
from ktrial.model.attribution import Attribution, FunctionDifference
from ktrial.model.commits import CommitList, RankedCommit, Relation, Touch
from ktrial.model.profile import GENERATED, PROGRAM, UNKNOWN

_MOST_FUNCTIONS = 60
_LEAST_SHARE = 0.002
"""Of what functions do differently: those with less are not looked for."""
_NOT_IN_SOURCE = frozenset({PROGRAM, UNKNOWN, GENERATED})
_SYSTEM_CALLS = ("__x64_sys_", "__ia32_sys_", "__se_sys_", "__do_sys_")
_DIRECTORIES = (
    *("arch/x86", "block", "crypto", "drivers/base", "drivers/char", "fs", "include", "init", "io_uring"),
    *("ipc", "kernel", "lib", "mm", "net", "security"),
)
"""Where a function is looked for of which the kernel's image tells no file."""
_CLOSENESS = {relation: place for place, relation in enumerate(Relation)}


def ranked_commits(
    attribution: Attribution,
    commits: CommitRange,
    compiled: Collection[str] = (),
    progress: Progress = silent,
) -> CommitList:
    """The commits of the range that touch what functions do differently.

    `compiled`: names of the functions that the kernels have code of their own for. Raises SourceUnusable,
    ToolMissing.
    """
    parts = [part for part in behaviours(attribution) if part.row.function not in _NOT_IN_SOURCE]
    whole = sum(part.weight for part in parts)
    telling = [part for part in parts if whole and part.weight >= _LEAST_SHARE * whole][:_MOST_FUNCTIONS]
    with blobs(commits) as contents:
        search = _TreeSearch(commits, contents, frozenset(compiled), progress)
        places, unplaced = search.places(telling)
        shares = {id(part.row): part.weight / whole for part in telling}
        ranked, looked_at = search.ranked(places, shares)
    return CommitList(
        directory=str(commits.directory),
        range=commits.text,
        before=commits.before,
        after=commits.after,
        is_line=commits.is_line,
        commits=count_of(commits),
        looked_at=looked_at,
        functions=len(telling),
        ranked=tuple(ranked),
        unplaced=tuple(part.row.name for part in unplaced),
        unplaced_share=sum(shares[id(part.row)] for part in unplaced),
        notes=commits.notes,
    )


def names_in_source(row: FunctionDifference) -> tuple[str, ...]:
    """What the source may call the function of a row: without what the compiler appends."""
    symbols = (*row.after.names, *row.before.names, row.function)
    return tuple(dict.fromkeys(_name_in_source(symbol) for symbol in symbols))


def _name_in_source(symbol: str) -> str:
    name = symbol.partition(".")[0]
    for beginning in _SYSTEM_CALLS:
        if name.startswith(beginning):
            return f"__do_sys_{name.removeprefix(beginning)}"
    return name


Parts = Mapping[Place, Mapping[int, tuple[FunctionDifference, Relation]]]
"""What is defined where → the rows that it is a part of, by their identity."""


@dataclass
class _TreeSearch:
    """Reads the tree."""

    commits: CommitRange
    contents: Blobs
    compiled: frozenset[str]
    progress: Progress
    _inlined: dict[tuple[int, str], InlinedSource] = field(default_factory=dict)

    def places(self, telling: Sequence[Behaviour]) -> tuple[Parts, list[Behaviour]]:
        """What the functions consist of at both ends; and those that no file defines."""
        self.progress("looking for functions in the source")
        parts: dict[Place, dict[int, tuple[FunctionDifference, Relation]]] = defaultdict(dict)
        placed: set[int] = set()
        for end in (self.commits.after, self.commits.before):
            source = self.contents.source(end)
            files = self._files(source, end, telling)
            for part in telling:
                for place, relation in self._parts(source, part.row, files):
                    placed.add(id(part.row))
                    known = parts[place].get(id(part.row))
                    if known is None or _CLOSENESS[relation] < _CLOSENESS[known[1]]:
                        parts[place][id(part.row)] = part.row, relation
        return parts, [part for part in telling if id(part.row) not in placed]

    def _files(self, source: SourceAt, end: str, telling: Iterable[Behaviour]) -> Mapping[str, Sequence[str]]:
        """Name of a function → files that define it, of which the image tells none."""
        unknown: set[str] = set()
        below: set[str] = set()
        for part in telling:
            if not _defines(source, part.row.file, names_in_source(part.row)):
                unknown.update(names_in_source(part.row))
                below.update([part.row.file] if part.row.file.endswith("/") else _DIRECTORIES)
        files: dict[str, list[str]] = defaultdict(list)
        for path in files_defining(self.commits, end, unknown, below):
            for name in unknown:
                if _defines(source, path, (name,)):
                    files[name].append(path)
        return files

    def _parts(
        self, source: SourceAt, row: FunctionDifference, files: Mapping[str, Sequence[str]]
    ) -> Iterable[tuple[Place, Relation]]:
        for name in names_in_source(row):
            paths = (
                [row.file]
                if _defines(source, row.file, (name,))
                else [
                    path
                    for path in files.get(name, ())
                    if not row.file.endswith("/") or path.startswith((row.file, "include/"))
                ]
            )
            for path in paths:
                yield from self._source_file(source, path).parts(name).items()

    def _source_file(self, source: SourceAt, path: str) -> InlinedSource:
        key = (id(source), path)
        if key not in self._inlined:
            self._inlined[key] = InlinedSource(source, path, source.headers([path]), self.compiled)
        return self._inlined[key]

    def ranked(self, places: Parts, shares: Mapping[int, float]) -> tuple[list[RankedCommit], int]:
        """The commits that change one of the places, and how many change one of the files."""
        listed = list(commits_in(self.commits, {path for path, _ in places}))
        self.progress(f"reading {counted(len(listed), 'commit')}")
        rows = []
        for number, commit in enumerate(listed, start=1):
            if row := self._row(number, commit, places, shares):
                rows.append(row)
        newest_first = reversed(rows)
        return sorted(newest_first, key=_rank), len(listed)

    def _row(
        self, number: int, commit: Commit, places: Parts, shares: Mapping[int, float]
    ) -> RankedCommit | None:
        touches: dict[int, Touch] = {}
        files: dict[str, None] = {}
        size = 0
        for path, key, tokens in self._changed(commit):
            for identity, (row, relation) in places.get((path, key), {}).items():
                files[path] = None
                known = touches.get(identity)
                if known is None or _CLOSENESS[relation] < _CLOSENESS[known.relation]:
                    through = f"struct {key.name}" if key.kind is DefinitionKind.STRUCTURE else key.name
                    touches[identity] = Touch(
                        function=row.name, through=through, relation=relation, share=shares[identity]
                    )
            size += tokens if (path, key) in places else 0
        if not touches:
            return None
        ordered = sorted(touches.values(), key=lambda touch: (_is_structure(touch), -touch.share))
        return RankedCommit(
            place=number,
            commit=commit.name,
            parent=commit.parent,
            subject=commit.subject,
            author=commit.author,
            date=commit.date,
            share=sum(touch.share for touch in ordered if not _is_structure(touch)),
            by_structures=sum(touch.share for touch in ordered if _is_structure(touch)),
            size=size,
            touches=tuple(ordered),
            files=tuple(files),
        )

    def _changed(self, commit: Commit) -> Iterable[tuple[str, Key, int]]:
        """What the commit changes; what only moves from one of the files to another stays the same."""
        sides = [
            (
                change.path,
                self._definitions(change.old, change.path),
                self._definitions(change.new, change.path),
            )
            for change in commit.files
        ]
        old = {(key, old_side[key].tokens) for _, old_side, _ in sides for key in old_side}
        new = {(key, new_side[key].tokens) for _, _, new_side in sides for key in new_side}
        for path, before, after in sides:
            for key, tokens in changed(before, after).items():
                came = key in after and (key, after[key].tokens) in old and key not in before
                went = key in before and (key, before[key].tokens) in new and key not in after
                if not (came or went):
                    yield path, key, tokens

    def _definitions(self, blob: str, path: str) -> Mapping[Key, Definition]:
        content = self.contents.content(blob) if blob else None
        if content is None:
            return {}
        return definitions_in(content.decode("utf-8", "replace"), is_assembly=path.endswith(".S"))


def _defines(source: SourceAt, path: str, names: Iterable[str]) -> bool:
    if not path or path.endswith("/"):
        return False
    functions = source.definitions(path)
    return any(Key(DefinitionKind.FUNCTION, name) in functions for name in names)


def _is_structure(touch: Touch) -> bool:
    return touch.relation is Relation.STRUCTURE


def _rank(commit: RankedCommit) -> tuple[float, float, int]:
    return (-round(commit.share, 6), -round(commit.by_structures, 6), -commit.size)
