"""A file that has grown long holds two things: it is split before that."""

import pytest
from tests.support.places import ROOT

LONGEST = 400
"""Lines."""


@pytest.mark.parametrize("top", ["src", "tests", "docs", "bench"])
def test_no_file_is_too_long(top: str) -> None:
    lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / top).rglob("*.py")
    }
    assert lines
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}
