"""A kernel that another system builds is the one that is built here, or it is not taken."""

import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from tests.support.fake_builds import a_buildable_source, a_patch, compiled, git, has_what_builds_need

from ktrial.installation import CACHE
from ktrial.kernels import silent
from ktrial.kernels.build.builds import build, cached
from ktrial.kernels.build.remote_builds import Request, SourceBuilds
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import BuildDiffers, BuildFailed
from ktrial.model.kernel import Build, BuildOrder, Kernel


@dataclass
class Systems:
    """This one and another one: each has a cache of its own."""

    place: Path
    patch: pytest.MonkeyPatch

    def cache(self, name: str) -> Path:
        return self.place / name

    @contextmanager
    def on(self, name: str) -> Iterator[Path]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(CACHE, str(self.cache(name)))
            yield self.cache(name)

    def asked(self, source: Path | str, **parts: object) -> Build:
        with self.on("here"):
            return requested(str(source), config="defconfig", directory=self.place, **parts)  # type: ignore[arg-type]

    def order(self, spec: Build) -> BuildOrder:
        with self.on("here"):
            order = SourceBuilds().order(spec, silent)
        assert order
        return order

    def made(self, order: BuildOrder, on: str = "there") -> Path:
        """What the other system hands back. It has the files elsewhere, and nothing of the source."""
        with self.on(on) as cache:
            files = {digest: self._given(digest, path, cache) for digest, path in order.files.items()}
            return SourceBuilds().make(order, files.__getitem__, silent)

    def taken(self, order: BuildOrder, archive: Path) -> Kernel:
        with self.on("here"):
            return SourceBuilds().take(order, archive)

    @staticmethod
    def _given(digest: str, path: Path, cache: Path) -> Path:
        (cache / "given").mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(path, cache / "given" / digest))


@pytest.fixture
def systems(tmp_path: Path, large_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systems:
    """On a disk: before it unpacks a tarball, ktrial wants room for a whole source."""
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return Systems(large_path, monkeypatch)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


def test_it_is_the_kernel_that_is_built_here(systems: Systems, source: Path) -> None:
    patch = systems.place / "slice.patch"
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 5"))
    spec = systems.asked(source, patches=[patch.name])
    kernel = systems.taken(order := systems.order(spec), systems.made(order))
    with systems.on("third"):
        assert build(spec).digest == kernel.digest
    assert compiled(systems.cache("here")) == []
    assert set(compiled(systems.cache("there"))) == {"fork", "sched"}
    with systems.on("here"):
        assert cached(spec) == kernel
        assert SourceBuilds().order(in_other_words(spec), silent) is None, "it is here in other words"


def in_other_words(spec: Build) -> Build:
    """The same kernel comes of it."""
    return spec.model_copy(update={"fuzz": 1})


def test_a_revision_of_a_repository_is_built_where_there_is_no_repository(
    systems: Systems, source: Path
) -> None:
    git(source, "init", "-q")
    git(source, "add", "--all", "--force")
    git(source, "commit", "-qm", "first")
    order = systems.order(systems.asked(f"git:{source}@HEAD"))
    shutil.rmtree(source)
    with systems.on("there"):
        assert SourceBuilds().needed(order) == tuple(order.files)
    archive = systems.made(order)
    with systems.on("there"):
        assert SourceBuilds().needed(order) == (), "its source is there, and unpacked"
    assert systems.made(order) == archive
    assert set(compiled(systems.cache("there"))) == {"fork", "sched"}, "each once"


def test_an_error_of_the_compiler_is_that_of_a_build_here(systems: Systems, source: Path) -> None:
    (source / "kernel/fork.c").write_text("kernel/fork.c:1:5: error: ERROR is no type\n")
    spec = systems.asked(source)
    with pytest.raises(BuildFailed) as remote:
        systems.made(systems.order(spec))
    with systems.on("third"), pytest.raises(BuildFailed) as local:
        build(spec)
    assert remote.value.message == local.value.message


def test_another_compiler_is_a_reason_to_build_nothing(systems: Systems, source: Path) -> None:
    order = systems.order(systems.asked(source))
    assert SourceBuilds().problem(order) == ""
    assert isinstance(order.request, Request)
    second = replace(order, request=replace(order.request, compiler="gcc 99"))
    assert SourceBuilds().problem(second).endswith(", gcc 99 here")


def test_a_missing_program_is_a_reason_to_build_nothing(
    systems: Systems, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = systems.order(systems.asked(source))
    (systems.place / "empty").mkdir()
    monkeypatch.setenv("PATH", str(systems.place / "empty"))
    assert SourceBuilds().problem(order).startswith("it lacks ")


def test_another_source_is_not_built(systems: Systems, source: Path) -> None:
    order = systems.order(systems.asked(source))
    (source / "kernel/fork.c").write_text("int other;\n")
    second = systems.order(systems.asked(source))
    swapped = dict(zip(order.files, second.files.values(), strict=True))
    with pytest.raises(BuildDiffers, match="the source that it was given is another one"):
        systems.made(replace(order, files=swapped))


def test_what_is_something_else_is_not_taken(systems: Systems, source: Path) -> None:
    order = systems.order(systems.asked(source))
    archive = systems.made(order)
    for files, problem in (
        ({"config": "CONFIG_OTHER=y\n"}, "its configuration is another one"),
        ({"image": None}, "there is no file image in what it built"),
    ):
        with pytest.raises(BuildDiffers, match=problem):
            systems.taken(order, changed(archive, files))
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(BuildDiffers, match="its archive is damaged"):
        systems.taken(order, archive)
    with systems.on("here"):
        assert cached(order.build) is None


def changed(archive: Path, files: Mapping[str, str | None]) -> Path:
    """The archive with other contents of these files; None: without it."""
    result = archive.with_name("changed.tar.zst")
    with (
        zstandard.open(archive) as stream,
        tarfile.open(fileobj=stream, mode="r|") as before,
        zstandard.open(result, "wb") as out,
        tarfile.open(fileobj=out, mode="w|") as after,
    ):
        for member in before:
            content = before.extractfile(member)
            data = content.read() if content else b""
            if member.name in files:
                if (text := files[member.name]) is None:
                    continue
                data = text.encode()
            member.size = len(data)
            after.addfile(member, BytesIO(data))
    return result
