"""A place of files by digest: what it lists, reads, takes away, and what it keeps beside them."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from ktrial.file_store import FileStore, FileStoreFailed

CONTENTS = [f"content {number}".encode() for number in range(5)]
DAY = 86_400


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(params=["{directory}", "memory://{directory}"], ids=["a directory", "not this system's"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    made = FileStore(request.param.format(directory=tmp_path / "store"), "own")
    for content in CONTENTS:
        made.put(digest(content), content, anew=True)
    return made


def test_all_that_is_there_is_listed_read_and_taken_away(store: FileStore) -> None:
    store.note("owner", "somebody")
    assert sorted(one for some in store.digests() for one in some) == sorted(map(digest, CONTENTS))
    assert [store.read(digest(content)) for content in CONTENTS] == CONTENTS
    first, *others = map(digest, CONTENTS)
    assert store.remove(others) == sum(map(len, CONTENTS[1:]))
    assert list(store.digests()) == [[first]]
    assert store.read(others[0]) is None
    assert store.remove(others) == 0, "somebody else was quicker"
    assert (store.noted("owner"), store.noted("reader")) == ("somebody", None)


def test_what_another_directory_of_the_place_has_is_not_there(store: FileStore) -> None:
    beside = FileStore(store.url, "another")
    assert list(beside.digests()) == []
    assert beside.read(digest(CONTENTS[0])) is None


def test_what_is_put_anew_takes_the_place_of_what_is_damaged(store: FileStore) -> None:
    name = digest(CONTENTS[0])
    store.put(name, b"conten_ 0", anew=True)
    store.put(name, CONTENTS[0])
    assert store.read(name) == b"conten_ 0", "of the same size: it is not looked into"
    store.put(name, CONTENTS[0], anew=True)
    assert store.read(name) == CONTENTS[0]


def test_what_arrived_in_part_is_taken_away_after_a_day(tmp_path: Path) -> None:
    store, name = FileStore(str(tmp_path), "own"), digest(b"x")
    old, young = (tmp_path / "own" / name[:2] / f"{name}.{letter * 32}" for letter in "ab")
    old.parent.mkdir(parents=True)
    for place in (old, young):
        place.write_bytes(b"par")
    os.utime(old, (time.time() - 1.1 * DAY,) * 2)
    assert list(store.digests()) == []
    assert store.remove_abandoned() == 1
    assert (old.exists(), young.exists()) == (False, True)


def test_a_write_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("no directory")
    with pytest.raises(FileStoreFailed, match="NotADirectoryError"):
        FileStore(str(tmp_path), "own").put(digest(b"x"), b"x", anew=True)
