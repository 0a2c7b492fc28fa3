"""Series of patches in mailboxes, and quilt's series files: anybody may have sent or written them.

An input begins with a byte that says what it is: 0, a mailbox; else a series file.
"""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ktrial.errors import KtrialError
from ktrial.installation import CACHE
from ktrial.kernels.build.patches import series_in
from ktrial.kernels.patch_series import entries_in, mails_in, series_in_mailbox, subject_of

WORDS = (
    *(b"From 0123456789 Mon Sep 17 00:00:00 2001\n", b"Subject: [PATCH v2 1/2] ", b"From: a@b\n", b"\n\n"),
    *(
        b"Content-Type: multipart/mixed; boundary=",
        b"Content-Transfer-Encoding: base64\n",
        b"charset=",
        b"=?",
    ),
    *(
        b"Content-Transfer-Encoding: quoted-printable\n",
        b"Message-Id: <",
        b"diff --git a/x b/x\n",
        b"--- a/x\n",
    ),
    *(b"+++ b/x\n", b"@@ -1,2 +1,2 @@\n", b"@@ -0,0 +1 @@\n", b"rename from ", b"rename to ", b"copy from "),
    *(
        b"new file mode 100644\n",
        b"deleted file mode 100644\n",
        b"/dev/null",
        b"\t1970-01-01",
        b"Re: ",
        b"-p",
    ),
    *(
        b"GIT binary patch",
        b"\\ No newline at end of file\n",
        b"\r\n",
        b"0/2",
        b"?utf-8?q?",
        b"Description: ",
    ),
)


def read(data: bytes) -> None:
    """Read the series, its mails and their patches."""
    with TemporaryDirectory() as directory:
        os.environ[CACHE] = directory
        path = Path(directory) / "mails"
        path.write_bytes(data[1:])
        with suppress(KtrialError):
            _mailbox(path, data[1:]) if data[:1] == b"\0" else _series_file(path, data[1:])


def _mailbox(path: Path, content: bytes) -> None:
    for mail in mails_in(path, content):
        assert mail.shown
        subject_of(mail.content.decode("utf-8", "surrogateescape"))
    series_in_mailbox(path, "/linux")


def _series_file(path: Path, content: bytes) -> None:
    text = content.decode("utf-8", "surrogateescape")
    entries_in(path, text)
    subject_of(text)
    for change in (change for part in series_in(str(path), text) for change in part):
        assert change.paths
