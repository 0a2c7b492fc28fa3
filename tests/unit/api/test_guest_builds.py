"""The guest's programs have the same bytes wherever they are built."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILT = Path("src/ktrial/_guest/x86_64")
SOURCES = ["Cargo.toml", ".cargo", "rust-toolchain.toml", "crates"]
DIGESTS = ROOT / "crates" / "SHA256SUMS"
PROGRAMS = [line.split()[1] for line in DIGESTS.read_text().splitlines() if not line.startswith("#")]


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


def taken(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What comes of asking for the programs that are kept, on a system without a compiler."""
    command: list[str | Path] = [checkout / "crates" / "take-prebuilt", *arguments]
    return subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)


def test_the_programs_that_are_kept_are_those_of_the_sources(elsewhere: Path) -> None:
    assert taken(elsewhere, "--check").returncode == 0, "after a change in crates/: crates/record-digests"
    assert sorted(file.name for file in (elsewhere / "crates" / "prebuilt").iterdir()) == sorted(
        f"{name}.xz" for name in PROGRAMS
    )


def test_they_are_taken_without_a_compiler_and_are_what_their_digests_say(elsewhere: Path) -> None:
    for build in ("build-guest", "build-plugin"):
        subprocess.run([elsewhere / "crates" / build], env={"PATH": "/usr/bin:/bin"}, check=True)
    subprocess.run(
        ["sha256sum", "--check", "--quiet", elsewhere / "crates" / "SHA256SUMS"],
        cwd=elsewhere / BUILT,
        check=True,
    )
    assert all(os.access(elsewhere / BUILT / name, os.X_OK) != name.endswith(".json") for name in PROGRAMS)
    assert taken(elsewhere).stdout == "", "those that are there are left as they are"


@pytest.mark.parametrize("source", ["crates/agent/src/main.rs", "crates/insn/Cargo.toml", "Cargo.toml"])
def test_changed_sources_are_compiled(elsewhere: Path, source: str) -> None:
    with (elsewhere / source).open("a") as changed:
        changed.write("\n")
    assert taken(elsewhere).returncode == 1
    assert not (elsewhere / BUILT).exists()


@pytest.mark.parametrize("damage", ["bits", "another program", "removed"])
def test_a_damaged_program_is_told_and_not_taken(elsewhere: Path, damage: str) -> None:
    kept = elsewhere / "crates" / "prebuilt"
    match damage:
        case "bits":
            kept.joinpath("work.xz").write_bytes(kept.joinpath("work.xz").read_bytes()[:-5000])
        case "another program":
            shutil.copy(kept / "agent.xz", kept / "work.xz")
        case _:
            (kept / "work.xz").unlink()
    ended = taken(elsewhere)
    assert ended.returncode == 2
    assert "crates/prebuilt/work.xz is damaged" in ended.stderr
    assert "git checkout" in ended.stderr
    assert not [file for file in (elsewhere / BUILT).iterdir() if "work" in file.name and "new" in file.name]
    assert not (elsewhere / BUILT / "work").exists()


@pytest.mark.nightly  # every program is compiled: some minutes of CPU time
@pytest.mark.timeout(3600)
def test_another_directory_and_another_cache_of_cargo_give_the_bytes_that_are_kept(
    elsewhere: Path, cargo_home: Path, tmp_path: Path
) -> None:
    moved = {"CARGO_HOME": str(cargo_home), "CARGO_TARGET_DIR": str(tmp_path / "target")}
    for build in ("build-guest", "build-plugin"):
        command: list[str | Path] = [elsewhere / "crates" / build, "--compile"]
        subprocess.run(command, env={**os.environ, **moved}, check=True)
    different = [
        name
        for name in PROGRAMS
        if (elsewhere / BUILT / name).read_bytes() != (ROOT / BUILT / name).read_bytes()
    ]
    assert different == []
