"""Tours of the kernel: compiled here, run in guests alone."""

import subprocess
from pathlib import Path

import pytest

from ktrial.cli.options.workloads import use_of
from ktrial.workloads.errors import BadWorkload
from ktrial.workloads.tours import NAMES, tour, tours


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAL_CACHE", str(tmp_path / "cache"))


def test_each_is_a_program_that_refuses_to_run_outside_of_a_guest() -> None:
    uses = tours()
    assert tuple(use.label for use in uses) == NAMES
    for use in uses:
        assert use.command is not None
        done = subprocess.run(use.command.argv, capture_output=True, text=True, check=False, timeout=20)
        assert (done.returncode, done.stderr) == (1, "a tour runs in a guest of ktrial alone\n")


def test_a_command_line_names_them_as_it_names_workloads() -> None:
    assert use_of("tour-ext4") == tour("tour-ext4")


def test_one_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(BadWorkload, match="There is no tour tour-moon") as raised:
        use_of("tour-moon")
    assert "tour-ext4" in raised.value.advice
