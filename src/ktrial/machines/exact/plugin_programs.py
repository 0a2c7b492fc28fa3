"""Which program ran: pages of code that the plugin saw, found again in the programs' files.

The plugin API shows no process. But a program's code is mapped from its file, page by page, unchanged.
"""

import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from ktrial.model.profile import PageCount, ProgramCount, StringCounts

_PAGE = 4096


def by_program(pages: Iterable[PageCount], files: Mapping[str, Path]) -> tuple[ProgramCount, ...]:
    """Instructions by program, those with the most first; `files`: name → the file, as the guest has it.

    A page that several files share (padding) belongs to the first of them. Raises OSError where a file cannot
    be read.
    """
    owners: dict[int, str] = {}
    for name, path in files.items():
        status = path.stat()
        for checksum in _checksums(path, status.st_mtime_ns, status.st_size):
            owners.setdefault(checksum, name)
    found: dict[str, list[PageCount]] = {}
    for page in pages:
        found.setdefault(owners.get(page.checksum, ""), []).append(page)
    counts = (_count(name, its_pages) for name, its_pages in found.items())
    return tuple(sorted(counts, key=lambda count: (-count.instructions, count.program)))


@lru_cache
def _checksums(path: Path, _changed: int, _size: int) -> tuple[int, ...]:
    content = path.read_bytes()
    starts = range(0, len(content), _PAGE)
    # The kernel fills the last page with zeros.
    return tuple(zlib.crc32(content[start : start + _PAGE].ljust(_PAGE, b"\0")) for start in starts)


def _count(name: str, pages: list[PageCount]) -> ProgramCount:
    strings = StringCounts(
        instructions=sum(page.strings.instructions for page in pages),
        passes=sum(page.strings.passes for page in pages),
        bytes=sum(page.strings.bytes for page in pages),
    )
    return ProgramCount(program=name, instructions=sum(p.instructions for p in pages), strings=strings)
