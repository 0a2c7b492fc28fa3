"""What a stranger may give `ktrial series`: each row is refused, by name, before anything is built.

How each reader takes its own input apart is told in tests/unit/kernels/test_series_*.py; here it is the
command that is asked, which may neither build, nor hang, nor print what moves the cursor.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.command_line import CommandLine, Said
from tests.support.fake_builds import git, has_what_builds_need

ONTO = ("--onto", "debian:linux-source-6.1")
DIFF = "--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-int a;\n+long a;\n"
BINARY = "diff --git a/l.png b/l.png\nindex 1..2 100644\nGIT binary patch\nliteral 3\nabc\n"
LINK = "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/shadow\n"
MOVED = "diff --git a/mm/a.c b/../a.c\nsimilarity index 100%\nrename from mm/a.c\nrename to ../a.c\n"
SHORT = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,9 +1,9 @@\n-int a;\n+long a;\n"


@pytest.fixture
def ktrial(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> CommandLine:
    monkeypatch.setenv("KTRIAL_STORE", str(tmp_path / "ktrial.db"))
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    has_what_builds_need(monkeypatch, tmp_path / "host")
    return CommandLine(monkeypatch, capsys)


def mail(tag: str, subject: str, text: str) -> str:
    head = f"From {'0' * 40} Mon Sep 17 00:00:00 2001\nFrom: A B <a@b>\n"
    return f"{head}Subject: [{tag}] {subject}\n\nWhy.\n\n---\n{text}-- \n2.39.5\n\n"


def a_diff(path: str = "mm/a.c") -> str:
    return DIFF.format(path=path)


MAILBOXES = {
    "a number is missing": (
        mail("PATCH 1/3", "one", a_diff()) + mail("PATCH 3/3", "three", a_diff()),
        "patches are missing: 2/3",
    ),
    "a number is repeated": (
        mail("PATCH 1/1", "one", a_diff()) + mail("PATCH 1/1", "other", a_diff("mm/b.c")),
        "number 1/1 is there twice: mail 1 ([PATCH 1/1] one) and mail 2 ([PATCH 1/1] other)",
    ),
    "a number of thousands": (
        mail("PATCH 1/9999", "one", a_diff()),
        "patches are missing: 2/9999, 3/9999,",
    ),
    "a count of none": (mail("PATCH 0/0", "none", a_diff()), "no mail in it changes a file"),
    "two versions": (
        mail("PATCH 1/1", "one", a_diff()) + mail("PATCH v2 1/1", "one", a_diff()),
        "several series in it: v1 of 1, v2 of 1",
    ),
    "a binary file": (mail("PATCH", "logo", BINARY), "it changes a binary file, l.png"),
    "a rename out of the tree": (mail("PATCH", "move", MOVED), "it changes ../a.c, outside of the source"),
    "a path that climbs": (mail("PATCH", "up", a_diff("../../etc/passwd")), "outside of the source"),
    "a path into git's own": (mail("PATCH", "hook", a_diff(".git/hooks/x")), "outside of the source"),
    "a symbolic link": (mail("PATCH", "link", LINK), "symbolic link"),
    "a hunk that is cut short": (mail("PATCH", "short", SHORT), "hunk 1 of b/mm/a.c"),
    "no mail": ("int main(void);\n", "there is no mail in it"),
    "nothing": ("", "it is empty"),
    "bytes of no text": ("\0\1\2\x7f" * 4096, "there is no mail in it"),
}


@pytest.mark.parametrize(("content", "message"), MAILBOXES.values(), ids=MAILBOXES)
def test_a_mailbox_that_misleads_is_refused(
    content: str, message: str, ktrial: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "x.mbx").write_text(content)
    refused(ktrial("series", "--mbox", "x.mbx", *ONTO, "--dry-run"), message)


def pipe(place: Path) -> None:
    os.mkfifo(place)


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def secret(place: Path) -> None:
    place.symlink_to("/etc/passwd")


def absent(place: Path) -> None:
    place.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("makes", "message"),
    [
        (pipe, "line 1: one.patch is not a file"),
        (device, "line 1: one.patch is not a file"),
        (Path.mkdir, "line 1: one.patch is not a file"),
        (absent, "line 1: one.patch: No such file"),
        (secret, "there is no change of a file in it"),
    ],
)
def test_what_a_series_file_names_has_to_be_a_file_that_ends(
    makes: Callable[[Path], None], message: str, ktrial: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "series").write_text("one.patch\n")
    makes(tmp_path / "q" / "one.patch")
    result = ktrial("series", "--quilt", "q", *ONTO, "--dry-run")
    refused(result, message)
    assert "root:" not in result.messages


@pytest.mark.parametrize("makes", [pipe, device])
def test_a_mailbox_has_to_be_a_file_that_ends(
    makes: Callable[[Path], None], ktrial: CommandLine, tmp_path: Path
) -> None:
    makes(tmp_path / "x.mbx")
    refused(ktrial("series", "--mbox", "x.mbx", *ONTO, "--dry-run"), "it is not a file")


def test_a_shallow_clone_says_how_to_deepen_it(ktrial: CommandLine, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q")
    for number in range(4):
        (tree / "a.c").write_text(f"int a{number};\n")
        git(tree, "add", ".")
        git(tree, "commit", "-qm", str(number))
    first = git(tree, "rev-parse", "HEAD~3")
    git(tmp_path, "clone", "-q", "--depth", "2", f"file://{tree}", "shallow")
    refused(ktrial("series", f"{first}..HEAD", "--git", "shallow", "--dry-run"), "a shallow clone")


def test_a_dirty_tree_is_told_with_the_plan(ktrial: CommandLine, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "tree")
    for text in ("one", "two"):
        (tmp_path / "tree" / "a.c").write_text(f"{text}\n")
        git(tmp_path / "tree", "add", ".")
        git(tmp_path / "tree", "commit", "-qm", text)
    (tmp_path / "tree" / "a.c").write_text("three\n")
    result = ktrial("series", "HEAD~1..HEAD", "--git", "tree", "--dry-run")
    assert result.status == 0
    assert "1 changed file of the work tree is in no commit: left out" in result.output


def test_a_subject_cannot_move_the_cursor(ktrial: CommandLine, tmp_path: Path) -> None:
    evil = "mm: \x1b[2Jgone\x1b]0;title\x07\u202e"
    (tmp_path / "x.mbx").write_text(mail("PATCH", evil, a_diff()))
    result = ktrial("series", "--mbox", "x.mbx", *ONTO, "--dry-run")
    assert result.status == 0
    assert "mm: gone" in result.output
    assert not set(result.output + result.messages) & {"\x1b", "\x07", "\u202e"}


def test_five_megabytes_are_planned(ktrial: CommandLine, tmp_path: Path) -> None:
    lines = "".join(f"+int a{number:06};\n" for number in range(370_000))
    large = f"--- /dev/null\n+++ b/mm/large.c\n@@ -0,0 +1,370000 @@\n{lines}"
    assert len(large) > 5_000_000
    (tmp_path / "x.mbx").write_text(mail("PATCH", "mm: large", large))
    result = ktrial("series", "--mbox", "x.mbx", *ONTO, "--dry-run")
    assert (result.status, "mm: large" in result.output) == (0, True)


def refused(result: Said, message: str) -> None:
    messages = " ".join(result.messages.split())
    assert result.status == 2, messages
    assert message in messages
    assert "hint: " in messages
    assert "building" not in messages
