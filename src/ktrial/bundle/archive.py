"""The archive of a bundle: a zip file. The same content gives the same bytes; what is read is suspected.

What is read is strictly what is written here: no comment, no ZIP64, nothing before, between or after its
parts that would make two programs read two things; only plain files with plain names; sizes are known, and
limited, before anything is unpacked. Nothing is unpacked onto a disk by its own name.

Format: APPNOTE.TXT 6.3.3, PKWARE 2012 (4.3.6, 4.3.16).
"""

import hashlib
import re
import stat
import struct
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple

from pydantic import Field

from ktrial.bundle.errors import (
    BundleDamaged,
    BundleTooLarge,
    BundleUnreadable,
    NotABundle,
    NotSignable,
    SignatureWrong,
)
from ktrial.model.base import Model
from ktrial.model.kernel import Origin
from ktrial.text_lines import lines_of

MAGIC = b"PK\x03\x04"


MOST_FILES = 50_000


MOST_BYTES = 2 << 30
"""Of the archive, and of all files unpacked; kernels' modules have some 100 MB."""


MOST_BYTES_OF_A_FILE = 256 << 20


_MOST_DIRECTORY = 16 << 20
"""Bytes of the central directory: 50 000 files need less."""


_END = struct.Struct("<4s4H2LH")
"""4.3.16: signature, disks, entries here and in all, the directory's size and place, the comment's length."""


_END_MAGIC = b"PK\x05\x06"


_EPOCH = (1980, 1, 1, 0, 0, 0)


_UNIX = 3


_PLAIN_NAME = re.compile(r"(?!/)(?:(?:^|/)(?!\.)[A-Za-z0-9._+@=,~-]{1,120})+")
"""No empty part, none that begins with a dot: neither `..` nor a hidden file; no backslash, no colon."""


_LONGEST_NAME = 240


_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, struct.error),
    *(NotImplementedError, RuntimeError, ValueError, LookupError, OverflowError),
)
"""What `zipfile` raises on what is no sound archive."""


class ArchiveEntry(NamedTuple):
    """One file to be written."""

    name: str
    content: bytes | Path


def write_archive(file: IO[bytes], entries: Iterable[ArchiveEntry]) -> None:
    """Write the archive, by name. Raises OSError."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9, allowZip64=False) as archive:
        for name, content in sorted(entries):
            archive.writestr(_described(name), _bytes(content), compresslevel=9)


def _bytes(content: bytes | Path) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _described(name: str) -> zipfile.ZipInfo:
    """A plain file of no time and nobody's."""
    if not is_plain(name):
        raise ValueError(f"{name!r} does not name a file of a bundle")
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system, info.external_attr = _UNIX, (stat.S_IFREG | 0o644) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def is_plain(name: str) -> bool:
    """Whether a bundle may have a file of this name: relative, without `..`, and harmless in a shell."""
    return len(name) <= _LONGEST_NAME and _PLAIN_NAME.fullmatch(name) is not None


def looks_like_one(file: Path) -> bool:
    """Whether a file begins as an archive does. Raises nothing."""
    try:
        with file.open("rb") as opened_archive:
            return file.is_file() and opened_archive.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class Archive:
    """An archive that was found sound, as far as its directory says; each file is checked as it is read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, sizes: Mapping[str, int]) -> None:
        self._path = path
        self._archive = archive
        self.sizes = sizes
        """Name → bytes, unpacked."""

    def read(self, name: str) -> bytes:
        """A file's content. Raises BundleDamaged."""
        try:
            with self._archive.open(name) as opened_archive:
                content = opened_archive.read(self.sizes[name] + 1)
        except _BROKEN as error:
            raise BundleDamaged(self._path, f"{name} cannot be unpacked") from error
        except OSError as error:
            raise BundleUnreadable(self._path, error) from error
        if len(content) != self.sizes[name]:
            raise BundleDamaged(self._path, f"{name} has another size than it says")
        return content


@contextmanager
def opened_archive(path: Path) -> Iterator[Archive]:
    """The archive at a path. Raises BundleUnreadable, NotABundle, BundleTooLarge."""
    try:
        with path.open("rb") as file:
            _check_end(path, file)
            with _sound(path, file) as archive:
                sizes = _sizes(path, archive)
                yield Archive(path, archive, sizes)
    except OSError as error:
        raise BundleUnreadable(path, error) from error


def _check_end(path: Path, file: IO[bytes]) -> None:
    """The end of the directory is where the file ends, and what it says fits the file."""
    size = file.seek(0, 2)
    if size > MOST_BYTES:
        raise too_large(path, "it has", size, MOST_BYTES)
    if size < _END.size:
        raise NotABundle(path, "it is no zip archive")
    file.seek(size - _END.size)
    magic, disk, start, entries_on_disk, entries, length, offset, comment = _END.unpack(file.read(_END.size))
    if magic != _END_MAGIC or comment or disk or start:
        raise NotABundle(path, "it does not end as a zip archive that ktrial wrote")
    if entries_on_disk != entries or offset + length + _END.size != size:
        raise NotABundle(path, "its directory does not fit its size")
    if length > _MOST_DIRECTORY:
        raise too_large(path, "its directory has", length, _MOST_DIRECTORY)
    if entries > MOST_FILES:
        raise BundleTooLarge(path, "it has", f"{entries} files", MOST_FILES)


@contextmanager
def _sound(path: Path, file: IO[bytes]) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(file)
    except _BROKEN as error:
        raise NotABundle(path, "its directory cannot be read") from error
    with archive:
        yield archive


def _sizes(path: Path, archive: zipfile.ZipFile) -> dict[str, int]:
    """Name → size. Raises NotABundle for whatever is no plain file, BundleTooLarge."""
    sizes: dict[str, int] = {}
    for entry in archive.infolist():
        if problem := _problem(entry, sizes):
            raise NotABundle(path, problem)
        if entry.file_size > MOST_BYTES_OF_A_FILE:
            raise too_large(path, f"{entry.filename} has", entry.file_size, MOST_BYTES_OF_A_FILE)
        sizes[entry.filename] = entry.file_size
    if sum(sizes.values()) > MOST_BYTES:
        raise too_large(path, "unpacked it has", sum(sizes.values()), MOST_BYTES)
    return sizes


def _problem(entry: zipfile.ZipInfo, sizes: Mapping[str, int]) -> str:
    """Why the entry is none that ktrial writes; empty where it may be."""
    name = entry.orig_filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if not is_plain(name) or name != entry.filename:
        return f"{name[:80]!r} is no name of a file in a bundle"
    if name in sizes:
        return f"it has {name} twice"
    if kind not in {0, stat.S_IFREG}:
        return f"{name} is no plain file"
    if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED} or entry.flag_bits & 0x1:
        return f"{name} is encrypted, or packed in another way"
    return ""


def too_large(path: Path, subject: str, size: int, most: int) -> BundleTooLarge:
    """The error for a size above its limit."""
    return BundleTooLarge(path, subject, f"{size} bytes", most, unit="bytes are")


# What is in a bundle, and what it is called there.

FORMAT = 1
"""Raised with every change that an older ktrial would misread."""


CONTENTS = "bundle.json"


STUDY, STUDY_FILE = "study.json", "study.toml"


RESULT = "result.json"


PAGE, MARKDOWN = "report.html", "report.md"


DIFFERENCES = "kernel-differences.json"


SEARCHED = "search.json"


PACKAGES = "packages.txt"


README, CRATE = "README.md", "ro-crate-metadata.json"


LICENCE = "LICENSE.GPL-2.0.txt"


KERNELS, PATCHES = "kernels", "patches"


MOST_TRIALS = 20_000


MOST_PARTS = 1000
"""Profiles, or series, of one trial."""


def trial_name(number: int) -> str:
    """Trials are numbered in the study's run order."""
    return f"trials/{number:05}.json"


def part_name(kind: str, trial: int, number: int) -> str:
    """A trial's profile, or what was read over time: `profiles`, `series`."""
    return f"{kind}/{trial:05}-{number:03}.json"


class KernelEntry(Model):
    """A kernel that treatments boot."""

    asked: str
    """As the study names it, or the name of what it builds."""
    release: str = ""
    digest: str = ""
    """SHA-256 over image, modules and configuration; empty where no trial had it."""
    config_digest: str = ""
    package: str = ""
    origin: Origin | None = None
    """None where the kernel was not in the cache any more when the bundle was made."""
    obtain: str = ""
    """A name by which ktrial obtains just this one: `debian:6.1.0-50-cloud-amd64`; empty where none does."""
    files: tuple[str, ...] = ()
    """Its files in the bundle, below `kernels/DIGEST/`."""


class Guests(Model):
    """ktrial's own programs in and around guests, of the installation that made the bundle."""

    revision: str = ""
    """The last commit of ktrial that changed their sources; empty where it is not known."""
    programs: dict[str, str] = Field(default_factory=dict)
    """Name → SHA-256, as crates/SHA256SUMS has them."""


class BundleContents(Model):
    """`bundle.json`: what a bundle says of itself. Everything that verdicts rest on is in other files."""

    format: int = FORMAT
    ktrial: str
    """The version that wrote it."""
    study: str
    study_digest: str
    created: datetime
    ended: datetime
    """When the last of its trials began."""
    planned: int
    trials: int
    store_entry: int = 0
    """The newest entry of the study's in the log of the store that the bundle was made from; 0: not known."""
    store_head: str = Field(default="", pattern="^([0-9a-f]{64})?$")
    """The head of the log there (`ktrial.store.log`), which that store has to have for ever."""
    machine: str
    """`exact`, `kvm`, `host`."""
    versions: tuple[str, ...]
    """Of ktrial, that ran trials."""
    qemu: tuple[str, ...]
    kernels: tuple[KernelEntry, ...] = ()
    guests: Guests = Guests()
    patches: dict[str, str] = Field(default_factory=dict)
    """SHA-256 → what the patch was called; the patch is `patches/SHA-256.patch`, where it could be read."""
    host_files: tuple[str, ...] = ()
    """Files of the author's system that guests were given, and that are not in the bundle."""
    licence: str = ""
    """An SPDX identifier; empty: its author said none."""


# The list of a bundle's files with their digests: what is signed, and what `sha256sum -c` reads.

MANIFEST = "manifest-sha256.txt"


MANIFEST_SIGNATURE = MANIFEST + ".sig"


NOT_LISTED = frozenset({MANIFEST, MANIFEST_SIGNATURE})


MANIFEST_MOST_BYTES = 32 << 20


_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


def manifest_text(digests: Mapping[str, str]) -> str:
    """Name → SHA-256, as the program sha256sum writes it."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def parsed_manifest(file: Path, text: str) -> dict[str, str]:
    """What `text_of` wrote. Raises BundleDamaged."""
    digests: dict[str, str] = {}
    for line in lines_of(text):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in digests:
            raise BundleDamaged(file, f"a line of {MANIFEST} cannot be read")
        digests[match[2]] = match[1]
    return digests


def check_names(file: Path, digests: Mapping[str, str], names: set[str]) -> None:
    """Raise BundleDamaged where a file is missing, or one is there that is not listed."""
    if missing := sorted(digests.keys() - names):
        raise BundleDamaged(file, f"{missing[0]} is missing")
    if more := sorted(names - digests.keys() - NOT_LISTED):
        raise BundleDamaged(file, f"{more[0]} is not in {MANIFEST}")


def check_content(file: Path, name: str, content: bytes, digests: Mapping[str, str]) -> None:
    """Raise BundleDamaged where the content is not what was listed."""
    if digests.get(name) != hashlib.sha256(content).hexdigest():
        raise BundleDamaged(file, f"{name} is not what {MANIFEST} says")


# OpenSSH signatures over a bundle's list of digests (ssh-keygen(1), -Y sign and -Y verify).

NAMESPACE = "ktrial-bundle"
"""A signature for another purpose, such as a git commit's, is none for a bundle (PROTOCOL.sshsig)."""


SIGNATURE_MOST_BYTES = 64 << 10


_PROGRAM = "ssh-keygen"


_SECONDS = 60


_PRINCIPAL = re.compile(r"[A-Za-z0-9@._+-]{1,200}")


def signed(file: Path, key: Path, manifest: bytes) -> bytes:
    """The signature of the manifest. A key may ask its owner for a passphrase. Raises NotSignable."""
    key = key.expanduser()
    if not key.is_file():
        raise NotSignable(file, f"there is no key {key}")
    with tempfile.TemporaryDirectory(prefix="ktrial-sign-") as directory:
        message = Path(directory) / "manifest"
        message.write_bytes(manifest)
        command = [_PROGRAM, "-Y", "sign", "-q", "-f", str(key.absolute()), "-n", NAMESPACE, str(message)]
        try:
            ran = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
            if ran.returncode:
                raise NotSignable(file, _said(ran.stderr))
            return message.with_name(message.name + ".sig").read_bytes()
        except OSError as error:
            raise NotSignable(file, f"{_PROGRAM} cannot be run ({error.strerror})") from error


def signer(file: Path, signers: Path, manifest: bytes, signature: bytes) -> str:
    """Who signed it, of those whom the file of allowed signers names. Raises SignatureWrong."""
    signers = signers.expanduser().absolute()
    if not signers.is_file():
        raise SignatureWrong(file, f"there is no file {signers}", signers)
    with tempfile.TemporaryDirectory(prefix="ktrial-verify-") as directory:
        place = Path(directory) / "signature"
        place.write_bytes(signature)
        common = [_PROGRAM, "-Y"]
        which = ["-f", str(signers), "-n", NAMESPACE, "-s", str(place)]
        principals = _ran(file, signers, [*common, "find-principals", *which], b"")
        name = lines_of(principals)[0].split(",")[0].strip() if principals.strip() else ""
        if not _PRINCIPAL.fullmatch(name):
            raise SignatureWrong(file, "its key is nobody's there", signers)
        _ran(file, signers, [*common, "verify", *which, "-I", name], manifest)
        return name


def _ran(file: Path, signers: Path, command: list[str], text: bytes) -> str:
    try:
        ran = subprocess.run(command, input=text, capture_output=True, check=False, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = f"{_PROGRAM} cannot be run ({error})"
        raise SignatureWrong(file, problem, signers) from error
    if ran.returncode:
        raise SignatureWrong(file, _said(ran.stderr or ran.stdout), signers)
    return ran.stdout.decode("utf-8", "replace")


def _said(output: bytes) -> str:
    lines = lines_of(output.decode("utf-8", "replace").strip())
    return f"ssh-keygen says: {lines[-1].rstrip('.')}" if lines else "ssh-keygen refuses it"
