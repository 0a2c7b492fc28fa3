"""docs/security.md names a test for each promise, and each is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/security.md").read_text()


def test_each_promise_names_tests_that_are_there() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 10
    for row in rows:
        named = re.findall(r"`(tests/[^`]*)`", row.rsplit("|", 2)[1])
        assert named, f"no test is named: {row}"
        assert [path for path in named if not (ROOT / path).exists()] == []
