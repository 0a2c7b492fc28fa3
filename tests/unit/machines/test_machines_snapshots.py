"""The cache of snapshots: whole or not there, made once, within its limit."""

import multiprocessing
import os
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from ktrial.machines.errors import HostProblem, HostUsageProblem, MachineError, MachineStopped
from ktrial.machines.qemu import snapshot_cache
from ktrial.machines.qemu.snapshot_cache import (
    ABOUT,
    NOTE,
    RAM,
    STATE,
    SnapshotCache,
    SnapshotContents,
    key,
    snapshots_directory,
    snapshots_limit,
)

MIB = 1 << 20
SIZE = 4 * MIB
FACTS = {"kernel": "a", "qemu": "7.2"}
NAME = key(FACTS)
PAGES = ((0, b"first"), (MIB + 100, b"in the middle"), (SIZE - 4, b"last"))


@contextmanager
def contents(data: int = 0) -> Iterator[SnapshotContents]:
    """What a guest leaves: RAM with holes, and `data` bytes of noise; the state of its devices."""
    ram = os.memfd_create("ram")
    try:
        os.ftruncate(ram, SIZE)
        for at, page in PAGES:
            os.pwrite(ram, page, at)
        os.pwrite(ram, os.urandom(data), 2 * MIB)
        yield SnapshotContents(ram, b"devices")
    finally:
        os.close(ram)


def nothing() -> None:
    """Nobody wants to stop."""


def cache(directory: Path, limit: int = 1 << 40) -> SnapshotCache:
    return SnapshotCache(directory, limit, "exact")


def is_there(snapshots: SnapshotCache, name: str = NAME) -> bool:
    with snapshots.open(name) as snapshot:
        return snapshot is not None


def test_a_snapshot_comes_back_as_it_was(tmp_path: Path) -> None:
    cache(tmp_path).make(FACTS, contents, nothing)
    with cache(tmp_path).open(NAME) as snapshot:
        assert snapshot is not None
        assert snapshot.state == b"devices"
        assert snapshot.about.facts == FACTS
        assert os.fstat(snapshot.ram).st_size == SIZE
        assert [os.pread(snapshot.ram, len(page), at) for at, page in PAGES] == [page for _, page in PAGES]
        assert os.pread(snapshot.ram, 1000, 3 * MIB) == bytes(1000)


def test_a_copy_in_memory_is_the_snapshots_ram_and_nobody_can_change_it(tmp_path: Path) -> None:
    """QEMU opens it for writing, whatever it does then."""
    snapshots = cache(tmp_path)
    snapshots.make(FACTS, contents, nothing)
    with snapshots.open(NAME) as snapshot, snapshots.open(NAME) as again:
        assert snapshot is not None
        assert again is not None
        copy = snapshot.in_memory(snapshot)
        assert again.in_memory(again) is copy, "it is made once"
    assert [os.pread(copy.descriptor, len(page), at) for at, page in PAGES] == [page for _, page in PAGES]
    assert os.fstat(copy.descriptor).st_size == SIZE
    assert copy.size < MIB, "holes stay holes"
    with pytest.raises(PermissionError):
        os.pwrite(copy.descriptor, b"x", 0)


def test_copies_in_memory_are_kept_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_cache, "KEPT_IN_MEMORY", MIB)
    snapshots = cache(tmp_path)
    kept = []
    for kernel in ("a", "b", "a"):
        facts = {"kernel": kernel}
        if not is_there(snapshots, key(facts)):
            snapshots.make(facts, partial(contents, MIB), nothing)
        with snapshots.open(key(facts)) as snapshot:
            assert snapshot is not None
            kept.append(snapshot.in_memory(snapshot))
    assert len(set(map(id, kept))) == 3, "the first had to go for the second"
    assert os.pread(kept[0].descriptor, 5, 0) == b"first", "who uses it has it until then"


def test_zeros_take_no_room(tmp_path: Path) -> None:
    cache(tmp_path).make(FACTS, contents, nothing)
    assert (tmp_path / NAME / RAM).stat().st_blocks * 512 < MIB


def test_any_other_fact_is_another_snapshot() -> None:
    assert len({key(FACTS), key(FACTS | {"qemu": "10.0"}), key(FACTS | {"cpu": "max"})}) == 3


def test_a_note_stays_beside_its_snapshot_and_goes_with_it(tmp_path: Path) -> None:
    snapshots = cache(tmp_path)
    snapshots.keep_note(NAME, b"too early")
    assert snapshots.note(NAME) is None
    snapshots.make(FACTS, contents, nothing)
    snapshots.keep_note(NAME, b"symbols")
    assert cache(tmp_path).note(NAME) == b"symbols"
    assert is_there(snapshots)
    snapshots.remove(NAME)
    assert snapshots.note(NAME) is None


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("damage", [flip, shorten, lambda note: note.write_bytes(b"")])
def test_a_damaged_note_is_none(damage: Callable[[Path], None], tmp_path: Path) -> None:
    snapshots = cache(tmp_path)
    snapshots.make(FACTS, contents, nothing)
    snapshots.keep_note(NAME, b"symbols")
    damage(tmp_path / NAME / NOTE)
    assert snapshots.note(NAME) is None


def test_what_is_not_there(tmp_path: Path) -> None:
    assert not is_there(cache(tmp_path / "nowhere"))


@pytest.mark.parametrize("name", [RAM, STATE, ABOUT])
@pytest.mark.parametrize("damage", [flip, shorten, Path.unlink])
@pytest.mark.parametrize("same_process", [True, False])
def test_a_damaged_snapshot_is_seen_and_made_anew(
    name: str, damage: Callable[[Path], None], same_process: bool, tmp_path: Path
) -> None:
    first = cache(tmp_path)
    first.make(FACTS, contents, nothing)
    assert is_there(first)
    damage(tmp_path / NAME / name)
    snapshots = first if same_process else cache(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not is_there(snapshots)
        snapshots.make(FACTS, contents, nothing)
    missing = damage is Path.unlink
    assert missing or f"{NAME} is damaged ({name}): it is not used, but made again" in str(caught[0].message)
    assert bool(caught) is not missing
    assert is_there(snapshots)
    assert is_there(cache(tmp_path))


def test_one_that_is_whole_is_not_made_again(tmp_path: Path) -> None:
    snapshots = cache(tmp_path)
    snapshots.make(FACTS, contents, nothing)

    @contextmanager
    def never() -> Iterator[SnapshotContents]:
        raise AssertionError("made again")
        yield

    snapshots.make(FACTS, never, nothing)


def test_a_failure_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    @contextmanager
    def panics() -> Iterator[SnapshotContents]:
        raise ZeroDivisionError
        yield

    with pytest.raises(ZeroDivisionError):
        cache(tmp_path).make(FACTS, panics, nothing)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    cache(tmp_path).make(FACTS, contents, nothing)
    assert is_there(cache(tmp_path))


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """As on a disk that is full: writing beyond `size` is refused (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_room_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    with contents(MIB) as result:

        @contextmanager
        def ready() -> Iterator[SnapshotContents]:
            yield result

        with files_no_longer_than(MIB), pytest.raises(HostProblem) as caught:
            cache(tmp_path).make(FACTS, ready, nothing)
    assert str(tmp_path) in caught.value.message
    assert "free about 2 MiB there" in caught.value.advice
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot be written: Not a directory"):
        cache(tmp_path / "file" / "snapshots").make(FACTS, contents, nothing)


def _make(directory: str, result: "multiprocessing.Queue[int]") -> None:
    @contextmanager
    def slowly() -> Iterator[SnapshotContents]:
        result.put(os.getpid())
        time.sleep(0.3)
        with contents() as ready:
            yield ready

    cache(Path(directory)).make(FACTS, slowly, nothing)
    assert is_there(cache(Path(directory)))


def test_processes_that_want_the_same_make_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    result: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=_make, args=(str(tmp_path), result)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    result.get(timeout=300)
    assert result.empty()


def _die_while_making(directory: str) -> None:
    @contextmanager
    def dies() -> Iterator[SnapshotContents]:
        (Path(directory) / f"{NAME}.new").mkdir()
        (Path(directory) / f"{NAME}.new" / RAM).write_bytes(bytes(1000))
        os._exit(9)
        yield

    cache(Path(directory)).make(FACTS, dies, nothing)


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    killed = context.Process(target=_die_while_making, args=(str(tmp_path),))
    killed.start()
    killed.join()
    assert (tmp_path / f"{NAME}.new").is_dir()
    cache(tmp_path).make(FACTS | {"kernel": "another"}, contents, nothing)
    assert not (tmp_path / f"{NAME}.new").exists()
    cache(tmp_path).make(FACTS, contents, nothing)
    assert is_there(cache(tmp_path))


def test_waiting_for_another_process_can_be_stopped(tmp_path: Path) -> None:
    snapshots = cache(tmp_path)

    def stopped() -> None:
        raise MachineStopped(machine="exact")

    @contextmanager
    def meanwhile() -> Iterator[SnapshotContents]:
        with suppress(MachineStopped):
            cache(tmp_path).make(FACTS, contents, stopped)
            raise AssertionError("it did not wait")
        with contents() as ready:
            yield ready

    snapshots.make(FACTS, meanwhile, nothing)


def test_the_one_used_longest_ago_makes_room(tmp_path: Path) -> None:
    snapshots = cache(tmp_path, limit=int(2.5 * MIB))
    facts = [{"kernel": name} for name in "abc"]
    for number, fact in enumerate(facts[:2]):
        snapshots.make(fact, lambda: contents(MIB), nothing)
        os.utime(tmp_path / key(fact) / ABOUT, (number, number))
    assert is_there(snapshots, key(facts[0]))
    snapshots.make(facts[2], lambda: contents(MIB), nothing)
    assert [is_there(snapshots, key(fact)) for fact in facts] == [True, False, True]


def test_what_another_process_is_making_is_not_removed_to_make_room(tmp_path: Path) -> None:
    half_made = tmp_path / f"{NAME}.new"
    half_made.mkdir()
    (half_made / RAM).write_bytes(bytes(range(1, 256)) * 8192)
    with FileLock(tmp_path / f"{NAME}.lock"):
        cache(tmp_path, limit=MIB).make({"kernel": "another"}, lambda: contents(MIB), nothing)
        assert (half_made / RAM).stat().st_size == 255 * 8192
    cache(tmp_path, limit=MIB).make({"kernel": "a third"}, lambda: contents(MIB), nothing)
    assert not half_made.exists()


def test_a_snapshot_in_use_outlives_its_removal(tmp_path: Path) -> None:
    snapshots = cache(tmp_path)
    snapshots.make(FACTS, contents, nothing)
    with snapshots.open(NAME) as snapshot:
        assert snapshot is not None
        snapshots.remove(NAME)
        assert os.pread(snapshot.ram, 5, 0) == b"first"
    assert not is_there(snapshots)


def test_the_digest_does_not_depend_on_where_the_holes_are(tmp_path: Path) -> None:
    with contents() as result, (tmp_path / "full").open("w+b") as full:
        full.write(os.pread(result.ram, SIZE, 0))
        full.flush()
        assert snapshot_cache.digest_of_sparse(full.fileno()) == snapshot_cache.digest_of_sparse(result.ram)
        os.pwrite(result.ram, b"x", 3 * MIB)
        assert snapshot_cache.digest_of_sparse(full.fileno()) != snapshot_cache.digest_of_sparse(result.ram)


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 10 << 30), ("1000", 1000), ("512M", 512 << 20), ("3 GiB", 3 << 30), ("1TB", 1 << 40)],
)
def test_the_limit(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_SNAPSHOT_LIMIT", text)
    assert snapshots_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "10 X", "1.5G"])
def test_a_limit_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_SNAPSHOT_LIMIT", text)
    with pytest.raises(HostUsageProblem, match=r"KTRIAL_SNAPSHOT_LIMIT is .* allowed is a size"):
        snapshots_limit()


def test_the_cache_is_where_ktrial_cache_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path))
    assert snapshots_directory() == tmp_path / "snapshots"
    monkeypatch.delenv("KTRIAL_CACHE")
    assert snapshots_directory().parts[-2:] == ("ktrial", "snapshots")
