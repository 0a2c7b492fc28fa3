"""Patches: applied in order, beside the source; what does not apply says where, what is none is refused."""

import tempfile
from pathlib import Path

import pytest
from tests.support.buildable_sources import a_buildable_source, a_patch

from ktrial.kernels.build import requested
from ktrial.kernels.build.errors import BadPatch, PatchNotApplied
from ktrial.kernels.build.patches import patched
from ktrial.kernels.build.sources import snapshot_of

NEW_FILE = """\
diff --git a/kernel/new.c b/kernel/new.c
new file mode 100755
--- /dev/null
+++ b/kernel/new.c
@@ -0,0 +1 @@
+int new;
"""
GONE = """\
--- a/kernel/fork.c
+++ /dev/null
@@ -1 +0,0 @@
-int fork;
"""
MOVED = """\
diff --git a/kernel/fork.c b/kernel/spoon.c
similarity index 100%
rename from kernel/fork.c
rename to kernel/spoon.c
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_buildable_source(tmp_path / "linux")


def applied(source: Path, *texts: str) -> dict[str, bytes | None]:
    """What the patches make of the source: path → content."""
    home = source.parent
    for number, text in enumerate(texts):
        (home / f"{number}.patch").write_text(text)
    names = [f"{number}.patch" for number in range(len(texts))]
    wanted = requested(str(source), patches=names, directory=home)
    scratch = home / "scratch"
    scratch.mkdir()
    overlay = patched(snapshot_of(wanted.source), wanted.patches, scratch)
    return {path: one[1] if one else None for path, one in overlay.files.items()}


def test_patches_are_applied_in_order(source: Path) -> None:
    first = a_patch(source, "sched", "slice = 3", "slice = 4")
    second = first.replace("slice = 4", "slice = 5").replace("slice = 3", "slice = 4")
    assert applied(source, first, second) == {"kernel/sched.c": b"int sched;\nint slice = 5;\nint end;\n"}


def test_files_come_go_and_move(source: Path) -> None:
    assert applied(source, NEW_FILE) == {"kernel/new.c": b"int new;\n"}


def test_files_go(source: Path) -> None:
    assert applied(source, GONE) == {"kernel/fork.c": None}


def test_files_move(source: Path) -> None:
    assert applied(source, MOVED) == {"kernel/fork.c": None, "kernel/spoon.c": b"int fork;\n"}


def test_a_patch_that_does_not_apply_says_which_hunk_of_which_file(source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4").replace("slice = 3", "slice = 7")
    with pytest.raises(PatchNotApplied, match=r"hunk 1 of kernel/sched\.c fails at line 1") as caught:
        applied(source, text)
    assert caught.value.advice.startswith("the hunk starts with:\n  @@ -1,3 +1,3 @@")
    assert "-int slice = 7;" in caught.value.advice


def test_the_second_patch_is_named_where_it_is_the_one(source: Path) -> None:
    good = a_patch(source, "sched", "slice = 3", "slice = 4")
    with pytest.raises(PatchNotApplied, match=r"1\.patch does not apply.* has its change already"):
        applied(source, good, good)


def test_hunks_that_lie_elsewhere_or_among_other_lines_are_told(source: Path) -> None:
    home = source.parent
    before = "".join(f"int line{number};\n" for number in range(40))
    (source / "kernel/sched.c").write_text(before)
    exact = a_patch(source, "sched", "line20", "line_20")
    assert inexact(home, source, exact) == []
    (source / "kernel/sched.c").write_text("// new\n// new\n" + before.replace("line17;", "other17;"))
    assert inexact(home, source, exact) == [
        "0.patch: hunk 1 of kernel/sched.c applies 2 lines later than it says, "
        "where lines around it differ (fuzz 1)"
    ]
    (source / "kernel/sched.c").write_text(before.removeprefix("int line0;\n"))
    assert inexact(home, source, exact) == [
        "0.patch: hunk 1 of kernel/sched.c applies 1 line earlier than it says"
    ]


def inexact(home: Path, source: Path, text: str) -> list[str]:
    (home / "0.patch").write_text(text)
    wanted = requested(str(source), patches=["0.patch"], directory=home)
    with tempfile.TemporaryDirectory() as scratch:
        return patched(snapshot_of(wanted.source), wanted.patches, Path(scratch)).inexact


def test_a_patch_for_a_file_that_is_not_there_says_so(source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4").replace("kernel/sched", "kernel/bfs")
    with pytest.raises(PatchNotApplied, match=r"there is no kernel/bfs\.c in it"):
        applied(source, text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "", "it is empty"),
        (lambda text: "hello\n", "no change of a file"),
        (lambda text: text + "GIT binary patch\nliteral 3\n", "binary"),
        (lambda text: text.replace("a/kernel", "../kernel"), "outside of the source"),
        (lambda text: text.replace("b/kernel", "b/../../kernel"), "outside of the source"),
        (lambda text: text.replace("a/kernel/sched.c", "/etc/passwd"), "outside of the source"),
        (lambda text: text.replace("kernel/sched.c", ".git/config"), "outside of the source"),
        (lambda text: text.replace("a/kernel/sched.c", "sched.c"), "no directory in front"),
    ],
)
def test_what_is_no_patch_of_a_source_is_refused_at_once(change: object, said: str, source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4")
    with pytest.raises(BadPatch, match=said) as caught:
        applied(source, change(text))  # type: ignore[operator]
    assert caught.value.exit_code == 2


def test_a_patch_that_is_cut_short_is_refused(source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4")
    with pytest.raises(BadPatch, match="damaged, or cut short"):
        applied(source, text.rpartition(" int end")[0])


def test_a_patch_may_not_write_through_a_symbolic_link(source: Path, tmp_path: Path) -> None:
    (source / "linked").symlink_to(tmp_path)
    text = NEW_FILE.replace("kernel/new.c", "linked/new.c")
    with pytest.raises(BadPatch, match="linked is a symbolic link"):
        applied(source, text)
    assert not (tmp_path / "new.c").exists()


def test_a_patch_that_cannot_be_read_or_changed_meanwhile_is_refused(source: Path) -> None:
    with pytest.raises(BadPatch, match="No such file"):
        requested(str(source), patches=["nowhere.patch"], directory=source)
    patch = source.parent / "p.patch"
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 4"))
    wanted = requested(str(source), patches=[str(patch)], directory=source)
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 5"))
    scratch = source.parent / "scratch"
    scratch.mkdir()
    with pytest.raises(BadPatch, match="changed after"):
        patched(snapshot_of(wanted.source), wanted.patches, scratch)
