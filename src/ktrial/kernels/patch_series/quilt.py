"""A series as quilt keeps it: a file `series` that names patches, in order. Debian and PREEMPT_RT write such.

quilt(1): one patch a line, `-pN` behind it says how many directories its paths begin with (1 where nothing is
said), `#` at the start of a line or behind a blank begins a comment.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from ktrial.kernels.build.errors import BadPatch
from ktrial.kernels.build.patch_reader import bad, series_in
from ktrial.kernels.patch_series.errors import BadQuiltSeries
from ktrial.kernels.patch_series.kept_patches import as_git_writes, kept
from ktrial.model.kernel import Patch, PatchSeries, SeriesKind, SeriesPatch

_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_LEVEL = re.compile(r"-p\s*(\d|ab)")
_SUBJECT = re.compile(r"^(?:Subject|Description): *(?P<first>.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_MAIL_TAG = re.compile(r"^\[[^\]]*PATCH[^\]]*\]\s*", re.IGNORECASE)
_PLACES = ("series", "patches/series", "debian/patches/series")
_EACH_LINE = "each line names a file beside the series file"
_ADVICE = "give the directory that holds the file series, as quilt and Debian's debian/patches have it"


@dataclass(frozen=True)
class QuiltEntry:
    """One line of a series file that names a patch."""

    line: int
    """From 1."""
    name: str
    """Relative to the series file."""
    level: int = 1
    """How many directories its paths begin with."""


def series_in_quilt(path: Path, base: str) -> PatchSeries:
    """The series of a directory, or of a series file itself. `base`: what it applies to, as a Build names it.

    Raises BadQuiltSeries; BadPatch, which names patch, file and hunk.
    """
    file = series_file(path)
    text = _read(path, file)
    entries = entries_in(path, text)
    if not entries:
        raise _bad(path, f"{file} names no patch", _ADVICE)
    patches = tuple(_patch(path, file, number, one) for number, one in enumerate(entries, start=1))
    disabled = _disabled(file, text)
    words = f"{len(disabled)} of the patches beside it are commented out in {file.name}" if disabled else ""
    return PatchSeries(
        kind=SeriesKind.QUILT,
        origin=str(file),
        base=base,
        patches=patches,
        notes=(words,) if words else (),
    )


def series_file(path: Path) -> Path:
    """The series file that a path means. Raises BadQuiltSeries."""
    place = path.expanduser().absolute()
    if not place.is_dir():
        if place.exists():
            return place
        raise _bad(path, "there is no such directory", _ADVICE)
    file = next((place / name for name in _PLACES if (place / name).is_file()), None)
    if file is None:
        raise _bad(path, f"there is no {', no '.join(_PLACES)} in it", _ADVICE)
    return file


def entries_in(path: Path, text: str) -> list[QuiltEntry]:
    """What a series file names. `path`: for messages. Raises BadQuiltSeries."""
    entries: list[QuiltEntry] = []
    for number, whole in enumerate(text.splitlines(), start=1):
        name, _, options = _COMMENT.sub("", whole).strip().partition(" ")
        if name:
            entries.append(QuiltEntry(number, name, _level(path, number, options.strip())))
            if entries[-1].name in {one.name for one in entries[:-1]}:
                raise _bad(path, f"line {number}: {name} is there twice", "leave one of the two out")
    return entries


def subject_of(text: str) -> str:
    """The subject in a patch's header, from a mail or as Debian's DEP-3 writes it; empty without one."""
    header = re.split(r"^(?:--- |diff |Index: )", text, maxsplit=1, flags=re.MULTILINE)[0]
    match = _SUBJECT.search(header)
    return _MAIL_TAG.sub("", " ".join(match["first"].split())) if match else ""


def _level(path: Path, line: int, options: str) -> int:
    if not options:
        return 1
    match = _LEVEL.fullmatch(options)
    if match is None:
        advice = "-pN is the only option that is taken; quilt's -R turns a patch round: write it so"
        raise _bad(path, f"line {line}: '{options}' is no option that can be followed", advice)
    return 1 if match[1] == "ab" else int(match[1])


def _patch(path: Path, file: Path, number: int, entry: QuiltEntry) -> SeriesPatch:
    place = file.parent / entry.name
    if Path(entry.name).is_absolute() or ".." in Path(entry.name).parts:
        problem = f"line {entry.line}: {entry.name} lies outside of {file.parent}"
        raise _bad(path, problem, "patches lie beside the series file, or below it")
    if place.exists() and not place.is_file():
        # A pipe or a device may never end.
        raise _bad(path, f"line {entry.line}: {entry.name} is no file", _EACH_LINE)
    try:
        content = place.read_bytes()
    except OSError as error:
        problem = f"line {entry.line}: {entry.name}: {error.strerror}"
        raise _bad(path, problem, _EACH_LINE) from None
    text = content.decode("utf-8", "surrogateescape")
    changes = [change for part in series_in(str(place), text, entry.level) for change in part]
    subject = subject_of(text) or entry.name
    patch = Patch(path=str(place), digest=hashlib.sha256(content).hexdigest())
    if entry.level != 1:
        if any(change.also for change in changes):
            raise _two_names(place)
        patch = kept(number, subject, as_git_writes(changes).encode("utf-8", "surrogateescape"))
    return SeriesPatch(
        number=number,
        subject=subject,
        name=entry.name,
        patch=patch,
        paths=tuple(dict.fromkeys(name for change in changes for name in change.paths)),
    )


def _two_names(place: Path) -> BadPatch:
    return bad(place, "a file has two names in it", "write it again: git diff")


def _disabled(file: Path, text: str) -> list[str]:
    """Patches that are there, and whose lines are comments."""
    commented = (line.lstrip("# \t").partition(" ")[0] for line in text.splitlines() if line[:1] == "#")
    return [name for name in commented if name and (file.parent / name).is_file()]


def _read(path: Path, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise _bad(path, f"{file}: {error.strerror}", _ADVICE) from None
    except UnicodeDecodeError:
        raise _bad(path, f"{file} is not text", _ADVICE) from None


def _bad(path: Path, problem: str, advice: str) -> BadQuiltSeries:
    return BadQuiltSeries(name=path, path=path, problem=problem, advice=advice)
