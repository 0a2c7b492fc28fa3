"""Base kernels of a team: built once, had from a place of files; what is damaged or swapped is refused."""

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from tests.support.fake_builds import FILES, a_buildable_source, a_patch, compiled

from ktrial.file_store import BadFileStore, FileStore
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.requests import requested
from ktrial.kernels.build.shared_trees import DIRECTORY, VARIABLE
from ktrial.kernels.tar import tarfile
from ktrial.model.kernel import Kernel

ONCE = sorted(FILES)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools", lambda *_, **__: None)
    monkeypatch.setattr("ktrial.kernels.build.builds.check_tools_of", lambda *_, **__: None)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "place"))
    return tmp_path / "place"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


class Team:
    """Each member has a cache of his own."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.monkeypatch = directory, monkeypatch
        self.told: list[str] = []

    def build(self, member: str, source: Path, **parts: object) -> Kernel:
        self.told.clear()
        self.monkeypatch.setenv("KTRIAL_CACHE", str(self.directory / member))
        spec = requested(str(source), directory=Path("/"), **parts)  # type: ignore[arg-type]
        return build(spec, lambda text, *_: self.told.append(text))

    def compiled(self, member: str) -> list[str]:
        """What make compiled, here or where the tree came from."""
        return compiled(self.directory / member)

    @property
    def fetched(self) -> bool:
        return any("fetching" in line for line in self.told)

    @property
    def refused(self) -> str:
        return next((line for line in self.told if "refused" in line), "")


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return Team(tmp_path / "caches", monkeypatch)


def the_archive(place: Path) -> Path:
    (archive,) = (path for path in (place / DIRECTORY).glob("??/*") if len(path.name) == 64)
    return archive


def the_word(place: Path) -> Path:
    (word,) = (path for path in (place / DIRECTORY).iterdir() if path.is_file())
    return word


def test_the_second_one_compiles_nothing_and_has_the_same_kernel(team: Team, source: Path) -> None:
    first = team.build("ann", source)
    second = team.build("bob", source)
    assert team.fetched
    assert second.digest == first.digest
    assert team.compiled("ann") == team.compiled("bob") == ONCE


def test_a_patch_on_it_compiles_its_own_file_only(team: Team, source: Path, tmp_path: Path) -> None:
    team.build("ann", source)
    patch = tmp_path / "slice.patch"
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 4"))
    team.build("bob", source, patches=[str(patch)])
    assert any("fetching" in line for line in team.told)
    assert team.compiled("bob") == sorted([*ONCE, "sched"])


def test_another_configuration_or_source_is_not_had(team: Team, source: Path) -> None:
    team.build("ann", source)
    team.build("bob", source, options=["HZ_1000=y"])
    assert not team.fetched
    (source / "kernel/fork.c").write_text("int fork2;\n")
    team.build("eve", source)
    assert not team.fetched


def test_what_patches_changed_is_not_left_there(
    team: Team, source: Path, tmp_path: Path, place: Path
) -> None:
    patch = tmp_path / "slice.patch"
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 4"))
    team.build("ann", source, patches=[str(patch)])
    assert len(list((place / DIRECTORY).glob("??/*"))) == 1, "the source without patches"


def test_without_the_setting_nothing_is_left_or_looked_for(
    team: Team, source: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    team.build("ann", source)
    assert not place.exists()


def flipped(place: Path) -> None:
    content = bytearray(the_archive(place).read_bytes())
    content[len(content) // 2] ^= 1
    the_archive(place).write_bytes(content)


def cut_short(place: Path) -> None:
    the_archive(place).write_bytes(the_archive(place).read_bytes()[:-100])


def gone(place: Path) -> None:
    the_archive(place).unlink()


def no_digest(place: Path) -> None:
    the_word(place).write_text("../../../etc/passwd")


def put(place: Path, content: bytes) -> None:
    """Another archive, by its own digest: only what is in it can tell."""
    digest = hashlib.sha256(content).hexdigest()
    FileStore(str(place), DIRECTORY).put(digest, content)
    the_word(place).write_text(digest)


Members = dict[str, tuple[tarfile.TarInfo, bytes]]


def members(place: Path) -> Members:
    content = zstandard.ZstdDecompressor().stream_reader(the_archive(place).read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {
            member.name: (member, file.read() if (file := tar.extractfile(member)) else b"")
            for member in tar
            if member.isfile() or member.isdir()
        }


def packed(entries: Members) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for member, content in entries.values():
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if member.isfile() else None)
    return zstandard.ZstdCompressor().compress(file.getvalue())


def of_another_kernel(place: Path) -> None:
    entries = members(place)
    record = json.loads(entries["tree.json"][1])
    entries["tree.json"] = (entries["tree.json"][0], json.dumps({**record, "content": "f" * 64}).encode())
    put(place, packed(entries))


def of_another_configuration(place: Path) -> None:
    entries = members(place)
    name = "source/build/.config"
    entries[name] = (entries[name][0], entries[name][1] + b"CONFIG_PLANTED=y\n")
    put(place, packed(entries))


def leads_outside(place: Path) -> None:
    entries = members(place)
    link = tarfile.TarInfo("source/build/out")
    link.type, link.linkname = tarfile.SYMTYPE, "../../../../../../../outside"
    put(place, packed({**entries, link.name: (link, b"")}))


def names_a_parent(place: Path) -> None:
    entries = members(place)
    put(place, packed({**entries, "x": (tarfile.TarInfo("../../../escaped"), b"here")}))


def lies_in_another_place(place: Path) -> None:
    entries = members(place)
    entries["place"] = (entries["place"][0], b"/usr/../etc")
    put(place, packed(entries))


def is_no_archive(place: Path) -> None:
    put(place, b"nothing")


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (flipped, "its content is not that of its digest"),
        (cut_short, "its content is not that of its digest"),
        (gone, "its file is gone"),
        (no_digest, "what it says of it is no digest"),
        (of_another_kernel, "it is that of another kernel"),
        (of_another_configuration, "its configuration is another one"),
        (leads_outside, "its archive is damaged"),
        (names_a_parent, "its archive is damaged"),
        (lies_in_another_place, "where it was built is no path"),
        (is_no_archive, "its archive is damaged"),
    ],
)
def test_what_is_damaged_or_swapped_is_refused_built_here_and_replaced(
    harm: Callable[[Path], None], why: str, team: Team, source: Path, place: Path, tmp_path: Path
) -> None:
    first = team.build("ann", source)
    harm(place)
    second = team.build("bob", source)
    assert why in team.refused
    assert second.digest == first.digest
    assert team.compiled("bob") == ONCE
    assert not list(tmp_path.rglob("escaped"))
    third = team.build("eve", source)
    assert team.fetched
    assert not team.refused
    assert third.digest == first.digest


def test_a_place_that_cannot_be_reached_keeps_nobody_from_building(
    team: Team, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    assert team.build("ann", source).digest
    assert any("the kernel is here only" in line for line in team.told)


def test_a_place_that_is_none_is_told_before_anything_is_built(
    team: Team, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "s3://me:secret@bucket")
    with pytest.raises(BadFileStore, match="it holds a password"):
        team.build("ann", source)
    assert team.compiled("ann") == []
