"""What a source tree holds: path → mode and git's name of the content, so that git's trees cost nothing."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ktrial.kernels.cache.atomic_write import write_atomically

PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"
"""The modes of files as git writes them."""


@dataclass(frozen=True)
class Manifest:
    """All files of a source tree. Two trees with one manifest are the same source."""

    files: Mapping[str, str]
    """Path, relative with slashes → `MODE OBJECT`, where the object is git's name of the content (SHA-1)."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all of it."""
        total = hashlib.sha256()
        for path in sorted(self.files):
            total.update(f"{self.files[path]}\t{path}\n".encode(errors="surrogateescape"))
        return total.hexdigest()

    def but(self, changes: Mapping[str, str | None]) -> "Manifest":
        """The same with other files; None: the file is gone."""
        files = {**self.files, **{path: one for path, one in changes.items() if one is not None}}
        return Manifest({path: one for path, one in files.items() if changes.get(path, one) is not None})

    def differing(self, other: "Manifest") -> list[str]:
        """Paths that are not the same in both, sorted."""
        ours, theirs = self.files, other.files
        return sorted(path for path in ours.keys() | theirs.keys() if ours.get(path) != theirs.get(path))


def object_of(content: bytes) -> str:
    """git's name for a file's content: SHA-1 of `blob SIZE`, NUL, content (git-hash-object)."""
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def keep_manifest(manifest: Manifest, path: Path) -> None:
    """Write it down."""
    write_atomically(path, json.dumps(manifest.files))


def kept_manifest(path: Path) -> Manifest | None:
    """The one that was written down; None where there is none that can be read."""
    try:
        return Manifest(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None
