"""Recorded guests that ended early: outcome, reason, console, and the results before."""

import re
from pathlib import Path

import pytest
from tests.support.golden_guests import played

from ktrial.model.trial import Outcome


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "results"),
    [
        ("panic", Outcome.PANICKED, r"^sysrq triggered crash, at \d+ ms$", 1),
        ("no-init", Outcome.NO_INIT, "root fs|No working init", 0),
        ("hang", Outcome.HUNG, "^1 s of guest time went by", 3),
        ("too-small", Outcome.OUT_OF_MEMORY, "memory", 0),
        ("module-refused", Outcome.REFUSED, "the kernel refused a module .*Exec format", 0),
    ],
)
def test_how_it_ended_is_told(name: str, outcome: Outcome, reason: str, results: int, tmp_path: Path) -> None:
    ended = played(name, tmp_path)
    assert ended.outcome == outcome.value
    assert re.search(reason, ended.reason), ended.reason
    assert len(ended.results) == results


def test_a_panic_is_told_with_the_end_of_its_console(tmp_path: Path) -> None:
    console = played("panic", tmp_path).console
    assert "Kernel panic - not syncing: sysrq triggered crash" in console
    assert len(console.splitlines()) <= 200


def test_a_kernel_that_does_not_boot_is_booted_once_more_talkative(tmp_path: Path) -> None:
    console = played("no-init", tmp_path).console
    assert len(console.splitlines()) > 100
    assert "VFS: Cannot open root device" in console, "of which a quiet boot says nothing"


def test_what_hung_is_told_by_the_program_that_was_killed(tmp_path: Path) -> None:
    before, endless, after = played("hang", tmp_path).results
    assert endless.timed_out
    assert endless.signal == 9
    assert float(after.content.split()[0]) - float(before.content.split()[0]) >= 1
