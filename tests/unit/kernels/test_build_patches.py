"""Patches: applied in order, beside the source; what does not apply says where, what is none is refused."""

import tempfile
from pathlib import Path

import pytest
from tests.support.fake_builds import a_buildable_source, a_patch

from ktrial.kernels.build.patches import Overlay, patched
from ktrial.kernels.build.requests import requested
from ktrial.kernels.build.sources import snapshot_of
from ktrial.kernels.errors import BadPatch, PatchNotApplied

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


def overlaid(source: Path, *texts: str, fuzz: int = 0) -> Overlay:
    home = source.parent
    for number, text in enumerate(texts):
        (home / f"{number}.patch").write_bytes(text.encode())
    names = [f"{number}.patch" for number in range(len(texts))]
    spec = requested(str(source), patches=names, fuzz=fuzz, directory=home)
    with tempfile.TemporaryDirectory() as scratch:
        return patched(snapshot_of(spec.source), spec.patches, Path(scratch), spec.fuzz)


def applied(source: Path, *texts: str) -> dict[str, bytes | None]:
    """What the patches make of the source: path → content."""
    return {path: entry[1] if entry else None for path, entry in overlaid(source, *texts).files.items()}


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
    before = "".join(f"int line{number};\n" for number in range(40))
    (source / "kernel/sched.c").write_text(before)
    exact = a_patch(source, "sched", "line20", "line_20")
    assert overlaid(source, exact).inexact == []
    (source / "kernel/sched.c").write_text("// new\n// new\n" + before.replace("line17;", "other17;"))
    assert overlaid(source, exact, fuzz=1).inexact == [
        "0.patch: hunk 1 of kernel/sched.c applies 2 lines later than it says, "
        "where lines around it differ (fuzz 1)"
    ]
    (source / "kernel/sched.c").write_text(before.removeprefix("int line0;\n"))
    assert overlaid(source, exact).inexact == [
        "0.patch: hunk 1 of kernel/sched.c applies 1 line earlier than it says"
    ]


def test_a_hunk_among_other_lines_is_refused_unless_that_is_allowed(source: Path) -> None:
    before = "".join(f"int line{number};\n" for number in range(40))
    (source / "kernel/sched.c").write_text(before)
    text = a_patch(source, "sched", "line20", "line_20")
    (source / "kernel/sched.c").write_text(
        before.replace("line17;", "other17;").replace("line18;", "other18;")
    )
    with pytest.raises(
        PatchNotApplied, match=r"lines around hunk 1 of kernel/sched\.c differ .fuzz 2"
    ) as caught:
        applied(source, text)
    assert "--fuzz 2 of ktrial kernel build, series or bisect patches" in caught.value.advice
    assert "fuzz = 2 in a study's [kernels.NAME]" in caught.value.advice
    with pytest.raises(PatchNotApplied, match="fuzz 2"):
        overlaid(source, text, fuzz=1)
    assert overlaid(source, text, fuzz=2).files["kernel/sched.c"] is not None


def test_a_patch_for_a_file_that_is_not_there_says_so(source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4").replace("kernel/sched", "kernel/bfs")
    with pytest.raises(PatchNotApplied, match=r"there is no kernel/bfs\.c in it"):
        applied(source, text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "it is empty"),
        (lambda text: "hello\n", "no change of a file"),
        (lambda text: text + "GIT binary patch\nliteral 3\n", "binary"),
        (lambda text: text.replace("a/kernel", "../kernel"), "outside of the source"),
        (lambda text: text.replace("b/kernel", "b/../../kernel"), "outside of the source"),
        (lambda text: text.replace("a/kernel/sched.c", "/etc/passwd"), "outside of the source"),
        (lambda text: text.replace("kernel/sched.c", ".git/config"), "outside of the source"),
        (lambda text: text.replace("kernel/sched.c", "kernel/./sched.c"), "outside of the source"),
        (lambda text: text.replace("a/kernel", "a//kernel"), "outside of the source"),
        (lambda text: text.replace("b/kernel/sched.c", '"b/\\056\\056/x"'), "cannot be read"),
        (lambda text: text.replace("kernel/sched.c", "build/.config"), "where ktrial builds"),
        (lambda text: text.replace("a/kernel/sched.c", "/dev/null").replace("b/kernel/sched.c", "/dev/null"),
         "both of its names are /dev/null"),
        (lambda text: text.replace("@@ -1,3 +1,3 @@", "@@ -1,2 +1,2 @@"), "longer than its header says"),
        (lambda text: text.replace("@@ -1,3 +1,3 @@", "@@ -1,4 +1,4 @@"), "cut short"),
        (lambda text: text.rstrip("\n"), "cut short"),
        (lambda text: text.partition("@@")[1] + text.partition("@@")[2], "a hunk of no file"),
        (lambda text: text.replace(".c\n", ".c\r\n"), "some of its lines end with CR LF"),
        (lambda text: f"Content-Transfer-Encoding: base64\n\n{text}", "encoded .base64"),
        (lambda text: text + "Binary files a/logo.gif and b/logo.gif differ\n", "binary"),
        (lambda text: NEW_FILE.replace("100755", "120000"), "kernel/new.c is a symbolic link"),
        (lambda text: NEW_FILE.replace("100755", "160000"), "kernel/new.c is a submodule"),
        (lambda text: NEW_FILE.replace("/dev/null", "a/kernel/new.c"), "contradicts itself"),
        (lambda text: MOVED.replace("rename to kernel", "rename to ../kernel"), "outside of the source"),
        (lambda text: NEW_FILE.replace("kernel/new.c", "kernel/fork.c/x"), "kernel/fork.c is a file"),
        (lambda text: NEW_FILE.replace("kernel/new.c", "kernel"), "kernel, which is a directory"),
        (lambda text: text.replace("a/kernel/sched.c", "sched.c"), "no directory in front"),
    ],
)  # fmt: skip
def test_what_is_no_patch_of_a_source_is_refused_at_once(change: object, message: str, source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4")
    with pytest.raises(BadPatch, match=message) as caught:
        applied(source, change(text))  # type: ignore[operator]
    assert caught.value.exit_code == 2


def test_a_patch_that_is_cut_short_is_refused(source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4")
    with pytest.raises(BadPatch, match=r"hunk 1 of b/kernel/sched\.c is cut short"):
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
    spec = requested(str(source), patches=[str(patch)], directory=source)
    patch.write_text(a_patch(source, "sched", "slice = 3", "slice = 5"))
    scratch = source.parent / "scratch"
    scratch.mkdir()
    with pytest.raises(BadPatch, match="changed since"):
        patched(snapshot_of(spec.source), spec.patches, scratch)


MAIL = "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] it\n\n"
SIGNED = "-- \n2.39.5\n\n"
CHANGED = """\
diff --git a/kernel/new.c b/kernel/new.c
--- a/kernel/new.c
+++ b/kernel/new.c
@@ -1 +1,2 @@
 int new;
+int newer;
"""


@pytest.mark.parametrize("between", ["", "\n", SIGNED + MAIL])
def test_patches_in_one_file_build_on_each_other(between: str, source: Path) -> None:
    assert applied(source, NEW_FILE + between + CHANGED) == {"kernel/new.c": b"int new;\nint newer;\n"}
    gone = "--- a/kernel/new.c\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-int new;\n-int newer;\n"
    assert applied(source, NEW_FILE + between + CHANGED + between + gone) == {"kernel/new.c": None}
    moved = MOVED.replace("kernel/fork.c", "kernel/new.c")
    assert applied(source, NEW_FILE + between + moved) == {
        "kernel/new.c": None,
        "kernel/spoon.c": b"int new;\n",
    }
    with pytest.raises(PatchNotApplied, match=r"there is no kernel/new\.c in it"):
        applied(source, CHANGED + between + NEW_FILE)


def test_what_a_hunk_or_a_message_quotes_is_no_header(source: Path) -> None:
    text = a_patch(source, "sched", "int slice = 3;", "++ b/../../outside\n@@ -1 +1 @@\n-- a/../outside")
    (source / "kernel/sched.c").write_text(
        (source / "kernel/sched.c").read_text().replace("int end", "-- a/x")
    )
    quoting = f"{MAIL}This is about\ndiff --git of files, and\n--- nothing\n---\n{text}{SIGNED}"
    assert b"++ b/../../outside" in (
        applied(source, quoting.replace(" int end", " -- a/x"))["kernel/sched.c"] or b""
    )


def test_a_patch_is_what_it_says_whatever_else_it_mentions(source: Path) -> None:
    """patch(1) would choose the file by `Index:`, by which names exist, or run an editor's script."""
    text = a_patch(source, "sched", "slice = 3", "slice = 4")
    tricky = f"Index: kernel/fork.c\nPrereq: nothing\n{text}1,2d\n!touch /tmp/x\n.\n"
    assert list(applied(source, tricky)) == ["kernel/sched.c"]


def test_modes_copies_and_moves_with_changes_are_right(source: Path) -> None:
    mode = "diff --git a/kernel/fork.c b/kernel/fork.c\nold mode 100644\nnew mode 100755\n"
    assert overlaid(source, mode).files == {"kernel/fork.c": ("100755", b"int fork;\n")}
    copied = MOVED.replace("rename", "copy")
    assert applied(source, copied) == {"kernel/spoon.c": b"int fork;\n"}
    hunk = "--- a/kernel/fork.c\n+++ b/kernel/spoon.c\n@@ -1 +1 @@\n-int fork;\n+int spoon;\n"
    assert applied(source, MOVED + hunk) == {"kernel/fork.c": None, "kernel/spoon.c": b"int spoon;\n"}
    onto = MOVED.replace("spoon", "sched")
    with pytest.raises(PatchNotApplied, match=r"it makes kernel/sched\.c, which is there already"):
        applied(source, onto)
    with pytest.raises(PatchNotApplied, match=r"it deletes kernel/fork\.c, which holds more"):
        applied(source, "diff --git a/kernel/fork.c b/kernel/fork.c\ndeleted file mode 100644\n")


def test_files_that_diff_calls_of_1970_come_and_go(source: Path) -> None:
    """As `diff -urN` writes them."""
    none, stamp = "1970-01-01 01:00:00.000000000 +0100", "2021-02-03 04:05:06.000000000 +0100"
    result = (
        f"--- linux/kernel/bfs.c\t{none}\n+++ linux.new/kernel/bfs.c\t{stamp}\n@@ -0,0 +1 @@\n+int bfs;\n"
    )
    gone = (
        f"--- linux/kernel/fork.c\t{stamp}\n+++ linux.new/kernel/fork.c\t{none}\n@@ -1 +0,0 @@\n-int fork;\n"
    )
    assert applied(source, result + gone) == {"kernel/bfs.c": b"int bfs;\n", "kernel/fork.c": None}


def test_a_patch_whose_every_line_ends_with_crlf_is_taken_with_lf_and_told(source: Path) -> None:
    text = a_patch(source, "sched", "slice = 3", "slice = 4").replace("\n", "\r\n")
    overlay = overlaid(source, text)
    assert overlay.files["kernel/sched.c"] == ("100644", b"int sched;\nint slice = 4;\nint end;\n")
    assert overlay.inexact == ["0.patch: its lines end with CR LF, and are taken with LF"]


def test_a_patch_for_a_file_with_crlf_keeps_it(source: Path) -> None:
    (source / "kernel/sched.c").write_bytes(b"int a;\r\nint b;\r\n")
    text = "--- a/kernel/sched.c\n+++ b/kernel/sched.c\n@@ -1,2 +1,2 @@\n int a;\r\n-int b;\r\n+int c;\r\n"
    assert applied(source, text) == {"kernel/sched.c": b"int a;\r\nint c;\r\n"}


def test_blanks_that_an_editor_took_from_lines_of_context_are_put_back(source: Path) -> None:
    (source / "kernel/sched.c").write_text("int a;\n\n\tint b;\nint c;\n")
    text = a_patch(source, "sched", "int c", "int d")
    assert "\n \n \tint b" in text
    taken = text.replace("\n \n \tint b", "\n\n\tint b")
    assert applied(source, taken) == {"kernel/sched.c": b"int a;\n\n\tint b;\nint d;\n"}


def test_paths_without_a_first_directory_are_told(source: Path) -> None:
    text = (
        a_patch(source, "sched", "slice = 3", "slice = 4").replace("a/kernel", "kernel").replace("b/k", "k")
    )
    with pytest.raises(PatchNotApplied, match=r"there is no sched\.c in it") as caught:
        applied(source, text)
    assert "--no-prefix" in caught.value.advice
