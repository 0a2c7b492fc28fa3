"""The fleet's store of files: a place that clients and workers reach, where each file lies once, by digest.

fsspec reads and writes it: a directory that all have mounted, sftp://, s3://, gs://, and what else it knows.
It is a short cut, and not believed: a worker verifies what it takes, and the client sends what it lacks then.
"""

import contextlib
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ktrial.errors import KtrialError
from ktrial.fleet.errors import BadFileStore, FileStoreFailed

_PART_BYTES = 2 << 20
_PLACE = "ktrial-files"


def checked(url: str) -> str:
    """The URL, which holds no password. Raises BadFileStore."""
    if urlsplit(url).password is not None or re.search(r"[?&](key|secret|token|password)=", url):
        raise BadFileStore(url=_without_secrets(url), problem="it holds a password")
    if "://" not in url and not url.startswith("/"):
        raise BadFileStore(url=url, problem="it is neither a URL nor a directory's whole path")
    return url


class FileStore:
    """Files by the SHA-256 of their content."""

    def __init__(self, url: str) -> None:
        """`url`: as fsspec reads it; a directory's path is one. Raises BadFileStore, FileStoreFailed."""
        self.url = checked(url)
        with self._telling():
            self._files, self._root = _opened(url)

    def put(self, digest: str, content: Path | bytes, *, anew: bool = False) -> None:
        """Have the content there. `anew`: also where a file has its name, as that is damaged.

        Raises FileStoreFailed.
        """
        with self._telling():
            self._put(digest, content, anew=anew)

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

    def _put(self, digest: str, content: Path | bytes, *, anew: bool) -> None:
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        if not anew and self._size(digest) == size:
            return
        self._files.makedirs(f"{self._root}/{digest[:2]}", exist_ok=True)
        # Another name first: who looks meanwhile finds all of it or nothing.
        arriving = f"{self._path(digest)}.{uuid.uuid4().hex}"
        try:
            if isinstance(content, bytes):
                self._files.pipe_file(arriving, content)
            else:
                self._files.put_file(str(content), arriving)
            self._files.mv(arriving, self._path(digest))
        except BaseException:
            with contextlib.suppress(Exception):
                self._files.rm_file(arriving)
            raise

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
            raise FileStoreFailed(url=self.url, problem=problem) from None


def _opened(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    files, root = url_to_fs(url)
    return files, f"{root.rstrip('/')}/{_PLACE}"


def _without_secrets(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//…@", url.partition("?")[0])
