"""The guest's programs have the same bytes wherever they are built."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILT = Path("src/ktrial/_guest/x86_64")
SOURCES = ["Cargo.toml", ".cargo", "crates"]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """The sources of the crates in another directory."""
    copy = tmp_path / "another directory" / "checkout"
    copy.mkdir(parents=True)
    for source in SOURCES:
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, copy / source)
        else:
            shutil.copy(ROOT / source, copy / source)
    return copy


@pytest.fixture
def cargo_home(tmp_path: Path) -> Path:
    """A cache of cargo's own in another directory, with the packages that are in the usual one."""
    usual = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    for part in ("cache", "index"):
        shutil.copytree(usual / "registry" / part, tmp_path / "cargo" / "registry" / part)
    return tmp_path / "cargo"


@pytest.mark.nightly  # three programs are compiled: more than a minute of CPU time
@pytest.mark.timeout(3600)
def test_another_directory_and_another_cache_of_cargo_give_the_same_bytes(
    elsewhere: Path, cargo_home: Path, tmp_path: Path
) -> None:
    moved = {"CARGO_HOME": str(cargo_home), "CARGO_TARGET_DIR": str(tmp_path / "target")}
    subprocess.run([elsewhere / "crates" / "build-guest"], env={**os.environ, **moved}, check=True)
    different = [
        file.name
        for file in sorted((elsewhere / BUILT).iterdir())
        if file.read_bytes() != (ROOT / BUILT / file.name).read_bytes()
    ]
    assert [file.name for file in sorted((elsewhere / BUILT).iterdir())] == [
        "SHA256SUMS",
        "agent",
        "launch",
        "tasks",
        "tasks.json",
        "work",
        "workloads.json",
    ]
    assert different == []
