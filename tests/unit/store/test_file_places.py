"""Where a store's large parts lie: named, moved, forgotten; and whose the files are."""

import json
import shutil
import stat
from pathlib import Path

import pytest
from tests.support.databases import SQLITE, Backend
from tests.support.making import a_study, planned
from tests.support.stored_results import (
    ABOVE,
    files_in,
    filled,
    large,
    measured,
    only_file_in,
    ran,
    with_files,
)

from ktrial.file_store import BadFileStore
from ktrial.store import file_maintenance
from ktrial.store.errors import FilesMissing, StoreError
from ktrial.store.file_maintenance import collect
from ktrial.store.store import open_store


def test_a_copy_of_the_database_neither_writes_nor_collects_the_files_of_the_first(tmp_path: Path) -> None:
    first = filled(Backend(SQLITE, str(tmp_path / "trials.db")), tmp_path / "files")
    copy = tmp_path / "copy.db"
    shutil.copy(first.location, copy)
    with open_store(copy) as store:
        assert store.profile(1, planned(number=0).key, "fork") == large(0)
        store.delete(1)
        for work in (collect, lambda store: store.add_trial(store.study(a_study()), measured(3))):
            with pytest.raises(StoreError, match=r"belong to trials\.db"):
                work(store)
    assert len(files_in(tmp_path / "files")) == 2
    with open_store(first.location) as store:
        assert store.add_trial(1, measured(4))
    assert ran("files", "--take-over", "--store", str(copy)).exit_code == 0
    with open_store(copy) as store:
        assert collect(store).files == 3
    with open_store(first.location) as store, pytest.raises(StoreError, match=r"belong to copy\.db"):
        collect(store)


def test_a_store_and_its_files_are_moved_together(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    filled(Backend(SQLITE, str(tmp_path / "old/trials.db")), tmp_path / "old/files")
    (tmp_path / "old").rename(tmp_path / "new")
    with open_store(tmp_path / "new/trials.db") as store:
        assert store.profile(1, planned(number=0).key, "fork") == large(0)
        assert store.add_trial(1, measured(5))


def test_another_place_is_named_once_the_files_are_there(backend: Backend, tmp_path: Path) -> None:
    filled(backend, tmp_path / "files")
    with open_store(backend.location) as store:
        with pytest.raises(FilesMissing, match="2 of the files"):
            with_files(store, tmp_path / "elsewhere")
        assert store.profile(1, planned(number=0).key, "fork") == large(0), "nothing was changed"
        (tmp_path / "files").rename(tmp_path / "elsewhere")
        with_files(store, tmp_path / "elsewhere")
        assert store.profile(1, planned(number=0).key, "fork") == large(0)
        assert store.add_trial(1, measured(6))
    assert len(files_in(tmp_path / "elsewhere")) == 3


def test_a_place_in_use_cannot_be_forgotten(backend: Backend, tmp_path: Path) -> None:
    filled(backend, tmp_path / "files")
    with open_store(backend.location) as store:
        with pytest.raises(StoreError, match="has profiles or series in files: it needs"):
            file_maintenance.forget(store)
        assert store.profile(1, planned(number=0).key, "fork") == large(0)
        store.delete(1)
        file_maintenance.forget(store)
    filled(backend, None)
    assert backend.sql("SELECT count(*) FROM part_files") == [(0,)]


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/x", "https://host/x?token=secret"])
def test_a_place_with_a_secret_is_refused_and_not_stored(url: str, backend: Backend) -> None:
    with open_store(backend.location) as store, pytest.raises(BadFileStore) as raised:
        with_files(store, url)
    assert "secret" not in raised.value.message
    assert backend.sql("SELECT count(*) FROM file_place") == [(0,)]


def test_the_command_says_where_parts_lie(backend: Backend, tmp_path: Path) -> None:
    asked = ("files", "--store", backend.location)
    open_store(backend.location).close()
    assert "all of it is inside" in ran(*asked).stdout
    assert "where are they to be?" in str(ran(*asked, "--above", "4K").exception)
    assert ran(*asked, str(tmp_path / "files"), "--above", "1000").exit_code == 0
    with open_store(backend.location) as store:
        store.add_trials(store.study(a_study()), [measured(0), measured(1, seed=0)])
    told = json.loads(ran(*asked, "--json").stdout)
    assert (told["parts"], told["files"], told["above"]) == (2, 1, ABOVE)
    assert told["size"] == only_file_in(tmp_path / "files").stat().st_size
    assert told["place"].startswith(str(tmp_path / "files/ktrial-store-"))
    assert "2 parts in 1 file" in " ".join(ran(*asked, "--above", "64K").stdout.split())
    assert isinstance(ran(*asked, "none").exception, StoreError)


def test_files_can_be_read_by_others_of_the_group(tmp_path: Path) -> None:
    filled(Backend(SQLITE, str(tmp_path / "trials.db")), tmp_path / "files", 1)
    mode = stat.S_IMODE(only_file_in(tmp_path / "files").stat().st_mode)
    plain = tmp_path / "plain"
    plain.touch()
    assert mode == stat.S_IMODE(plain.stat().st_mode)
