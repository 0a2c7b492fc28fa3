"""The initial RAM disk, read back with cpio."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from ktrial.machines.errors import FileToCarry, MachineToolMissing
from ktrial.machines.qemu import initramfs
from ktrial.model.kernel import Kernel, Origin
from ktrial.model.machine import Boot, CarriedFile


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    (tmp_path / "b.ko").write_bytes(b"\x7fELF second")
    (tmp_path / "a.ko").write_bytes(b"\x7fELF first")
    (tmp_path / "tool").write_text("a tool\n")
    kernel = Kernel(
        name="k",
        release="6.1.0-9",
        origin=Origin(provider="path", source="k"),
        digest="d",
        image=tmp_path / "vmlinuz",
    )
    return Boot(
        kernel=kernel,
        modules=(tmp_path / "b.ko", tmp_path / "a.ko"),
        files=(CarriedFile(host=tmp_path / "tool", guest="/usr/bin/tool", mode=0o755),),
    )


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "agent").write_text("the agent")
    return {"/init": tmp_path / "agent"}


def entries(boot: Boot, programs: dict[str, Path]) -> tuple[initramfs.InitramfsEntry, ...]:
    return initramfs.entries(boot, programs, b'{"protocol":1}', "exact")


def archive(content: tuple[initramfs.InitramfsEntry, ...]) -> bytes:
    with tempfile.TemporaryFile() as file:
        initramfs.write(content, file.fileno(), "exact")
        file.seek(0)
        return file.read()


def listed(data: bytes) -> dict[str, str]:
    """Path → the mode, owner, size and time that cpio lists."""
    environment = os.environ | {"TZ": "UTC", "LC_ALL": "C"}
    command = ("cpio", "--list", "--verbose", "--numeric-uid-gid", "--quiet")
    text = subprocess.run(
        command, input=data, capture_output=True, check=True, env=environment
    ).stdout.decode()
    rows = (line.split(maxsplit=8) for line in text.splitlines())
    return {row[8]: " ".join((row[0], row[2], row[3], row[4], *row[5:8])) for row in rows}


def test_everything_is_in_it_and_belongs_to_root(boot: Boot, programs: dict[str, Path]) -> None:
    files = listed(archive(entries(boot, programs)))
    assert files["init"] == "-rwxr-xr-x 0 0 9 Jan 1 1970"
    assert files["usr/bin/tool"] == "-rwxr-xr-x 0 0 7 Jan 1 1970"
    assert files["ktrial/boot.json"] == "-rw-r--r-- 0 0 14 Jan 1 1970"
    assert files["lib/modules/6.1.0-9/000-b.ko"].startswith("-rw-r--r-- 0 0 11")
    assert files["proc"].startswith("drwxr-xr-x 0 0")


def test_a_directory_comes_before_what_lies_in_it(boot: Boot, programs: dict[str, Path]) -> None:
    names = list(listed(archive(entries(boot, programs))))
    assert all(str(Path(name).parent) in [".", *names[:at]] for at, name in enumerate(names))


def test_modules_keep_their_order(boot: Boot) -> None:
    assert initramfs.module_paths(boot) == (
        "/lib/modules/6.1.0-9/000-b.ko",
        "/lib/modules/6.1.0-9/001-a.ko",
    )


def test_same_inputs_make_the_same_bytes_whatever_their_times(boot: Boot, programs: dict[str, Path]) -> None:
    content = entries(boot, programs)
    first, digest = archive(content), initramfs.manifest_digest(content)
    os.utime(programs["/init"], (5, 5))
    programs["/init"].chmod(0o700)
    assert archive(entries(boot, programs)) == first
    assert initramfs.manifest_digest(entries(boot, programs)) == digest


@pytest.mark.parametrize(
    "change",
    [
        {"initrd_padding": 4096},
        {"modules": ()},
        {"files": ()},
    ],
)
def test_other_inputs_make_another_digest(
    change: dict[str, object], boot: Boot, programs: dict[str, Path]
) -> None:
    before = initramfs.manifest_digest(entries(boot, programs))
    assert initramfs.manifest_digest(entries(boot.model_copy(update=change), programs)) != before


def test_another_mode_or_content_makes_another_digest(boot: Boot, programs: dict[str, Path]) -> None:
    before = initramfs.manifest_digest(entries(boot, programs))
    readable = tuple(file.model_copy(update={"mode": 0o700}) for file in boot.files)
    assert initramfs.manifest_digest(entries(boot.model_copy(update={"files": readable}), programs)) != before
    boot.files[0].host.write_text("A tool\n")
    assert initramfs.manifest_digest(entries(boot, programs)) != before


def test_padding_makes_the_archive_longer(boot: Boot, programs: dict[str, Path]) -> None:
    padded = boot.model_copy(update={"initrd_padding": 100_000})
    longer = len(archive(entries(padded, programs))) - len(archive(entries(boot, programs)))
    assert 100_000 <= longer < 101_000


@pytest.mark.parametrize(
    ("guest", "problem"),
    [
        ("usr/bin/tool", "not absolute"),
        ("/usr/../init", r"holds '\.\.'"),
        ("/", "not absolute"),
        ("/init", "/init is ktrial's own"),
        ("/ktrial/work", "/ktrial/work is ktrial's own"),
    ],
)
def test_a_guest_path_that_cannot_be(guest: str, problem: str, boot: Boot, programs: dict[str, Path]) -> None:
    file = boot.files[0].model_copy(update={"guest": guest})
    with pytest.raises(FileToCarry, match=problem):
        entries(boot.model_copy(update={"files": (file,)}), programs)


@pytest.mark.parametrize(("name", "problem"), [("absent", "No such file"), (".", "directory")])
def test_a_host_file_that_cannot_be_carried(
    name: str, problem: str, boot: Boot, programs: dict[str, Path], tmp_path: Path
) -> None:
    file = CarriedFile(host=tmp_path / name, guest="/tool")
    with pytest.raises(FileToCarry, match=problem):
        entries(boot.model_copy(update={"files": (file,)}), programs)


def test_a_module_that_is_still_packed(boot: Boot, programs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "c.ko.xz").write_bytes(b"\xfd7zXZ\0")
    with pytest.raises(FileToCarry, match="unpacked ELF file"):
        entries(boot.model_copy(update={"modules": (tmp_path / "c.ko.xz",)}), programs)


def test_without_cpio(
    boot: Boot, programs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = entries(boot, programs)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineToolMissing, match="cpio"):
        archive(content)


def linked(tmp_path: Path, boot: Boot, links: dict[str, str], *guests: str) -> Boot:
    """The boot with these links, and a file at each of the paths."""
    (tmp_path / "data").write_text("data\n")
    carried = [CarriedFile(host=tmp_path, guest=guest, link=target) for guest, target in links.items()]
    carried += [CarriedFile(host=tmp_path / "data", guest=guest) for guest in guests]
    return boot.model_copy(update={"files": tuple(carried)})


@pytest.mark.parametrize(
    ("links", "guest", "real"),
    [
        ({"/lib": "usr/lib"}, "/lib/x86/libc.so", "usr/lib/x86/libc.so"),
        ({"/srv/a": "../opt/./b"}, "/srv/a/c", "opt/b/c"),
        ({"/srv/a": "/opt", "/opt": "var/opt"}, "/srv/a/c", "var/opt/c"),
        ({"/srv/file": "other"}, "/srv/file", "srv/other"),
        ({"/srv/up": "../../../.."}, "/srv/up/etc/c", "etc/c"),
    ],
)
def test_a_file_lies_where_the_links_on_its_way_lead(
    tmp_path: Path, boot: Boot, programs: dict[str, Path], links: dict[str, str], guest: str, real: str
) -> None:
    files = listed(archive(entries(linked(tmp_path, boot, links, guest), programs)))
    assert files[real].startswith("-rw-")
    for link, target in links.items():
        assert files[f"{link[1:]} -> {target}"].startswith("lrwxrwxrwx 0 0")


def test_modules_are_found_where_lib_is_a_link(tmp_path: Path, boot: Boot, programs: dict[str, Path]) -> None:
    files = listed(archive(entries(linked(tmp_path, boot, {"/lib": "usr/lib"}), programs)))
    assert "usr/lib/modules/6.1.0-9/000-b.ko" in files


def test_nothing_is_written_through_a_link_to_this_host(
    tmp_path: Path, boot: Boot, programs: dict[str, Path]
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    archive(entries(linked(tmp_path, boot, {"/a": str(outside)}, "/a/b"), programs))
    assert not list(outside.iterdir())


def test_a_directory_keeps_its_mode(tmp_path: Path, boot: Boot, programs: dict[str, Path]) -> None:
    directory = CarriedFile(host=tmp_path, guest="/tmp", mode=0o1777, directory=True)
    files = listed(archive(entries(boot.model_copy(update={"files": (directory,)}), programs)))
    assert files["tmp"].startswith("drwxrwxrwt 0 0")


@pytest.mark.parametrize(
    ("links", "guest", "problem"),
    [
        ({"/a": "b", "/b": "a"}, "/a/c", "leads through symbolic links in a circle"),
        ({"/a": "/ktrial"}, "/a/work", "/ktrial/work is ktrial's own"),
        ({"/ktrial": "/a"}, "/a/work", "/ktrial is ktrial's own"),
        ({"/proc": "/a"}, "/a/b", "what is below /proc is the guest's own kernel's"),
        ({}, "/sys/b", "what is below /sys is the guest's own kernel's"),
    ],
)
def test_links_do_not_lead_where_no_file_may_be(
    tmp_path: Path, boot: Boot, programs: dict[str, Path], links: dict[str, str], guest: str, problem: str
) -> None:
    with pytest.raises(FileToCarry, match=problem):
        entries(linked(tmp_path, boot, links, guest), programs)


def test_another_target_is_another_disk(tmp_path: Path, boot: Boot, programs: dict[str, Path]) -> None:
    first, second = (
        initramfs.manifest_digest(entries(linked(tmp_path, boot, {"/a": target}), programs))
        for target in ("b", "c")
    )
    assert first != second
