"""Apply patches to the few files that they name, beside the source: the source itself is never written to.

patch(1) places the hunks; which files they change is decided here, by `patch_reader`.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from ktrial.installation import cache_directory
from ktrial.kernels import Progress, silent
from ktrial.kernels.build.lately_used import LatelyUsed
from ktrial.kernels.build.recipes import EXECUTABLE, LINK, PLAIN, Manifest, content_kept, object_of
from ktrial.kernels.build.sources import (
    DEBIAN_PREFIX,
    EXPECTED,
    GIT_PREFIX,
    Snapshot,
    SourceReader,
    ignores_source,
    snapshot_of,
    version_in,
    write_file,
)
from ktrial.kernels.errors import BadPatch, NotASource, PatchNotApplied
from ktrial.kernels.files import file_system_errors
from ktrial.kernels.kernel_cache import Cache
from ktrial.kernels.programs import require_tool
from ktrial.model.kernel import Build, Patch
from ktrial.system_tools import Tool
from ktrial.text_lines import lines_of

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
            path: f"{entry[0]} {object_of(entry[1])}" if entry is not None else None
            for path, entry in self.files.items()
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
    require_tool(PATCH)
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
        raise bad(path, "it has changed since the build was requested", "start again")
    return content.decode("utf-8", "surrogateescape")


def paths_in(patch: str, text: str) -> tuple[str, ...]:
    """The paths that a patch names, each once. Raises BadPatch."""
    files = (diff for part in series_in(patch, text) for diff in part)
    return tuple(dict.fromkeys(path for diff in files for path in diff.paths))


@dataclass(frozen=True)
class FileDiff:
    """What a patch does to one file."""

    old: str | None
    """Its path before, below the source's top; None: it is not there."""
    new: str | None
    """Its path after; None: it is gone."""
    hunks: tuple[str, ...] = ()
    copies: bool = False
    """Whether the old file stays too."""
    mode: str = ""
    """What git says of its mode afterwards; empty: as it was."""
    also: str = ""
    """Another name that a plain diff has for the old file: it is the one of the two that is there."""
    one_level: str = ""
    """Its name without any directory taken off, for a patch that was made for `patch -p0`."""

    @property
    def paths(self) -> tuple[str, ...]:
        """All that it names."""
        return tuple(dict.fromkeys(filter(None, (self.old, self.new, self.also))))


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
        before = [self._before(diff) for diff in self.files]
        status, output = self._run(before, fuzz)
        if status:
            raise self._refused(output, before)
        self.overlay.inexact += self._inexact(output)
        for number, (diff, (mode, _)) in enumerate(zip(self.files, before, strict=True)):
            path = self.place / str(number)
            content = path.read_bytes() if path.exists() else b""
            if diff.new is None and content:
                raise self._not_applied(f"it deletes {diff.old}, which holds more", _OTHER_VERSION)
            if diff.old is not None and not diff.copies:
                self.overlay.files[diff.old] = None
            if diff.new is not None:
                self.overlay.files[diff.new] = (diff.mode or mode, content)

    def _before(self, diff: FileDiff) -> tuple[str, bytes]:
        """Mode and content of the file that it changes; nothing where it makes one."""
        old = diff.old
        if diff.also and (old is None or not self._is_there(old)) and self._is_there(diff.also):
            raise self._bad(
                f"it changes {diff.also} into {old}", "write it with git diff, which knows of renames"
            )
        if old is not None and not self._is_there(old) and starts_empty(diff.hunks):
            old = None
        for path in diff.paths:
            self._check_place(path)
        if diff.new is not None and diff.new != old and self._is_there(diff.new):
            raise self._not_applied(f"it makes {diff.new}, which is there already", "leave the patch out?")
        if old is None:
            return PLAIN, b""
        if not self._is_there(old):
            shifted = diff.one_level and self._is_there(diff.one_level)
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
        is_directory = any(name.startswith(f"{path}/") for name in self.overlay.files)
        if is_directory or path in self.snapshot.manifest.directories:
            raise self._bad(f"it changes {path}, which is a directory", _OTHER_VERSION)

    def _run(self, before: list[tuple[str, bytes]], fuzz: int) -> tuple[int, str]:
        """What patch(1) ends with, and says; names are in it as they are in the source."""
        for number, (_, content) in enumerate(before):
            (self.place / str(number)).write_bytes(content)
        numbered = ((number, diff) for number, diff in enumerate(self.files) if diff.hunks)
        text = "".join(f"--- a/{number}\n+++ b/{number}\n{''.join(diff.hunks)}" for number, diff in numbered)
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
        finished = subprocess.run(
            ["patch", *options, "-r", "-", "-d", str(self.place)],
            input=text.encode("utf-8", "surrogateescape"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
        return finished.returncode, finished.stdout.decode(errors="replace")

    def _inexact(self, output: str) -> list[str]:
        """Each hunk that did not lie where the patch says, or whose surrounding lines differ."""
        warnings = []
        for match in _INEXACT.finditer(output):
            details = []
            if match["offset"]:
                lines = abs(int(match["offset"]))
                way = "earlier" if match["offset"].startswith("-") else "later"
                details.append(f"{lines} {'line' if lines == 1 else 'lines'} {way} than it says")
            if match["fuzz"]:
                details.append(f"where lines around it differ (fuzz {match['fuzz']})")
            where = f"hunk {match['number']} of {self._named(output, match.start())}"
            warnings.append(f"{Path(self.patch.path).name}: {where} applies {', '.join(details)}")
        return warnings

    def _refused(self, output: str, before: list[tuple[str, bytes]]) -> PatchNotApplied | BadPatch:
        """What patch said, with the first lines of the hunk that it means."""
        if "Reversed (or previously applied)" in output:
            file = self._named(output, output.index("Reversed (or previously applied)"))
            return self._not_applied(f"{file} has its change already", "leave the patch out")
        failed = _FAILED.search(output)
        if failed is None:
            return self._bad((lines_of(output) or ["patch fails"])[0], "write it again: git diff")
        status, more = self._run(before, _MOST_FUZZ)
        if not status:
            return self._needs_fuzz(more)
        number = int(failed["number"])
        lines = lines_of(self._file(output, failed.start()).hunks[number - 1])[:_SHOWN_LINES]
        shown = "the hunk starts with:\n" + "\n".join(f"  {line}" for line in lines)
        where = f"hunk {number} of {self._named(output, failed.start())}"
        return self._not_applied(f"{where} fails at line {failed['line']}", shown)

    def _needs_fuzz(self, output: str) -> PatchNotApplied:
        fuzzy = [match for match in _INEXACT.finditer(output) if match["fuzz"]]
        most = max(int(match["fuzz"]) for match in fuzzy)
        first = f"hunk {fuzzy[0]['number']} of {self._named(output, fuzzy[0].start())}"
        more = f" and {len(fuzzy) - 1} more" if len(fuzzy) > 1 else ""
        return self._not_applied(
            f"lines around {first} differ{more} (fuzz {most})",
            f"look whether it belongs at line {fuzzy[0]['line']}; if so: --fuzz {most} of ktrial kernel "
            f"build, series or bisect patches, or fuzz = {most} in a study's [kernels.NAME]; what is "
            "measured then carries a warning",
        )

    def _file(self, output: str, position: int) -> FileDiff:
        """The file that patch was at, by what it had said until then."""
        return self.files[int([*_PATCHING.finditer(output, 0, position)][-1]["file"])]

    def _named(self, output: str, position: int) -> str:
        diff = self._file(output, position)
        return diff.new or diff.old or ""

    def _not_applied(self, problem: str, advice: str) -> PatchNotApplied:
        source, path = self.snapshot.source, self.patch.path
        return PatchNotApplied(directory=source, path=path, problem=problem, advice=advice)

    def _bad(self, problem: str, advice: str) -> BadPatch:
        return bad(self.patch.path, problem, advice)


# Read a patch file: which files it changes, in which order. What could mislead is refused, with the reason.
#
# A file may hold several patches, as `git format-patch --stdout` and mailboxes do; each is applied to what
# the ones before it have made. Hunks are read by the counts in their headers (POSIX diff, "Unified
# Format"), so that nothing inside of one is taken for a header, and one that was cut short is seen.

_GIT = re.compile(r'diff --git (?:"?a/(?P<path>[^"\n]+)"? "?b/(?P=path)"?$)?')
_EXTENDED = re.compile(
    r"(?P<what>old mode|new mode|deleted file mode|new file mode|rename from|rename to|copy from|copy to"
    r"|similarity index|dissimilarity index|index) (?P<value>.+)"
)
_MAIL = re.compile(r"From [0-9a-f]{7,64} \S")
_ENCODED = re.compile(r"Content-Transfer-Encoding: (base64|quoted-printable)", re.IGNORECASE)
_BINARY = re.compile(r"GIT binary patch$|Binary files .* differ$")
_HUNK = re.compile(r"@@ -(?P<at>\d+)(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@")
_EPOCH = re.compile(r"(?:1970-01-01|1969-12-31|(?:Thu Jan +1|Wed Dec 31) .*19(?:70|69))")
"""What `diff -N` writes as the time of a file that is not there, in any time zone."""
_NOTHING = "/dev/null"
_OUTPUT = "build"
"""Where ktrial's make writes, below the source's top."""


def series_in(patch: str, text: str, level: int = 1) -> list[list[FileDiff]]:
    """The patches in a file: a new one where a mail begins, or where a file is changed again.

    `patch`: the file, for messages. `level`: how many directories its paths begin with (patch -pN). Raises
    BadPatch.
    """
    if not text.strip():
        raise bad(patch, "it is empty", "git diff, or git format-patch, writes one")
    series: list[list[FileDiff]] = [[]]
    for diff in _Reader(patch, with_plain_ends(text).split("\n"), level).files():
        paths = {path for change in series[-1] for path in change.paths}
        if diff is None or not paths.isdisjoint(diff.paths):
            series.append([])
        if diff is not None:
            series[-1].append(diff)
    if not any(series):
        raise bad(patch, "there is no change of a file in it", "it must be a unified diff: diff -u, git diff")
    return [files for files in series if files]


def with_plain_ends(text: str) -> str:
    """The text; where every line ends with CR and LF, as a mail program writes it, with LF."""
    return text.replace("\r\n", "\n") if all_ends_are_crlf(text) else text


def all_ends_are_crlf(text: str) -> bool:
    """Whether every line ends with CR and LF."""
    return 0 < text.count("\n") == text.count("\r\n")


def bad(path: str | Path, problem: str, advice: str) -> BadPatch:
    """The error about a patch that is none."""
    return BadPatch(path=path, problem=problem, advice=advice)


class _Reader:
    def __init__(self, patch: str, lines: list[str], level: int = 1) -> None:
        self._patch, self._lines, self._at, self._level = patch, lines, 0, level
        self._named = ""

    def files(self) -> Iterator[FileDiff | None]:
        """Each change of a file; None where a mail begins."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _GIT.match(line):
                if (diff := self._git(line)) is not None:
                    yield diff
            elif self._names_follow():
                yield self._plain()
            else:
                self._check_prose(line)
                self._at += 1
                if _MAIL.match(line):
                    yield None

    def _check_prose(self, line: str) -> None:
        if _BINARY.match(line):
            problem = f"it changes a binary file{self._named and ', '}{self._named}"
            raise self._bad(problem, "leave that out: git diff without --binary")
        if _HUNK.match(line):
            raise self._bad(f"line {self._at + 1}: a hunk of no file", "write it again: git diff")
        if encoded := _ENCODED.match(line):
            advice = "write it plain: git am, then git format-patch"
            raise self._bad(f"it is a mail whose text is encoded ({encoded[1]})", advice)

    def _names_follow(self) -> bool:
        first, two, three = (*self._lines[self._at : self._at + 3], "", "", "")[:3]
        return first.startswith("--- ") and two.startswith("+++ ") and bool(_HUNK.match(three))

    def _git(self, line: str) -> FileDiff | None:
        extended: dict[str, str] = {}
        self._at += 1
        while self._at < len(self._lines) and (match := _EXTENDED.match(self._lines[self._at])):
            extended[match["what"]] = match["value"]
            self._at += 1
        if self._names_follow():
            plain = self._plain()
            self._check_agreement(plain, extended)
            return self._with_moves(plain, extended)
        if self._at < len(self._lines):
            self._named = line.rpartition(" b/")[2]
            self._check_prose(self._lines[self._at])
        if not extended:
            return None  # somebody writes about diffs
        path = _GIT.match(line)
        named = path["path"] if path and path["path"] else ""
        if not named and not {"rename to", "copy to"} & extended.keys():
            raise self._bad(f"'{line}' names no file that can be read", "write it again: git diff")
        named = self._checked(named) if named else ""
        old = None if "new file mode" in extended else named
        new = None if "deleted file mode" in extended else named
        return self._with_moves(FileDiff(old, new), extended)

    def _check_agreement(self, plain: FileDiff, extended: dict[str, str]) -> None:
        """git's own words and the names below them must tell the same."""
        is_new, gone = plain.old is None, plain.new is None
        if (
            ("new file mode" in extended) > is_new
            or ("deleted file mode" in extended) > gone
            or (is_new and gone)
        ):
            name = plain.new or plain.old
            raise self._bad(
                f"it contradicts itself about whether {name} is there", "write it again: git diff"
            )

    def _with_moves(self, diff: FileDiff, extended: dict[str, str]) -> FileDiff:
        for header in ("new file mode", "new mode"):
            if header in extended:
                diff = replace(diff, mode=self._mode(extended[header], diff))
        if extended.get("deleted file mode", PLAIN) not in {PLAIN, EXECUTABLE}:
            self._mode(extended["deleted file mode"], diff)
        for verb in ("rename", "copy"):
            if f"{verb} from" in extended or f"{verb} to" in extended:
                old, new = (self._checked(extended.get(f"{verb} {way}", "")) for way in ("from", "to"))
                diff = replace(diff, old=old, new=new, also="", copies=verb == "copy")
        return diff

    def _mode(self, mode: str, diff: FileDiff) -> str:
        if mode in {PLAIN, EXECUTABLE}:
            return mode
        kind = {LINK: "a symbolic link", "160000": "a submodule"}.get(mode, f"of mode {mode}")
        raise self._bad(f"{diff.new or diff.old} is {kind} in it", "only plain files are patched")

    def _plain(self) -> FileDiff:
        """Two lines with names, and the hunks after them."""
        (old, old_gone), (new, new_gone) = self._name("--- "), self._name("+++ ")
        if not old and not new:
            raise self._bad("both of its names are /dev/null", "write it again: git diff")
        hunks = self._hunks(new or old)
        is_new = not old or (old_gone and starts_empty(hunks))
        gone = not new or (new_gone and len(hunks) == 1 and " +0,0 @@" in hunks[0].partition("\n")[0])
        before, after = (self._checked(self._stripped(name)) if name else "" for name in (old, new))
        return FileDiff(
            old=None if is_new else before if gone else after,
            new=None if gone else after,
            hunks=hunks,
            also="" if is_new or gone or before == after else before,
            one_level=new or old,
        )

    def _name(self, start: str) -> tuple[str, bool]:
        """The name in a line, empty for /dev/null, and whether its time says that there is no file."""
        name, _, stamp = self._lines[self._at].removeprefix(start).partition("\t")
        self._at += 1
        name = name.rstrip(" ")
        return "" if name == _NOTHING else name, bool(_EPOCH.match(stamp))

    def _stripped(self, name: str) -> str:
        """Without its first directories, as `patch -pN` takes it; nearly always one."""
        if name.startswith(("/", "../")):
            raise self._bad(f"it changes {name}, outside of the source", "paths look like a/mm/slub.c")
        parts = name.split("/")
        if len(parts) <= self._level:
            raise self._bad(f"its path {name} has no directory in front", "paths look like a/mm/slub.c")
        return "/".join(parts[self._level :])

    def _checked(self, path: str) -> str:
        """A path below the source's top. Raises BadPatch for every other."""
        parts = path.split("/")
        if path.endswith("\r"):
            raise self._bad(
                "some of its lines end with CR LF, others with LF", "dos2unix makes it one of the two"
            )
        if not path or not path.isprintable() or '"' in path or "\\" in path:
            raise self._bad(f"its path {path!r} cannot be read", "the kernel's paths have no such characters")
        if {"", ".", "..", ".git"} & set(parts):
            raise self._bad(f"it changes {path}, outside of the source", "paths start at the source's top")
        if parts[0] == _OUTPUT:
            raise self._bad(
                f"it changes {path}, where ktrial builds", "no kernel's source has that directory"
            )
        return path

    def _hunks(self, name: str) -> tuple[str, ...]:
        hunks: list[str] = []
        while self._at < len(self._lines) and (header := _HUNK.match(self._lines[self._at])):
            hunks.append(self._hunk(header, f"hunk {len(hunks) + 1} of {name}"))
        return tuple(hunks)

    def _hunk(self, header: re.Match[str], called: str) -> str:
        old, new = (int(header[side] or 1) for side in ("old", "new"))
        begin = self._at
        self._at += 1
        while old > 0 or new > 0:
            if self._at >= len(self._lines) - 1:
                raise self._bad(f"{called} is cut short", "write it again: git diff")
            # A mail program or an editor may have taken the blank from an empty or an indented line.
            if not self._line() or self._line()[0] == "\t":
                self._lines[self._at] = f" {self._line()}"
            kind = self._line()[0]
            if kind not in " +-\\":
                raise self._bad(f"{called} is damaged at line {self._at + 1}", "write it again: git diff")
            old -= kind in " -"
            new -= kind in " +"
            self._at += 1
        if self._line().startswith("\\"):
            self._at += 1
        after = self._line()
        if old or new or (after[:1] in {"+", " "} or (after.startswith("-") and after[:2] != "--")):
            raise self._bad(
                f"{called} is longer than its header says, at line {self._at + 1}", "write it again: git diff"
            )
        return "".join(f"{line}\n" for line in self._lines[begin : self._at])

    def _line(self) -> str:
        return self._lines[self._at] if self._at < len(self._lines) else ""

    def _bad(self, problem: str, advice: str) -> BadPatch:
        return bad(self._patch, problem, advice)


def starts_empty(hunks: tuple[str, ...]) -> bool:
    """Whether there was nothing in the file before."""
    return len(hunks) == 1 and hunks[0].startswith("@@ -0,0 ")


# A source with its patches applied, and a way to make a directory of files hold it.


@dataclass(frozen=True)
class BuildSource:
    """What a build compiles."""

    snapshot: Snapshot
    overlay: Overlay = field(default_factory=Overlay)
    since: str = ""
    """The commit beyond which its options are new (`Build.since`)."""

    @cached_property
    def manifest(self) -> Manifest:
        """With the patches applied."""
        changes = self.overlay.entries()
        return self.snapshot.manifest.but(changes) if changes else self.snapshot.manifest

    def content(self, reader: SourceReader, path: str) -> bytes:
        """Of one of its files; `reader` is the snapshot's."""
        overlaid = self.overlay.files.get(path)
        return overlaid[1] if overlaid is not None else reader.content(path)

    @property
    def family(self) -> str:
        """What sources of few differences have in common: the place that they are read from."""
        source = self.snapshot.source
        return source.rpartition("@")[0] if source.startswith(GIT_PREFIX) else source

    def version(self) -> str:
        """As its Makefile has it. Raises NotASource."""
        overlaid = self.overlay.files.get("Makefile")
        if overlaid is not None:
            return version_in(overlaid[1].decode(errors="replace"), self.snapshot.source)
        if "Makefile" not in self.manifest.files:
            raise NotASource(directory=self.snapshot.source, problem="it lacks Makefile")
        with self.snapshot.reader() as reader:
            return version_in(reader.content("Makefile").decode(errors="replace"), self.snapshot.source)

    def write(self, into: Path, paths: Iterable[str], *, rewrite: bool) -> None:
        """Make these files of the directory `into` what the source has; those it has not go away.

        `rewrite`: each with a new time stamp and no link to the cache, so that make sees that it changed.
        Raises KernelError, OSError.
        """
        files = self.manifest.files
        ordered = sorted(paths)
        for path in ordered:
            _clear(into / path)
        directories: set[str] = set()
        with self.snapshot.reader() as reader:
            for path in ordered:
                if path not in files:
                    continue
                parent, _, _ = path.rpartition("/")
                if parent not in directories:
                    os.makedirs(into / parent, exist_ok=True)  # noqa: PTH103 - 5000 times
                    directories.add(parent)
                if rewrite or path in self.overlay.files:
                    write_file(into / path, files[path], self.content(reader, path))
                else:
                    reader.place(path, into / path)
        # As the files, whatever the umask is: root's builds are another user's, who reads them.
        for parent in {
            above for name in directories for above in (name, *map(str, PurePosixPath(name).parents))
        }:
            os.chmod(into / parent, 0o755)  # noqa: PTH101


def source_of(spec: Build, scratch: Path, progress: Progress) -> BuildSource:
    """The source that is wanted, with its patches. `scratch` is an empty directory.

    Raises what `snapshot_of` and `patched` raise.
    """
    snapshot = snapshot_of(spec.source, progress)
    if missing := [name for name in EXPECTED if name not in snapshot.manifest.files]:
        problem = f"it lacks {missing[0]}"
        if snapshot.repository and ignores_source(snapshot.directory):
            problem += (
                "; the .gitignore there ignores the source (Debian's does): git add --force --all takes it"
            )
        raise NotASource(directory=spec.source, problem=problem)
    return _with_patches(snapshot, spec, scratch)


def _with_patches(snapshot: Snapshot, spec: Build, scratch: Path) -> BuildSource:
    """The source with all patches; of a series those are applied that no earlier build had. Raises as
    `patched`.
    """
    place, patches = (spec.source, snapshot.manifest.digest, spec.fuzz, spec.since), spec.patches
    names = [(patch.path, patch.digest) for patch in patches]
    for count in range(len(patches), 0, -1):
        if (earlier := _PATCHED.get((*place, *names[:count]))) is not None:
            break
    else:
        count, earlier = 0, BuildSource(snapshot, Overlay(), spec.since)
    if count == len(patches):
        return earlier
    overlay = patched(snapshot, patches[count:], scratch, spec.fuzz, earlier.overlay)
    source = BuildSource(snapshot, overlay, spec.since)
    _PATCHED.keep((*place, *names), source)
    return source


_PATCHED = LatelyUsed[tuple[Hashable, ...], BuildSource](4)
"""Of a series every patch is looked at on top of all before it, several times."""


def _clear(path: Path) -> None:
    """Away with a file, or with a directory that only holds what is no longer there."""
    try:
        path.unlink(missing_ok=True)
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(path)
    except NotADirectoryError:
        path.parent.unlink()


# Whether the patches of a series apply, one after the other; nothing is configured or compiled.

Refused = dict[int, PatchNotApplied | BadPatch]
"""A patch's number → why it does not apply."""


def not_applying(
    plain: Build, patches: Iterable[tuple[int, tuple[Patch, ...]]], progress: Progress = silent
) -> Refused:
    """The patches that do not apply on top of those before them; each is left out of those that follow.

    `plain`: of the base; `patches`: a number and its files. Where the base would have to be fetched first,
    that is told, and none is named. Raises what looking at the base raises.
    """
    if plain.source.startswith(DEBIAN_PREFIX):
        package = plain.source.removeprefix(DEBIAN_PREFIX)
        if not any((cache_directory() / "sources").glob(f"{package}_*/Makefile")):
            progress(f"{plain.source} is not fetched yet: whether the patches apply is not known")
            return {}
    cache, refused = Cache(), Refused()
    with file_system_errors(cache.root):
        (cache.root / "work").mkdir(parents=True, exist_ok=True)
        with cache.workspace() as scratch:
            (scratch / "base").mkdir()
            source = source_of(plain, scratch / "base", progress)
            overlay = source.overlay
            for number, files in patches:
                place = scratch / str(number)
                place.mkdir()
                try:
                    overlay = patched(source.snapshot, files, place, plain.fuzz, overlay)
                except (PatchNotApplied, BadPatch) as error:
                    refused[number] = error
    return refused
