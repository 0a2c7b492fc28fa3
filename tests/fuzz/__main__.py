"""Tries the readers of a stranger's bytes: python -m tests.fuzz [TARGET…] [--minutes N].

Each target runs in a process of its own; what it comes upon lies below target/fuzz (README.md). The exit
status is 1 where something is a finding, 2 where atheris is missing.
"""

import argparse
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.targets import CORPUS, TARGETS

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "fuzz"
WIRE, WIRE_TARGET = "wire", "stream"
"""The Rust side: crates/wire, tried by cargo-fuzz."""
NEEDS_ATHERIS = "fuzz: atheris is missing: make fuzz installs it below target; or pip install atheris"
NEEDS_CARGO_FUZZ = (
    "fuzz: wire is left out: it takes cargo-fuzz and a nightly Rust: cargo install cargo-fuzz; "
    "rustup toolchain install nightly"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", help=f"{', '.join([*TARGETS, WIRE])} (default: all)")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each target (default: 10)")
    options = parser.parse_args()
    names = options.target or [*TARGETS, WIRE]
    if unknown := [name for name in names if name not in {*TARGETS, WIRE}]:
        parser.error(f"there is no target {', '.join(unknown)}")
    if find_spec("atheris") is None and names != [WIRE]:
        print(NEEDS_ATHERIS, file=sys.stderr)
        return 2
    failed = [name for name in names if tried(name, round(options.minutes * 60))]
    if failed:
        print(f"fuzz: findings of {', '.join(failed)}: see {WORK}", file=sys.stderr)
    return int(bool(failed))


def tried(name: str, seconds: int) -> int:
    """The status with which trying a target ends."""
    command = command_of(name)
    if command is None:
        print(NEEDS_CARGO_FUZZ, file=sys.stderr)
        return 0
    grown, findings = WORK / name / "corpus", WORK / name / "findings"
    for directory in (grown, findings):
        directory.mkdir(parents=True, exist_ok=True)
    print(f"fuzz: {name}, for {seconds} s", flush=True)
    limits = [f"-max_total_time={seconds}", f"-artifact_prefix={findings}/", "-print_final_stats=1"]
    # What is new goes into the first directory.
    return subprocess.run([*command, *limits, grown, CORPUS / name], cwd=ROOT, check=False).returncode


def command_of(name: str) -> list[str] | None:
    """What tries a target; options of libFuzzer and directories follow. None where cargo-fuzz is missing."""
    if name != WIRE:
        return [sys.executable, "-m", "tests.fuzz.under_atheris", name]
    if not shutil.which("cargo-fuzz"):
        return None
    manifest = ROOT / "tests" / "fuzz" / WIRE
    os.environ["CARGO_TARGET_DIR"] = str(WORK / "cargo")
    binary = WORK / "cargo" / "x86_64-unknown-linux-gnu" / "release" / WIRE_TARGET
    build = ["cargo", "+nightly", "fuzz", "build", "--fuzz-dir", str(manifest), WIRE_TARGET]
    if subprocess.run(build, cwd=manifest, check=False).returncode:
        return None
    return [str(binary)]


if __name__ == "__main__":
    sys.exit(main())
