"""Read a patch file: which files it changes, in which order. What could mislead is refused, with the reason.

A file may hold several patches, as `git format-patch --stdout` and mailboxes do; each is applied to what the
ones before it have made. Hunks are read by the counts in their headers (POSIX diff, "Unified Format"), so
that nothing inside of one is taken for a header, and one that was cut short is seen.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ktrial.kernels.build.errors import BadPatch
from ktrial.kernels.build.recipes import EXECUTABLE, LINK, PLAIN

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


def series_in(patch: str, text: str, level: int = 1) -> list[list[FileDiff]]:
    """The patches in a file: a new one where a mail begins, or where a file is changed again.

    `patch`: the file, for messages. `level`: how many directories its paths begin with (patch -pN). Raises
    BadPatch.
    """
    if not text.strip():
        raise bad(patch, "it is empty", "git diff, or git format-patch, writes one")
    series: list[list[FileDiff]] = [[]]
    for one in _Reader(patch, with_plain_ends(text).split("\n"), level).files():
        known = {path for each in series[-1] for path in each.paths}
        if one is None or not known.isdisjoint(one.paths):
            series.append([])
        if one is not None:
            series[-1].append(one)
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
    return BadPatch(name=path, directory="", path=path, problem=problem, advice=advice)


class _Reader:
    def __init__(self, patch: str, lines: list[str], level: int = 1) -> None:
        self._patch, self._lines, self._at, self._level = patch, lines, 0, level
        self._named = ""

    def files(self) -> Iterator[FileDiff | None]:
        """Each change of a file; None where a mail begins."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _GIT.match(line):
                if (one := self._git(line)) is not None:
                    yield one
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
        one, two, three = (*self._lines[self._at : self._at + 3], "", "", "")[:3]
        return one.startswith("--- ") and two.startswith("+++ ") and bool(_HUNK.match(three))

    def _git(self, line: str) -> FileDiff | None:
        said: dict[str, str] = {}
        self._at += 1
        while self._at < len(self._lines) and (match := _EXTENDED.match(self._lines[self._at])):
            said[match["what"]] = match["value"]
            self._at += 1
        if self._names_follow():
            plain = self._plain()
            self._check_agreement(plain, said)
            return self._with_moves(plain, said)
        if self._at < len(self._lines):
            self._named = line.rpartition(" b/")[2]
            self._check_prose(self._lines[self._at])
        if not said:
            return None  # somebody writes about diffs
        path = _GIT.match(line)
        named = path["path"] if path and path["path"] else ""
        if not named and not {"rename to", "copy to"} & said.keys():
            raise self._bad(f"'{line}' names no file that can be read", "write it again: git diff")
        named = self._checked(named) if named else ""
        old = None if "new file mode" in said else named
        new = None if "deleted file mode" in said else named
        return self._with_moves(FileDiff(old, new), said)

    def _check_agreement(self, plain: FileDiff, said: dict[str, str]) -> None:
        """git's own words and the names below them must tell the same."""
        made, gone = plain.old is None, plain.new is None
        if ("new file mode" in said) > made or ("deleted file mode" in said) > gone or (made and gone):
            name = plain.new or plain.old
            raise self._bad(
                f"it contradicts itself about whether {name} is there", "write it again: git diff"
            )

    def _with_moves(self, one: FileDiff, said: dict[str, str]) -> FileDiff:
        for what in ("new file mode", "new mode"):
            if what in said:
                one = replace(one, mode=self._mode(said[what], one))
        if said.get("deleted file mode", PLAIN) not in {PLAIN, EXECUTABLE}:
            self._mode(said["deleted file mode"], one)
        for verb in ("rename", "copy"):
            if f"{verb} from" in said or f"{verb} to" in said:
                old, new = (self._checked(said.get(f"{verb} {way}", "")) for way in ("from", "to"))
                one = replace(one, old=old, new=new, also="", copies=verb == "copy")
        return one

    def _mode(self, mode: str, one: FileDiff) -> str:
        if mode in {PLAIN, EXECUTABLE}:
            return mode
        kind = {LINK: "a symbolic link", "160000": "a submodule"}.get(mode, f"of mode {mode}")
        raise self._bad(f"{one.new or one.old} is {kind} in it", "only plain files are patched")

    def _plain(self) -> FileDiff:
        """Two lines with names, and the hunks after them."""
        (old, old_gone), (new, new_gone) = self._name("--- "), self._name("+++ ")
        if not old and not new:
            raise self._bad("both of its names are /dev/null", "write it again: git diff")
        hunks = self._hunks(new or old)
        made = not old or (old_gone and starts_empty(hunks))
        gone = not new or (new_gone and len(hunks) == 1 and " +0,0 @@" in hunks[0].partition("\n")[0])
        before, after = (self._checked(self._stripped(name)) if name else "" for name in (old, new))
        return FileDiff(
            old=None if made else before if gone else after,
            new=None if gone else after,
            hunks=hunks,
            also="" if made or gone or before == after else before,
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
