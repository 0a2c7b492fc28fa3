"""Standard error that cannot be written ends nothing: a full disk, a reader that goes, a closed terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.runs_of_tests import at_night

STUDY = """
workloads = ["pipe"]
[machine]
kind = "host"
[timed]
stopping = "fixed"
blocks = 3
[factors."pipe.operations"]
levels = [300, 400]
"""
PROGRAM = "from ktrial.cli.main import main; main()"


@pytest.fixture
def run(tmp_path: Path) -> list[str]:
    """A study of six trials in real time."""
    (tmp_path / "study.toml").write_text(STUDY)
    study, store = str(tmp_path / "study.toml"), str(tmp_path / "trials.db")
    return [sys.executable, "-c", PROGRAM, "run", study, "--no-html", "--store", store]


@pytest.mark.parametrize(
    "messages", ["2>/dev/full", at_night("2> >(exec 0<&-)")], ids=["full disk", "reader gone"]
)
def test_a_run_goes_on_where_its_messages_are_lost(run: list[str], messages: str) -> None:
    script = f'"$@" {messages}'
    process = subprocess.run(
        ["bash", "-c", script, "bash", *run], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0
    assert "pipe" in process.stdout


def test_a_run_ends_as_told_when_its_terminal_is_closed(run: list[str], tmp_path: Path) -> None:
    ours, its = pty.openpty()
    state = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    process = subprocess.Popen(run, stdin=its, stdout=its, stderr=its, start_new_session=True, env=state)
    os.close(its)
    shown = b""
    while b"trials" not in shown:
        shown += os.read(ours, 1000)
    os.close(ours)
    try:
        assert process.wait(timeout=120) == 1
    finally:
        process.kill()
    assert not (tmp_path / "state").exists() or not [*(tmp_path / "state").rglob("bug*")]
