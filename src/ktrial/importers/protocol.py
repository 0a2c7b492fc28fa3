"""What an importer is, and the file that it is given."""

import gzip
import io
import lzma
import os
import re
import shlex
import stat
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import zstandard

from ktrial.importers.errors import ImportFailed, some_of
from ktrial.model.imported import Imported, Rounded
from ktrial.model.workload import Direction
from ktrial.program_outputs.units import Units

MOST_GROUPS = 200


@dataclass(frozen=True)
class Choices:
    """What the user said about the columns of a table; only importers of tables ask."""

    group_by: tuple[str, ...] = ()
    """Columns or conditions that tell the groups apart; empty: all columns that are nothing else."""
    value: str = ""
    """The column of numbers; empty: found by its name."""
    name: str = ""
    """What tells the file from the others that are read with it; empty: its name without the ending."""
    several: bool = False
    """Whether other files are compared with this one: a table without groups is one of them then."""
    units: Units = field(default_factory=Units)
    """What the user said about units, and the grammar of all others."""
    decimal: str = ""
    """What stands before decimals, `comma` or `point`; empty: the numbers say it."""
    better: Direction | None = None
    """Which way the user said is better, whatever names and units say."""


@dataclass(frozen=True)
class SourceFile:
    """A file that was read: complete, and not too large."""

    path: Path
    text: str
    label: str = ""
    """What the user calls the group that the file holds: `slub=FILE`; else its name says it."""
    choices: Choices = field(default_factory=Choices)

    @property
    def name(self) -> str:
        """Without directories, but for those that tell it from the others."""
        name = self.choices.name
        return self.path.name if not name or name.endswith(self.path.suffix) else f"{name}{self.path.suffix}"

    @property
    def group(self) -> str:
        """The group's label, for a file that holds one group."""
        return self.label or self.choices.name or self.path.stem


def check_groups(file: SourceFile, groups: int, by: Sequence[str] = (), line: int = 0) -> None:
    """Raise ImportFailed where one family has so many that nobody could read the comparison.

    `by`: what names them; `line`: where the first too many is.
    """
    if groups > MOST_GROUPS:
        where = f", line {line}" if line else ""
        named = f", by {some_of(by)}" if by else ""
        first = by[0] if by else "COLUMN"
        raise ImportFailed(
            f"{file.path}{where}: there are more than {MOST_GROUPS} groups in one comparison{named}.",
            hint=f"name the columns that tell the groups apart, --group-by {shlex.quote(first)}; no other is "
            "then looked at",
        )


@runtime_checkable
class Importer(Protocol):
    """Reads what one tool writes."""

    @property
    def name(self) -> str:
        """`hyperfine`."""
        ...

    @property
    def summary(self) -> str:
        """What it reads, in one line."""
        ...

    @property
    def one_group(self) -> bool:
        """Whether a file holds one group: several files are then compared with each other."""
        ...

    def recognises(self, file: SourceFile) -> bool:
        """Whether the file looks like this tool's."""
        ...

    def read(self, file: SourceFile) -> Imported:
        """Its measurements. Raises ImportFailed."""
        ...


# Reading files, and numbers in them, that somebody else wrote: complete or not at all.

LARGEST_MIB = 32


_MIB = 1024 * 1024
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def source_file(path: Path, label: str = "", choices: Choices | None = None) -> SourceFile:
    """The file's text, complete. Raises ImportFailed."""
    text = _text(path, _unpacked(path, _bytes(path)))
    if not text.strip():
        raise _unreadable(path, "it is empty")
    return SourceFile(path, text.replace("\r\n", "\n").replace("\r", "\n"), label, choices or Choices())


def _bytes(path: Path) -> bytes:
    limit = LARGEST_MIB * _MIB
    try:
        # A FIFO that nobody writes to would hold an open() up for ever; a device has no end.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _unreadable(path, "it is not a regular file")
            raw = b"" if status.st_size > limit else file.read(limit + 1)
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _unreadable(path, problem) from error
    size = max(status.st_size, len(raw))  # files in /proc have size 0
    if size > limit:
        raise ImportFailed(
            f"{path} is too large: {size // _MIB} MiB, where {LARGEST_MIB} MiB are the most that ktrial "
            "reads.",
            hint="results are small; this is probably a log of something else",
        )
    return raw


def _unpacked(path: Path, raw: bytes) -> bytes:
    """What gzip, xz or zstd packed, if it is no larger than a file may be. Raises ImportFailed."""
    limit = LARGEST_MIB * _MIB
    try:
        if raw.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
                unpacked = stream.read(limit + 1)
        elif raw.startswith(b"\xfd7zXZ\0"):
            with lzma.LZMAFile(io.BytesIO(raw)) as blocks:
                unpacked = blocks.read(limit + 1)
        elif raw.startswith(b"\x28\xb5\x2f\xfd"):
            with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as frames:
                unpacked = frames.read(limit + 1)
        else:
            return raw
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError) as error:
        raise _unreadable(path, f"it is packed, and damaged: {error}") from error
    if len(unpacked) > limit:
        raise ImportFailed(
            f"{path} unpacks to more than {LARGEST_MIB} MiB, the most that ktrial reads.",
            hint="results are small; this is probably a log of something else",
        )
    return unpacked


def _text(path: Path, raw: bytes) -> str:
    """UTF-8, UTF-16 with its mark, else Latin-1 in the form that Windows has. Raises ImportFailed: binary."""
    utf_16 = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in raw and not utf_16:
        raise _unreadable(path, "it is binary, not text")
    try:
        return raw.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not {'UTF-16' if utf_16 else 'UTF-8'}"
        text = raw.decode("cp1252", errors="replace")
        if utf_16 or "\ufffd" in text or _CONTROL.search(text):
            raise _unreadable(path, where) from error
        return text


def _unreadable(path: Path, problem: str) -> ImportFailed:
    return ImportFailed(
        f"{path} cannot be read: {problem}.",
        hint="give a file that holds results; ktrial workload formats lists what is read",
    )


def decimals(text: str) -> int:
    """Digits after the point; 0 for numbers with an exponent."""
    stripped = text.strip()
    return len(stripped.partition(".")[2]) if "e" not in stripped.lower() else 0


def rounded(value: float, places: int) -> Rounded:
    """A number that was printed with so many decimals."""
    return Rounded(value=value, half_unit=0.5 * 10.0**-places)
