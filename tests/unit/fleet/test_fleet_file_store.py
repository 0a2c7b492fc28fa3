"""The fleet's store of files: what workers take from it, and what becomes of a run where it fails."""

import hashlib
from pathlib import Path

import pytest
from tests.support.fleet_processes import with_images
from tests.support.fleets import Heard, a_fleet, numbers, run_here, run_on, study_of, with_all_there
from tests.support.scripted import sources

from ktrial.file_store import BadFileStore, FileStore, FileStoreFailed, checked
from ktrial.fleet.contents import Contents
from ktrial.fleet.errors import TransferDamaged
from ktrial.store.store import Store

CONTENT = bytes(range(256)) * 20_000
"""Of more than one part."""
IMAGE_BYTES = 5_000_000
IMAGES = 2
"""Of the two kernels of the study."""
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def files_in(store: Path) -> list[Path]:
    return [one for one in store.rglob("*") if one.is_file()]


@pytest.mark.parametrize("url", ["{directory}", "file://{directory}", "memory://{directory}"])
@pytest.mark.parametrize("as_file", [True, False], ids=["a file", "bytes"])
def test_what_is_put_is_taken_whole(url: str, as_file: bool, tmp_path: Path) -> None:
    store = FileStore(url.format(directory=tmp_path / "store"))
    (tmp_path / "content").write_bytes(CONTENT)
    contents = Contents(tmp_path / "worker")
    store.put(DIGEST, tmp_path / "content" if as_file else CONTENT)
    assert store.take(DIGEST, lambda *part: contents.receive(DIGEST, *part))
    assert contents.read(DIGEST) == CONTENT


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    store, contents = FileStore(str(tmp_path)), Contents(tmp_path / "worker")
    empty = hashlib.sha256(b"").hexdigest()
    store.put(empty, b"")
    assert store.take(empty, lambda *part: contents.receive(empty, *part))
    assert contents.read(empty) == b""


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    assert not FileStore(str(tmp_path)).take(DIGEST, lambda *_: None)


def test_what_is_damaged_there_is_refused_and_put_anew(tmp_path: Path) -> None:
    store, contents = FileStore(str(tmp_path / "store")), Contents(tmp_path / "worker")
    store.put(DIGEST, CONTENT)
    (there,) = files_in(tmp_path / "store")
    there.write_bytes(bytes(len(CONTENT)))
    with pytest.raises(TransferDamaged):
        store.take(DIGEST, lambda *part: contents.receive(DIGEST, *part))
    store.put(DIGEST, CONTENT, anew=True)
    assert there.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://key:secret@bucket/x", "password"),
        ("https://host/x?token=abc", "password"),
        ("some/where", "whole path"),
        ("s3://", "no place"),
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_telling_secrets(url: str, said: str) -> None:
    with pytest.raises(BadFileStore, match=said) as raised:
        checked(url)
    assert "secret" not in raised.value.message
    assert "abc" not in raised.value.message


def test_a_file_system_that_nobody_knows_is_told() -> None:
    with pytest.raises(FileStoreFailed, match="nosuch"):
        FileStore("nosuch://bucket/x")


def test_workers_take_their_files_from_the_store(store: Store, other: Store, place: Path) -> None:
    study, heard = study_of(4), Heard()
    kernels = with_images(place, IMAGE_BYTES, sources)
    with a_fleet(2, files=str(place / "shared")) as fleet:
        record = run_on(with_all_there(fleet, 2), study, store, heard, sources=kernels)
        digests = {one for package in fleet.packages.values() for one in package.digests}
    assert {one.name for one in files_in(place / "shared")} == digests
    assert len(digests) == IMAGES + len(fleet.packages)
    assert heard.notices == []
    assert numbers(record) == numbers(run_here(study, other))


def test_what_is_damaged_in_the_store_comes_from_the_client_and_is_mended(
    store: Store, other: Store, place: Path
) -> None:
    kernels = with_images(place, IMAGE_BYTES, sources)
    with a_fleet(1, files=str(place / "shared")) as fleet:
        run_on(fleet, study_of(2), store, sources=kernels)
    contents = {one: one.read_bytes() for one in files_in(place / "shared")}
    for one, content in contents.items():
        one.write_bytes(bytes(len(content)))
    for one in (place / "cache").rglob("fleet/files"):
        one.rename(one.with_name("gone"))
    heard = Heard()
    with a_fleet(1, files=str(place / "shared")) as fleet:
        record = run_on(fleet, study_of(2), other, heard, sources=kernels)
    assert numbers(record)
    told = [text for text in heard.notices if "not from the fleet's store: What arrived of" in text]
    assert len(told) == len(contents)
    assert {one: one.read_bytes() for one in contents} == contents


def test_without_the_store_files_come_from_the_client_and_that_is_told(
    store: Store, other: Store, place: Path
) -> None:
    (place / "file").write_text("no directory")
    study, heard = study_of(2), Heard()
    with a_fleet(1, files=str(place / "file" / "below")) as fleet:
        record = run_on(fleet, study, store, heard)
    assert [text for text in heard.notices if text.endswith("files go to workers from here")]
    assert numbers(record) == numbers(run_here(study, other))
