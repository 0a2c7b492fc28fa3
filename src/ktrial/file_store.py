"""Files by the digest of their content, where fsspec reaches: a fleet's, or large parts of a store's.

Each lies once, under the SHA-256 of its content: in a directory that all have mounted, sftp://, s3://, gs://,
and what else fsspec knows. What lies there is not believed: who takes it compares it with its digest.
"""

import contextlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ktrial.errors import KtrialError
from ktrial.installation import how_to_install

OF_FLEETS = "ktrial-files"
"""The directory at the URL in which fleets have theirs."""
_PART_BYTES = 2 << 20
_ARRIVING = re.compile(r"[0-9a-f]{64}\.[0-9a-f]{32}")
_ABANDONED_SECONDS = 86_400.0
"""Since something arrived in part: who sent it has ended."""


class BadFileStore(KtrialError):
    """No place of files can be named so."""

    hint = (
        "name a directory that all have mounted, or a URL of fsspec's (sftp://head/srv/ktrial, "
        "s3://bucket/ktrial); passwords and keys belong where its own programs look for them"
    )
    exit_code = 2

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"The store of files {url!r}: {problem}")


class FileStoreFailed(KtrialError):
    """A place of files does not do what is asked of it."""

    hint = "is it there, and may this user write to it?"

    def __init__(self, url: str, problem: str, *, hint: str = "") -> None:
        self.problem = problem
        super().__init__(f"The store of files {url}: {problem}", hint=hint)


def checked(url: str) -> str:
    """The URL, which holds no password. Raises BadFileStore."""
    if urlsplit(url).password is not None or re.search(r"[?&](key|secret|token|password)=", url):
        without_secrets = re.sub(r"//[^/@]*@", "//…@", url.partition("?")[0])
        raise BadFileStore(without_secrets, "it holds a password")
    if "://" not in url and not url.startswith("/"):
        raise BadFileStore(url, "it is neither a URL nor a directory's whole path")
    if url.endswith("://") and url != "memory://":
        raise BadFileStore(url, "it names a way only, and no place")
    return url


class FileStore:
    """Files by the SHA-256 of their content."""

    def __init__(self, url: str, directory: str = OF_FLEETS) -> None:
        """`url`: as fsspec reads it; a directory's path is one. Raises BadFileStore, FileStoreFailed."""
        self.url = checked(url)
        with self._telling():
            self._files, self._root = _opened(url, directory)

    def put(self, digest: str, content: Path | bytes, *, anew: bool = False) -> None:
        """Have the content there. `anew`: also where a file has its name, as that is damaged, or may be.

        Raises FileStoreFailed.
        """
        with self._telling():
            size = len(content) if isinstance(content, bytes) else content.stat().st_size
            if anew or self._size(digest) != size:
                self._write(self._path(digest), content)

    def take(self, digest: str, part: Callable[[int, bytes, int], None]) -> bool:
        """Read a file: `part` gets offset, bytes, and the file's size. Whether it is there.

        Raises FileStoreFailed, and what `part` raises.
        """
        with self._telling():
            size = self._size(digest)
            if size is None:
                return False
            with self._files.open(self._path(digest), "rb") as file:
                for offset in range(0, max(size, 1), _PART_BYTES):
                    part(offset, file.read(_PART_BYTES), size)
        return True

    def read(self, digest: str) -> bytes | None:
        """All of a file, whatever is in it; None: it is not there. Raises FileStoreFailed."""
        with self._telling():
            return self._read(self._path(digest))

    def digests(self) -> Iterator[list[str]]:
        """All that is there, some at a time: those that begin alike. Raises FileStoreFailed."""
        for number in range(256):
            with self._telling():
                names = [name for name in self._names(f"{number:02x}") if not _ARRIVING.fullmatch(name)]
            if names:
                yield names

    def remove(self, digests: Iterable[str]) -> int:
        """Take files away; how many bytes they had. Raises FileStoreFailed."""
        with self._telling():
            return sum(self._removed(digest) for digest in digests)

    def remove_abandoned(self) -> int:
        """Take away what arrived in part a day ago; how many. Raises FileStoreFailed."""
        removed = 0
        with self._telling():
            for number in range(256):
                for name in filter(_ARRIVING.fullmatch, self._names(f"{number:02x}")):
                    removed += self._remove_old(f"{self._root}/{number:02x}/{name}")
        return removed

    def note(self, name: str, text: str) -> None:
        """Keep a word beside the files, in place of an older one. Raises FileStoreFailed."""
        with self._telling():
            self._write(f"{self._root}/{name}", text.encode())

    def noted(self, name: str) -> str | None:
        """The word that is kept there; None: there is none. Raises FileStoreFailed."""
        with self._telling():
            content = self._read(f"{self._root}/{name}")
        return None if content is None else content.decode(errors="replace")

    def _write(self, path: str, content: Path | bytes) -> None:
        directory = path.rpartition("/")[0]
        self._files.makedirs(directory, exist_ok=True)
        # Another name first: who looks meanwhile finds all of it or nothing.
        arriving = f"{path}.{uuid.uuid4().hex}"
        try:
            if isinstance(content, bytes):
                self._write_bytes(arriving, content)
            else:
                self._files.put_file(str(content), arriving)
            self._files.mv(arriving, path)
            self._settle(directory)
        except BaseException:
            with contextlib.suppress(Exception):
                self._files.rm_file(arriving)
            raise

    def _write_bytes(self, path: str, content: bytes) -> None:
        if not self._is_here:
            self._files.pipe_file(path, content)
            return
        with open(path, "xb") as file:  # noqa: PTH123 - fsspec's path
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def _settle(self, directory: str) -> None:
        """Have a new name outlast a loss of power, where the files are this system's."""
        if self._is_here:
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @property
    def _is_here(self) -> bool:
        return "file" in self._protocols

    @property
    def _protocols(self) -> tuple[str, ...]:
        protocol = self._files.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def _read(self, path: str) -> bytes | None:
        self._files.invalidate_cache()
        try:
            return bytes(self._files.cat_file(path))
        except FileNotFoundError:
            return None

    def _names(self, prefix: str) -> list[str]:
        self._files.invalidate_cache()
        try:
            paths = self._files.ls(f"{self._root}/{prefix}", detail=False)
        except FileNotFoundError:
            return []
        return [str(path).rpartition("/")[2] for path in paths]

    def _removed(self, digest: str) -> int:
        size = self._size(digest)
        with contextlib.suppress(FileNotFoundError):  # somebody else was quicker
            self._files.rm_file(self._path(digest))
            return size or 0
        return 0

    def _remove_old(self, path: str) -> bool:
        """Whether the file was old. Some file systems tell no ages: theirs stay."""
        with contextlib.suppress(NotImplementedError, FileNotFoundError):
            if time.time() - self._files.modified(path).timestamp() > _ABANDONED_SECONDS:
                self._files.rm_file(path)
                return True
        return False

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest}"

    def _size(self, digest: str) -> int | None:
        with contextlib.suppress(FileNotFoundError):
            self._files.invalidate_cache()
            return int(self._files.size(self._path(digest)))
        return None

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except KtrialError:
            raise
        except Exception as error:  # noqa: BLE001 - each of fsspec's file systems raises errors of its own
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            missing = f"{how_to_install('fsspec', 's3fs')} (or gcsfs, paramiko: what it asks for)"
            is_missing = isinstance(error, ImportError)
            raise FileStoreFailed(self.url, problem, hint=missing if is_missing else "") from None


def _opened(url: str, directory: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    files, root = url_to_fs(url)
    return files, f"{root.rstrip('/')}/{directory}"
