"""What a patch touches that no build reads: by its paths, and by what the build before has read."""

from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, a_patch, has_what_builds_need

from ktrial.kernels.build.build_trees import not_for_x86
from ktrial.kernels.build.builds import build, compiles_the_same
from ktrial.kernels.build.requests import requested
from ktrial.kernels.errors import PatchNotApplied
from ktrial.model.kernel import Build


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        (["Documentation/mm/slub.rst", "MAINTAINERS"], "documentation"),
        (["arch/arm64/kernel/time.c", "arch/arm64/Kconfig"], "another architecture (arm64)"),
        (["arch/arm64/a.c", "arch/riscv/Makefile"], "other architectures (arm64, riscv)"),
        (["Documentation/a.rst", "arch/s390/a.c"], "documentation and another architecture (s390)"),
        (["tools/testing/selftests/mm/a.c"], "tests and samples"),
        (["Documentation/a.rst", "mm/slub.c"], ""),
        (["arch/x86/kernel/time.c"], ""),
        (["arch/um/kernel/time.c"], ""),
        (["arch/Kconfig"], ""),
        (["Documentation/Kconfig"], ""),
        (["Documentation/Makefile"], ""),
        (["samples/Kconfig"], ""),
        (["samples/bpf/Makefile"], ""),
        (["scripts/kconfig/conf.c"], ""),
        (["mm/Documentation/a.c"], ""),
        ([], ""),
    ],
)
def test_only_what_x86_surely_does_not_read_is_foreign(paths: list[str], why: str) -> None:
    assert not_for_x86(paths) == why


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whose make notes what it has read, as kbuild does."""
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    has_what_builds_need(monkeypatch, tmp_path / "host")
    source = a_buildable_source(tmp_path / "linux")
    makefile = source / "Makefile"
    noted = "\t@echo 'deps_kernel/$*.o := ../kernel/$*.c ../include/used.h \\' > $(O)/kernel/.$*.o.cmd\n"
    makefile.write_text(
        makefile.read_text().replace('\t@echo "  CC      $<"\n', f'\t@echo "  CC      $<"\n{noted}')
    )
    for path in ("include/used.h", "include/unused.h", "drivers/off.c"):
        (source / path).parent.mkdir(exist_ok=True)
        (source / path).write_text("int x;\n")
    return source


def patched(source: Path, path: str, text: str = "") -> Build:
    """The source with one more patch, which changes the file or makes it."""
    remote = (source / path).exists()
    text = text or (
        f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-int x;\n+long x;\n"
        if remote
        else f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+int x;\n"
    )
    (source.parent / "x.patch").write_text(text)
    return requested(str(source), patches=["x.patch"], directory=source.parent)


def test_what_the_build_before_has_not_read_needs_no_build(source: Path) -> None:
    before = requested(str(source), directory=source.parent)
    off = patched(source, "drivers/off.c")
    assert not compiles_the_same(before, off), "without a build before nobody can say"
    build(before)
    same = ("include/unused.h", "drivers/off.c", "Documentation/new.rst")
    others = ("include/used.h", "include/new.h", "drivers/new.c", "init/Kconfig2")
    assert [compiles_the_same(before, patched(source, path)) for path in same] == [True] * 3
    assert [compiles_the_same(before, patched(source, path)) for path in others] == [False] * 4
    fork = a_patch(source, "fork", "int fork", "long fork")
    assert not compiles_the_same(before, patched(source, "kernel/fork.c", fork))
    wrong = "--- a/drivers/off.c\n+++ b/drivers/off.c\n@@ -1 +1 @@\n-int y;\n+long y;\n"
    with pytest.raises(PatchNotApplied, match=r"hunk 1 of drivers/off\.c fails"):
        compiles_the_same(before, patched(source, "drivers/off.c", wrong))
    build(requested(str(source), options=["SMP=y"], directory=source.parent))
    assert compiles_the_same(before, patched(source, "drivers/off.c")), "also when the tree has gone on"
