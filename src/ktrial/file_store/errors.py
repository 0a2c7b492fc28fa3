"""Errors about stores of files."""

from ktrial.errors import KtrialError


class BadFileStore(KtrialError):
    """The store of files {url!r}: {problem}"""

    hint = (
        "name a directory that all have mounted, or a URL of fsspec's (sftp://head/srv/ktrial, "
        "s3://bucket/ktrial); passwords and keys belong where its own programs look for them"
    )
    exit_code = 2


class FileStoreFailed(KtrialError):
    """The store of files {url}: {problem}"""

    hint = (
        "is it there, and may this user write to it? pip install fsspec, and what it asks for: s3fs, gcsfs, "
        "paramiko"
    )
