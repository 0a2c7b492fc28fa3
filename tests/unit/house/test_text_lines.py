"""Lines end with a line feed: what Python also takes for the end of one is what a program printed."""

import re

import pytest
from tests.support.places import ROOT

from ktrial.text_lines import lines_of


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\nb", ["a", "", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\u2028b\x85c\x0bd\x0ce\x1cf\rg\n", ["a\u2028b\x85c\x0bd\x0ce\x1cf\rg"]),
    ],
)
def test_a_line_ends_with_a_line_feed_alone(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines


def test_no_text_is_split_where_unicode_ends_a_line() -> None:
    # Bytes have no such ends; the plugin's file is ASCII, and is asked for its own ends.
    splits = re.compile(r"(?<!data)\.splitlines\((?!keepends)")
    files = [path for path in (ROOT / "src").rglob("*.py") if splits.search(path.read_text(encoding="utf-8"))]
    assert files == []
