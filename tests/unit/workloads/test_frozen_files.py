"""Files that guests are given stay what they were when a study started."""

import os
import time
from pathlib import Path

import pytest

from ktrial.file_digests import digest_of_bytes
from ktrial.model.machine import CarriedFile, FileSet
from ktrial.workloads.errors import WorkloadError
from ktrial.workloads.frozen_files import FrozenFiles


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "libit.so"
    path.write_bytes(b"first")
    return path


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def carried(host: Path, guest: str = "/lib/libit.so", mode: int = 0o755) -> CarriedFile:
    return CarriedFile(host=host, guest=guest, mode=mode)


def frozen(files: FrozenFiles, *carried_files: CarriedFile) -> FileSet:
    return files.of("workload it", carried_files, lambda: carried_files)


def contents(file_set: FileSet) -> list[bytes]:
    return [file.host.read_bytes() for file in file_set.files]


def test_a_file_that_is_replaced_stays_as_it_was(library: Path, kept: Path) -> None:
    files = FrozenFiles(kept)
    first = frozen(files, carried(library))
    library.with_suffix(".new").write_bytes(b"second")
    library.with_suffix(".new").replace(library)
    assert frozen(files, carried(library)) == first
    assert contents(first) == [b"first"]


def test_a_file_that_is_written_in_place_stays_as_it_was(library: Path, kept: Path) -> None:
    first = frozen(FrozenFiles(kept), carried(library))
    library.write_bytes(b"other")
    assert contents(first) == [b"first"]


def test_who_asks_anew_gets_what_is_there_now(library: Path, kept: Path) -> None:
    first = frozen(FrozenFiles(kept), carried(library))
    library.write_bytes(b"second")
    second = frozen(FrozenFiles(kept), carried(library))
    assert (contents(second), contents(first)) == ([b"second"], [b"first"])
    assert second.digest != first.digest


def test_the_same_content_is_kept_once(library: Path, kept: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"first")
    both = frozen(FrozenFiles(kept), carried(library), carried(other, "/bin/other"))
    assert both.files[0].host == both.files[1].host
    assert both.files[0].host.name == digest_of_bytes(b"first")


@pytest.mark.parametrize(
    "changed",
    [{"guest": "/lib/other.so"}, {"mode": 0o700}],
    ids=["place", "mode"],
)
def test_the_digest_is_of_places_modes_and_contents(
    library: Path, kept: Path, changed: dict[str, object]
) -> None:
    plain = carried(library)
    other = plain.model_copy(update=changed)
    assert frozen(FrozenFiles(kept), plain).digest != frozen(FrozenFiles(kept), other).digest


def test_links_and_directories_stay_what_they_are(tmp_path: Path, kept: Path) -> None:
    link = CarriedFile(host=tmp_path / "link", guest="/lib", link="usr/lib")
    directory = CarriedFile(host=tmp_path, guest="/data", mode=0o700, directory=True)
    assert frozen(FrozenFiles(kept), link, directory).files == (link, directory)


def test_what_differs_is_named(library: Path, kept: Path) -> None:
    files = FrozenFiles(kept)
    before = frozen(files, carried(library), carried(library, "/bin/same"))
    library.write_bytes(b"second")
    after = frozen(FrozenFiles(kept), carried(library), carried(library, "/bin/new"))
    assert files.differing(before.digest, after.digest) == "/bin/new, /bin/same, /lib/libit.so"
    assert files.differing(before.digest, "unknown") == ""


def test_a_kept_file_that_was_damaged_is_copied_anew(library: Path, kept: Path) -> None:
    place = frozen(FrozenFiles(kept), carried(library)).files[0].host
    place.chmod(0o644)
    place.write_bytes(b"wrong")
    os.utime(place, ns=(0, time.time_ns()))
    assert contents(frozen(FrozenFiles(kept), carried(library))) == [b"first"]


def test_what_was_used_longest_ago_goes_when_there_is_too_much(tmp_path: Path, kept: Path) -> None:
    large, later, last = (tmp_path / name for name in ("large", "later", "last"))
    for path in (large, later, last):
        path.write_bytes(path.name.encode() * 4096)
    first, second = FrozenFiles(kept), FrozenFiles(kept)
    gone = frozen(first, carried(large)).files[0].host
    os.utime(gone, (1, 1))
    stays = frozen(first, carried(later)).files[0].host
    frozen(second, carried(last))
    assert gone.exists(), "nothing goes while somebody uses files"
    first.end()
    second.end()
    frozen(FrozenFiles(kept, limit=60_000), carried(last))
    assert (gone.exists(), stays.exists()) == (False, True)


def test_a_file_that_is_gone_is_named(tmp_path: Path, kept: Path) -> None:
    with pytest.raises(WorkloadError, match=r"Workload it: .*gone: No such file") as raised:
        frozen(FrozenFiles(kept), carried(tmp_path / "gone"))
    assert "KTRIAL_CACHE" in raised.value.advice
