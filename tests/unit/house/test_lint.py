"""Lint of Rust stops the tests only where it is the pinned toolchain's: another one sees other things."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.places import ROOT


def pinned() -> str:
    match = re.search(r'^channel = "(.*)"$', (ROOT / "rust-toolchain.toml").read_text(), re.MULTILINE)
    assert match
    return match[1]


@pytest.mark.parametrize(
    ("version", "lints", "status", "says"),
    [
        (pinned(), "exit 0", 0, ""),
        (pinned(), "echo 'error: unsafe block' >&2; exit 1", 1, "error: unsafe block\n"),
        ("1.85.1", "exit 0", 0, ""),
        ("1.85.1", "echo 'error: unsafe block' >&2; exit 1", 0, "lint: this is advice of Rust 1.85.1"),
    ],
)
def test_lint_of_another_toolchain_is_printed_and_stops_nothing(
    version: str, lints: str, status: int, says: str, tmp_path: Path
) -> None:
    for program, script in {
        "cargo": lints,
        "rustc": f"echo 'rustc {version} (4eb161250 2025-03-15)'",
    }.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / program).chmod(0o755)
    done = subprocess.run(
        [ROOT / "crates/lint"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert says in done.stderr
    assert ("error: unsafe block" in done.stderr) == (lints != "exit 0"), "it is printed in any case"
