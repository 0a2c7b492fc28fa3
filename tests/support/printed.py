"""A page on paper: what the browser prints, and which pieces of text stand on which sheet."""

import re
import subprocess
import zlib
from pathlib import Path

from tests.support.browser import OPTIONS, program

_STREAM = re.compile(rb"stream\r?\n(.*?)endstream", re.DOTALL)
_PIECE = re.compile(rb"BT\b(.*?)\bET", re.DOTALL)
_GLYPHS = re.compile(rb"<([0-9A-F]+)>")


def sheets(page: str, directory: Path) -> list[set[bytes]]:
    """The pieces of text of each sheet, as numbers of the font's glyphs: the same text has the same numbers.

    A PDF holds no words, but what was set at one place stands in one text object (ISO 32000-1, 9.4).
    """
    source, printed = directory / "page.html", directory / "page.pdf"
    source.write_text(page, encoding="utf-8")
    command = (program(), *OPTIONS, f"--user-data-dir={directory / 'profile'}", "--no-pdf-header-footer")
    subprocess.run(
        (*command, f"--print-to-pdf={printed}", source.as_uri()),
        capture_output=True,
        timeout=120,
        check=True,
    )
    parts = [_pieces(each[1]) for each in _STREAM.finditer(printed.read_bytes())]
    return [pieces for pieces in parts if pieces]


def _pieces(stream: bytes) -> set[bytes]:
    try:
        content = zlib.decompress(stream)
    except zlib.error:
        return set()
    return {b"".join(_GLYPHS.findall(each[1])) for each in _PIECE.finditer(content)} - {b""}
