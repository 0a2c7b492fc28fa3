"""Debian's kernels: which package answers a name, what else it needs, and where apt is told to look."""

import re
from pathlib import Path

import pytest

from ktrial.kernels import silent
from ktrial.kernels.errors import KernelError, NoDebianSource, NoSuchRelease
from ktrial.kernels.packages.apt import ConfiguredSource, Package, configured_sources, source_options
from ktrial.kernels.providers import Request
from ktrial.kernels.providers.debian import choose, debian_archives, needed_packages
from ktrial.kernels.providers.host import host_parts
from ktrial.package_names import INSTALL


def package(name: str, version: str, suite: str, depends: str = "kmod, linux-base (>= 4.3~)") -> Package:
    return Package(
        name=name,
        version=version,
        suite=suite,
        depends=depends,
        size=1000,
        installed=4000,
        uri=f"http://mirror.example/debian/pool/{name}.deb",
        sha256="0" * 64,
    )


def one(release: str, version: str, suite: str) -> list[Package]:
    """The layout up to 6.19."""
    return [package(f"linux-image-{release}", version, suite)]


def split(release: str, version: str, suite: str, without: str = "") -> list[Package]:
    """The layout from 7.0."""
    parts = [f"linux-{part}-{release}" for part in ("base", "binary", "modules")]
    depends = "dracut | initramfs-tools, " + ", ".join(f"{part} (= {version})" for part in parts)
    image = package(f"linux-image-{release}", version, suite, depends)
    return [image, *(package(part, version, suite) for part in parts if not without or without not in part)]


PACKAGES = (
    *one("5.10.0-32-cloud-amd64", "5.10.223-1", "bullseye"),
    *one("5.10.0-46-cloud-amd64", "5.10.262-1", "bullseye-security"),
    *one("6.1.0-9-cloud-amd64", "6.1.27-1", "bookworm"),
    *one("6.1.0-50-cloud-amd64", "6.1.176-1", "bookworm"),
    *one("6.1.0-50-amd64", "6.1.176-1", "bookworm"),
    *one("6.1.0-50-rt-amd64", "6.1.176-1", "bookworm"),
    *one("6.12.9+deb12-cloud-amd64", "6.12.9-1~bpo12+1", "bookworm-backports"),
    *one("6.12.90+deb12-cloud-amd64", "6.12.90-1~bpo12+1", "bookworm-backports"),
    *one("6.12.90+deb13-cloud-amd64", "6.12.90-1", "trixie"),
    *split("7.0.4+deb13-cloud-amd64", "7.0.4-1~bpo13+1", "trixie-backports", without="modules"),
    *split("7.2.12+deb14-cloud-amd64", "7.2.12-1", "forky"),
    *split("7.2.13+deb14-cloud-amd64", "7.2.13-1", "sid", without="binary"),
    *split("7.3-cloud-amd64", "7.3~rc7-1~exp1", "experimental", without="linux-base"),
)

CHOSEN = [
    ("5.10", "5.10.0-46-cloud-amd64"),
    ("6.1", "6.1.0-50-cloud-amd64"),
    ("6.1:generic", "6.1.0-50-amd64"),
    ("6.1:rt", "6.1.0-50-rt-amd64"),
    ("6.1.27", "6.1.0-9-cloud-amd64"),
    ("6.1.0-9", "6.1.0-9-cloud-amd64"),
    ("6.1.0-50-rt-amd64", "6.1.0-50-rt-amd64"),
    ("6.12", "6.12.90+deb13-cloud-amd64"),
    ("6.12.90", "6.12.90+deb13-cloud-amd64"),
    ("6.12.90+deb12", "6.12.90+deb12-cloud-amd64"),
    ("6.12.90+deb12-cloud-amd64", "6.12.90+deb12-cloud-amd64"),
    ("6.12.9", "6.12.9+deb12-cloud-amd64"),
    ("7.2", "7.2.12+deb14-cloud-amd64"),
    ("7.3", "7.3-cloud-amd64"),
    ("7.3~rc7", "7.3-cloud-amd64"),
    ("6", "6.12.90+deb13-cloud-amd64"),
]


@pytest.mark.parametrize(("expected", "release"), CHOSEN, ids=[row[0] for row in CHOSEN])
def test_the_newest_kernel_that_answers_is_chosen(expected: str, release: str) -> None:
    assert choose(f"debian:{expected}", expected, PACKAGES).release == release


@pytest.mark.parametrize(
    ("expected", "problem", "advice"),
    [
        ("6.13", "no suite of the configured mirrors holds version 6.13", "5.10, 6.1, 6.12, 7.2, 7.3"),
        ("6.12.99", "did you mean 6.12.9, 6.12.90 or", "versions there"),
        ("6.12:rt", "there is 6.12, but not with flavour rt", "flavours there: cloud"),
        ("7.0", "has lost a part of every 7.0 (linux-modules-7.0.4+deb13-cloud-amd64)", "versions there"),
        ("7.2.13", "has lost a part of every 7.2.13 (linux-binary-7.2.13", "versions there"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(expected: str, problem: str, advice: str) -> None:
    with pytest.raises(NoSuchRelease) as caught:
        choose(f"debian:{expected}", expected, PACKAGES)
    assert problem in caught.value.message
    assert advice in caught.value.advice


def test_one_package_is_enough_up_to_6_19() -> None:
    (image,) = one("6.1.0-50-cloud-amd64", "6.1.176-1", "bookworm")
    assert needed_packages(image, PACKAGES) == [image]


def test_the_split_packages_are_followed_from_7_0() -> None:
    names = [
        needed_package.name
        for needed_package in needed_packages(choose("", "7.2", PACKAGES).package, PACKAGES)
    ]
    release = "7.2.12+deb14-cloud-amd64"
    assert sorted(names) == [f"linux-{part}-{release}" for part in ("base", "binary", "image", "modules")]


INDEX_TARGETS = """\
MetaKey: main/binary-amd64/Packages
Origin: Debian
Label: Debian
Release: bookworm
Repo-URI: http://mirror.example/debian/
Sourcesentry: {file}:1

MetaKey: main/dep11/Components-amd64.yml
Origin: Debian
Label: Debian
Release: bookworm
Repo-URI: http://mirror.example/debian/
Sourcesentry: {file}:1

Origin: Debian
Label: Debian-Security
Release: bookworm-security
Repo-URI: http://mirror.example/debian-security/
Sourcesentry: {file}:2

Origin: Somebody
Label: Tools
Release: stable
Repo-URI: http://tools.example/apt/
Sourcesentry: {file}:3
"""
DEB822 = """\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/mirror.gpg
Trusted: yes

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBGPL0BUBEAD
 -----END PGP PUBLIC KEY BLOCK-----
"""
ONE_LINE = """\
# deb http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/keys/mirror.gpg trusted=yes] http://mirror.example/debian/ bookworm main
deb-src http://mirror.example/debian bookworm main
"""


def test_the_archives_are_those_of_the_system_with_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "debian.sources"
    file.write_text(DEB822)
    main, security = debian_archives("debian:6.1", configured_sources(INDEX_TARGETS.format(file=file)))
    assert main.uri == "http://mirror.example/debian/"
    assert {"bullseye", "bookworm-backports", "sid", "experimental"} <= set(main.suites)
    assert not [suite for suite in main.suites if "security" in suite]
    assert main.options == (("Signed-By", "/keys/mirror.gpg"),)
    assert security.suites[:2] == ("bullseye-security", "bookworm-security")
    assert "\n mQINBGPL0BUBEAD\n" in security.stanza("amd64")


def test_what_apt_says_with_origins_goes_before_what_it_says_without(tmp_path: Path) -> None:
    bare = re.sub(r"(Origin|Label): .*\n", "", INDEX_TARGETS).format(file=tmp_path / "gone")
    message = configured_sources(INDEX_TARGETS.format(file=tmp_path / "gone") + "\n" + bare)
    assert [source.origin for source in message] == ["Debian", "Debian", "Somebody"]
    assert [source.origin for source in configured_sources(bare)] == ["", "", ""]


def test_an_archive_is_asked_for_package_lists_only(tmp_path: Path) -> None:
    sources = [ConfiguredSource("http://mirror.example/debian/", "Debian", "Debian", "bookworm", ())]
    (archive,) = debian_archives("debian:6.1", sources)
    lines = archive.stanza("amd64").splitlines()
    for line in ("Types: deb", "Targets: Packages", "Languages: none", "Architectures: amd64", "PDiffs: no"):
        assert line in lines


def test_the_options_of_one_line_sources_are_read_too(tmp_path: Path) -> None:
    file = tmp_path / "sources.list"
    file.write_text(ONE_LINE)
    options = source_options(file, "http://mirror.example/debian/")
    assert options == (("Signed-By", "/keys/mirror.gpg"),)
    assert source_options(file, "http://elsewhere.example/debian/") == ()
    assert source_options(tmp_path / "missing", "http://mirror.example/debian/") == ()


@pytest.mark.parametrize("suite", ["bookworm", "stable", "trixie-backports", "sid", "testing"])
def test_a_source_whose_lists_were_never_fetched_is_known_by_its_suite(suite: str) -> None:
    (archive,) = debian_archives("n", [ConfiguredSource("http://mirror.example/debian/", "", "", suite, ())])
    assert "trixie" in archive.suites


def test_one_archive_may_hold_the_security_suites_too() -> None:
    sources = [
        ConfiguredSource("http://mirror.example/all/", "Debian", "Debian", "trixie", ()),
        ConfiguredSource("http://mirror.example/all/", "Debian", "Debian-Security", "trixie-security", ()),
    ]
    (archive,) = debian_archives("n", sources)
    assert {"trixie", "trixie-security"} <= set(archive.suites)


@pytest.mark.parametrize(
    "sources",
    [
        [],
        [ConfiguredSource("http://archive.example/ubuntu/", "Ubuntu", "Ubuntu", "noble", ())],
        [ConfiguredSource("http://archive.example/ubuntu/", "", "", "noble", ())],
        [ConfiguredSource("http://archive.example/raspbian/", "Raspbian", "Raspbian", "bookworm", ())],
    ],
)
def test_without_a_debian_source_the_way_out_is_told(sources: list[ConfiguredSource]) -> None:
    with pytest.raises(NoDebianSource) as caught:
        debian_archives("debian:6.1", sources)
    assert "debian:6.1" in caught.value.message
    assert f"on Ubuntu: {INSTALL} debian-archive-keyring" in caught.value.advice


def request_for_host(tmp_path: Path) -> Request:
    return Request("host", "", tmp_path, tmp_path, silent)


def test_the_hosts_kernel_is_where_distributions_put_it(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "lib/modules/6.6.6").mkdir(parents=True)
    for name in ("vmlinuz", "config", "System.map"):
        (tmp_path / "boot" / f"{name}-6.6.6").write_text(name)
    parts = host_parts("6.6.6", tmp_path, request_for_host(tmp_path))
    assert parts.image == tmp_path / "boot/vmlinuz-6.6.6"
    assert parts.config == tmp_path / "boot/config-6.6.6"
    assert parts.modules == tmp_path / "lib/modules/6.6.6"
    assert parts.system_map == tmp_path / "boot/System.map-6.6.6"


def test_a_host_without_its_image_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="has no image on this machine: looked for") as caught:
        host_parts("6.6.6", tmp_path, request_for_host(tmp_path))
    assert f"{tmp_path}/boot/vmlinuz-6.6.6" in caught.value.message
    assert f"{tmp_path}/lib/modules/6.6.6/vmlinuz" in caught.value.message
    assert "path:/where/vmlinuz" in caught.value.advice
