"""Digests of files: read in full once in each boot of this system, and whenever a file has changed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ktrial import file_digests
from ktrial.file_digests import digest_of_bytes, digest_of_file, has_digest, remembered, sealed, unsealed

CONTENT = bytes(range(256)) * 8192
"""2 MiB: large enough to be remembered."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that changed last a minute ago, as far as this process knows."""
    file = tmp_path / "file"
    file.write_bytes(CONTENT)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 60_000_000_000)
    return file


class Reader:
    """Reads a file, and counts how often."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.times = 0

    def digest(self, *, anew: bool = False) -> str:
        return remembered(self.file, self.file.stat(), self._read, anew=anew)

    def _read(self) -> str:
        self.times += 1
        return digest_of_bytes(self.file.read_bytes())


def test_a_large_file_is_read_once(settled: Path) -> None:
    reader = Reader(settled)
    assert reader.digest() == reader.digest() == digest_of_bytes(CONTENT)
    assert reader.times == 1
    assert reader.digest(anew=True) == digest_of_bytes(CONTENT)
    assert reader.times == 2


def same_times(file: Path) -> None:
    """Five bytes become others, and the modification time is put back."""
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(1000)
        opened.write(b"\x90" * 5)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_file(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(CONTENT[::-1])
    other.replace(file)


@pytest.mark.parametrize("change", [same_times, another_file])
def test_a_file_that_has_changed_is_read_again(change: Callable[[Path], None], settled: Path) -> None:
    reader = Reader(settled)
    reader.digest()
    time.sleep(0.02)  # file systems stamp in steps of some milliseconds
    change(settled)
    assert reader.digest() == digest_of_bytes(settled.read_bytes()) != digest_of_bytes(CONTENT)
    assert not has_digest(settled, digest_of_bytes(CONTENT))


def test_what_has_just_changed_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(CONTENT)
    reader = Reader(file)
    reader.digest()
    reader.digest()
    assert reader.times == 2


def test_in_another_boot_of_this_system_it_is_read_again(settled: Path, cache: Path) -> None:
    reader = Reader(settled)
    reader.digest()
    (note,) = (cache / "digests").iterdir()
    boot, rest = note.read_text().split(" ", 1)
    note.write_text(f"{boot[::-1]} {rest}")
    reader.digest()
    assert reader.times == 2


@pytest.mark.parametrize("damage", ["", "text", "{}0"])
def test_a_damaged_note_costs_a_reading_and_no_more(damage: str, settled: Path, cache: Path) -> None:
    reader = Reader(settled)
    reader.digest()
    (note,) = (cache / "digests").iterdir()
    note.write_text(damage.replace("{}", note.read_text()[:-1]))
    assert reader.digest() in {digest_of_bytes(CONTENT), note.read_text()[-64:]}
    assert has_digest(settled, digest_of_bytes(CONTENT))


def test_a_cache_that_cannot_be_written_is_none(settled: Path, cache: Path) -> None:
    cache.write_text("a file")
    assert digest_of_file(settled) == digest_of_bytes(CONTENT)


def test_where_no_boot_is_known_nothing_is_remembered(
    settled: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "this_boot", lambda: "")
    reader = Reader(settled)
    reader.digest()
    reader.digest()
    assert reader.times == 2
    assert not cache.exists()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[1:], lambda data: data[:-1] + b"!"]
)
def test_a_seal_tells_whether_what_follows_is_whole(damage: Callable[[bytes], bytes]) -> None:
    assert unsealed(sealed(b"")) == b""
    assert unsealed(sealed(b"one\ntwo\n")) == b"one\ntwo\n"
    assert unsealed(damage(sealed(b"one\ntwo\n"))) is None
