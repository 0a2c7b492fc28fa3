"""Tests that would keep each other out of something run one after another."""

import re
from pathlib import Path

from tests.support.runs_of_tests import OF_ONE_MACHINE

ROOT = Path(__file__).resolve().parents[3]
STARTS_A_SERVER = re.compile(r"^from tests\.support\.ssh_systems import", re.MULTILINE)


def test_all_that_measure_on_this_system_by_ssh_go_to_one_worker() -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests/unit").rglob("test_*.py")
        if STARTS_A_SERVER.search(path.read_text(encoding="utf-8"))
    }
    assert files == set(OF_ONE_MACHINE)
