"""Series of a distribution's source package: which version is taken, what lists say, what is fetched."""

import io
import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ktrial.kernels import Progress
from ktrial.kernels.build import debian_sources
from ktrial.kernels.errors import FetchFailed, KernelUsageError
from ktrial.kernels.packages.apt import SOURCE, Archive, Package, source_packages
from ktrial.kernels.patch_series import is_packaged, series_in_package

DIFF = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n-int a;\n+long a;\n"
SOURCES = f"""Package: linux-atm
Version: 1:2.5.1-4
Directory: pool/main/l/linux-atm
Checksums-Sha256:
 {"1" * 64} 14408 linux-atm_2.5.1-4.debian.tar.xz

Package: linux
Binary: linux-doc, linux-source-6.1
Version: 6.1.187-1
Directory: pool/updates/main/l/linux
Checksums-Sha1:
 {"2" * 40} 1841740 linux_6.1.187-1.debian.tar.xz
Checksums-Sha256:
 {"3" * 64} 399396 linux_6.1.187-1.dsc
 {"4" * 64} 137897868 linux_6.1.187.orig.tar.xz
 {"5" * 64} 1841740 linux_6.1.187-1.debian.tar.xz

Package: linux
Version: 2.6.32-1
Directory: pool/main/l/linux
Checksums-Sha256:
 {"6" * 64} 399396 linux_2.6.32-1.diff.gz
"""


def package(version: str) -> Package:
    uri = f"http://mirror.example/linux_{version}.debian.tar.xz"
    return Package("linux", version, "bookworm", "", 1000, 0, uri, "0" * 64)


@dataclass
class Mirror:
    """Lists these versions of the source package, and has lost the files of some."""

    place: Path
    versions: tuple[str, ...] = ("6.1.176-1", "6.1.187-1", "6.1.192-2", "6.12.90-1")
    lost: tuple[str, ...] = ()
    says: str = "E: Failed to fetch linux.debian.tar.xz  404  Not Found"
    asked: list[str] = field(default_factory=list)

    def packages(self, *_: object) -> tuple[Package, ...]:
        return tuple(package(version) for version in self.versions)

    def download(self, expected: list[Package], into: Path, kernel: str, _progress: Progress) -> list[Path]:
        (package,) = expected
        self.asked.append(package.version)
        if package.version in self.lost:
            raise FetchFailed(name=kernel, distribution="Debian", problem=self.says)
        rt = {"series": "one.patch\n", "one.patch": f"Subject: mm: {package.version}\n\n{DIFF}"}
        file = into / f"linux{package.ending}"
        with tarfile.open(file, "w:xz") as archive:
            _add(archive, "debian/patches/series", "")
            for name, text in rt.items():
                _add(archive, f"debian/patches-rt/{name}", text)
        return [file]


def _add(archive: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(text)
    archive.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))
    mirror = Mirror(tmp_path)

    def source(_package: str, _progress: Progress) -> Path:
        return tmp_path / "linux-source-6.1_6.1.192-2"

    monkeypatch.setattr(debian_sources, "debian_source", source)
    monkeypatch.setattr(debian_sources, "suites_of", lambda *_: ())
    monkeypatch.setattr(debian_sources, "PrivateApt", lambda *_: mirror)
    return mirror


def read(text: str = "debian:linux-source-6.1/patches-rt") -> tuple[str, tuple[str, ...]]:
    series = series_in_package(Path(text), "debian:linux-source-6.1")
    assert series.origin == text
    return series.patches[0].subject, series.notes


def test_the_series_is_that_of_the_sources_own_version_and_fetched_once(mirror: Mirror) -> None:
    assert read() == ("mm: 6.1.192-2", ())
    assert read() == ("mm: 6.1.192-2", ())
    assert mirror.asked == ["6.1.192-2"]


def test_where_the_mirror_has_lost_it_the_next_older_one_is_taken_and_told(mirror: Mirror) -> None:
    mirror.lost = ("6.1.192-2",)
    message = "they are those of 6.1.187-1: the mirror has lost those of 6.1.192-2"
    assert read() == ("mm: 6.1.187-1", (message,))
    assert read() == ("mm: 6.1.187-1", (message,))
    assert mirror.asked == ["6.1.192-2", "6.1.187-1"]


def test_where_all_are_lost_the_first_one_is_what_failed(mirror: Mirror) -> None:
    mirror.lost = mirror.versions
    with pytest.raises(FetchFailed, match="404"):
        read()
    assert mirror.asked == ["6.1.192-2", "6.1.187-1", "6.1.176-1"]


def test_without_a_network_nothing_older_is_tried(mirror: Mirror) -> None:
    mirror.lost, mirror.says = mirror.versions, "E: Could not resolve the mirror"
    with pytest.raises(FetchFailed, match="Could not resolve"):
        read()
    assert mirror.asked == ["6.1.192-2"]


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        ("debian:linux-source-6.1/patches-xx", "no debian/patches-xx/series", "/patches-rt"),
        ("debian:linux-source-6.1", "no debian/…/series", "/patches, debian:linux-source-6.1/patches-rt"),
        ("debian:linux/patches-rt", "it names no package's patches", "write debian:linux-source-6.1/"),
        ("debian:linux-source-6.1/../patches", "it names no package's patches", "write debian:"),
    ],
)
def test_what_is_not_there_says_what_is(text: str, message: str, advice: str, mirror: Mirror) -> None:
    with pytest.raises(KernelUsageError, match=re.escape(message)) as refused:
        read(text)
    assert advice in refused.value.advice


def test_a_directory_of_that_name_is_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_packaged(Path("debian:linux-source-6.1/patches-rt"))
    Path("debian:x").mkdir()
    assert not is_packaged(Path("debian:x"))


def test_of_a_source_package_the_file_with_the_packaging_is_what_counts() -> None:
    (package,) = source_packages(SOURCES, re.compile("linux"), "http://mirror.example/", "bookworm-security")
    assert (package.version, package.size, package.sha256) == ("6.1.187-1", 1841740, "5" * 64)
    assert package.uri == "http://mirror.example/pool/updates/main/l/linux/linux_6.1.187-1.debian.tar.xz"
    assert package.ending == ".xz"


def test_lists_of_sources_are_asked_for_as_such() -> None:
    stanza = Archive("http://mirror.example", ("bookworm",)).stanza(SOURCE)
    assert "Types: deb-src\n" in stanza
    assert "Targets: Sources\n" in stanza
    assert "Architectures" not in stanza


def test_only_lists_of_suites_that_hold_the_source_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    archives = (Archive("a", ("bookworm", "sid")), Archive("b", ("trixie-security",)))
    held = [
        Package("linux-source-6.1", version, suite, "", 0, 0, "x.deb", "")
        for version, suite in (("6.1.176-1", "bookworm"), ("6.1.192-2", "sid"))
    ]

    class Lists:
        def packages(self, *_: object) -> tuple[Package, ...]:
            return tuple(held)

    monkeypatch.setattr(debian_sources, "system_sources", lambda _name: [])
    monkeypatch.setattr(debian_sources, "debian_archives", lambda *_: archives)
    monkeypatch.setattr(debian_sources, "PrivateApt", lambda *_: Lists())

    def suites(version: str) -> tuple[Archive, ...]:
        return debian_sources.suites_of("linux-source-6.1", version, lambda *_: None)

    assert suites("6.1.192-2") == (Archive("a", ("sid",)),)
    assert suites("6.1.300-1") == archives[:1]
