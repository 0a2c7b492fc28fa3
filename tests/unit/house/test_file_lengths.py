"""A file that has grown long holds two things: it is split before that."""

from tests.support.places import ROOT

LONGEST = 400
"""Lines."""


def test_no_file_of_the_source_is_too_long() -> None:
    lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / "src").rglob("*.py")
    }
    assert lines
    assert {path: count for path, count in lines.items() if count > LONGEST} == {}
