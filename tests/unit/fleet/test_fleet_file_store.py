"""The fleet's store of files: what workers take from it, and what becomes of a run where it fails."""

import shutil
from pathlib import Path

import pytest
from tests.support.fleet_processes import with_images
from tests.support.fleets import Heard, a_fleet, numbers, run_here, run_on, study_of, with_all_there
from tests.support.scripted import scripted_resources

from ktrial.file_store import BadFileStore, FileStore, FileStoreFailed, checked
from ktrial.fleet.errors import FleetError
from ktrial.fleet.fleet import Fleet
from ktrial.store.store import Store

IMAGE_BYTES = 5_000_000
IMAGES = 2
"""Of the two kernels of the study."""


def files_in(store: Path) -> list[Path]:
    return [one for one in store.rglob("*") if one.is_file()]


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


def test_workers_take_their_files_from_the_store(
    address: str, store: Store, other: Store, place: Path
) -> None:
    study, heard = study_of(4), Heard()
    kernels = with_images(place, IMAGE_BYTES, scripted_resources)
    with a_fleet(address, files=str(place / "shared")) as fleet:
        record = run_on(with_all_there(fleet, 2), study, store, heard, resources=kernels)
        digests = {one for package in fleet.packages.values() for one in package.digests}
    assert {one.name for one in files_in(place / "shared")} == digests
    assert len(digests) == IMAGES + len(fleet.packages)
    assert heard.notices == []
    assert numbers(record) == numbers(run_here(study, other))


def test_what_is_damaged_in_the_store_is_told_and_mended(
    address: str, logs: Path, store: Store, other: Store, place: Path
) -> None:
    kernels = with_images(place, IMAGE_BYTES, scripted_resources)
    with a_fleet(address, files=str(place / "shared")) as fleet:
        run_on(fleet, study_of(2), store, resources=kernels)
    contents = {path: path.read_bytes() for path in files_in(place / "shared")}
    for path, content in contents.items():
        path.write_bytes(bytes(len(content)))
    for path in logs.rglob("fleet/files"):
        shutil.rmtree(path)
    heard = Heard()
    with a_fleet(address, files=str(place / "shared")) as fleet:
        record = run_on(fleet, study_of(2), other, heard, resources=kernels)
    assert numbers(record)
    mended = {text for text in heard.notices if text.endswith("it is put there anew")}
    assert len(mended) == len(contents)
    assert {path: path.read_bytes() for path in contents} == contents


def test_without_a_name_files_lie_in_the_cache_until_the_fleet_is_left(
    address: str, store: Store, place: Path
) -> None:
    with a_fleet(address) as fleet:
        run_on(fleet, study_of(2), store)
        assert files_in(Path(fleet.files))
        assert Path(fleet.files).is_relative_to(place / "cache")
    assert [*(place / "cache" / "fleet").glob("files-*")] == []


def test_a_store_that_cannot_be_written_ends_the_run_with_the_reason(
    address: str, store: Store, place: Path
) -> None:
    (place / "file").write_text("no directory")
    with (
        a_fleet(address, files=str(place / "file" / "below")) as fleet,
        pytest.raises(FileStoreFailed, match="NotADirectoryError"),
    ):
        run_on(fleet, study_of(2), store)


def test_a_worker_that_does_not_see_the_store_is_refused_with_advice(
    fleet: Fleet, store: Store, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = with_images(place, IMAGE_BYTES + 1, scripted_resources)  # which no worker has yet
    monkeypatch.setattr(FileStore, "put", lambda *_arguments, **_options: None)
    with pytest.raises(FleetError, match="names a place that"):
        run_on(fleet, study_of(2), store, resources=kernels)
