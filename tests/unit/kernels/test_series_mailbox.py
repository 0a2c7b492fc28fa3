"""Mailboxes: a series is read in its own order; what is missing, twice, damaged or hostile is named."""

import base64
import gzip
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.fake_builds import git

from ktrial.kernels.build.patches import text_of
from ktrial.kernels.errors import BadPatch, KernelUsageError
from ktrial.kernels.patch_series import series_in_mailbox
from ktrial.model.kernel import PatchSeries

BASE = "debian:linux-source-6.1"
DIFF = "--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-int {name};\n+long {name};\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


def mail(tag: str, subject: str, text: str, headers: str = "") -> str:
    message = f"Message-Id: <{abs(hash((tag, subject)))}@x>\n"
    return (
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n{message}From: A B <a@b>\n"
        f"Subject: [{tag}] {subject}\n{headers}\n{text}-- \n2.39.5\n\n"
    )


def change(name: str, path: str = "") -> str:
    return f"It is larger.\n\n---\n mm/{name}.c | 2 +-\n\n" + DIFF.format(
        path=path or f"mm/{name}.c", name=name
    )


def read(place: Path, *mails: str, crlf: bool = False) -> PatchSeries:
    box = place / "series.mbx"
    text = "".join(mails)
    box.write_bytes((text.replace("\n", "\r\n") if crlf else text).encode())
    return series_in_mailbox(box, BASE)


TWO = (
    mail("PATCH v3 0/2", "mm: two", "All of it.\n"),
    mail("PATCH v3 1/2", "mm: one", change("one")),
    mail("PATCH v3 2/2", "mm: two more", change("two")),
)


def test_a_packed_mailbox_is_read_as_lore_gives_it(tmp_path: Path) -> None:
    box = tmp_path / "thread.mbox.gz"
    box.write_bytes(gzip.compress("".join(TWO).encode()))
    assert [patch.subject for patch in series_in_mailbox(box, BASE).patches] == ["mm: one", "mm: two more"]
    box.write_bytes(box.read_bytes()[:-20])
    with pytest.raises(KernelUsageError, match="it is a damaged gzip file"):
        series_in_mailbox(box, BASE)


def test_the_numbers_say_the_order_and_the_cover_letter_the_title(tmp_path: Path) -> None:
    series = read(tmp_path, TWO[2], TWO[0], TWO[1])
    assert [patch.subject for patch in series.patches] == ["mm: one", "mm: two more"]
    assert (series.title, series.version, series.base) == ("mm: two", "v3", BASE)
    assert series.cover_id.endswith("@x")
    assert [patch.paths for patch in series.patches] == [("mm/one.c",), ("mm/two.c",)]
    assert [patch.name for patch in series.patches] == ["0001-mm-one.patch", "0002-mm-two-more.patch"]


@pytest.mark.parametrize("words", ["", "What it does, in words.\n\n"])
def test_a_plain_diff_is_a_series_of_one_patch(words: str, tmp_path: Path) -> None:
    series = read(tmp_path, words + DIFF.format(path="mm/one.c", name="one"))
    (patch,) = series.patches
    assert (patch.subject, series.title, patch.paths) == ("series", "series", ("mm/one.c",))


def test_what_git_format_patch_writes_is_read_with_renames_and_folded_subjects(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q")
    (tree / "a.c").write_text("".join(f"int a{number};\n" for number in range(9)))
    git(tree, "add", "a.c")
    git(tree, "commit", "-qm", "base")
    git(tree, "mv", "a.c", "b.c")
    git(tree, "commit", "-qm", "mm: vermögen: " + "a very long subject that is folded " * 3)
    (tree / "b.c").write_text((tree / "b.c").read_text() + "From here 12:00:00 2001 on\n")
    git(tree, "commit", "-qam", "From 1\n\nFrom a mail's text, Mon Sep 17 00:00:00 2001\n")
    (tmp_path / "x.mbx").write_text(git(tree, "format-patch", "--cover-letter", "--stdout", "HEAD~2") + "\n")
    series = series_in_mailbox(tmp_path / "x.mbx", BASE)
    assert series.patches[0].subject.startswith("mm: vermögen: a very long")
    assert series.patches[0].paths == ("a.c", "b.c")
    assert series.patches[1].paths == ("b.c",)
    git(tree, "checkout", "-q", "HEAD~2")
    for patch in series.patches:
        assert patch.patch
        subprocess.run(["git", "-C", tree, "apply", "--index", patch.patch.path], check=True)
    assert (tree / "b.c").read_text().endswith("From here 12:00:00 2001 on\n")


@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_an_encoded_mail_is_decoded(encoding: str, tmp_path: Path) -> None:
    headers = f"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {encoding}\n"
    text = change("one")
    coded = base64.encodebytes(text.encode()).decode() if encoding == "base64" else text.replace("=", "=3D")
    box = mail("PATCH", "mm: one", coded, headers).replace("-- \n2.39.5\n", "")
    (patch,) = read(tmp_path, box).patches
    assert patch.patch
    assert "+long one;\n" in text_of(patch.patch)


def test_line_ends_of_mail_programs_are_taken_off(tmp_path: Path) -> None:
    (patch, _) = read(tmp_path, *TWO, crlf=True).patches
    assert patch.patch
    assert "\r" not in text_of(patch.patch)


def test_answers_and_talk_are_left_out_and_counted(tmp_path: Path) -> None:
    answer = mail("x", "y", "Nice.\n").replace("Subject: [x] y", "Subject: Re: [PATCH v3 1/2] mm: one")
    proposal = mail("x", "y", change("three")).replace("Subject: [x] y", "Subject: Re: [PATCH v3 2/2] mm")
    series = read(tmp_path, *TWO, answer, proposal)
    assert len(series.patches) == 2
    assert series.notes == ("2 mails are not patches of it, and left out",)


def test_a_tag_behind_words_is_that_of_the_mail_that_is_answered(tmp_path: Path) -> None:
    subject = "What of the ABI? (Re: [PATCH v3 1/2] mm: one)"
    answer = mail("x", "y", change("three")).replace("Subject: [x] y", f"Subject: {subject}")
    resent = TWO[2].replace("Subject: [PATCH", "Subject: [RESEND] [mm-unstable PATCH")
    series = read(tmp_path, *TWO[:2], resent, answer)
    assert [patch.subject for patch in series.patches] == ["mm: one", "[RESEND] mm: two more"]
    assert series.notes == ("1 mail is not a patch of the series, and left out",)


def test_a_patch_that_was_sent_behind_the_series_is_its_last(tmp_path: Path) -> None:
    series = read(tmp_path, mail("PATCH v3 3/2", "mm: forgotten", change("three")), *TWO)
    assert [patch.subject for patch in series.patches] == ["mm: one", "mm: two more", "mm: forgotten"]


def test_a_copy_of_a_mail_is_the_same_mail(tmp_path: Path) -> None:
    assert len(read(tmp_path, *TWO, TWO[1]).patches) == 2


def test_mails_without_numbers_keep_their_order(tmp_path: Path) -> None:
    series = read(tmp_path, mail("PATCH", "b", change("b")), mail("PATCH", "a", change("a")))
    assert [patch.subject for patch in series.patches] == ["b", "a"]


@pytest.mark.parametrize(
    ("mails", "message"),
    [
        (("",), "it is empty"),
        (("just words\n",), "there is no mail in it"),
        ((mail("PATCH", "talk", "No change.\n"),), "no mail in it changes a file"),
        (TWO[:2], r"patches are missing: 2/2"),
        ((TWO[0], TWO[2]), r"patches are missing: 1/2"),
        (
            (*TWO, mail("PATCH v3 2/2", "other", change("b"))),
            r"number 2/2 is there twice: mail 3 .* and mail 4",
        ),
        ((*TWO, mail("PATCH v2 1/2", "old", change("b"))), "several series in it: v1 of 2|v2 of 2, v3 of 2"),
        ((mail("PATCH 3/2", "more", change("b")),), "patches are missing: 1/2, 2/2"),
        (
            (TWO[1], mail("PATCH v3 2/2", "none", "Nothing.\n")),
            r"mail 2 \(\[PATCH 2/2\] none\) changes no file",
        ),
    ],
)
def test_a_mailbox_that_holds_no_whole_series_is_refused(
    mails: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(KernelUsageError, match=message) as refused:
        read(tmp_path, *mails)
    assert refused.value.advice
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (change("one", "../../etc/passwd"), "changes ../../etc/passwd, outside of the source"),
        (DIFF.format(path="mm/one.c", name="one").replace("-int", "int"), "hunk 1 of b/mm/one.c"),
        ("--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,9 +1,9 @@\n-int a;\n+long a;\n", "hunk 1 of .*mm/a.c is"),
        (
            "diff --git a/logo.png b/logo.png\nindex 1..2 100644\nGIT binary patch\nliteral 3\nabc\n",
            "it changes a binary file, logo.png",
        ),
        (
            "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc/shadow\n",
            "symbolic link",
        ),
    ],
)
def test_a_patch_that_misleads_is_refused_with_its_mail_file_and_hunk(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadPatch, match=message) as refused:
        read(tmp_path, mail("PATCH 1/1", "mm: bad", text))
    assert "mail 1 ([PATCH 1/1] mm: bad)" in refused.value.message


def test_a_patch_of_five_megabytes_is_read(tmp_path: Path) -> None:
    lines = "".join(f"+int a{number:06};\n" for number in range(370_000))
    text = f"--- /dev/null\n+++ b/mm/large.c\n@@ -0,0 +1,370000 @@\n{lines}"
    assert len(text) > 5_000_000
    (patch,) = read(tmp_path, mail("PATCH", "mm: large", text)).patches
    assert patch.paths == ("mm/large.c",)
    assert re.fullmatch("[0-9a-f]{64}", patch.patch.digest if patch.patch else "")
