"""Files come to a worker by the fleet's place of files, by their digest; what is damaged is not there."""

import hashlib
import os
from pathlib import Path

import pytest

from ktrial.file_store import FileStore
from ktrial.fleet.contents import Contents
from ktrial.fleet.errors import TransferDamaged

DATA = bytes(range(256)) * 20_000
"""Of more than one part."""
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(str(tmp_path / "place"))


def the_file_in(store: FileStore) -> Path:
    (path,) = (path for path in Path(store.url).rglob("*") if path.is_file())
    return path


@pytest.mark.parametrize("url", ["{directory}", "file://{directory}", "memory://{directory}"])
@pytest.mark.parametrize("as_file", [True, False], ids=["a file", "bytes"])
def test_what_is_put_is_taken_whole(url: str, as_file: bool, tmp_path: Path) -> None:
    store, contents = FileStore(url.format(directory=tmp_path / "place")), Contents(tmp_path / "worker")
    (tmp_path / "content").write_bytes(DATA)
    assert not contents.take(store, DIGEST), "nobody has put it there yet"
    store.put(DIGEST, tmp_path / "content" if as_file else DATA)
    assert contents.lacking([DIGEST]) == (DIGEST,)
    assert contents.take(store, DIGEST)
    assert contents.place(DIGEST, "module.ko").read_bytes() == DATA
    assert Contents(tmp_path / "worker").lacking([DIGEST]) == (), "another process finds it"


def test_an_empty_file_is_a_file(store: FileStore, tmp_path: Path) -> None:
    contents, digest = Contents(tmp_path / "worker"), hashlib.sha256(b"").hexdigest()
    store.put(digest, b"")
    assert contents.take(store, digest)
    assert contents.read(digest) == b""


def test_what_is_damaged_in_the_place_is_refused_and_put_anew(store: FileStore, tmp_path: Path) -> None:
    contents = Contents(tmp_path / "worker")
    store.put(DIGEST, DATA)
    the_file_in(store).write_bytes(DATA[:-1] + b"?")
    with pytest.raises(TransferDamaged):
        contents.take(store, DIGEST)
    assert contents.lacking([DIGEST]) == (DIGEST,)
    assert [*(tmp_path / "worker" / "arriving").iterdir()] == []
    store.put(DIGEST, DATA, anew=True)
    assert contents.take(store, DIGEST)
    assert contents.read(DIGEST) == DATA


def test_a_file_that_is_damaged_later_is_not_there_and_comes_anew_under_all_its_names(
    store: FileStore, tmp_path: Path
) -> None:
    contents = Contents(tmp_path / "worker")
    store.put(DIGEST, DATA)
    contents.take(store, DIGEST)
    contents.kernel_part("kernel", DIGEST, "vmlinuz").write_bytes(b"damaged")
    assert contents.lacking([DIGEST]) == (DIGEST,)
    contents.take(store, DIGEST)
    assert contents.kernel_part("kernel", DIGEST, "vmlinuz").read_bytes() == DATA


def test_what_a_killed_worker_took_in_part_is_removed_later(tmp_path: Path) -> None:
    left = tmp_path / "arriving" / f"{DIGEST}.1.2"
    left.parent.mkdir()
    left.write_bytes(DATA[:1000])
    Contents(tmp_path)
    assert left.exists(), "another worker may be taking it"
    os.utime(left, (0, 0))
    Contents(tmp_path)
    assert not left.exists()
