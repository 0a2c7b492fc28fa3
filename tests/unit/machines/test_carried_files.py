"""The archive of what a workload brings: what the boot has not, in an order that can be unpacked."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from ktrial.machines.qemu.carried import added, archive, refused
from ktrial.machines.qemu.initramfs import InitramfsEntry
from ktrial.model.trial import Outcome


def file(guest: str, content: bytes = b"x", mode: int = 0o644) -> InitramfsEntry:
    return InitramfsEntry(guest, mode, content)


def link(guest: str, target: str) -> InitramfsEntry:
    return InitramfsEntry(guest, stat.S_IFLNK | 0o777, target.encode())


def directory(guest: str, mode: int = 0o755) -> InitramfsEntry:
    return InitramfsEntry(guest, stat.S_IFDIR | mode, b"")


def names(entries: tuple[InitramfsEntry, ...]) -> list[str]:
    return [f"{'-' if not entry.mode else ''}{entry.guest}" for entry in entries]


INIT = file("/init")


def test_what_the_boot_has_does_not_come_again() -> None:
    assert names(added((INIT, file("/bin/a")), (INIT, file("/bin/a"), file("/b")))) == ["/b"]


def test_a_file_of_another_content_or_mode_comes() -> None:
    before = (file("/a"), file("/b"))
    assert names(added(before, (file("/a", b"other"), file("/b", mode=0o755)))) == ["/a", "/b"]


def test_directories_come_before_what_is_in_them_and_get_their_times_last() -> None:
    after = (INIT, file("/usr/lib/x"), directory("/data", 0o700))
    assert names(added((INIT,), after)) == [
        *("/data", "/usr", "/usr/lib"),
        "/usr/lib/x",
        *("/usr/lib", "/usr", "/data"),
    ]


def test_a_link_takes_the_place_of_a_directory_of_the_boot() -> None:
    before = (INIT, file("/lib/modules/a.ko"), file("/lib/x"))
    after = (INIT, link("/lib", "usr/lib"), file("/usr/lib/modules/a.ko"), file("/usr/lib/x"))
    unpacked = names(added(before, after))
    assert unpacked[:4] == ["-/lib/x", "-/lib/modules/a.ko", "-/lib/modules", "-/lib"]
    assert {"/lib", "/usr/lib/modules/a.ko", "/usr/lib/x"} <= set(unpacked[4:])


def test_what_is_beside_a_link_stays() -> None:
    before = (INIT, file("/sbin/mke2fs"), file("/lib/x"))
    after = (INIT, file("/sbin/mke2fs"), link("/lib", "usr/lib"), file("/usr/lib/x"))
    gone = [name for name in names(added(before, after)) if name.startswith("-")]
    assert gone == ["-/lib/x", "-/lib"]


def test_the_archive_is_one_that_cpio_unpacks(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(os.urandom(3 << 20))
    (tmp_path / "here").mkdir()
    entries = (
        directory("/data", 0o700),
        InitramfsEntry("/data/large", 0o640, large),
        file("/data/odd", b"12345"),
        link("/there", "data/odd"),
    )
    with archive(entries) as descriptor:
        content = Path(f"/proc/self/fd/{descriptor}").read_bytes()
    command = ("cpio", "--extract", "--quiet", "--preserve-modification-time", "--no-absolute-filenames")
    subprocess.run(command, input=content, cwd=tmp_path / "here", check=True)
    here = tmp_path / "here"
    assert (here / "data" / "large").read_bytes() == large.read_bytes()
    assert (here / "there").read_text() == "12345"
    assert stat.S_IMODE((here / "data").stat().st_mode) == 0o700
    assert (here / "data" / "odd").stat().st_mtime == 0


@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        ("files 28 data/large", Outcome.OUT_OF_MEMORY, r"no room for /data/large; give it more"),
        ("files 40 a/b", Outcome.WORKLOAD_FAILED, r"/a/b: .* \(ELOOP\)$"),
        ("files 0 the archive ends too early", Outcome.WORKLOAD_FAILED, "the archive ends too early$"),
    ],
)
def test_why_files_did_not_come_is_told(text: str, outcome: Outcome, reason: str) -> None:
    failure = refused(text)
    assert failure is not None
    assert failure.outcome is outcome
    assert re.search(reason, failure.reason)


def test_what_is_not_about_files_is_another_matter() -> None:
    assert refused("cannot start /init: errno 2") is None
