"""Apply patches to the few files that they name, beside the source: the source itself is never written to.

patch(1) places the hunks; which files they change is decided here, by `patch_reader`.
"""

import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ktrial.kernels.build.errors import BadPatch, PatchNotApplied
from ktrial.kernels.build.patch_reader import FileDiff, all_ends_are_crlf, bad, series_in, starts_empty
from ktrial.kernels.build.recipes import LINK, PLAIN, content_kept, object_of
from ktrial.kernels.build.sources import Snapshot, SourceReader
from ktrial.kernels.errors import ToolMissing
from ktrial.model.kernel import Patch
from ktrial.system_tools import Tool

PATCH = Tool("patch", "patch", "applies patches")

_FAILED = re.compile(r"^Hunk #(?P<number>\d+) FAILED at (?P<line>\d+)", re.MULTILINE)
_INEXACT = re.compile(
    r"^Hunk #(?P<number>\d+) succeeded at (?P<line>\d+)(?: with fuzz (?P<fuzz>\d+))?"
    r"(?: \(offset (?P<offset>-?\d+) lines?\))?\.$",
    re.MULTILINE,
)
_PATCHING = re.compile(r"^patching file (?P<file>\d+)", re.MULTILINE)
_OTHER_VERSION = "is it for another version?"
_SHOWN_LINES = 6
_MOST_FUZZ = 2
"""What patch(1) allows where nobody says how much; a hunk that needs more has no line of context left."""


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


def patched(
    snapshot: Snapshot,
    patches: tuple[Patch, ...],
    scratch: Path,
    fuzz: int = 0,
    onto: Overlay | None = None,
) -> Overlay:
    """Apply the patches in order, in the empty directory `scratch`. `onto`: what others made of the source.

    `fuzz`: how many lines at the edges of a hunk may differ from the source's (patch(1)). Raises BadPatch:
    unreadable, empty, binary, or with paths outside; PatchNotApplied, which says which hunk of which file;
    ToolMissing.
    """
    overlay = Overlay(dict(onto.files), list(onto.inexact)) if onto else Overlay()
    if not patches:
        return overlay
    if shutil.which(PATCH.name) is None:
        raise ToolMissing(name=snapshot.asked, tool=PATCH.name, purpose=PATCH.purpose, package=PATCH.package)
    with snapshot.reader() as reader:
        for number, patch in enumerate(patches):
            text = text_of(patch)
            if all_ends_are_crlf(text):
                overlay.inexact.append(
                    f"{Path(patch.path).name}: its lines end with CR LF, and are taken with LF"
                )
            for part, files in enumerate(series_in(patch.path, text)):
                place = scratch / f"{number}-{part}"
                place.mkdir()
                _Part(patch, files, snapshot, overlay, reader, place).apply(fuzz)
                shutil.rmtree(place)
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


def paths_in(patch: str, text: str) -> tuple[str, ...]:
    """The paths that a patch names, each once. Raises BadPatch."""
    files = (one for part in series_in(patch, text) for one in part)
    return tuple(dict.fromkeys(path for one in files for path in one.paths))


@dataclass(frozen=True)
class _Part:
    """One patch of a file. `patch` never sees the names in it: its files are called by their numbers."""

    patch: Patch
    files: list[FileDiff]
    snapshot: Snapshot
    overlay: Overlay
    reader: SourceReader
    place: Path

    def apply(self, fuzz: int) -> None:
        """Change the overlay. Raises BadPatch, PatchNotApplied."""
        before = [self._before(one) for one in self.files]
        status, said = self._run(before, fuzz)
        if status:
            raise self._refused(said, before)
        self.overlay.inexact += self._inexact(said)
        for number, (one, (mode, _)) in enumerate(zip(self.files, before, strict=True)):
            path = self.place / str(number)
            content = path.read_bytes() if path.exists() else b""
            if one.new is None and content:
                raise self._not_applied(f"it deletes {one.old}, which holds more", _OTHER_VERSION)
            if one.old is not None and not one.copies:
                self.overlay.files[one.old] = None
            if one.new is not None:
                self.overlay.files[one.new] = (one.mode or mode, content)

    def _before(self, one: FileDiff) -> tuple[str, bytes]:
        """Mode and content of the file that it changes; nothing where it makes one."""
        old = one.old
        if one.also and (old is None or not self._is_there(old)) and self._is_there(one.also):
            raise self._bad(
                f"it changes {one.also} into {old}", "write it with git diff, which knows of renames"
            )
        if old is not None and not self._is_there(old) and starts_empty(one.hunks):
            old = None
        for path in one.paths:
            self._check_place(path)
        if one.new is not None and one.new != old and self._is_there(one.new):
            raise self._not_applied(f"it makes {one.new}, which is there already", "leave the patch out?")
        if old is None:
            return PLAIN, b""
        if not self._is_there(old):
            shifted = one.one_level and self._is_there(one.one_level)
            advice = "its paths lack a/ and b/: git diff writes them, without --no-prefix"
            raise self._not_applied(f"there is no {old} in it", advice if shifted else _OTHER_VERSION)
        return self._content(old)

    def _is_there(self, path: str) -> bool:
        if path in self.overlay.files:
            return self.overlay.files[path] is not None
        return path in self.snapshot.manifest.files

    def _content(self, path: str) -> tuple[str, bytes]:
        if (overlaid := self.overlay.files.get(path)) is not None:
            return overlaid
        return self.snapshot.manifest.files[path].split()[0], self.reader.content(path)

    def _check_place(self, path: str) -> None:
        """A path may lead through no symbolic link or file, and to no directory."""
        files = self.snapshot.manifest.files
        for above in (path, *map(str, PurePosixPath(path).parents)):
            if files.get(above, "").startswith(LINK):
                advice = "name the file that the link leads to"
                raise self._bad(f"it changes {path}, and {above} is a symbolic link", advice)
            if above != path and self._is_there(above):
                raise self._bad(f"it changes {path}, and {above} is a file", _OTHER_VERSION)
        made = any(one.startswith(f"{path}/") for one in self.overlay.files)
        if made or path in self.snapshot.manifest.directories:
            raise self._bad(f"it changes {path}, which is a directory", _OTHER_VERSION)

    def _run(self, before: list[tuple[str, bytes]], fuzz: int) -> tuple[int, str]:
        """What patch(1) ends with, and says; names are in it as they are in the source."""
        for number, (_, content) in enumerate(before):
            (self.place / str(number)).write_bytes(content)
        numbered = ((number, one) for number, one in enumerate(self.files) if one.hunks)
        text = "".join(f"--- a/{number}\n+++ b/{number}\n{''.join(one.hunks)}" for number, one in numbered)
        if not text:
            return 0, ""
        options = [
            "-p1",
            "-u",
            "--binary",
            "--forward",
            "--batch",
            "--no-backup-if-mismatch",
            f"--fuzz={fuzz}",
        ]
        done = subprocess.run(
            ["patch", *options, "-r", "-", "-d", str(self.place)],
            input=text.encode("utf-8", "surrogateescape"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="replace")

    def _inexact(self, said: str) -> list[str]:
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
            where = f"hunk {match['number']} of {self._named(said, match.start())}"
            warnings.append(f"{Path(self.patch.path).name}: {where} applies {', '.join(how)}")
        return warnings

    def _refused(self, said: str, before: list[tuple[str, bytes]]) -> PatchNotApplied | BadPatch:
        """What patch said, with the first lines of the hunk that it means."""
        if "Reversed (or previously applied)" in said:
            file = self._named(said, said.index("Reversed (or previously applied)"))
            return self._not_applied(f"{file} has its change already", "leave the patch out")
        failed = _FAILED.search(said)
        if failed is None:
            return self._bad((said.splitlines() or ["patch fails"])[0], "write it again: git diff")
        status, more = self._run(before, _MOST_FUZZ)
        if not status:
            return self._needs_fuzz(more)
        number = int(failed["number"])
        lines = self._file(said, failed.start()).hunks[number - 1].splitlines()[:_SHOWN_LINES]
        shown = "the hunk starts with:\n" + "\n".join(f"  {line}" for line in lines)
        where = f"hunk {number} of {self._named(said, failed.start())}"
        return self._not_applied(f"{where} fails at line {failed['line']}", shown)

    def _needs_fuzz(self, said: str) -> PatchNotApplied:
        fuzzy = [match for match in _INEXACT.finditer(said) if match["fuzz"]]
        most = max(int(match["fuzz"]) for match in fuzzy)
        first = f"hunk {fuzzy[0]['number']} of {self._named(said, fuzzy[0].start())}"
        others = f" and {len(fuzzy) - 1} more" if len(fuzzy) > 1 else ""
        return self._not_applied(
            f"lines around {first} differ{others} (fuzz {most})",
            f"look whether it belongs at line {fuzzy[0]['line']}; if so: --fuzz {most} of ktrial kernel "
            f"build, series or bisect patches, or fuzz = {most} in a study's [kernels.NAME]; what is "
            "measured then carries a warning",
        )

    def _file(self, said: str, position: int) -> FileDiff:
        """The file that patch was at, by what it had said until then."""
        return self.files[int([*_PATCHING.finditer(said, 0, position)][-1]["file"])]

    def _named(self, said: str, position: int) -> str:
        one = self._file(said, position)
        return one.new or one.old or ""

    def _not_applied(self, problem: str, advice: str) -> PatchNotApplied:
        asked, path = self.snapshot.asked, self.patch.path
        return PatchNotApplied(name=asked, directory=asked, path=path, problem=problem, advice=advice)

    def _bad(self, problem: str, advice: str) -> BadPatch:
        return bad(self.patch.path, problem, advice)
