"""Sources: directories, git revisions and tarballs hold the same; what is no source is refused."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from tests.support.fake_builds import a_buildable_source, git

from ktrial.kernels import silent
from ktrial.kernels.build import build_trees, sources
from ktrial.kernels.build.patches import BuildSource, source_of
from ktrial.kernels.build.requests import requested
from ktrial.kernels.build.sources import manifest_of, snapshot_of
from ktrial.kernels.errors import (
    BadConfigFile,
    BadPatch,
    BuildError,
    KernelUsageError,
    NotASource,
    SourceUnusable,
)


@pytest.fixture(autouse=True)
def cache(large_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On a disk: before it unpacks a tarball, ktrial wants room for a whole source."""
    monkeypatch.setenv("KTRIAL_CACHE", str(large_path / "cache"))
    return large_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


def a_repository(source: Path) -> Path:
    git(source, "init", "--quiet")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "first")
    return source


def a_tarball(source: Path, *more: tarfile.TarInfo) -> bytes:
    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w") as tar:
        tar.add(source, "linux-6.1")
        for member in more:
            tar.addfile(member)
    return result.getvalue()


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.compress),
        (".lz4", lz4.frame.compress),
    ],
)
def test_a_tarball_holds_what_its_directory_holds(
    suffix: str, compress: Callable[[bytes], bytes], source: Path, tmp_path: Path
) -> None:
    path = tmp_path / f"linux-6.1.tar{suffix}"
    path.write_bytes(compress(a_tarball(source)))
    snapshot = snapshot_of(requested(path.name, directory=tmp_path).source)
    assert snapshot.manifest == snapshot_of(str(source)).manifest
    assert snapshot_of(str(path)).directory == snapshot.directory, "it is unpacked once"


@pytest.mark.parametrize("name", ["linux-6.1/../../evil", "/evil", "linux-6.1/link/evil"])
def test_a_tarball_that_would_write_outside_is_refused(name: str, source: Path, tmp_path: Path) -> None:
    link = tarfile.TarInfo("linux-6.1/link")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    path = tmp_path / "evil.tar"
    path.write_bytes(a_tarball(source, *([link] if "link" in name else []), tarfile.TarInfo(name)))
    before = set(tmp_path.iterdir())
    # A leading slash is left out, as tar does: then it is one more directory beside the source.
    wrong, message = (NotASource, "it lacks Makefile") if name == "/evil" else (SourceUnusable, "leaves it")
    with pytest.raises(wrong, match=message):
        snapshot_of(str(path))
    assert {entry.name for entry in set(tmp_path.iterdir()) - before} <= {"cache"}
    assert not Path("/evil").exists()


@pytest.mark.parametrize("content", [b"", b"no tarball", gzip.compress(b"x" * 5000, mtime=0)[:40]])
def test_what_is_no_tarball_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(content)
    with pytest.raises(SourceUnusable, match="not a tarball, or is damaged"):
        snapshot_of(str(path))


def test_a_revision_holds_what_its_checkout_holds(source: Path) -> None:
    a_repository(source)
    (source / ".gitignore").write_text("*.o\n")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "-m", "second")
    (source / "kernel/fork.o").write_text("product")
    spec = requested(f"git:{source.name}@HEAD", directory=source.parent)
    assert spec.source == f"git:{source}@HEAD"
    head = snapshot_of(spec.source)
    assert head.manifest == snapshot_of(str(source)).manifest
    assert head.described() == git(source, "rev-parse", "--short=12", "HEAD")
    assert head.manifest.differing(snapshot_of(f"git:{source}@HEAD~1").manifest) == [".gitignore"]
    with head.reader() as reader:
        assert reader.content("kernel/fork.c") == b"int fork;\n"


@pytest.mark.parametrize(
    ("source_name", "message"),
    [
        ("git:linux@nowhere", "it has no revision 'nowhere'"),
        ("git:linux", "no directory and revision"),
        ("git:nowhere@HEAD", "there is no directory"),
        ("debian:linux-6.1", "called linux-source-X.Y"),
        ("debain:linux-source-6.1", "no such kind of source .did you mean debian"),
        ("nowhere", "there is no /"),
        ("", "it is empty"),
    ],
)
def test_a_source_that_is_none_is_refused(source_name: str, message: str, source: Path) -> None:
    a_repository(source)
    with pytest.raises(SourceUnusable, match=message) as caught:
        snapshot_of(requested(source_name, directory=source.parent).source)
    assert caught.value.exit_code == 2


def test_a_later_commit_holds_what_its_checkout_holds_and_no_tree_is_listed_twice(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 80,000 files a commit changes a few: git says which."""
    repository, trace = a_repository(source), tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    changes: dict[str, Callable[[], object]] = {
        "changed": lambda: (repository / "kernel/fork.c").write_text("int other;\n"),
        "made executable": lambda: (repository / "kernel/fork.c").chmod(0o755),
        "deleted": (repository / "kernel/fork.c").unlink,
        "new, with a name that is no word": lambda: (repository / "kernel/a\tb c.c").write_text(""),
        "a link": lambda: (repository / "kernel/fork.c").symlink_to("sched.c"),
        "moved": lambda: (repository / "kernel/sched.c").rename(repository / "kernel/moved.c"),
        "nothing": lambda: None,
    }
    revisions = [git(repository, "rev-parse", "HEAD")]
    for subject, change in changes.items():
        change()
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--allow-empty", "--message", subject)
        revisions.append(git(repository, "rev-parse", "HEAD"))
    trace.unlink()
    for revision in [*revisions, *reversed(revisions)]:
        snapshot = snapshot_of(f"git:{repository}@{revision}")
        git(repository, "checkout", "--quiet", revision)
        assert snapshot.manifest.digest == manifest_of(repository).digest, revision
    commands = trace.read_text()
    assert commands.count('"name":"ls-tree"') == 1
    assert commands.count('"name":"diff-tree"') == len(changes) - 1, (
        "the last commit's tree is the one before"
    )


def test_what_builds_and_editors_leave_is_no_source(source: Path) -> None:
    before = manifest_of(source)
    for name in ("kernel/fork.o", "kernel/.fork.o.cmd", ".config", "vmlinux", "kernel/fork.c~", ".git/HEAD"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text("product")
    for name in ("include/generated/autoconf.h", "out/include/config/auto.conf", "out/Makefile"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("product")
    assert manifest_of(source) == before


DEBIANS_GITIGNORE = ".*\n*.o\n# ignore everything at the top level\n/*\n!/debian/\n"


def test_a_git_tree_made_from_debians_source_is_a_source(source: Path) -> None:
    (source / ".gitignore").write_text(DEBIANS_GITIGNORE)
    before = manifest_of(source)
    git(source, "init", "--quiet")
    assert manifest_of(source) == before, "nothing is committed yet"
    git(source, "add", "--force", ".")
    git(source, "commit", "--quiet", "-m", "first")
    (source / "kernel/new.c").write_text("int new;\n")
    (source / "kernel/new.o").write_text("product")
    assert manifest_of(source).differing(before) == ["kernel/new.c"]


def test_a_commit_that_debians_gitignore_has_emptied_says_so(source: Path) -> None:
    (source / ".gitignore").write_text(DEBIANS_GITIGNORE)
    git(source, "init", "--quiet")
    git(source, "add", ".")
    git(source, "commit", "--quiet", "--allow-empty", "-m", "first")
    scratch = source.parent / "scratch"
    with pytest.raises(
        NotASource, match=r"it lacks Makefile; the \.gitignore there ignores .* git add --force"
    ):
        source_of(requested(f"git:{source}@HEAD", directory=source), scratch, silent)


def test_only_files_that_changed_are_read_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_minute_later = time.time_ns() + 60_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: a_minute_later)
    memory = tmp_path / "memory"
    first = manifest_of(source, memory)
    read: list[Path] = []
    real = sources.content_of

    def reading(path: Path) -> bytes:
        read.append(path)
        return real(path)

    monkeypatch.setattr(sources, "content_of", reading)
    assert manifest_of(source, memory) == first
    assert read == []
    (source / "kernel/fork.c").write_text("int knife;\n")
    assert manifest_of(source, memory).differing(first) == ["kernel/fork.c"]
    assert read == [source / "kernel/fork.c"]


def test_a_file_that_was_just_written_is_not_trusted(source: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    first = manifest_of(source, memory)
    path = source / "kernel/fork.c"
    facts = path.stat()
    path.write_text("int sock;\n")  # as long as before
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert manifest_of(source, memory).differing(first) == ["kernel/fork.c"]


def test_a_source_that_changes_while_it_is_read_is_told(source: Path, tmp_path: Path) -> None:
    read = BuildSource(snapshot_of(str(source)))
    (source / "kernel/fork.c").write_text("int knife;\n")
    with pytest.raises(BuildError, match=r"kernel/fork\.c"):
        read.write(tmp_path / "tree", read.manifest.files, rewrite=False)


def test_a_tree_that_was_killed_while_it_was_written_is_made_right(source: Path, tmp_path: Path) -> None:
    tree = build_trees.BuildTree(tmp_path / "tree")
    first = BuildSource(snapshot_of(str(source)))
    tree.fill(first)
    path = tree.source / "kernel/fork.c"
    path.write_text("half of ano")
    (tree.home / "pending.json").write_text('["kernel/fork.c"]')
    assert len(tree.fill(first)) == 1
    assert path.read_text() == "int fork;\n"
    assert not tree.fill(first)


def test_files_become_directories_and_back(source: Path, tmp_path: Path) -> None:
    tree = build_trees.BuildTree(tmp_path / "tree")
    (source / "thing").write_text("a file\n")
    tree.fill(BuildSource(snapshot_of(str(source))))
    (source / "thing").unlink()
    (source / "thing").mkdir()
    (source / "thing/inside").write_text("a file in it\n")
    tree.fill(BuildSource(snapshot_of(str(source))))
    assert (tree.source / "thing/inside").read_text() == "a file in it\n"
    (source / "thing/inside").unlink()
    (source / "thing").rmdir()
    (source / "thing").write_text("a file again\n")
    tree.fill(BuildSource(snapshot_of(str(source))))
    assert (tree.source / "thing").read_text() == "a file again\n"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ({"O": "/tmp"}, "O is none of those"),
        ({"KCFLAG": "-O3"}, "did you mean KCFLAGS"),
        ({"KCFLAGS": "$(shell id)"}, "make would expand"),
        ({"KCFLAGS": " "}, "there is no value"),
    ],
)
def test_variables_of_make_are_those_of_the_compilation(
    make: dict[str, str], message: str, source: Path
) -> None:
    with pytest.raises(KernelUsageError, match=message):
        requested(str(source), make=make, directory=source)


def test_a_configuration_that_is_not_there_is_refused(source: Path) -> None:
    with pytest.raises(BadConfigFile, match="nowhere"):
        requested(str(source), config="nowhere", directory=source)


def test_patches_and_configurations_are_files_that_end(source: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for endless in (str(pipe), "/dev/zero"):
        with pytest.raises(BadConfigFile, match="it is not a file"):
            requested(str(source), config=endless, directory=source)
        with pytest.raises(BadPatch, match="it is not a file"):
            requested(str(source), patches=(endless,), directory=source)
