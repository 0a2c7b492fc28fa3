"""Apply patches to the few files that they name, beside the source: the source itself is never written to."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from unidiff import PatchSet, UnidiffParseError

from ktrial.kernels.build.errors import BadPatch, PatchNotApplied
from ktrial.kernels.build.recipes import EXECUTABLE, LINK, PLAIN, content_kept, object_of
from ktrial.kernels.build.sources import Snapshot, SourceReader
from ktrial.kernels.errors import ToolMissing
from ktrial.model.kernel import Patch

_FILE = re.compile(r"^--- ([^\t\n]+)[^\n]*\n\+\+\+ ([^\t\n]+)[^\n]*\n@@ ", re.MULTILINE)
_MOVED = re.compile(r"^(?:rename|copy) (from|to) (.+)$", re.MULTILINE)
_MADE_OR_GONE = re.compile(
    r"^diff --git a/(?P<path>\S+) b/(?P=path)\n(?:old mode|new file mode|deleted file mode)", re.MULTILINE
)
_BINARY = re.compile(r"^(?:GIT binary patch|Binary files .* differ)$", re.MULTILINE)
_FAILED = re.compile(r"^Hunk #(?P<number>\d+) FAILED at (?P<line>\d+)", re.MULTILINE)
_INEXACT = re.compile(
    r"^Hunk #(?P<number>\d+) succeeded at (?P<line>\d+)(?: with fuzz (?P<fuzz>\d+))?"
    r"(?: \(offset (?P<offset>-?\d+) lines?\))?\.$",
    re.MULTILINE,
)
_PATCHING = re.compile(r"^(?:patching|checking) file '?(?P<file>[^'\n]+?)'?(?: \(.*\))?$", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*$", re.MULTILINE)
_NOTHING = "/dev/null"
_SHOWN_LINES = 6


@dataclass
class Overlay:
    """What patches make of a source: for each path its new mode and content; None where it is gone."""

    files: dict[str, tuple[str, bytes] | None] = field(default_factory=dict)
    inexact: list[str] = field(default_factory=list)
    """Hunks that apply elsewhere than the patch says, or to other lines around them, in words."""

    def entries(self) -> dict[str, str | None]:
        """As a manifest has them."""
        return {
            path: f"{one[0]} {object_of(one[1])}" if one is not None else None
            for path, one in self.files.items()
        }


def patched(snapshot: Snapshot, patches: tuple[Patch, ...], scratch: Path) -> Overlay:
    """Apply the patches in order, in the empty directory `scratch`.

    Raises BadPatch: unreadable, empty, binary, or with paths outside; PatchNotApplied, which says which hunk
    of which file; ToolMissing.
    """
    overlay = Overlay()
    if not patches:
        return overlay
    if shutil.which("patch") is None:
        raise ToolMissing(name=snapshot.asked, tool="patch", purpose="apply patches", package="patch")
    with snapshot.reader() as reader:
        for number, patch in enumerate(patches):
            place = scratch / str(number)
            place.mkdir()
            _apply(patch, snapshot, overlay, reader, place)
    return overlay


def text_of(patch: Patch) -> str:
    """The patch, as it was when its digest was taken. Raises BadPatch."""
    path = content_kept(patch.digest) or Path(patch.path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise bad(path, f"it cannot be read: {error.strerror}", "give the path of a file") from None
    if hashlib.sha256(content).hexdigest() != patch.digest:
        raise bad(path, "it was changed after it was asked for", "start again")
    return content.decode("utf-8", "surrogateescape")


def paths_in(patch: str, text: str) -> dict[str, bool]:
    """The paths that a patch names, and whether each must be there before. Raises BadPatch."""
    if not text.strip():
        raise bad(patch, "it is empty", "git diff, or git format-patch, writes one")
    if _BINARY.search(text):
        raise bad(patch, "it changes a binary file", "leave that out: git diff without --binary")
    try:
        # patch itself takes a hunk whose last lines are lost.
        PatchSet(text)
    except UnidiffParseError as error:
        raise bad(patch, f"it is damaged, or cut short: {error}", "write it again: git diff") from None
    paths: dict[str, bool] = {match["path"]: False for match in _MADE_OR_GONE.finditer(text)}
    for old, new in _FILE.findall(text):
        if old != _NOTHING:
            paths[_stripped(patch, old)] = new == _NOTHING or _stripped(patch, old) == _stripped(patch, new)
        if new != _NOTHING:
            paths.setdefault(_stripped(patch, new), False)
    for direction, path in _MOVED.findall(text):
        paths[path] = direction == "from"
    if not paths:
        raise bad(patch, "there is no change of a file in it", "it must be a unified diff: diff -u, git diff")
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or ".git" in parts:
            raise bad(patch, f"it changes {path}, outside of the source", "paths start at the source's top")
    return paths


def bad(path: str | Path, problem: str, advice: str) -> BadPatch:
    """The error about a patch that is none."""
    return BadPatch(name=path, directory="", path=path, problem=problem, advice=advice)


def _stripped(patch: str, path: str) -> str:
    """Without the first directory, as `patch -p1` takes it."""
    if path.startswith(("/", "../")) or "/../" in path:
        raise bad(patch, f"it changes {path}, outside of the source", "paths look like a/mm/slub.c")
    first, slash, rest = path.strip().strip('"').partition("/")
    if not slash:
        raise bad(patch, f"its path {first} has no directory in front", "paths look like a/mm/slub.c")
    return rest


def _apply(patch: Patch, snapshot: Snapshot, overlay: Overlay, reader: SourceReader, place: Path) -> None:
    text = text_of(patch)
    paths = paths_in(patch.path, text)
    files = snapshot.manifest.files
    for path, needed in paths.items():
        _check_links(patch, path, files)
        there = path in overlay.files or path in files
        current = overlay.files.get(path)
        if path not in overlay.files and there:
            current = (files[path].split()[0], reader.content(path))
        if current is not None:
            _put(place / path, *current)
        elif needed:
            raise _not_applied(patch, snapshot, f"there is no {path} in it", "is it for another version?")
    overlay.inexact += _inexact(patch, _run(patch, snapshot, text, place))
    for path in paths:
        overlay.files[path] = _got(place / path)


def _check_links(patch: Patch, path: str, files: Mapping[str, str]) -> None:
    """A path may not lead through, or to, a symbolic link: it would be written where the link points."""
    for one in (path, *map(str, PurePosixPath(path).parents)):
        if files.get(one, "").startswith(LINK):
            advice = "name the file that the link leads to"
            raise bad(patch.path, f"it changes {path}, and {one} is a symbolic link", advice)


def _put(target: Path, mode: str, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(0o755 if mode == EXECUTABLE else 0o644)


def _got(path: Path) -> tuple[str, bytes] | None:
    if not path.is_file():
        return None
    return EXECUTABLE if os.access(
        path, os.X_OK
    ) and path.stat().st_mode & 0o100 else PLAIN, path.read_bytes()


def _run(patch: Patch, snapshot: Snapshot, text: str, place: Path) -> str:
    """Apply it, and return what patch said. Raises PatchNotApplied, BadPatch."""
    command = ["patch", "-p1", "--forward", "--batch", "--no-backup-if-mismatch", "-r", "-", "-d", str(place)]
    done = subprocess.run(
        command,
        input=text.encode("utf-8", "surrogateescape"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        raise _refused(patch, snapshot, text, said)
    return said


def _inexact(patch: Patch, said: str) -> list[str]:
    """Each hunk that did not lie where the patch says, or whose surrounding lines differ."""
    warnings = []
    for match in _INEXACT.finditer(said):
        how = []
        if match["offset"]:
            lines = abs(int(match["offset"]))
            way = "earlier" if match["offset"].startswith("-") else "later"
            how.append(f"{lines} {'line' if lines == 1 else 'lines'} {way} than it says")
        if match["fuzz"]:
            how.append(f"where lines around it differ (fuzz {match['fuzz']})")
        where = f"hunk {match['number']} of {_file_before(said, match.start())}"
        warnings.append(f"{Path(patch.path).name}: {where} applies {', '.join(how)}")
    return warnings


def _refused(patch: Patch, snapshot: Snapshot, text: str, said: str) -> PatchNotApplied | BadPatch:
    """What patch said, with the first lines of the hunk that it means."""
    if "Reversed (or previously applied)" in said:
        file = _file_before(said, said.index("Reversed (or previously applied)"))
        return _not_applied(patch, snapshot, f"{file} has its change already", "leave the patch out")
    failed = _FAILED.search(said)
    if failed is None:
        telling = ("malformed", "garbage", "***")
        lines = [line for line in said.splitlines() if any(word in line for word in telling)]
        return bad(patch.path, (lines or said.splitlines() or ["patch fails"])[0], "is it cut short?")
    file, number = _file_before(said, failed.start()), int(failed["number"])
    advice = _hunk(text, file, number) or "is it for another version?"
    return _not_applied(patch, snapshot, f"hunk {number} of {file} fails at line {failed['line']}", advice)


def _file_before(said: str, position: int) -> str:
    named = [match["file"] for match in _PATCHING.finditer(said, 0, position)]
    return named[-1] if named else "a file"


def _hunk(text: str, file: str, number: int) -> str:
    """The first lines of a file's hunk."""
    for part in re.split(r"^(?=--- )", text, flags=re.MULTILINE):
        head = part.partition("\n@@")[0]
        if re.search(rf"^(?:---|\+\+\+) [^/\n]*/{re.escape(file)}(?:\t.*)?$", head, re.MULTILINE):
            starts = [match.start() for match in _HUNK.finditer(part)]
            if number <= len(starts):
                lines = part[starts[number - 1] :].splitlines()[:_SHOWN_LINES]
                return "the hunk starts with:\n" + "\n".join(f"  {line}" for line in lines)
    return ""


def _not_applied(patch: Patch, snapshot: Snapshot, problem: str, advice: str) -> PatchNotApplied:
    facts = {"path": patch.path, "problem": problem, "advice": advice}
    return PatchNotApplied(name=snapshot.asked, directory=snapshot.asked, **facts)
