"""What apt's lists tell of packages: binary ones (Packages), and the packaging of source ones (Sources).

deb-src lists name all files of a source package; of them only the one with Debian's own part is taken, which
format `3.0 (quilt)` keeps in `NAME_VERSION.debian.tar.*` (dpkg-source(1)).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from debian.deb822 import Deb822

_PACKAGING = re.compile(r"^ ?([0-9a-f]{64}) (\d+) (\S+\.debian\.tar\.\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """One version of a package in a suite."""

    name: str
    version: str
    suite: str
    depends: str
    size: int
    """Bytes to download."""
    installed: int
    """Bytes when unpacked; 0 of a source package, which does not say."""
    uri: str
    sha256: str
    """From the package list, whose own hash stands in the signed Release file."""

    @property
    def ending(self) -> str:
        """Of its file's name: `.deb`; of a source package's packaging that of a tarball, `.xz`."""
        return PurePosixPath(self.uri).suffix


def binary_packages(text: str, names: re.Pattern[str], base: str, suite: str) -> Iterator[Package]:
    """Those of a list `Packages` whose names match. `base`: the address below which the files lie."""
    for fields in _entries(text, names):
        yield Package(
            name=fields["Package"],
            version=fields["Version"],
            suite=suite,
            depends=fields.get("Depends", ""),
            size=int(fields["Size"]),
            installed=int(fields.get("Installed-Size", "0")) * 1024,
            uri=base + fields["Filename"],
            sha256=fields["SHA256"],
        )


def source_packages(text: str, names: re.Pattern[str], base: str, suite: str) -> Iterator[Package]:
    """Those of a list `Sources` whose names match, each as the file with its packaging."""
    for fields in _entries(text, names):
        if packaging := _PACKAGING.search(fields.get("Checksums-Sha256", "")):
            yield Package(
                name=fields["Package"],
                version=fields["Version"],
                suite=suite,
                depends="",
                size=int(packaging[2]),
                installed=0,
                uri=f"{base}{fields['Directory']}/{packaging[3]}",
                sha256=packaging[1],
            )


def _entries(text: str, names: re.Pattern[str]) -> Iterator[Deb822]:
    """Lists have some ten thousand entries: only those that are meant are taken apart."""
    for match in re.finditer(r"^Package: (\S+)$", text, re.MULTILINE):
        if names.fullmatch(match[1]):
            end = text.find("\n\n", match.end())
            yield Deb822(text[match.start() : end + 1 if end >= 0 else len(text)])
