"""Files come to a worker in parts, by their digest; what is not what it should be is not there."""

import hashlib
import os
from pathlib import Path

import pytest

from ktrial.fleet.contents import Contents
from ktrial.fleet.errors import TransferDamaged

DATA = bytes(range(256)) * 20
DIGEST = hashlib.sha256(DATA).hexdigest()
PART = 1000


def received(contents: Contents, data: bytes, digest: str = DIGEST) -> None:
    """Its parts, the last first and one of them twice."""
    offsets = list(range(0, len(data), PART))
    for offset in [*reversed(offsets[1:]), offsets[1], offsets[0]]:
        contents.receive(digest, offset, data[offset : offset + PART], len(data))


def test_a_file_is_there_once_all_of_it_has_come_in_whatever_order(tmp_path: Path) -> None:
    contents = Contents(tmp_path)
    contents.receive(DIGEST, 0, DATA[:PART], len(DATA))
    assert contents.lacking([DIGEST]) == (DIGEST,)
    received(contents, DATA)
    assert contents.lacking([DIGEST]) == ()
    assert contents.place(DIGEST, "module.ko").read_bytes() == DATA
    assert Contents(tmp_path).lacking([DIGEST]) == (), "another process finds it"


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    contents, digest = Contents(tmp_path), hashlib.sha256(b"").hexdigest()
    contents.receive(digest, 0, b"", 0)
    assert contents.read(digest) == b""


def test_a_file_that_changed_on_its_way_is_refused(tmp_path: Path) -> None:
    contents = Contents(tmp_path)
    with pytest.raises(TransferDamaged):
        received(contents, DATA[:-1] + b"?")
    assert contents.lacking([DIGEST]) == (DIGEST,)
    received(contents, DATA)
    assert contents.read(DIGEST) == DATA


def test_a_file_that_is_damaged_later_is_not_there_and_comes_anew_under_all_its_names(tmp_path: Path) -> None:
    contents = Contents(tmp_path)
    received(contents, DATA)
    part = contents.kernel_part("kernel", DIGEST, "vmlinuz")
    part.write_bytes(b"damaged")
    assert contents.lacking([DIGEST]) == (DIGEST,)
    received(contents, DATA)
    assert contents.kernel_part("kernel", DIGEST, "vmlinuz").read_bytes() == DATA


def test_what_a_killed_worker_received_in_part_is_taken_away_later(tmp_path: Path) -> None:
    Contents(tmp_path).receive(DIGEST, 0, DATA[:PART], len(DATA))
    (left,) = (tmp_path / "arriving").iterdir()
    Contents(tmp_path)
    assert left.exists(), "another worker may be receiving it"
    os.utime(left, (0, 0))
    Contents(tmp_path)
    assert not left.exists()
