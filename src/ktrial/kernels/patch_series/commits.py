"""A series out of a git tree: the commits of BASE..TIP along first parents, each a step.

Names are resolved to commits once, at the start: what a rebase or a fetch moves meanwhile stays as it was.
Nothing is checked out, and the work tree is not looked at but to say that it holds more.
"""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ktrial.kernels.build.errors import SourceUnusable
from ktrial.kernels.build.source_git import git
from ktrial.kernels.patch_series.errors import BadCommitRange
from ktrial.kernels.patch_series.kept_patches import kept
from ktrial.model.kernel import Patch, PatchSeries, SeriesKind, SeriesPatch

_SHORT = 12
_FORMAT = "%x01%H%x01%P%x01%s%x01%an <%ae>"
"""Of a commit; the paths that it changes come after it, each with a zero byte behind it."""
_WRITE = "write BASE..TIP: v6.1..my-branch, HEAD~12..HEAD; BASE.. ends at HEAD"


def series_in_git(directory: Path, text: str) -> PatchSeries:
    """The commits that `text` (BASE..TIP) names. Raises BadCommitRange, SourceUnusable, ToolMissing."""
    begin, dots, end = text.partition("..")
    if not dots or end.startswith(".") or not begin:
        raise _bad(directory, text, "it is no BASE..TIP", _WRITE)
    top = _top(directory, text)
    base, tip = (_commit(top, text, name) for name in (begin, end or "HEAD"))
    if base == tip:
        raise _bad(top, text, "both ends are the same commit", _WRITE)
    _check_line(top, text, base, tip)
    patches = tuple(_steps(top, text, base, tip))
    if patches[0].parent != base:
        advice = f"begin at a commit of that line: git -C {top} log --first-parent {end or 'HEAD'}"
        raise _bad(top, text, f"{begin} does not lie on the line of first parents of {end or 'HEAD'}", advice)
    title = patches[0].subject if len(patches) == 1 else ""
    return PatchSeries(
        kind=SeriesKind.GIT,
        origin=text,
        base=f"git:{top}@{base}",
        title=title,
        patches=patches,
        notes=_notes(top, text, patches),
    )


def undoing(directory: Path, one: SeriesPatch) -> Patch:
    """A patch that takes the commit back. Raises SourceUnusable."""
    return _difference(directory, one, f"undo {one.subject}", one.commit, one.parent)


def as_patch(directory: Path, one: SeriesPatch) -> Patch:
    """The commit as a patch. Raises SourceUnusable."""
    return _difference(directory, one, one.subject, one.parent, one.commit)


def _difference(directory: Path, one: SeriesPatch, name: str, before: str, after: str) -> Patch:
    plain = ["--no-renames", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"]
    text = git(directory, one.commit, "diff", *plain, before, after)
    return kept(one.number, name, text.encode("utf-8", "surrogateescape"))


def _top(directory: Path, text: str) -> Path:
    place = directory.expanduser().absolute()
    if not place.is_dir():
        raise _bad(place, text, "there is no such directory", "--git DIR names the tree")
    with suppress(SourceUnusable):
        return Path(git(place, text, "rev-parse", "--show-toplevel").strip() or place)
    try:  # a bare repository has no work tree
        git(place, text, "rev-parse", "--git-dir")
    except SourceUnusable as error:
        problem = str(error.facts["problem"])
        raise _bad(place, text, problem, "--git DIR names the tree; --mbox and --quilt need none") from None
    return place


def _commit(top: Path, text: str, name: str) -> str:
    try:
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
        return git(top, name, *asked).strip()
    except SourceUnusable:
        advice = f"git -C {top} fetch --unshallow" if _is_shallow(top) else f"git -C {top} branch -a, or tag"
        shallow = ", a shallow clone" if _is_shallow(top) else ""
        raise _bad(top, text, f"there is no commit '{name}' in it{shallow}", advice) from None


def _check_line(top: Path, text: str, base: str, tip: str) -> None:
    """Raise BadCommitRange where the one is not before the other."""
    command = ["git", "-C", str(top), "merge-base", "--is-ancestor", base, tip]
    if subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
        return
    if _is_shallow(top):
        problem = "it is a shallow clone, where no way leads from the one to the other"
        raise _bad(top, text, problem, f"git -C {top} fetch --unshallow")
    fork = ""
    with suppress(SourceUnusable):
        fork = git(top, text, "merge-base", base, tip).strip()[:_SHORT]
    advice = f"they part at {fork}: {fork}..{text.partition('..')[2] or 'HEAD'}" if fork else _WRITE
    raise _bad(top, text, "its base is no ancestor of its tip", advice)


def _is_shallow(top: Path) -> bool:
    return git(top, "HEAD", "rev-parse", "--is-shallow-repository").strip() == "true"


def _steps(top: Path, text: str, base: str, tip: str) -> Iterator[SeriesPatch]:
    """Each commit with what it changes against its first parent; the oldest first."""
    paths = ["-z", "-m", "--name-only", "--no-renames", "--no-show-signature"]
    wanted = ["log", "--first-parent", "--reverse", *paths, f"--format={_FORMAT}", f"{base}..{tip}"]
    commits: list[tuple[list[str], list[str]]] = []
    for word in git(top, text, *wanted).split("\0"):
        plain = word.lstrip("\n")
        if plain.startswith("\1"):
            commits.append((plain[1:].split("\1", 3), []))
        elif plain:
            commits[-1][1].append(plain)
    return (_step(number, fields, paths) for number, (fields, paths) in enumerate(commits, start=1))


def _step(number: int, fields: Iterable[str], paths: Iterable[str]) -> SeriesPatch:
    commit, parents, subject, author = fields
    before, *others = parents.split() or [""]
    return SeriesPatch(
        number=number,
        subject=subject,
        name=commit[:_SHORT],
        author=author,
        commit=commit,
        parent=before,
        merge=bool(others),
        paths=tuple(paths),
    )


def _notes(top: Path, text: str, patches: tuple[SeriesPatch, ...]) -> tuple[str, ...]:
    notes = []
    if merges := sum(one.merge for one in patches):
        counted = "1 step is a merge" if merges == 1 else f"{merges} steps are merges"
        notes.append(f"{counted}: such a step is all that the merge brings")
    try:
        changed = git(top, text, "status", "--porcelain", "--untracked-files=no")
    except SourceUnusable:  # a bare repository
        changed = ""
    if changed.strip():
        count = len(changed.splitlines())
        words = (
            "1 changed file of the work tree is"
            if count == 1
            else f"{count} changed files of the work tree are"
        )
        notes.append(f"{words} in no commit: left out")
    return tuple(notes)


def _bad(directory: Path, text: str, problem: str, advice: str) -> BadCommitRange:
    return BadCommitRange(name=text, text=text, directory=directory, problem=problem, advice=advice)
