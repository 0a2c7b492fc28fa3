"""Templates as Python's bytecode, kept where Python keeps that of its modules: in `__pycache__`, beside them.

Compiling its fourteen templates takes a small report a tenth of its time.
"""

import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

from ktrial.file_digests import sealed, unsealed
from ktrial.kernels.files import write_atomically


class CompiledTemplates(BytecodeCache):
    """One file a template of a directory, named as Python names a module's.

    A template is compiled where there is none, and where it was made of another template, by another Jinja,
    another Python, or with other settings. Nothing is kept where Python itself would keep nothing: with
    PYTHONDONTWRITEBYTECODE, in a directory of somebody else's, on a full disk.
    """

    def __init__(self, directory: Path, settings: str) -> None:
        """`settings`: text that changes with whatever else decides what templates are compiled to."""
        self._directory = directory
        self._made_by = f"Jinja {jinja2.__version__}, {sys.version}, {settings}, "

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The template's own name: a directory has each name once."""
        del filename
        return name

    def get_source_checksum(self, source: str) -> str:
        """That of all that decides what it is compiled to."""
        return super().get_source_checksum(self._made_by + source)

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what is kept, if it is what was written."""
        with suppress(OSError):
            if content := unsealed(self._file(bucket.key).read_bytes()):
                bucket.bytecode_from_string(content)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it, if that is possible."""
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket.key)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, sealed(bucket.bytecode_to_string()))

    def _file(self, name: str) -> Path:
        return Path(cache_from_source(str(self._directory / name)))
