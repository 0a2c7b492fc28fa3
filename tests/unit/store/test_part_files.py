"""Large profiles and series in files: read as if they were inside, on each database; what is lost is told."""

import hashlib
import json
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.databases import POSTGRESQL, SQLITE, Backend, Server
from tests.support.fault_points import declared, each_kill_at
from tests.support.making import a_study, a_trial, planned
from tests.support.profiles import a_profile
from tests.support.stored_parts import SAMPLED
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

from ktrial.file_store import BadFileStore, FileStore
from ktrial.store.errors import StoreDamaged, StoreError, TrialsDamaged
from ktrial.store.file_maintenance import collect, forget_file_place
from ktrial.store.store import Store, open_store

SMALL = a_profile({("do_fork", ""): 900})
WAYS = [(SQLITE, POSTGRESQL), (POSTGRESQL, SQLITE)]
Place = Callable[[str, str], Backend]


@pytest.fixture
def place(tmp_path: Path, postgresql: Server) -> Place:
    """A place for a store of this kind and name."""

    def made(kind: str, name: str) -> Backend:
        return Backend(kind, str(tmp_path / f"{name}.db") if kind == SQLITE else postgresql.database())

    return made


def told_of(store: Backend) -> list[object]:
    """All that reading the store gives of the first study's trials."""
    with open_store(store.location) as opened:
        (study, *_) = opened.studies()
        keys = [trial.planned.key for trial in opened.trials(study.id)]
        whole = [(opened.profile(study.id, key, "fork"), opened.sampled(study.id, key)) for key in keys]
        return [study.digest, opened.trials(study.id), whole]


def digests_of(store: Backend) -> list[tuple[object, ...]]:
    return store.sql("SELECT content, counters, profiles, series FROM digests ORDER BY trial_id")


def test_a_large_part_lies_in_a_file_and_is_read_as_if_it_were_inside(
    backend: Backend, tmp_path: Path
) -> None:
    with open_store(backend.location) as store:
        study = store.study(a_study())
        with_files(store, tmp_path / "files")
        assert store.add_trial(study, measured(0))
        assert store.add_trial(study, a_trial(planned(number=1), profiles=(SMALL,)))
        assert store.profile(study, planned(number=0).key, "fork") == large(0)
        assert store.profile(study, planned(number=1).key, "fork") == SMALL
        assert store.sampled(study, planned(number=0).key) == (SAMPLED,)
        assert not any(check.damaged for check in store.check_trials(study))
    content = only_file_in(tmp_path / "files").read_bytes()
    named = ("profiles", hashlib.sha256(content).hexdigest(), len(content))
    assert backend.sql("SELECT part, digest, size FROM part_files") == [named]
    kept = backend.sql("SELECT trial_id, length(content) FROM profiles ORDER BY id")
    assert [(trial, size > 0) for trial, size in kept] == [(1, False), (2, True)]  # type: ignore[operator]


def test_without_a_place_everything_is_inside(backend: Backend) -> None:
    filled(backend, None)
    assert backend.sql("SELECT count(*) FROM part_files") == [(0,)]
    assert min(backend.sql("SELECT length(content) FROM profiles"))[0] > ABOVE  # type: ignore[operator]


def test_a_trial_has_the_same_digest_wherever_its_parts_lie(
    backend: Backend, place: Place, tmp_path: Path
) -> None:
    outside, inside = filled(backend, tmp_path / "files"), filled(place(SQLITE, "inside"), None)
    assert [row[1:] for row in digests_of(outside)] == [row[1:] for row in digests_of(inside)]


@pytest.mark.parametrize(("kind", "other"), WAYS)
@pytest.mark.parametrize(
    ("how", "outside", "to_outside"), [("copy", True, False), ("merge", False, True), ("merge", True, True)]
)
def test_a_copy_has_the_parts_where_it_keeps_its_own(
    how: str, outside: bool, to_outside: bool, kind: str, other: str, place: Place, tmp_path: Path
) -> None:
    source = filled(place(kind, "from"), tmp_path / "first" if outside else None)
    target = place(other, "to")
    if to_outside:
        with open_store(target.location) as store:
            with_files(store, tmp_path / "second")
    done = ran(how, source.location, target.location, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["studies"][0]["copied"] == 2
    assert len(files_in(tmp_path / "second")) == (2 if to_outside else 0)
    assert target.sql("SELECT count(*) FROM part_files") == [(2 if to_outside else 0,)]
    shutil.rmtree(tmp_path / "first", ignore_errors=True)
    assert told_of(target)[2] == [(large(number), (SAMPLED,)) for number in range(2)]
    assert digests_of(target) == digests_of(source)
    again = json.loads(ran(how, source.location, target.location, "--json").stdout)
    assert again["studies"][0]["there"] == 2, "nothing is read of what has the same digests"


LOSSES: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (Path.unlink, "is not there"),
    "cut": (lambda file: file.write_bytes(file.read_bytes()[:-1]), "is damaged"),
    "another's": (lambda file: file.write_bytes(b"something else"), "is damaged"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_file_is_told_with_its_trial_and_what_to_do(
    loss: str, backend: Backend, tmp_path: Path
) -> None:
    lose, said = LOSSES[loss]
    filled(backend, tmp_path / "files", 1)
    file = only_file_in(tmp_path / "files")
    content = file.read_bytes()
    lose(file)
    key = planned(number=0).key
    with open_store(backend.location) as store:
        assert len(store.trials(1)) == 1, "its numbers are whole"
        assert store.sampled(1, key) == (SAMPLED,), "and what lies elsewhere"
        with pytest.raises(
            StoreDamaged, match=f"the profile of fork of trial {re.escape(key)} of study 1"
        ) as raised:
            store.profile(1, key, "fork")
    assert f"{file.name} in {tmp_path / 'files'}" in raised.value.message
    assert raised.value.message.count(said) == 1
    assert "from a backup" in raised.value.advice
    told = ran("verify", "--store", backend.location)
    assert told.exit_code == 1
    assert f"trial {key}: profile of fork (its file {file.name} in" in told.stdout
    assert "numbers and verdicts are whole" in " ".join(told.stderr.split())
    copied = ran("copy", backend.location, str(tmp_path / "copy.db"), "--json")
    assert (copied.exit_code, json.loads(copied.stdout)["studies"][0]["damaged"]) == (1, [key])
    file.write_bytes(content)
    assert ran("verify", "--store", backend.location).exit_code == 0


def test_a_trial_whose_file_is_lost_can_be_taken_away_and_stored_again(
    backend: Backend, tmp_path: Path
) -> None:
    filled(backend, tmp_path / "files")
    files_in(tmp_path / "files")[0].unlink()
    assert ran("verify", "--store", backend.location, "--remove-damaged").exit_code == 0
    with open_store(backend.location) as store:
        assert len(store.trials(1)) == 1
        store.add_trials(1, [measured(number) for number in range(2)])
        assert len(store.trials(1)) == 2
    assert ran("verify", "--store", backend.location).exit_code == 0


def test_a_row_that_says_nothing_of_a_file_is_damaged(backend: Backend, tmp_path: Path) -> None:
    filled(backend, tmp_path / "files", 1)
    backend.sql("DELETE FROM part_files")
    with open_store(backend.location) as store, pytest.raises(TrialsDamaged):
        store.profile(1, planned(number=0).key, "fork")
    assert ran("verify", "--store", backend.location).exit_code == 1


def test_files_out_of_reach_end_what_needs_them_with_an_error(backend: Backend, tmp_path: Path) -> None:
    filled(backend, tmp_path / "files", 1)
    (tmp_path / "files").rename(tmp_path / "away")
    (tmp_path / "files").write_text("no directory")
    needing: list[Callable[[Store], object]] = [
        lambda store: store.profile(1, planned(number=0).key, "fork"),
        lambda store: store.check_trials(1),
        lambda store: store.add_trial(1, measured(1)),
        collect,
    ]
    for work in needing:
        with (
            open_store(backend.location) as store,
            pytest.raises(StoreError, match="NotADirectoryError") as raised,
        ):
            work(store)
        assert str(tmp_path / "files") in raised.value.message
        assert "Trials stored before are safe" in raised.value.advice
    with open_store(backend.location) as store:
        assert len(store.trials(1)) == 1, "a trial without its profile is none"
        assert store.add_trial(1, a_trial(planned(number=2), profiles=(SMALL,))), (
            "what is small needs no file"
        )


def test_collecting_takes_what_no_trial_names_and_nothing_else(backend: Backend, tmp_path: Path) -> None:
    directory = tmp_path / "files"
    with open_store(backend.location) as store:
        with_files(store, directory)
        first, second = store.study(a_study("first")), store.study(a_study("second"))
        store.add_trials(first, [measured(0), measured(1)])
        store.add_trials(second, [measured(0), measured(2)])
        assert len(files_in(directory)) == 3, "what is the same lies there once"
        assert collect(store).files == 0
        store.delete(first)
        assert len(files_in(directory)) == 3
        expected = sum(file.stat().st_size for file in files_in(directory)) - sum(
            int(str(size)) for (size,) in backend.sql("SELECT size FROM part_files")
        )
        assert collect(store) == (1, expected)
        assert [store.profile(second, planned(number=n).key, "fork") for n in (0, 2)] == [large(0), large(2)]
    told = ran("collect", "--store", backend.location).stdout
    assert told.split() == ["0", "files", "deleted,", "0", "bytes"]


def test_what_is_collected_between_a_file_and_its_row_is_written_again(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, collected = FileStore.put, list[int]()
    with open_store(backend.location) as other, open_store(backend.location) as store:
        with_files(store, tmp_path / "files")
        study = store.study(a_study())

        def put_and_collect(files: FileStore, digest: str, content: bytes, *, anew: bool = False) -> None:
            put(files, digest, content, anew=anew)
            if not collected:
                collected.append(collect(other).files)

        monkeypatch.setattr(FileStore, "put", put_and_collect)
        assert store.add_trial(study, measured(0))
        assert collected == [1], "the file was there, and nothing named it"
        assert store.profile(study, planned(number=0).key, "fork") == large(0)


def test_a_place_that_is_taken_away_while_a_trial_is_stored_is_not_named(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FileStore.put
    with open_store(backend.location) as other, open_store(backend.location) as store:
        with_files(store, tmp_path / "files")
        study = store.study(a_study())

        def put_and_forget(files: FileStore, digest: str, content: bytes, *, anew: bool = False) -> None:
            put(files, digest, content, anew=anew)
            forget_file_place(other)

        monkeypatch.setattr(FileStore, "put", put_and_forget)
        assert store.add_trial(study, measured(0))
        assert store.profile(study, planned(number=0).key, "fork") == large(0)
    assert backend.sql("SELECT count(*) FROM part_files") == [(0,)]


@pytest.mark.parametrize("name", declared("store/part_files.py") + declared("store/file_maintenance.py"))
def test_a_kill_leaves_at_most_a_file_that_nothing_names(name: str, tmp_path: Path) -> None:
    file = tmp_path / "trials.db"

    def work() -> None:
        with open_store(file) as store:
            study = store.study(a_study())
            store.add_trials(study, [measured(0), measured(1)])
            store.remove_trials_of(study, [planned(number=0).key])
            collect(store)

    with open_store(file) as store:
        with_files(store, tmp_path / "files")
        store.study(a_study())
    for kill in each_kill_at(name, work):
        with open_store(file) as store:
            assert not any(check.damaged for check in store.check_trials(1)), kill
            collect(store)
            named = len(store.trials(1))
        assert len(files_in(tmp_path / "files")) == named, kill
        with open_store(file) as store:
            store.remove_trials_of(1, [planned(number=number).key for number in range(2)])
    assert len(files_in(tmp_path / "files")) == 1


# Where the parts lie: named, moved, forgotten; and whose the files are


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
        with pytest.raises(StoreError, match="2 of the files"):
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
        with pytest.raises(StoreError, match="it needs their place"):
            forget_file_place(store)
        assert store.profile(1, planned(number=0).key, "fork") == large(0)
        store.delete(1)
        forget_file_place(store)
    filled(backend, None)
    assert backend.sql("SELECT count(*) FROM part_files") == [(0,)]


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/x", "https://host/x?token=secret"])
def test_a_place_with_a_secret_is_refused_and_not_stored(url: str, backend: Backend) -> None:
    with open_store(backend.location) as store, pytest.raises(BadFileStore) as raised:
        with_files(store, url)
    assert "secret" not in raised.value.message
    assert backend.sql("SELECT count(*) FROM file_place") == [(0,)]


def test_the_command_says_where_parts_lie(backend: Backend, tmp_path: Path) -> None:
    command = ("files", "--store", backend.location)
    open_store(backend.location).close()
    assert "everything is in the store itself" in ran(*command).stdout
    assert "name a place for them" in str(ran(*command, "--above", "4K").exception)
    assert ran(*command, str(tmp_path / "files"), "--above", "1000").exit_code == 0
    with open_store(backend.location) as store:
        store.add_trials(store.study(a_study()), [measured(0), measured(1, seed=0)])
    told = json.loads(ran(*command, "--json").stdout)
    assert (told["parts"], told["files"], told["above"]) == (2, 1, ABOVE)
    assert told["size"] == only_file_in(tmp_path / "files").stat().st_size
    assert told["place"].startswith(str(tmp_path / "files/ktrial-store-"))
    assert "2 parts in 1 file" in " ".join(ran(*command, "--above", "64K").stdout.split())
    assert "it needs their place" in str(ran(*command, "none").exception)


def test_files_can_be_read_by_others_of_the_group(tmp_path: Path) -> None:
    filled(Backend(SQLITE, str(tmp_path / "trials.db")), tmp_path / "files", 1)
    mode = stat.S_IMODE(only_file_in(tmp_path / "files").stat().st_mode)
    plain = tmp_path / "plain"
    plain.touch()
    assert mode == stat.S_IMODE(plain.stat().st_mode)
