"""Commas and points in the numbers of tables: what the other numbers say they are, and what the user says."""

from pathlib import Path

import pytest
from tests.support.command_line import CommandLine
from tests.support.program_texts import only_family

from ktrial import importers
from ktrial.importers.errors import ImportFailed
from ktrial.model.imported import Imported

HEADER = "kernel;seconds"
KINDS = {
    "another number has two decimals": ((HEADER, "a;10,077", "b;10,5"), (10.077, 10.5)),
    "a number before it is long": ((HEADER, "a;10,077", "b;1234"), (10.077, 1234.0)),
    "points group": ((HEADER, "a;10,077", "b;1.234,567"), (10.077, 1234.567)),
    "no group begins with nothing": ((HEADER, "a;10,077", "b;0,078"), (10.077, 0.078)),
    "commas group twice": ((HEADER, "a;10,077", "b;1,234,567"), (10_077.0, 1_234_567.0)),
    "a point is below a comma": ((HEADER, "a;10,077", "b;1,234.5"), (10_077.0, 1234.5)),
    "a point in the column": ((HEADER, "a;10,077", "b;987.25"), (10_077.0, 987.25)),
    "spaces group": ((HEADER, "a;10 077,5", "b;10 078,5"), (10_077.5, 10_078.5)),
    "narrow spaces group": ((HEADER, "a;10\u202f077", "b;9\u202f078"), (10_077.0, 9_078.0)),
    "with units": (("kernel;time", "a;10,077 ms", "b;10,5 ms"), (10.077, 10.5)),
    "another column divides": (("kernel;seconds;load", "a;10,077;0,5", "b;10,078;0,5"), (10.077, 10.078)),
    "another column groups": (
        ("kernel;seconds;note", "a;10,077;1,234.5", "b;10,078;1,234.5"),
        (10_077.0, 10_078.0),
    ),
    "points group where commas divide": (
        ("kernel;seconds;load", "a;10.077;0,5", "b;1.010.078;0,5"),
        (10_077.0, 1_010_078.0),
    ),
}
OPEN = ("kernel;seconds", "a;10,077", "b;10,078")


def read(where: Path, *lines: str, decimal: str = "") -> Imported:
    file = where / "table.csv"
    file.write_text("\n".join(lines) + "\n")
    choices = importers.Choices(value="seconds" if "seconds" in lines[0] else "", decimal=decimal)
    (imported,) = importers.read_all([("", file)], choices)
    return imported


@pytest.mark.parametrize("kind", KINDS)
def test_a_comma_is_what_the_other_numbers_say(tmp_path: Path, kind: str) -> None:
    lines, values = KINDS[kind]
    family = only_family(read(tmp_path, *lines))
    assert tuple(value for group in family.groups for value in group.values) == values


@pytest.mark.parametrize(
    "lines",
    [
        OPEN,
        ("kernel;seconds", "a;10,077", "b;17"),
        ("kernel;seconds;load;rate_per_s", "a;10,077;0,5;1,234.5", "b;10,078;0,5;1,234.5"),
        ("kernel;seconds", "6.1;10,077", "6.12;10,078"),
    ],
    ids=["alone", "a whole number", "both", "a version's point"],
)
def test_a_comma_that_nothing_explains_is_asked_about_for(tmp_path: Path, lines: tuple[str, ...]) -> None:
    with pytest.raises(
        ImportFailed, match="line 2: seconds is 10,077: decimals, or grouped by threes"
    ) as told:
        read(tmp_path, *lines)
    assert told.value.advice == "--decimal comma: 10.077; --decimal point: 10077"
    assert len(told.value.message) - len(str(tmp_path)) < 200


@pytest.mark.parametrize(("decimal", "first"), [("comma", 10.077), ("point", 10_077.0)])
def test_the_option_says_it(tmp_path: Path, decimal: str, first: float) -> None:
    imported = read(tmp_path, *OPEN, decimal=decimal)
    assert only_family(imported).groups[0].values == (first,)
    assert ("decimal commas" if decimal == "comma" else "commas by threes") in imported.understood


def test_the_option_outranks_the_other_numbers(tmp_path: Path) -> None:
    lines = ("kernel;seconds;load", "a;10,077;0,5", "b;10,078;0,5")
    assert only_family(read(tmp_path, *lines, decimal="point")).groups[0].values == (10_077.0,)


def test_a_number_that_contradicts_the_option_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="line 2: seconds is '10,5', not a number"):
        read(tmp_path, HEADER, "a;10,5", "b;10,6", decimal="point")


def test_what_was_concluded_from_other_columns_is_told_with_the_option(tmp_path: Path) -> None:
    lines, _ = KINDS["another column divides"]
    assert "decimal commas in seconds (--decimal point), load" in read(tmp_path, *lines).understood


def test_the_command_takes_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ktrial, file = CommandLine(monkeypatch, capsys), tmp_path / "table.csv"
    file.write_text("\n".join(OPEN) + "\n")
    assert ktrial("analyze", str(file)).status == 2
    assert "decimal commas in seconds" in ktrial("analyze", str(file), "--decimal", "comma").output
