"""The Debian package: lintian finds no error, and what it installs runs; it is built twice alike."""

import hashlib
import subprocess
from pathlib import Path

import pytest
from tests.support.places import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


def ran(*command: object) -> str:
    ended = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def built(where: Path) -> Path:
    ran(ROOT / "distribution/build-debian-package", where)
    (made,) = where.glob("ktrial_*.deb")
    return made


@pytest.fixture(scope="module")
def package(large_shared_path: Path) -> Path:
    return built(large_shared_path / "debian")


@pytest.fixture(scope="module")
def unpacked(package: Path, large_shared_path: Path) -> Path:
    where = large_shared_path / "installed"
    ran("dpkg-deb", "-x", package, where)
    return where


def files_of(package: Path, where: Path) -> dict[str, str]:
    """Digests of what a package installs, by name."""
    ran("dpkg-deb", "-x", package, where)
    files = (file for file in where.rglob("*") if file.is_file() and not file.is_symlink())
    return {str(file.relative_to(where)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_lintian_has_no_error(package: Path) -> None:
    (changes,) = package.parent.glob("*.changes")
    ran("lintian", "--fail-on", "error", "--allow-root", changes)


def test_two_builds_are_identical(package: Path, large_path: Path) -> None:
    again = built(large_path / "again")
    first, second = (files_of(built, large_path / name) for built, name in ((package, "a"), (again, "b")))
    assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} == set()
    assert package.read_bytes() == again.read_bytes()


def test_it_installs_pages_and_completions(unpacked: Path) -> None:
    share = unpacked / "usr/share"
    assert (share / "man/man1/ktrial-compare.1.gz").is_file()
    assert (share / "bash-completion/completions/ktrial").is_file()
    assert (share / "zsh/vendor-completions/_ktrial").is_file()
    assert (share / "fish/vendor_completions.d/ktrial.fish").is_file()


def test_what_it_installs_runs(unpacked: Path, tmp_path: Path) -> None:
    program = (unpacked / "usr/bin/ktrial").read_text()
    there = tmp_path / "ktrial"
    there.write_text(program.replace("/usr/lib/ktrial", f"{unpacked}/usr/lib/ktrial"))
    assert ran("/usr/bin/python3", "-P", there, "--version").startswith("ktrial ")
    shown = ran("/usr/bin/python3", "-P", there, "show", ROOT / "docs/notebooks/quick.zip")
    assert "fork by 14.8" in shown
