"""Labels of groups that are too long for their columns: what differs in their middles is told apart."""

from pathlib import Path

import pytest
from tests.support.command_line import CommandLine

LONG = "linux-image-6.1.0-{}-with-a-suffix-that-somebody-made-long-amd64"


def test_labels_that_are_shortened_alike_are_numbered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.csv"
    middle = "x" * 40
    rows = [
        f"{LONG.format(middle + kernel + middle)},{level + run}"
        for kernel, level in (("17", 10), ("18", 20))
        for run in range(3)
    ]
    path.write_text("\n".join(["kernel,time_ms", *rows]) + "\n")
    monkeypatch.setenv("COLUMNS", "110")
    shown = CommandLine(monkeypatch, capsys)("analyze", str(path)).output
    assert [name for name in ("1: linux", "2: linux") if name in shown] == ["1: linux", "2: linux"]
