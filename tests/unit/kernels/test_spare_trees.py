"""The source of a build tree that goes serves the next copy, as if that were fresh. No compiler runs."""

import os
from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, a_patch, compiled, has_what_builds_need

from ktrial.kernels.build import build_trees, sandbox
from ktrial.kernels.build.build_trees import BuildTree, kept_trees
from ktrial.kernels.build.builds import build
from ktrial.kernels.build.requests import requested
from ktrial.model.kernel import Build

NEW = """\
--- /dev/null
+++ b/kernel/deep/below/new.c
@@ -0,0 +1 @@
+int new;
"""
GONE = """\
--- a/kernel/fork.c
+++ /dev/null
@@ -1 +0,0 @@
-int fork;
"""
CHANGED = """\
--- a/kernel/fork.c
+++ b/kernel/fork.c
@@ -1 +1 @@
-int fork;
+int spoon;
"""
TAKEN_BACK = """\
--- a/kernel/fork.c
+++ b/kernel/fork.c
@@ -1 +1 @@
-int spoon;
+int fork;
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With room for two trees."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build_trees, "MOST_TREES", 2)
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


@pytest.fixture
def next_patch(source: Path) -> str:
    return kept_patch(source, "next", a_patch(source, "sched", "slice = 3", "slice = 4"))


def kept_patch(source: Path, name: str, text: str) -> str:
    path = source.parent / f"{name}.patch"
    path.write_text(text)
    return str(path)


def patched(source: Path, *patches: str, series: str = "") -> Build:
    request = requested(str(source), patches=patches, directory=Path("/"))
    return request.model_copy(update={"series": series})


def homes(cache: Path) -> set[Path]:
    return {path.parent for path in (cache / "trees").glob("*/source")}


def inodes(home: Path) -> dict[str, int]:
    """Each file and directory of a tree's source → its inode; of directories 0."""
    listing = {}
    for place, directories, names in os.walk(home / "source"):
        if place == str(home / "source"):
            directories.remove("build")
        for name in directories:
            listing[str(Path(place, name).relative_to(home))] = 0
        for name in names:
            listing[str(Path(place, name).relative_to(home))] = Path(place, name).lstat().st_ino
    return listing


def mark(home: Path) -> None:
    """An empty directory, which tells the source of this tree from another."""
    (home / "source/mark").mkdir()


def is_marked(home: Path) -> bool:
    return (home / "source/mark").is_dir()


confining = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "there is a sandbox")


@confining
@pytest.mark.parametrize(
    "series", [(CHANGED,), (NEW,), (GONE,), (CHANGED, TAKEN_BACK), (NEW, CHANGED, TAKEN_BACK)]
)
def test_the_source_of_a_tree_that_goes_is_the_next_copys_as_if_it_were_fresh(
    series: tuple[str, ...], source: Path, next_patch: str, cache: Path
) -> None:
    plain = build(patched(source))
    (first,) = homes(cache)
    files = [kept_patch(source, str(number), text) for number, text in enumerate(series)]
    for count in range(1, len(files) + 1):
        build(patched(source, *files[:count], series="them"))
    (old,) = homes(cache) - {first}
    mark(old)
    compiled_before = compiled(cache)
    kernel = build(patched(source, next_patch))
    (copy,) = homes(cache) - {first}
    assert is_marked(copy), "it is the old directory"
    assert not old.exists()
    (copy / "source/mark").rmdir()
    changed = {name for name, inode in inodes(copy).items() if inodes(first).get(name) != inode}
    assert changed == {"source/kernel/sched.c"}
    assert inodes(copy).keys() == inodes(first).keys()
    assert kernel.image.read_bytes() == plain.image.read_bytes().replace(b"slice = 3", b"slice = 4")
    after = compiled(cache)
    assert after.count("sched") == compiled_before.count("sched") + 1
    assert after.count("fork") <= compiled_before.count("fork"), "it is as the first tree has it"


@confining
def test_a_source_that_unconfined_builds_could_write_to_serves_nobody_else(
    source: Path, next_patch: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(patched(source))
    (first,) = homes(cache)
    with monkeypatch.context() as context:
        context.setattr(sandbox, "problem", lambda: "bubblewrap (bwrap) is not installed")
        build(patched(source, kept_patch(source, "a", CHANGED), series="them"))
    (old,) = homes(cache) - {first}
    both = [kept_patch(source, name, text) for name, text in (("a", CHANGED), ("b", TAKEN_BACK))]
    build(patched(source, *both, series="them"))
    assert homes(cache) == {first, old}, "a later build in it is confined"
    mark(old)
    build(patched(source, next_patch))
    (copy,) = homes(cache) - {first}
    assert not is_marked(copy)
    assert not old.exists()


@confining
def test_a_tree_of_which_a_killed_process_left_the_source_alone_goes(
    source: Path, next_patch: str, cache: Path
) -> None:
    build(patched(source))
    (first,) = homes(cache)
    build(patched(source, kept_patch(source, "a", CHANGED)))
    (old,) = homes(cache) - {first}
    BuildTree(old).keep_source_alone()
    assert len(kept_trees()) == 1
    build(patched(source, next_patch))
    assert len(homes(cache)) == len(kept_trees()) == 2
    assert not old.exists()


@confining
def test_a_copy_is_made_without_what_is_linked_anyway(source: Path, next_patch: str, cache: Path) -> None:
    build(patched(source))
    (first,) = homes(cache)
    for name in ("vmlinux.o", ".tmp_vmlinux1", "modules.order"):
        (first / "source/build" / name).write_text("linked")
    build(patched(source, next_patch))
    (copy,) = homes(cache) - {first}
    names = {path.name for path in (copy / "source/build").iterdir()}
    assert {"vmlinux", "modules.order"} <= names
    assert names.isdisjoint({"vmlinux.o", ".tmp_vmlinux1"})
