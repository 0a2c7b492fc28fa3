"""Crates are compared with their recorded SHA-256 before they are compiled; no file names their registry."""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.places import ROOT

RECORDED = ROOT / "crates" / "checksums.txt"
LOCK = """\
version = 4

[[package]]
name = "ktrial-agent"
version = "0.1.0"
dependencies = [
 "itoa",
]

[[package]]
name = "itoa"
version = "1.0.18"
source = "registry+somewhere"
checksum = "{digest}"
"""


def recorded() -> dict[tuple[str, str], str]:
    lines = [line.split() for line in RECORDED.read_text().splitlines() if not line.startswith("#")]
    return {(name, version): digest for name, version, digest in lines}


def named() -> Iterator[tuple[str, str]]:
    """The versions of all crates that come from elsewhere."""
    for file in sorted(ROOT.glob("crates/*/Cargo.toml")):
        crate = tomllib.loads(file.read_text())
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, wanted in crate.get(kind, {}).items():
                version = wanted if isinstance(wanted, str) else wanted.get("version", "")
                if version:
                    package = name if isinstance(wanted, str) else wanted.get("package", name)
                    yield package, version.removeprefix("=")


def test_every_version_that_is_named_is_recorded_and_no_registry_is() -> None:
    assert set(named()) <= recorded().keys(), "crates/compare-crates --write"
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in recorded().values())
    assert "://" not in RECORDED.read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One with a crate from elsewhere, and a cargo that has fetched it."""
    (tmp_path / "crates").mkdir()
    shutil.copy(ROOT / "crates" / "compare-crates", tmp_path / "crates")
    shutil.copy(RECORDED, tmp_path / "crates")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cargo").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bin" / "cargo").chmod(0o755)
    return tmp_path


def compared(checkout: Path, digest: str, *options: str) -> "subprocess.CompletedProcess[str]":
    (checkout / "Cargo.lock").write_text(LOCK.format(digest=digest))
    return subprocess.run(
        [checkout / "crates" / "compare-crates", *options],
        env={**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_crate_that_is_not_the_recorded_one_ends_the_build(checkout: Path) -> None:
    digest = recorded()["itoa", "1.0.18"]
    done = compared(checkout, digest)
    assert (done.returncode, done.stderr) == (0, "")
    done = compared(checkout, digest[::-1])
    assert done.returncode == 1
    assert f"itoa 1.0.18 {digest[::-1]}" in done.stderr
    assert "crates/compare-crates --write" in done.stderr


def test_what_is_written_is_what_cargo_has_without_where_it_comes_from(checkout: Path) -> None:
    assert compared(checkout, "ab" * 32, "--write").returncode == 0
    heading, *lines = (checkout / "crates" / "checksums.txt").read_text().splitlines()
    assert heading.startswith("# ")
    assert lines == [f"itoa 1.0.18 {'ab' * 32}"]
